"""Memories of an NPC: what it learnt, their scores now, and what it may learn at all.

Pure: values in, values out. `store/memories.py` stores them, `engine/compose.py` recalls them.
"""
