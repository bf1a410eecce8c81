"""Held: all memories of one NPC, and which of them a turn may be about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from evennia_ai.memory.memories import Memory, standing

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
