"""Lorebooks: entries, the keys that activate them, and their places in the prompt.

`book` and `entry` define the values. `scan` finds keys in a conversation. `activation` decides
which entries are active; start reading with `activation.passes`. `formats.lorebooks` reads, edits
and lints lorebook files. The code has no side effects. Standard: Character Card V3, "Lorebook" and
"Decorators".
"""
