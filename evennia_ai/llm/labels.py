"""Labels: how a line of a prompt tells who said it, and why no other line can pass for one.

What somebody said begins at the margin with their name and a colon. Names come from records alone.
Further lines of a speech are indented, and so is whatever reads like a label in a text that nobody
said and that stands among what was said.
"""

import re
from typing import Final

from evennia_ai.history.role_markup import role_markup

NAME_LIMIT: Final = 64
SOMEONE: Final = "someone"
"""The label of a name that nothing is left of."""

FACTS: Final = frozenset(
    {
        *("who speaks", "who acts", "who whispers to you", "place", "present"),
        *("what you remember", "what you are after now", "what you lately lived through elsewhere"),
    }
)
"""Heads of the facts that the game itself tells; nobody's name reads like one of them."""

LINE_BREAK: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_INDENT: Final = "    "
_COLONS: Final = dict.fromkeys(map(ord, ":：﹕︓꞉∶ː˸"), " ")
_LIKE_A_LABEL: Final = re.compile(
    rf"^(?=[^\s:：][^:：\n]{{0,{NAME_LIMIT}}}[:：](?:\s|$))", re.MULTILINE
)


def label(name: str) -> str:
    """What stands before the colon for somebody of this name, "" where there is no name.

    A name holds no colon there, and one that is the word for a role is put in brackets.
    """
    if not name.split():
        return ""
    made = " ".join(name.translate(_COLONS).split())[:NAME_LIMIT].strip()
    if made.casefold() in FACTS or role_markup(f"{made}:"):
        return f"({made})"
    return made or SOMEONE


def labelled(name: str, text: str) -> str:
    """What somebody of this name said: only the label's own line starts at the margin."""
    return f"{name}: {LINE_BREAK.sub(f'{chr(10)}{_INDENT}', text)}"


def set_in(text: str) -> str:
    """A text that nobody said, with every line indented that begins like a label."""
    if ":" not in text and "：" not in text:
        return text
    return _LIKE_A_LABEL.sub(_INDENT, LINE_BREAK.sub("\n", text))
