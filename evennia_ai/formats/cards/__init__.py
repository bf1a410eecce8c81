"""Character cards: the parsed view, reading the file formats, and what a card gives the prompt.

Pure. Standard: Character Card V3; V2 and V1 are upgraded when they are read.
"""
