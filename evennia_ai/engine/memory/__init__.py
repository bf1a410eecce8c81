"""Memories of an NPC: what it has learnt, how they are scored, and what it may learn.

The code here has no side effects. `store/memories.py` stores memories, `engine/compose.py` recalls
them.
"""
