"""What the pages ask of the game, by the module that the app names: they import nothing of it."""

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Protocol, cast

from django.apps import apps

from evennia_ai.actors import Actor
from evennia_ai.minds.withheld.viewer import Viewer
from evennia_ai.prompt.report import Report
from evennia_ai.store.history.past_turns import TurnLine

APP: Final = "evennia_ai"


class ListedNPC(Protocol):
    """An NPC by name and room."""

    @property
    def ref(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def room(self) -> str: ...


class NPCList(Protocol):
    """The NPCs of a search, of which a page is read at a time."""

    @property
    def count(self) -> int: ...

    @property
    def are_more(self) -> bool: ...

    def page(self, number: int, *, size: int) -> Sequence[ListedNPC]: ...


class Doing(Protocol):
    """How an NPC is doing now."""

    @property
    def state(self) -> str: ...

    @property
    def waiting(self) -> int: ...

    @property
    def silent_because(self) -> str: ...

    @property
    def last(self) -> TurnLine | None: ...


class Setting(Protocol):
    """A setting of an NPC; `is_own` where it was set for this one."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> str: ...

    @property
    def is_own(self) -> bool: ...


class Passage(Protocol):
    """A part of a page that a search found."""

    @property
    def title(self) -> str: ...

    @property
    def content(self) -> str: ...

    @property
    def score(self) -> float: ...


class FoundBy(Protocol):
    """What an NPC finds in a knowledge base."""

    @property
    def may_search(self) -> bool: ...

    @property
    def guards(self) -> bool: ...

    @property
    def passages(self) -> Sequence[Passage]: ...


class Door(Protocol):
    """What that module offers."""

    def NPCList(  # noqa: N802 - a class of the game
        self, part: str = "", *, among: Collection[str] | None = None, without_turn: bool = False
    ) -> NPCList:
        """The NPCs with `part` in their name or room."""

    def named(self, refs: Collection[str]) -> Mapping[str, str]:
        """What those of them that there are, are called, by their references."""

    def object_names(self, refs: Collection[str]) -> Mapping[str, str]:
        """Return the names of these objects, rooms and players among them."""

    def called(self, text: str) -> tuple[str, ...]:
        """The references of the NPCs that are called so, or have this number."""

    def viewer_of(self, looker: Any) -> Viewer:
        """An account as somebody who looks."""

    def page_actor(self, account: Any, rank: str, *, address: str) -> Actor:
        """Return an account that uses a page which is for this rank and the ranks above."""

    def played_by(self, account: Any) -> tuple[str, ...]:
        """Return the references of an account's characters, those it plays now first."""

    def preview(self, ref: str, line: str, *, account: Any) -> Report:
        """Return the account of the prompt that an NPC would send now if the account said this."""

    def doing(self, npcs: Sequence[ListedNPC]) -> Mapping[str, Doing]:
        """How these NPCs, of those that a list gave, are doing, by their references."""

    def settings(self, ref: str) -> Sequence[Setting]:
        """What is set for an NPC, its tools among it."""

    def breakers(self) -> Mapping[str, str]:
        """The state of the circuit breaker of each model there is."""

    def search_as(self, ref: str, base: str, words: str) -> FoundBy:
        """What an NPC finds in a base; nothing of it is told or stored."""

    def pause(self, ref: str, *, by: Actor) -> None:
        """Have one NPC ask no model."""

    def resume(self, ref: str, *, by: Actor) -> None:
        """Let it go on."""

    def stop_all(self, *, by: Actor) -> None:
        """Stop the whole game's NPCs."""

    def start_all(self, *, by: Actor) -> None:
        """Let them answer again."""


def door() -> Door:
    """The game's end of it."""
    return cast(Door, import_module(apps.get_app_config(APP).door))
