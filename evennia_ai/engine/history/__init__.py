"""The history of a conversation: append-only records, their projection to a prompt, turn manifests.

Pure: no database, clock or setting. `evennia_ai.store` keeps what is made here.
"""
