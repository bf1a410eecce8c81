"""Files of books: Card V3, SillyTavern's world files, and what NovelAI, Agnai and RisuAI write.

`fields` is the table of what an entry can say, `writes` where formats keep it; `books` reads a
book, `reading` one entry, `conversion` brings a book into the other format and back.
"""
