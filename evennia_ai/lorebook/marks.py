"""What an entry is remembered by from turn to turn.

A label is for people and need not be the only one: a book's name may hold the `#`, and the book of
a card may be called like one of the game's. An identity is the label
wherever it cannot be mistaken.
"""

import re
from typing import Final

_OF_A_CARD: Final = "#"
_NAME: Final = re.compile(r"(?:[^\\#]|\\.)*", re.DOTALL)


def identity_prefix(label: str, *, attach: str) -> str:
    """The name of a book as the identities of its entries begin."""
    name = label.replace("\\", "\\\\").replace("#", "\\#")
    return _OF_A_CARD + name if attach == "character" else name


def label_of(identity: str) -> str:
    """The label of the entry that is remembered by `identity`."""
    identity = identity.removeprefix(_OF_A_CARD)
    found = _NAME.match(identity)
    end = found.end() if found else 0
    return re.sub(r"\\(.)", r"\1", identity[:end], flags=re.DOTALL) + identity[end:]
