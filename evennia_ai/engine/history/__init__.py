"""The history of a conversation: records that never change, their messages, and turns.

The code here has no side effects: it uses no database, clock or setting. `evennia_ai.store` stores
the results.
"""
