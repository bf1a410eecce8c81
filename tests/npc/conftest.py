"""Fixtures: a room with an NPC, two players whose screens tests can read, and a scripted model."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pytest


class Screen:
    """A client's screen, which gets its text through Evennia's own code for sending."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def data_out(self, **kwargs: Any) -> None:
        import evennia

        clean = evennia.SESSION_HANDLER.clean_senddata(self, kwargs)
        if clean.get("text"):
            self.sent.append(clean["text"][0][0])

    # Evennia's session handler reads these attributes of a session.
    protocol_key = "telnet"
    protocol_flags: dict[str, Any] = {}

    def telnet(self, **flags: Any) -> list[str]:
        """Return the lines as the telnet protocol writes them for a client with these flags."""
        from evennia.server.portal.telnet import TelnetProtocol

        lines: list[str] = []
        protocol = object.__new__(TelnetProtocol)
        protocol.protocol_flags = {"TTYPE": True, "ANSI": True, "XTERM256": True, **flags}
        protocol.sendLine = lines.append
        for text in self.sent:
            protocol.send_text(text, options={})
        return lines

    def plain(self) -> list[str]:
        """Return the lines that a client without colours shows."""
        return self.telnet(NOCOLOR=True)

    def web(self) -> list[str]:
        """Return the lines as the web client gets them, in HTML."""
        from evennia.utils.text2html import parse_html

        return [parse_html(text) for text in self.sent]


class _Sessions:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def all(self) -> list[Screen]:
        return [self._screen]

    def get(self, sessid: Any = None) -> list[Screen]:
        return [self._screen]

    def count(self) -> int:
        return 1


class Stage:
    """The room, the characters in it, the clock and the model of a test."""

    def __init__(self, clock: Any, cast: tuple[int, ...] = ()) -> None:
        """Use the objects with the ids in `cast`, which `a_cast` created. Without it, create new
        ones.
        """
        from evennia.objects.models import ObjectDB

        from evennia_ai.npc import runtime as running

        self.clock = clock
        self.model: Any = None
        self.running = running
        self.room, self.npc, self.anna, self.ben = (
            ObjectDB.objects.get(id=known) for known in cast or a_cast()
        )
        for player in (self.anna, self.ben):
            _watched(player)

    def make(self, key: str, typeclass: str, place: Any = "here") -> Any:
        return _made(key, typeclass, self.room if place == "here" else place)

    def player(self, key: str) -> Any:
        return _watched(self.make(key, "evennia.objects.objects.DefaultCharacter"))

    def who(self, known: int) -> Any:
        """Return the player with this id, with a new screen."""
        from evennia.objects.models import ObjectDB

        return _watched(ObjectDB.objects.get(id=known))

    def talks_with(self, *script: Any, delay_seconds: float = 0.0, **conf: Any) -> Any:
        """Install a model that says the lines of `script`, or calls it for each line."""
        from evennia_ai.services.llm.clients.scripted import ScriptedModel

        lines = script[0] if script and callable(script[0]) else script
        delayed = {"delay_seconds": delay_seconds, "clock": self.clock} if delay_seconds else {}
        self.model = ScriptedModel(lines, **delayed)
        self.install(self.model, **conf)
        return self.model

    def install(self, model: Any, **conf: Any) -> None:
        from evennia_ai.services.endpoints import Access

        self.opens(Access(model=model), **conf)

    def opens(self, access: Any, **conf: Any) -> None:
        """Let NPCs ask this access to a model; None: the one that the settings name.

        Unless `conf` says otherwise, there are no cooldowns, no limits and no thinking gestures.
        """
        from evennia_ai.services.llm.quotas import Quota, Quotas
        from evennia_ai.services.settings.conf import conf as settings

        endless = Quotas(player=Quota(), npc=Quota(), game=Quota())
        quick = {"cooldown_seconds": 0.0, "thinking_seconds": 0.0, "limits": endless}
        values = replace(settings(), **{**quick, **conf})
        self.running.install(self.running.runtime_of(values, clock=self.clock, access=access))

    def says(self, speaker: Any, text: str) -> None:
        """Let `speaker` say a text as the command `say` does, and run what follows at once."""
        speaker.at_say(text, msg_self=True)
        self.passes()

    def whispers(self, speaker: Any, text: str, to: Any = None) -> None:
        speaker.at_say(text, msg_self=True, receivers=[to or self.npc], whisper=True)
        self.passes()

    def passes(self, seconds: float = 0.0) -> None:
        """Advance the clock by so many seconds, and run what is due."""
        self.clock.advance(seconds)
        for _ in range(20):
            self.clock.advance(0)

    def screen_of(self, character: Any) -> list[str]:
        return character.screen.plain()

    def records(self, kind: str = "room") -> list[tuple[str, str, str]]:
        """Return (kind, name, body) of all records of the NPC's conversations of this kind.

        Records with texts of prompts are left out.
        """
        from evennia_ai.store.history.conversations import conversations_of
        from evennia_ai.store.history.record_rows import records_of

        return [
            (record.kind.value, record.name, record.body)
            for known in conversations_of(self.npc.ai.ref)
            if known.kind == kind
            for record in records_of(known)
            if record.kind.value not in ("context_block", "component_rev", "snapshot")
        ]


