"""What the pages ask of the game, by the module that the app names: they import nothing of it."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Protocol, cast

from django.apps import apps

from evennia_ai.minds.withheld import Viewer

APP: Final = "evennia_ai"


class ListedNPC(Protocol):
    """An NPC by name and room."""

    @property
    def ref(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def room(self) -> str: ...


class Door(Protocol):
    """What that module offers."""

    def npcs(self, part: str = "") -> Sequence[ListedNPC]:
        """The NPCs with `part` in their name or room, by name."""

    def viewer_of(self, looker: Any) -> Viewer:
        """An account as somebody who looks."""

    def may_edit(self, account: Any, locks: str) -> bool:
        """Whether a lock string lets an account change what it is on."""

    def pause(self, ref: str, *, by: str) -> None:
        """Have one NPC ask no model."""

    def resume(self, ref: str, *, by: str) -> None:
        """Let it go on."""

    def stop_all(self, *, by: str) -> None:
        """Stop the whole game's NPCs."""

    def start_all(self, *, by: str) -> None:
        """Let them answer again."""


def door() -> Door:
    """The game's end of it."""
    return cast(Door, import_module(apps.get_app_config(APP).door))
