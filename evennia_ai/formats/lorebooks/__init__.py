"""Lorebook files: Card V3, SillyTavern's world files, and the formats of NovelAI, Agnai and RisuAI.

`entry_fields` has the table of an entry's fields and their places in the formats. `extension` reads
the data that programs add to the standard. `written` and `reading` read one entry, `books` reads a
book. `conversion` converts a book between Card V3 and world files.
"""
