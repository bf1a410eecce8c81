"""A room with a builder, a player and an NPC, and what each of them is sent.

Commands run by `execute_cmd`: with the real parser, the real command set and the real locks. Start
Evennia before you import this module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from evennia.objects.models import ObjectDB
from evennia.objects.objects import DefaultCharacter, DefaultRoom
from evennia.utils.ansi import parse_ansi
from evennia.utils.create import create_object
from twisted.internet.task import Clock

from evennia_ai.engine.prompt.components import GAME, PromptComponent, Scope
from evennia_ai.npc import runtime as running
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import components as store
from evennia_ai.typeclasses import AINPC


class _Typing:
    """Sessions that NPCs see as a playing person, but that have no client to write to."""

    protocol_key = ""
    protocol_flags: dict[str, Any] = {}

    def all(self) -> list[Any]:
        return [self]

    def get(self, sessid: Any = None) -> list[Any]:
        return []

    def count(self) -> int:
        return 0

    def msg(self, *args: Any, **kwargs: Any) -> None:
        """Show nothing."""

    def data_out(self, **kwargs: Any) -> None:
        """Show nothing: a test reads what the character is sent."""


def played(person: Any) -> Any:
    """Return a character that NPCs take for a played one."""
    person.__dict__["sessions"] = _Typing()
    return person


class Stage:
    """The harbour with Mara the builder, Pim the player and Oren the NPC."""

    def __init__(self, cast: tuple[int, ...] = ()) -> None:
        """Create the stage, or load the objects that `a_cast` created with the IDs in `cast`."""
        self.room, self.builder, self.player, self.npc = (
            ObjectDB.objects.get(id=known) for known in cast or a_cast()
        )
        for person in (self.builder, self.player):
            played(person)

    def person(self, name: str, *, permission: str) -> Any:
        """Return a new character that has the commands, as a player's would."""
        return played(_person(name, self.room, permission=permission))

    def again(self, known: int) -> Any:
        """Return the existing character with this ID, with the commands."""
        return played(ObjectDB.objects.get(id=known))

    def sent(self, caller: Any, *lines: str) -> str:
        """Return what `caller` is sent, with markup, while typing `lines` one after the other."""
        with hearing(caller) as heard, patch("evennia.commands.cmdhandler.deferLater", _at_once):
            for line in lines:
                caller.execute_cmd(line)
            running.runtime().recorder.flush()
        return "\n".join(heard)

    def builds(self, *lines: str) -> str:
        """Return what the builder reads without colours after typing `lines`."""
        return on_screen(self.sent(self.builder, *lines))

    def plays(self, *lines: str) -> str:
        """Return what the player reads without colours after typing `lines`."""
        return on_screen(self.sent(self.player, *lines))

    @contextmanager
    def model(self, *script: Any) -> Iterator[ScriptedModel]:
        """Let `script` answer for the model of all NPCs while the block runs."""
        self.clock = Clock()
        model = ScriptedModel(script)
        access = Access(model=model, model_id="scripted")
        before = running.install(running.runtime_of(conf(), clock=self.clock, access=access))
        try:
            yield model
        finally:
            running.runtime().close()
            running.install(before)

    def waited(self) -> None:
        """Let some seconds pass for the turns."""
        self.clock.pump([0.5] * 8)


def a_cast() -> tuple[int, ...]:
    """Create the room, Mara, Pim and Oren. Return their IDs in this order."""
    room = create_object(DefaultRoom, key="Harbour")
    builder = _person("Mara", room, permission="Builder")
    player = _person("Pim", room, permission="Player")
    npc = create_object(AINPC, key="Oren", location=room, home=room)
    return room.id, builder.id, player.id, npc.id


def _person(name: str, room: Any, *, permission: str) -> Any:
    person = create_object(DefaultCharacter, key=name, location=room, home=room)
    person.permissions.clear()
    person.permissions.add(permission)
    return person


@contextmanager
def hearing(someone: Any) -> Iterator[list[str]]:
    """Collect the texts that `someone` is sent while the block runs."""
    heard: list[str] = []

    def msg(text: Any = None, **kwargs: Any) -> None:
        heard.append(str(text[0] if isinstance(text, tuple | list) else text))

    someone.msg = msg
    try:
        yield heard
    finally:
        del someone.msg


def on_screen(sent: str) -> str:
    """Return what a client without colours shows of a sent text."""
    return parse_ansi(sent, strip_ansi=True)


def one_line(told: str) -> str:
    """Return the text, which must be a single readable line."""
    line = told.strip()
    assert line
    assert "\n" not in line
    assert len(line) < 700
    return line


def component(key: str, *, scope: Scope = GAME) -> PromptComponent:
    """Return the stored component of this key."""
    return store.registry().get(key, scope=scope)


def everything() -> tuple[PromptComponent, ...]:
    """Return all stored components, to check that nothing was changed."""
    return store.registry().components


def _at_once(reactor: Any, seconds: float, call: Any, *args: Any, **kwargs: Any) -> None:
    call(*args, **kwargs)
