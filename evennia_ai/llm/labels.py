"""Labels: how a line of a prompt tells who said it, and why no other line can pass for one.

What somebody said begins at the margin with their name and a colon. Names come from records alone.
Further lines of a speech are indented, and so is whatever reads like a label in a text that nobody
said and that stands among what was said.
"""

import re
from typing import Final

from evennia_ai.prompt.names import SOMEONE, bare, bounded, is_word_of_the_game, without_mark

NAME_LIMIT: Final = 64
LINE_BREAK: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_INDENT: Final = "    "
_LIKE_A_LABEL: Final = re.compile(
    rf"^(?=[^\s:：][^:：\n]{{0,{NAME_LIMIT}}}[:：](?:\s|$))", re.MULTILINE
)


def label(name: str) -> str:
    """What stands before the colon for somebody of this name, "" where there is no name.

    A name holds no colon there, one that could be more than a name is quoted, and one that is a
    word of the game is put in brackets, unless where it comes from has marked it.
    """
    if not name.split():
        return ""
    own = without_mark(name)
    made = bare(own)
    if own == name and made != SOMEONE and is_word_of_the_game(made):
        return f"({made})"
    return bounded(f"{made}{name[len(own) :]}")


def labelled(name: str, text: str) -> str:
    """What somebody of this name said: only the label's own line starts at the margin."""
    return f"{name}: {LINE_BREAK.sub(f'{chr(10)}{_INDENT}', text)}"


def set_in(text: str) -> str:
    """A text that nobody said, with every line indented that begins like a label."""
    if ":" not in text and "：" not in text:
        return text
    return _LIKE_A_LABEL.sub(_INDENT, LINE_BREAK.sub("\n", text))