def a_cast() -> tuple[int, ...]:
    """Create a room, an NPC in it and two players. Return their ids in this order."""
    room = _made("Ferry Landing", "evennia.objects.objects.DefaultRoom", None)
    npc = _made("Oren", "evennia_ai.typeclasses.AINPC", room)
    npc.aliases.add("ferryman")
    anna, ben = (
        _made(key, "evennia.objects.objects.DefaultCharacter", room) for key in ("Anna", "Ben")
    )
    return room.id, npc.id, anna.id, ben.id


def _made(key: str, typeclass: str, location: Any) -> Any:
    from evennia.utils.create import create_object

    return create_object(typeclass, key=key, location=location, nohome=True)


def _watched(character: Any) -> Any:
    """Return the character with a screen on which a test reads what its client gets."""
    character.screen = Screen()
    character.__dict__["sessions"] = _Sessions(character.screen)
    return character


@pytest.fixture(scope="module")
def _cast(world: Callable[[], AbstractContextManager[None]]) -> Iterator[tuple[int, ...]]:
    """Create the objects of a stage once for all tests of a module, because that is slow."""
    from tests.conftest import once_a_process

    with world():
        yield once_a_process(a_cast)


@contextmanager
def _set(cast: tuple[int, ...]) -> Iterator[Stage]:
    """Yield a stage with these objects on which nothing has happened yet."""
    from twisted.internet.task import Clock

    from evennia_ai.store.core.snapshots import forget_everything

    forget_everything()
    made = Stage(Clock(), cast)
    made.talks_with()
    yield made
    made.running.install(None)
    forget_everything()


@pytest.fixture
def stage(_cast: tuple[int, ...], db: None) -> Iterator[Stage]:
    with _set(_cast) as made:
        yield made


@pytest.fixture(scope="module")
def beforehand(
    _cast: tuple[int, ...], world: Callable[[], AbstractContextManager[None]]
) -> Iterator[Callable[[Callable[[Stage], Any]], Any]]:
    """Return a function that does something on the stage once for all tests of a module.

    Every test finds its results in the database. Each test gets new objects with the same ids.
    """
    from tests.conftest import forget_objects

    def done(work: Callable[[Stage], Any]) -> Any:
        with _set(_cast) as first:
            made = work(first)
        forget_objects()
        return made

    with world():
        yield done


@pytest.fixture(scope="module")
def begun(
    beforehand: Callable[[Callable[[Stage], Any]], Any],
) -> Callable[[Stage], Stage]:
    """Say Anna's first `BEGUN` lines to Oren, with his replies, once for all tests of a module.

    The returned function also puts the lines on the screens of a test's stage.
    """
    from tests.npc.upkeep.compacting_games import BEGUN, GOOD, SMALL, Talker, rules, talks

    def begin(stage: Stage) -> tuple[list[str], list[str]]:
        stage.talks_with(Talker(GOOD), compaction=rules(), **SMALL)
        talks(stage, BEGUN)
        return stage.anna.screen.sent, stage.ben.screen.sent

    anna, ben = beforehand(begin)

    def on_screens(stage: Stage) -> Stage:
        stage.anna.screen.sent.extend(anna)
        stage.ben.screen.sent.extend(ben)
        return stage

    return on_screens


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines that are written to the game's log."""
    from evennia.utils import logger

    lines: list[str] = []
    for name in ("log_err", "log_warn", "log_msg", "log_sec", "log_trace"):
        monkeypatch.setattr(logger, name, lambda line="", **_: lines.append(str(line)))
    return lines
