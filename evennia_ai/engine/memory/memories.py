"""Memory: one thing an NPC learnt, in the third person, as data and never as a template.

A memory is about one person or about the world, and was learnt aloud in a room or in private. What
was learnt in private is about whoever told it, and is recalled with that person in private alone.
Times are hours of the game, whose days may be shorter than ours. Texts are compared by their words,
without a model: the commonest count for nothing, long ones by their beginning. `Held` are all
memories of one NPC, and says which of them a turn may be about.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import regex

from evennia_ai.engine.prompt.components import is_plain_int
from evennia_ai.engine.prompt.memo import KeptMemo, Memo, Slot
from evennia_ai.engine.text.word_forms import Languages, stems_of
from evennia_ai.engine.text.words import COMMON_WORDS, neighbours_of, unspaced_runs, words_of

STEM: Final = 6
"""Letters of a word that count: enough for "remember" and "remembrance" to be one."""
_ARTICLES: Final = frozenset({"a", "an", "the"})
_ANY_WORD: Final = re.compile(r"\w+")
_PLURAL_FROM: Final = 4
_FULL_WEIGHT: Final = 6


def compared_words(text: str, languages: Languages = ()) -> frozenset[str]:
    """The words of `text` as they are compared: folded, without endings, and with their stems."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    told = (word for word in words_of(folded) if word not in COMMON_WORDS)
    words = chain.from_iterable(_stems(word, languages) for word in told)
    return frozenset(chain(words, neighbours_of(folded)))


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


@lru_cache(maxsize=32_768)
def _stems(word: str, languages: Languages) -> tuple[str, ...]:
    """The beginning of a word, which tells of itself, and its stems, which tell of other forms."""
    stems = stems_of(word, languages)
    if len(word) >= _PLURAL_FROM and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return tuple(dict.fromkeys(one[:STEM] for one in (word, *stems)))


LEAST_IMPORTANT: Final = 1
MOST_IMPORTANT: Final = 10
USUAL_IMPORTANCE: Final = 5
_WORDS: Final = Slot[tuple[Languages, frozenset[str]]]("words")
_SCENE_WORDS: Final = Slot[frozenset[str]]("words of the scene")
_NAMES: Final = Slot[tuple[Languages, frozenset[str]]]("names")
_CAPITALS: Final = regex.compile(r"\b\p{Lu}\w*")
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
    scene: str = ""
    """The words around it when it was learnt, as `memory.scenes` has them."""
    revision: int = 1
    """Counts the changes of its text and importance; being recalled is none."""
    _memo: KeptMemo = field(default_factory=Memo, repr=False, compare=False)

    @property
    def origin(self) -> str:
        """What verdicts and parts of messages call it."""
        return f"memory:{self.id}"

    @property
    def is_builders(self) -> bool:
        """Whether a builder wrote it."""
        return self.author != OF_NPC

    @property
    def scene_words(self) -> frozenset[str]:
        """The words of its scene; worked out once."""
        known = self._memo.get(_SCENE_WORDS)
        if known is None:
            known = self._memo[_SCENE_WORDS] = frozenset(self.scene.split())
        return known

    def words_in(self, languages: Languages) -> frozenset[str]:
        """Its words as they are compared with what is said; worked out once."""
        known = self._memo.get(_WORDS)
        if known is None or known[0] != languages:
            known = self._memo[_WORDS] = (languages, compared_words(self.text, languages))
        return known[1]

    def names_in(self, languages: Languages) -> frozenset[str]:
        """Those of its words that begin with a capital letter; worked out once."""
        known = self._memo.get(_NAMES)
        if known is None or known[0] != languages:
            names = compared_words(" ".join(_CAPITALS.findall(self.text)), languages)
            known = self._memo[_NAMES] = (languages, names)
        return known[1]

    @property
    def wording(self) -> tuple[str, ...]:
        """Its words as they are compared with those of another memory; worked out once."""
        known = self._memo.get(_WORDING)
        if known is None:
            known = self._memo[_WORDING] = wording_of(self.text)
        return known

    @property
    def revised(self) -> Mapping[str, Any]:
        """What of it a revision keeps: all but when it was recalled."""
        return MappingProxyType({name: getattr(self, name) for name in _REVISED})


_REVISED: Final = (
    "text",
    "about",
    "importance",
    "created_at",
    "learnt",
    "place_ref",
    "turn",
    "author",
    "scene",
)


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


MOST_CANDIDATES: Final = 300
"""Memories that one turn looks at."""

WORLD: Final = ""


@dataclass(frozen=True, slots=True)
class Held:
    """The memories of an NPC in the order of their ids."""

    memories: tuple[Memory, ...] = ()
    _by_about: dict[str, list[Memory]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_about: dict[str, list[Memory]] = {}
        for memory in self.memories:
            by_about.setdefault(memory.about, []).append(memory)
        object.__setattr__(self, "_by_about", by_about)

    def candidates(self, *, speaker_ref: str, present_refs: Iterable[str]) -> tuple[Memory, ...]:
        """What the NPC may be reminded of by this speaker among these people, in order of ids.

        Memories of the speaker, then of the others, then of the world, while there is room; of
        each the ones that were recalled last. What others whispered is none of them.
        """
        others = dict.fromkeys(ref for ref in present_refs if ref not in (speaker_ref, WORLD))
        told = self._of(speaker_ref) if speaker_ref != WORLD else []
        of_others = [m for ref in others for m in self._of(ref) if m.learnt == "aloud"]
        found: list[Memory] = []
        for group in (told, of_others, self._of(WORLD)):
            room = MOST_CANDIDATES - len(found)
            found += group if len(group) <= room else sorted(group, key=_newest)[:room]
        return tuple(sorted(found, key=lambda memory: memory.id))

    def is_about(self, ref: str) -> bool:
        """Whether anything is remembered of a person."""
        return ref in self._by_about

    def find(self, memory_id: int) -> Memory | None:
        """The memory of this id."""
        return next((memory for memory in self.memories if memory.id == memory_id), None)

    def same_as(self, new: Memory) -> Memory | None:
        """A memory that says the same of the same person, learnt the same way."""
        known = (m for m in self._of(new.about) if m.id != new.id and m.learnt == new.learnt)
        return next((memory for memory in known if memory.wording == new.wording), None)

    def with_memory(self, new: Memory) -> "Held":
        """These and a new one, or the new form of one of them."""
        others = (memory for memory in self.memories if memory.id != new.id)
        return Held(tuple(sorted((*others, new), key=lambda memory: memory.id)))

    def without(self, gone: Iterable[int]) -> "Held":
        """These but for the memories of some ids."""
        ids = frozenset(gone)
        return Held(tuple(memory for memory in self.memories if memory.id not in ids))

    def _of(self, about: str) -> Sequence[Memory]:
        return self._by_about.get(about, ())


def surplus(held: Held, *, most: int, hours: float) -> list[Memory]:
    """The memories that are too many, the least worth first; builders' own go last."""
    too_many = len(held.memories) - most
    if too_many <= 0:
        return []

    def worth(memory: Memory) -> tuple[bool, float, int]:
        return memory.is_builders, standing(memory, hours=hours), memory.id

    return sorted(held.memories, key=worth)[:too_many]


def _newest(memory: Memory) -> tuple[float, int]:
    return -memory.recalled_at, memory.id
