"""Labels and frames: what only the game writes in a prompt, and why nobody's text passes for it.

What somebody said begins at the margin with their name and a colon. Names come from records alone.
Further lines of a speech are indented, and so is whatever reads like a label in a text that nobody
said and that stands among what was said. Look-alikes of frames such as `[Tool result]` are undone:
they may have other case and blanks, brackets of full width, and letters inside their words that
nobody sees. Line breaks are found as JSON writes them too, but no match reaches over a quote: it
never leaves a text inside of JSON.
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


_UNSEEN: Final = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_BLANK: Final = rf"(?:\s|\\[nrt]|{_UNSEEN})"
_MOST_BEHIND: Final = 80
"""Characters behind the words, inside of the brackets, that are part of a look-alike."""


def frame(*words: str) -> re.Pattern[str]:
    """What looks like a mark of these words, opening or closing, in brackets or half in them."""
    spelt = rf"{_BLANK}+".join(f"{_UNSEEN}*".join(word) for word in words)
    behind = rf"[^\[\]［］\n\"]{{0,{_MOST_BEHIND}}}"
    return re.compile(rf"[\[［]((?:{_BLANK}|/)*{spelt}{behind})([\]］]?)", re.IGNORECASE)


def has_bracket(text: str) -> bool:
    """Whether there may be a look-alike in `text` at all."""
    return "[" in text or "［" in text


def undone(pattern: re.Pattern[str], text: str) -> str:
    """`text` with round brackets where look-alikes of a frame stand."""
    return pattern.sub(_in_round_brackets, text)


def _in_round_brackets(found: re.Match[str]) -> str:
    return f"({found[1]})" if found[2] else f"({found[1]}"
