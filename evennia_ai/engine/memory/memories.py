"""Memories of one NPC: sentences in the third person that are data and never templates.

A memory is about one person or about the world. The NPC learnt it aloud in a room or in private. A
memory learnt in private is about the person who whispered it. The NPC recalls it only in private
with that person. Times are hours of the game, whose days may be shorter than real days.

The scores by recency and importance are here too; `relevance` scores words, scene and meaning.

Texts are compared by their words, without a model. The most common words are ignored, and of long
words only the beginning is compared. `MemorySet` holds all memories of one NPC and selects the
candidates of a turn.
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
from evennia_ai.engine.text.words import COMMON_WORDS, query_pairs, split_words, unspaced_runs

STEM: Final = 6
"""How many letters of a word are compared.

It is small enough for "remember" and "remembrance" to match.
"""
_ARTICLES: Final = frozenset({"a", "an", "the"})
_ANY_WORD: Final = re.compile(r"\w+")
_PLURAL_FROM: Final = 4
_FULL_WEIGHT: Final = 6


def comparison_words(text: str, languages: Languages = ()) -> frozenset[str]:
    """Return the words of a text for comparison: case-folded, shortened, and with their stems.

    In scripts without blanks, each pair of neighbouring characters is a word.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    meaningful = (word for word in split_words(folded) if word not in COMMON_WORDS)
    words = chain.from_iterable(_stems(word, languages) for word in meaningful)
    return frozenset(chain(words, query_pairs(folded)))


def wording_of(text: str) -> tuple[str, ...]:
    """Return the words of a memory's text in order, without articles and punctuation.

    Two texts with the same words in the same order say the same. "Anna hit Ben" and "Ben hit Anna"
    differ.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(word for word in _ANY_WORD.findall(folded) if word not in _ARTICLES)


def word_weight(word: str) -> float:
    """Return a weight from 0 to 1 for a word, by its length.

    Short words carry little meaning. A pair of characters from a script without blanks weighs as
    much as a long word.
    """
    if next(iter(unspaced_runs(word)), ""):
        return 1.0 if len(word) > 1 else 0.5
    return min(len(word), _FULL_WEIGHT) / _FULL_WEIGHT


@lru_cache(maxsize=32_768)
def _stems(word: str, languages: Languages) -> tuple[str, ...]:
    """Return a word and its stems, all shortened, without duplicates."""
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
"""The maximum number of characters of one memory."""

# How a memory was learnt. "aloud" means said in a room, or written by a builder; "private" means
# whispered.
Learnt = Literal["aloud", "private"]
LEARNT: Final[tuple[Learnt, ...]] = get_args(Learnt)
OF_NPC: Final = "npc"
"""The author of memories that the NPC formed itself.

Any other author is the name of a builder.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory of an NPC: a sentence, whom it is about, and how it was learnt."""

    id: int
    text: str
    about: str = ""
    """The reference of the person that the memory is about, or "" for the world."""
    importance: int = USUAL_IMPORTANCE
    """The importance of the memory, from 1 to 10."""
    created_at: float = 0.0
    """The time of creation in hours of the game, like `recalled_at`."""
    recalled_at: float = 0.0
    learnt: Learnt = "aloud"
    place_ref: str = ""
    """The room in which the NPC learnt the memory, or ""."""
    turn: int = 0
    """The number of the NPC's turn in which the memory was learnt, or 0."""
    author: str = OF_NPC
    scene: str = ""
    """The words around the memory when it was learnt (see `scenes.scene_of`)."""
    revision: int = 1
    """The version number, which grows when the text or the importance changes.

    Recalling the memory does not change it.
    """
    _memo: KeptMemo = field(default_factory=Memo, repr=False, compare=False)

    @property
    def origin(self) -> str:
        """Return the name of this memory in verdicts and message parts."""
        return f"memory:{self.id}"

    @property
    def is_by_builder(self) -> bool:
        """True if a builder wrote this memory."""
        return self.author != OF_NPC

    @property
    def scene_words(self) -> frozenset[str]:
        """Return the words of the scene, as a set that is computed only once."""
        known = self._memo.get(_SCENE_WORDS)
        if known is None:
            known = self._memo[_SCENE_WORDS] = frozenset(self.scene.split())
        return known

    def words_in(self, languages: Languages) -> frozenset[str]:
        """Return the words of the memory's text for comparison, cached by languages."""
        known = self._memo.get(_WORDS)
        if known is None or known[0] != languages:
            known = self._memo[_WORDS] = (languages, comparison_words(self.text, languages))
        return known[1]

    def names_in(self, languages: Languages) -> frozenset[str]:
        """Return the words of the memory's text that have a capital letter, cached by languages."""
        known = self._memo.get(_NAMES)
        if known is None or known[0] != languages:
            names = comparison_words(" ".join(_CAPITALS.findall(self.text)), languages)
            known = self._memo[_NAMES] = (languages, names)
        return known[1]

    @property
    def wording(self) -> tuple[str, ...]:
        """Return the words of the text in order, by which duplicate memories are found.

        The result is cached.
        """
        known = self._memo.get(_WORDING)
        if known is None:
            known = self._memo[_WORDING] = wording_of(self.text)
        return known

    @property
    def revision_fields(self) -> Mapping[str, Any]:
        """Return the fields that are stored for a version of the memory: all but `recalled_at`."""
        return MappingProxyType({name: getattr(self, name) for name in _REVISION_FIELDS})


