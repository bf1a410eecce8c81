"""Chats of other programs: SillyTavern's lines of JSON as values and as records, and back."""
