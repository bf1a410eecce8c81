"""SillyTavern chats: parse their JSON lines into values and records, and write them back."""
