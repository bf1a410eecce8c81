"""Lorebook files: Card V3, SillyTavern's world files, and those of NovelAI, Agnai and RisuAI.

`entry_fields` is the table of an entry's fields and of their places in the formats. `extension`
reads what programs add to the standard. `written` and `reading` read one entry, `books` reads a
book. `conversion` converts a book between Card V3 and world files.
"""
