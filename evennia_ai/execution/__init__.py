"""Execution: a turn as it was decided, as one value that can be sent to another process.

Pure: who composes from it needs no Django, Evennia or Twisted, and no database.
"""
