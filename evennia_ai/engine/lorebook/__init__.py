"""Lorebooks: their entries, the keys that activate them, and their places in the prompt. Pure.

`book` and `entry` define the values. `scan` finds keys in a conversation, and `activation` decides
which entries are active. Start reading with `activation.passes`. `formats.lorebooks` reads, edits
and lints lorebook files. Standard: Character Card V3, "Lorebook" and "Decorators".
"""
