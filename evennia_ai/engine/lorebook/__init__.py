"""Lorebooks: books and entries, what wakes them, where they stand. Pure.

A book and its entries are values here (`book`, `entry`); `formats` reads them of files, `scan`
finds their keys in a conversation, `activation` decides which are active, `editing` changes and
lints them. Arrows run from the later of these to the earlier. Standard: Character Card V3,
"Lorebook" and "Decorators".
"""
