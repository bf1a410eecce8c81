"""The lorebook: books and entries, decorators, key matching, activation. Pure.

`books` reads a book, `rules` says how lore is activated, `activation` says which entries are active
and why the others are not. Standard: Character Card V3, "Lorebook" and "Decorators".
"""
