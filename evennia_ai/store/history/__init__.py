"""Conversations: their records, their turns, and what is remembered from one to the next."""
