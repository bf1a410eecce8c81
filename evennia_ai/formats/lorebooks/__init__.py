"""Lorebook files: Card V3, SillyTavern's world files, and the formats of NovelAI, Agnai and RisuAI.

`entry_fields` has the table of an entry's fields and their places in the formats. `extension` reads
the data that programs add to the standard. `written` reads the fields of one entry, `reading`
builds a `LoreEntry` from them, and `books` reads a whole book. `conversion` converts a book between
Card V3 and world files.
"""
