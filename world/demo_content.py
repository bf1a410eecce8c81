"""Read the files of `world/demo/` as values.

This module does not use Evennia: `world/build_demo.py` makes rooms and people from the values. An
unknown or missing field raises a `TypeError` that names it. Tests find ids that lead nowhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import yaml

from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.engine.prompt.messages import Role

DEMO: Final = Path(__file__).parent / "demo"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """An exit of a room. `to` is the id of the room to which it leads."""

    to: str
    key: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A room of the village."""

    id: str
    key: str
    desc: str
    aliases: tuple[str, ...] = ()
    exits: tuple[Way, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """An NPC.

    `card` is the file of its card, and `fallback_line` is what it says if the model does not
    answer.
    """

    id: str
    key: str
    desc: str
    room: str
    card: str
    fallback_line: str
    aliases: tuple[str, ...] = ()

    @property
    def card_name(self) -> str:
        """The name under which the game stores the card."""
        return Path(self.card).stem


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """A thing that players can look at."""

    id: str
    key: str
    desc: str
    room: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """A lorebook and its scope. `ref` is the tag of the zone, or "" for the whole game."""

    name: str
    file: str
    scope: Literal["game", "zone"]
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
class DemoContent:
    """The whole village. `start` is the id of the room in which visitors arrive."""

    start: str
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
    return DemoContent(
        start=world["start"],
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
    return Place(exits=_each(Way, list(exits)), **fields)
