"""The history of a conversation: append-only records, their projection to messages, and turns.

Pure: no database, clock or setting. `evennia_ai.store` stores the results.
"""
