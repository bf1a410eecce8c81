"""Files of books: Card V3, SillyTavern's world files, and what NovelAI, Agnai and RisuAI write.

`entry_fields` is the table of what an entry can say and where formats keep it, `extension` what
programs add to the standard; `reading` reads one entry, `books` a book, `conversion` brings a book
into the other format and back.
"""
