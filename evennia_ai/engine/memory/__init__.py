"""Memories of an NPC: what it learnt, how much of it counts now, and what it may learn at all.

Pure: values in, values out. `store/memories.py` keeps them, `engine/compose.py` recalls them.
"""
