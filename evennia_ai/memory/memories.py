"""Memory: one thing an NPC learnt, in the third person, as data and never as a template.

A memory is about one person or about the world, and was learnt aloud in a room or in private. What
was learnt in private is about whoever told it, and is recalled with that person in private alone.
Times are hours of the game, whose days may be shorter than ours. Texts are compared by their words,
without a model: the commonest count for nothing, long ones by their beginning.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from evennia_ai.prompt.components import is_plain_int
from evennia_ai.prompt.memo import Memo, Slot
from evennia_ai.text.words import COMMON_WORDS, neighbours_of, unspaced_runs
from evennia_ai.text.words import words_of as spaced_words

STEM: Final = 6
"""Letters of a word that count: enough for "remember" and "remembrance" to be one."""
_ARTICLES: Final = frozenset({"a", "an", "the"})
_ANY_WORD: Final = re.compile(r"\w+")
_PLURAL_FROM: Final = 4
_FULL_WEIGHT: Final = 6


def words_of(text: str) -> frozenset[str]:
    """The words of `text` as they are compared: folded, without endings."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = {_stem(word) for word in spaced_words(folded) if word not in COMMON_WORDS}
    return frozenset(words.union(neighbours_of(folded)))


def wording_of(text: str) -> tuple[str, ...]:
    """The words of `text` in their order, without articles and marks.

    Two texts of one wording say the same; "Anna hit Ben" and "Ben hit Anna" have two.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(word for word in _ANY_WORD.findall(folded) if word not in _ARTICLES)


def weight_of(word: str) -> float:
    """How much a word tells by its length alone: short ones are mostly articles and the like.

    A word of a script without blanks is a pair of characters, and tells as much as a long one.
    """
    if next(iter(unspaced_runs(word)), ""):
        return 1.0 if len(word) > 1 else 0.5
    return min(len(word), _FULL_WEIGHT) / _FULL_WEIGHT


def _stem(word: str) -> str:
    if len(word) >= _PLURAL_FROM and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:STEM]


LEAST_IMPORTANT: Final = 1
MOST_IMPORTANT: Final = 10
USUAL_IMPORTANCE: Final = 5
_WORDS: Final = Slot[frozenset[str]]("words")
_WORDING: Final = Slot[tuple[str, ...]]("wording")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
MAX_TEXT: Final = 300
"""Characters of one memory."""

# aloud: in a room, or written by a builder. private: whispered.
Learnt = Literal["aloud", "private"]
LEARNT: Final[tuple[Learnt, ...]] = get_args(Learnt)
OF_NPC: Final = "npc"
"""The author of what an NPC remembers by itself; else it is a builder's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory of an NPC."""

    id: int
    text: str
    about: str = ""
    """The reference of a person, "" for the world."""
    importance: int = USUAL_IMPORTANCE
    """From 1 to 10."""
    created_at: float = 0.0
    """In hours of the game, as is when it was recalled."""
    recalled_at: float = 0.0
    learnt: Learnt = "aloud"
    place_ref: str = ""
    """Where it was learnt, "" where there is no place."""
    turn: int = 0
    """In which of the NPC's turns, 0 where it was none."""
    author: str = OF_NPC
    revision: int = 1
    """Counts the changes of its text and importance; being recalled is none."""
    _memo: Memo = field(default_factory=Memo, repr=False, compare=False)

    @property
    def origin(self) -> str:
        """What verdicts and parts of messages call it."""
        return f"memory:{self.id}"

    @property
    def is_builders(self) -> bool:
        """Whether a builder wrote it."""
        return self.author != OF_NPC

    @property
    def words(self) -> frozenset[str]:
        """Its words as they are compared with what is said; worked out once."""
        known = self._memo.get(_WORDS)
        if known is None:
            known = self._memo[_WORDS] = words_of(self.text)
        return known

    @property
    def wording(self) -> tuple[str, ...]:
        """Its words as they are compared with those of another memory; worked out once."""
        known = self._memo.get(_WORDING)
        if known is None:
            known = self._memo[_WORDING] = wording_of(self.text)
        return known

    @property
    def told(self) -> Mapping[str, Any]:
        """What of it a revision keeps: all but when it was recalled."""
        return MappingProxyType({name: getattr(self, name) for name in TOLD})


TOLD: Final = ("text", "about", "importance", "created_at", "learnt", "place_ref", "turn", "author")


def is_text(value: object) -> bool:
    """Whether this can be the text of a memory: one line, not empty, not too long."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        return False
    return " ".join(value.split()) == value and not _CONTROL.search(value)


def is_importance(value: object) -> bool:
    """Whether a memory may have this importance."""
    return is_plain_int(value) and LEAST_IMPORTANT <= value <= MOST_IMPORTANT  # type: ignore[operator]


KEPT_PER_HOUR: Final = 0.995
DIGITS: Final = 4  # what is beyond may differ between machines


def recency(memory: Memory, *, hours: float) -> float:
    """1 for what was recalled this hour, falling with every hour since."""
    since = max(0.0, hours - memory.recalled_at)
    return round(float(KEPT_PER_HOUR**since), DIGITS)


def importance(memory: Memory) -> float:
    """The importance from 0 to 1."""
    span = MOST_IMPORTANT - LEAST_IMPORTANT
    return round((memory.importance - LEAST_IMPORTANT) / span, DIGITS)


def standing(memory: Memory, *, hours: float) -> float:
    """What a memory counts whatever is spoken of: the mean of recency and importance."""
    return round((recency(memory, hours=hours) + importance(memory)) / 2, DIGITS)
