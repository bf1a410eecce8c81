"""Makes speech of a model's raw text: no hidden reasoning, no label, no quotes, no control, short.

What is left is still untrusted: the game escapes it for Evennia's markup. Each step walks the
text once, so a hostile reply costs no more than its length.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

LOOKED_AT_CHARACTERS: Final = 8_000
"""How much of a reply, its hidden reasoning apart, is looked at at all."""

LABELS_IN_A_ROW: Final = 3
"""How often a line may begin with a label of the speaker."""

MAX_CHARACTERS: Final = 600
MAX_LINES: Final = 4
"""How much of a reply is said aloud, where nothing else was chosen."""

_REASONING_TAG: Final = re.compile(
    r"[<\[](/?)(?:think|thinking|thought|thoughts|reasoning|reflection)[>\]]", re.IGNORECASE
)
_REASONING_FENCE: Final = re.compile(
    r"^[ \t]*```[ \t]*(?:think|thinking|thought|thoughts|reasoning)\b",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE: Final = re.compile(r"^[ \t]*```", re.MULTILINE)
_CHANNEL: Final = re.compile(r"<\|channel\|>[^<]*<\|message\|>")
_SPECIAL_TOKEN: Final = re.compile(r"<\|[^<>|\s]{1,40}\|>")
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_LINE_BREAK: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_BLANKS: Final = re.compile(r"[^\S\n]+")
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’»)\]*]*(?=\s|$)|[。！？][」』”’）]*")

_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“", "«": "»", "»": "«", "「": "」"}
_INVISIBLE: Final = frozenset("\u00ad\u200b\u200e\u200f\u2060\ufeff")
_BIDI: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")
_CLOSING: Final = str.maketrans({"[": "]", "(": ")", "“": "”", "‘": "’", "«": "»", "„": "“"})


def spoken_text(
    text: str,
    *,
    own_names: Iterable[str],
    other_names: Collection[str] = (),
    max_characters: int = MAX_CHARACTERS,
    max_lines: int = MAX_LINES,
) -> str:
    """What of a reply is said aloud; empty when nothing is.

    A line may begin with one of the names the speaker goes by. One that begins with the label of
    one of `other_names` ends the speech: there the model went on to speak for somebody else.
    """
    said = _visible(without_reasoning(text)[:LOOKED_AT_CHARACTERS])
    lines = _own_lines(said, own_names=tuple(own_names), other_names=other_names)
    speech = _unquoted("\n".join(lines))
    return _capped("\n".join(speech.split("\n")[:max_lines]), max_characters)


def without_reasoning(text: str) -> str:
    """Without what the model wrote to itself, in tags, fences or channels.

    An opening tag without its end hides all that follows; an end without its opening all before.
    """
    text = _CHANNEL.split(text)[-1]
    kept: list[str] = []
    depth = end = 0
    for tag in _REASONING_TAG.finditer(text):
        if depth == 0:
            kept.append(text[end : tag.start()])
        if not tag[1]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        end = tag.end()
    if depth == 0:
        kept.append(text[end:])
    return _SPECIAL_TOKEN.sub("", _without_fences("".join(kept)))


def _without_fences(text: str) -> str:
    """Without code fences that are named as reasoning; one without its end hides the rest."""
    kept: list[str] = []
    at = 0
    while opened := _REASONING_FENCE.search(text, at):
        kept.append(text[at : opened.start()])
        closed = _FENCE.search(text, opened.end())
        if closed is None:
            return "".join(kept)
        at = text.find("\n", closed.end()) + 1 or len(text)
    kept.append(text[at:])
    return "".join(kept)


def _visible(text: str) -> str:
    """With one kind of line break, single blanks, and nothing a terminal would obey."""
    broken = _LINE_BREAK.sub("\n", _ESCAPE.sub("", text)).replace("\t", " ")
    return _BLANKS.sub(" ", "".join(letter for letter in broken if _is_visible(letter)))


def _is_visible(letter: str) -> bool:
    if letter == "\n" or " " <= letter <= "~":
        return True
    if letter in _BIDI or letter in _INVISIBLE:
        return False
    return unicodedata.category(letter) not in ("Cc", "Cs", "Cn")


def _own_lines(text: str, *, own_names: Collection[str], other_names: Collection[str]) -> list[str]:
    """The speaker's lines without their label, up to the first line of somebody else."""
    own: list[str] = []
    known = {name.casefold() for name in own_names}
    others = [name for name in other_names if name.casefold() not in known]
    for line in filter(None, (line.strip() for line in text.split("\n"))):
        if any(_without_label(line, name) is not None for name in others):
            break
        own.append(_own_line(line, own_names))
    return [line for line in own if line]


def _own_line(line: str, own_names: Collection[str]) -> str:
    for _ in range(LABELS_IN_A_ROW):
        bare = [rest for name in own_names if (rest := _without_label(line, name)) is not None]
        if not bare:
            break
        line = _unquoted(bare[0])
    return line


def _without_label(line: str, name: str) -> str | None:
    """The rest of a line that begins with `name:`, plain, bold or quoted; None for any other.

    Marks that open before the name close behind it, behind the colon, or at the line's end.
    """
    label = _label(name).match(line) if name else None
    if label is None:
        return None
    rest = line[label.end() :]
    closing = label["opened"].strip()[::-1].translate(_CLOSING)
    if not closing or closing in label["closed"]:
        return rest
    if rest.startswith(closing):
        return rest.removeprefix(closing).lstrip()
    return rest.removesuffix(closing).rstrip()


@lru_cache(maxsize=256)
def _label(name: str) -> re.Pattern[str]:
    # Bounded: a name may itself be made of these marks, and a line of nothing else.
    opened, closed = r"(?P<opened>[\"'“‘„«*_\[(# ]{0,8})", r"(?P<closed>[\"'”’“»*_\]) ]{0,8})"
    return re.compile(f"{opened}{re.escape(name)}{closed}[:：] *", re.IGNORECASE)


def _unquoted(text: str) -> str:
    """Without the one pair of quotes that holds all of `text`."""
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 2 or text[-1] != closing:
        return text
    inner = text[1:-1]
    marks = re.sub(r"(?<=\w)['’](?=\w)", "", inner)  # an apostrophe is no quote
    return text if text[0] in marks or closing in marks else inner.strip()


def _capped(text: str, max_characters: int) -> str:
    """`text` up to its last sentence that fits, or the last word where none of some length does."""
    if len(text) <= max_characters:
        return text
    if max_characters < 2:
        return ""
    ends = [end.end() for end in _SENTENCE_END.finditer(text[: max_characters + 1])]
    fitting = [end for end in ends if max_characters // 4 <= end <= max_characters]
    if fitting:
        return text[: fitting[-1]]
    start = text[: max_characters - 1]
    words, blank, _ = start.rpartition(" ")
    return f"{words.rstrip(' ,;:-') if blank else start}…"