_REVISION_FIELDS: Final = (
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
    """True if a value can be a memory's text: one line, not empty and not too long."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        return False
    return " ".join(value.split()) == value and not _CONTROL.search(value)


def is_importance(value: object) -> bool:
    """True if a value can be a memory's importance: a whole number from 1 to 10."""
    return is_plain_int(value) and LEAST_IMPORTANT <= value <= MOST_IMPORTANT  # type: ignore[operator]


RECENCY_PER_HOUR: Final = 0.995
# How many digits scores of memories keep. Later digits of powers and logarithms may differ between
# machines.
DIGITS: Final = 4


def recency_score(memory: Memory, *, hours: float) -> float:
    """Return how recently a memory was recalled, as a score: 1 for this hour.

    The score falls by half a percent with every hour since then.
    """
    since = max(0.0, hours - memory.recalled_at)
    return round(float(RECENCY_PER_HOUR**since), DIGITS)


def importance_score(memory: Memory) -> float:
    """Return the importance of a memory, scaled to the range from 0 to 1."""
    span = MOST_IMPORTANT - LEAST_IMPORTANT
    return round((memory.importance - LEAST_IMPORTANT) / span, DIGITS)


def base_score(memory: Memory, *, hours: float) -> float:
    """Return the score of a memory for any topic: the mean of its recency and importance."""
    return round((recency_score(memory, hours=hours) + importance_score(memory)) / 2, DIGITS)


MOST_CANDIDATES: Final = 300
"""How many memories of an NPC are compared in one turn at most."""

WORLD: Final = ""


@dataclass(frozen=True, slots=True)
class MemorySet:
    """All memories of one NPC, in the order of their ids."""

    memories: tuple[Memory, ...] = ()
    _by_about: dict[str, list[Memory]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_about: dict[str, list[Memory]] = {}
        for memory in self.memories:
            by_about.setdefault(memory.about, []).append(memory)
        object.__setattr__(self, "_by_about", by_about)

    def candidates(self, *, speaker_ref: str, present_refs: Iterable[str]) -> tuple[Memory, ...]:
        """Return the memories that may be recalled in a turn, sorted by id.

        These are memories of the speaker, of the other people present, and of the world. If there
        are more than `MOST_CANDIDATES`, memories of the speaker are preferred, then those of the
        other people, then those of the world; within each group, the ones recalled last. Whispers
        of anyone but the speaker are never candidates.
        """
        others = dict.fromkeys(ref for ref in present_refs if ref not in (speaker_ref, WORLD))
        of_speaker = self._of(speaker_ref) if speaker_ref != WORLD else []
        of_others = [m for ref in others for m in self._of(ref) if m.learnt == "aloud"]
        found: list[Memory] = []
        for group in (of_speaker, of_others, self._of(WORLD)):
            room = MOST_CANDIDATES - len(found)
            newest_first = sorted(group, key=lambda m: (-m.recalled_at, m.id))
            found += group if len(group) <= room else newest_first[:room]
        return tuple(sorted(found, key=lambda memory: memory.id))

    def is_about(self, ref: str) -> bool:
        """True if some memory is about this person."""
        return ref in self._by_about

    def find(self, memory_id: int) -> Memory | None:
        """Return the memory with this id; None if the NPC has none."""
        return next((memory for memory in self.memories if memory.id == memory_id), None)

    def find_same(self, new: Memory) -> Memory | None:
        """Return another memory with the same words, person and way of learning, or None."""
        known = (m for m in self._of(new.about) if m.id != new.id and m.learnt == new.learnt)
        return next((memory for memory in known if memory.wording == new.wording), None)

    def with_memory(self, new: Memory) -> "MemorySet":
        """Return a copy with this memory added. It replaces a memory with the same id."""
        others = (memory for memory in self.memories if memory.id != new.id)
        return MemorySet(tuple(sorted((*others, new), key=lambda memory: memory.id)))

    def without(self, gone: Iterable[int]) -> "MemorySet":
        """Return a copy without the memories that have these ids."""
        ids = frozenset(gone)
        return MemorySet(tuple(memory for memory in self.memories if memory.id not in ids))

    def _of(self, about: str) -> Sequence[Memory]:
        return self._by_about.get(about, ())


def surplus_memories(held: MemorySet, *, most: int, hours: float) -> list[Memory]:
    """Return the memories of an NPC beyond the limit `most`, the least valuable first.

    Memories written by builders come last.
    """
    too_many = len(held.memories) - most
    if too_many <= 0:
        return []

    return sorted(
        held.memories,
        key=lambda m: (m.is_by_builder, base_score(m, hours=hours), m.id),
    )[:too_many]
