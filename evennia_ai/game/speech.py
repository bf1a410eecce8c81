"""Speech: what an NPC says aloud of a raw text, be it a model's reply or its card's greeting.

What comes out is still untrusted; `output` escapes it on its way to a client.
"""

import re
from collections.abc import Collection, Iterable
from typing import Final

from evennia_ai.llm.clean import spoken_text

MOST_LINES: Final = 12
"""How many lines of a reply are said: those of a list among them."""

_MARKS: Final = re.compile(r"[\s.…\-–—]+")
_NOTHING: Final = re.compile(
    r"[(\[*<]+\s*(?:silence|silent|(?:is|stays?|remains?) silent|says? nothing)[.\s]*[)\]*>]+",
    re.IGNORECASE,
)
_QUOTES: Final = " \t\r\n\"'“”„«»"


def speech(text: str, *, own_names: Iterable[str], other_names: Collection[str] = ()) -> str:
    """What of `text` is said by who goes by `own_names`, "" where that is nothing.

    `other_names` are those of bystanders, for whom nobody else speaks.
    """
    return spoken_text(
        text,
        own_names=tuple(dict.fromkeys(own_names)),
        other_names=other_names,
        max_lines=MOST_LINES,
    )


def is_silence(text: str) -> bool:
    """Whether a reply chooses to say nothing: "-", "...", "(silence)" and what looks like them.

    No text at all is no choice.
    """
    said = text.strip(_QUOTES)
    return bool(_MARKS.fullmatch(said) or _NOTHING.fullmatch(said))
