"""Read the files of `world/demo/` as values.

This module does not use Evennia: `world/build_demo.py` makes rooms and people from the values. An
unknown or missing field raises a `TypeError` that names it. Tests find ids that lead nowhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import yaml

from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.engine.prompt.messages import Role

DEMO: Final = Path(__file__).parent / "demo"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A lock function that an exit asks for, and what somebody reads who does not pass it."""

    lock: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """An exit of a room. `to` is the id of the room to which it leads."""

    to: str
    key: str
    aliases: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A room of the village.

    `at` has a sentence about the room for parts of the evening, by their ids. Who enters learns
    the finding.
    """

    id: str
    key: str
    desc: str
    at: Mapping[str, str] = field(default_factory=dict)
    finding: str = ""
    aliases: tuple[str, ...] = ()
    exits: tuple[Way, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """An NPC.

    `card` is the file of its card, and `fallback_line` is what it says if the model does not
    answer. `goals` is what it is after this evening.
    """

    id: str
    key: str
    desc: str
    room: str
    card: str
    fallback_line: str
    goals: tuple[str, ...]
    factions: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def card_name(self) -> str:
        """The name under which the game stores the card."""
        return Path(self.card).stem


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """A thing that players can look at.

    Who looks at it learns the finding. A writing can be read; a basket gives a letter to whoever
    takes it.
    """

    id: str
    key: str
    desc: str
    room: str
    kind: Literal["scenery", "basket", "writing"] = "scenery"
    finding: str = ""
    written: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """A lorebook and its scope. `ref` is the tag of the zone or faction, "" for the whole game."""

    name: str
    file: str
    scope: Literal["game", "zone", "faction"]
    ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The author's note of the NPC with the id `npc`."""

    npc: str
    content: str
    depth: int
    role: Role
    every: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiki:
    """A knowledge base: its folder in `knowledge/`, and the ids of the NPCs that may search it."""

    key: str
    npcs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ferry:
    """The ids of the room that is the ferry, and of the rooms between which it sails."""

    boat: str
    home: str
    away: str
    over: str
    """What people aboard see on the way to the other shore."""
    back: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the evening, as `evening.yaml` describes it."""

    id: str
    name: str
    seconds: int
    part: Literal["evening", "night"]
    people: Mapping[str, str]
    sounds: Mapping[str, str]
    habits: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """The letter in the basket. `receipt_text` is what Pell writes for somebody who hands it in."""

    key: str
    aliases: tuple[str, ...]
    desc: str
    writer: str
    text: str
    receipt_title: str
    receipt_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoContent:
    """The whole village. `start` is the id of the room in which visitors arrive.

    `findings` has what a character reads on finding something out, by the name of the finding.
    """

    start: str
    ferry: Ferry
    evening: tuple[Part, ...]
    findings: Mapping[str, str]
    letter: Letter
    rooms: tuple[Place, ...]
    npcs: tuple[Person, ...]
    objects: tuple[Thing, ...]
    lorebooks: tuple[Book, ...]
    components: tuple[PromptComponent, ...]
    notes: tuple[Note, ...]
    wikis: tuple[Wiki, ...]


def read_content(folder: Path = DEMO) -> DemoContent:
    """Return the content of `folder`, without the texts of cards, lorebooks and knowledge bases."""
    world = _yaml(folder / "world.yaml")
    evening = _yaml(folder / "evening.yaml")
    papers = _yaml(folder / "letter.yaml")
    receipt = {f"receipt_{name}": text for name, text in papers["receipt"].items()}
    return DemoContent(
        start=world["start"],
        ferry=Ferry(**world["ferry"]),
        evening=_each(Part, evening["parts"]),
        findings=evening["findings"],
        letter=Letter(**_frozen({**papers["letter"], **receipt})),
        rooms=_each(_place, world["rooms"]),
        npcs=_each(Person, world["npcs"]),
        objects=_each(Thing, world["objects"]),
        lorebooks=_each(Book, world["lorebooks"]),
        components=_each(PromptComponent, _yaml(folder / "components.yaml")),
        notes=_each(Note, _yaml(folder / "notes.yaml")),
        wikis=_each(Wiki, world["wikis"]),
    )


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _each(kind: Callable[..., T], rows: list[Mapping[str, Any]]) -> tuple[T, ...]:
    return tuple(kind(**_frozen(row)) for row in rows)


def _frozen(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}


def _place(*, exits: tuple[Mapping[str, Any], ...], **fields: Any) -> Place:
    return Place(exits=_each(_way, list(exits)), **fields)


def _way(*, bars: tuple[Mapping[str, Any], ...] = (), **fields: Any) -> Way:
    return Way(bars=_each(Bar, list(bars)), **fields)
