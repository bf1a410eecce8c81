"""Token counters: named, with a version, and safe for any text of a player.

The tokenizer of another model is worse than an estimate, and nothing is downloaded at run time. So
the default counter estimates tokens by the script of the text; its weights were fitted on game
prose. A game can make an exact `TokenCounter` from a function of its own.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema
from pydantic_core.core_schema import (
    plain_serializer_function_ser_schema,
    with_info_after_validator_function,
)

from evennia_ai.engine.prompt.memo import Slot

CountText = Callable[[str], int]

REMEMBERED_TEXTS: Final = 4096
LONG_TEXT: Final = 20_000
"""The most characters of a text whose count is cached. Longer texts would need too much memory."""

USUAL_PER_MESSAGE: Final = 4
"""The tokens that OpenAI's models add around each message."""

# The longest separator between the texts of a shared message.
SEPARATOR: Final = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _CounterName:
    """The serialised form of a token counter: the fields that identify it, without its function"""

    name: str
    version: str
    per_message: int
    per_prompt: int


@dataclass(frozen=True, eq=False)
class TokenCounter:
    """A counter for the tokens of texts and messages.

    Messages cache their counts in the counter's `slot`, so make one counter and share it. A
    speaker's name adds its own tokens and one more.
    """

    name: str
    version: str
    """The version of the counter. Traces show it with the name."""
    count: CountText
    per_message: int = USUAL_PER_MESSAGE
    """The tokens that a provider adds around each message."""
    per_prompt: int = 3
    """The tokens that a provider adds around each prompt."""

    per_separator: int = field(init=False, repr=False)
    """The most tokens of a separator between the texts of one message."""
    recall: CountText = field(init=False, repr=False)
    """The counting function with a cache, for texts that are counted repeatedly, such as
    components, lore and facts."""
    slot: Slot[int] = field(init=False, repr=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Serialise the counter as its name; load it from the `counters` in pydantic's context."""
        inner = handler.generate_schema(_CounterName)
        return with_info_after_validator_function(
            _known_counter,
            inner,
            serialization=plain_serializer_function_ser_schema(
                lambda counter: counter.written_name, return_schema=inner
            ),
        )

    @property
    def written_name(self) -> _CounterName:
        """The serialised form of the token counter."""
        return _CounterName(
            name=self.name,
            version=self.version,
            per_message=self.per_message,
            per_prompt=self.per_prompt,
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "slot", Slot(self.name))
        object.__setattr__(self, "per_separator", max(1, self.count(SEPARATOR)))
        object.__setattr__(self, "recall", _cache_counts(self.count))

    def of_message(self, content: str, *, name: str | None = None, more: Iterable[str] = ()) -> int:
        """Return the tokens of one message: its texts, its name and the provider's overhead."""
        cost = self.per_message + self.count(content)
        if name:
            cost += self.count(name) + 1
        for text in more:
            cost += self.count(text)
        return cost


def _cache_counts(count: CountText) -> CountText:
    """Return a counting function that caches the results for recent texts, except long ones."""
    known = lru_cache(maxsize=REMEMBERED_TEXTS)(count)
    return lambda text: count(text) if len(text) > LONG_TEXT else known(text)


# The estimated tokens for each word, each letter or digit, and each other ASCII character.
_WORD, _LETTER, _MARK = 0.62, 0.15, 0.17
_LETTERS: Final = bytes(c for c in range(128) if chr(c).isalnum())
_NOT_LETTERS: Final = bytes(c for c in range(256) if c not in _LETTERS)
_TO_BLANK: Final = bytes(c if c in _LETTERS else 32 for c in range(256))
_BLANKS: Final = bytes(c for c in range(128) if chr(c).isspace())

# The estimated tokens for one character outside ASCII, by class of characters. The first class
# that contains the character is used.
_FOREIGN: Final[tuple[tuple[re.Pattern[str], float], ...]] = (
    (re.compile("[\u2000-\u206f\u3000-\u303f\uff00-\uff65]"), 0.5),  # punctuation outside ASCII
    (re.compile("[\u00a0-\u024f\u1e00-\u1eff]"), 0.45),  # Latin letters with accents
    (re.compile("[\u0370-\u03ff\u0400-\u052f]"), 0.28),  # Greek and Cyrillic letters
    (re.compile("[\u0590-\u06ff]"), 0.36),  # Hebrew and Arabic letters
    (re.compile("[\u3040-\u30ff]"), 0.69),  # Japanese kana
    (re.compile("[\u3400-\u9fff\uf900-\ufaff]"), 0.91),  # Chinese characters
    (re.compile("[\uac00-\ud7af]"), 0.74),  # Korean syllables
)
_OTHER = 1.3  # the estimate for emoji and for scripts that are not listed


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text` by its script. On game prose it is a few percent off."""
    if text.isascii():
        return math.ceil(_ascii(text.encode()))
    foreign = "".join(character for character in text if character > "\x7f")
    left, weight = len(foreign), 0.0
    for pattern, cost in _FOREIGN:
        found = len(pattern.findall(foreign))
        left -= found
        weight += found * cost
    ascii_part = text.encode("ascii", "ignore")
    return math.ceil(_ascii(ascii_part) + weight + left * _OTHER)


def _ascii(data: bytes) -> float:
    letters = len(data.translate(None, _NOT_LETTERS))
    blanks = len(data) - len(data.translate(None, _BLANKS))
    words = len(data.translate(_TO_BLANK).split())
    return words * _WORD + letters * _LETTER + (len(data) - letters - blanks) * _MARK


def count_by_ratio(per_token: float) -> CountText:
    """Return a function that counts one token per `per_token` bytes of UTF-8, rounded up.

    `count_by_ratio(3.35)` is the estimate that SillyTavern uses without a tokenizer.
    """

    def count(text: str) -> int:
        length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        return math.ceil(length / per_token)

    return count


ESTIMATE: Final = TokenCounter("estimate", "1", estimate_tokens)


def ratio_counter(per_token: float) -> TokenCounter:
    """Return the counter with the name `bytes/R`, where R is the bytes of UTF-8 per token."""
    return TokenCounter(f"bytes/{per_token:g}", "1", count_by_ratio(per_token))


def _known_counter(named: _CounterName, info: ValidationInfo) -> TokenCounter:
    counters: Iterable[TokenCounter] = (info.context or {}).get("counters", (ESTIMATE,))
    known = {counter.written_name: counter for counter in counters}
    if named not in known:
        names = ", ".join(f"{one.name} {one.version}" for one in known)
        raise ValueError(
            f"the token counter {named.name} {named.version} is unknown here ({names});"
            " pass this counter in `counters`"
        )
    return known[named]
