"""A small stage: a room, an NPC, two players whose screens can be read, a model with a script."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pytest


class Screen:
    """What a player's client is sent, through Evennia's own way out of the server."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def data_out(self, **kwargs: Any) -> None:
        import evennia

        clean = evennia.SESSION_HANDLER.clean_senddata(self, kwargs)
        if clean.get("text"):
            self.sent.append(clean["text"][0][0])

    # What Evennia's session handler asks a session for.
    protocol_key = "telnet"
    protocol_flags: dict[str, Any] = {}

    def telnet(self, **flags: Any) -> list[str]:
        """The lines as the telnet protocol writes them for a client with these flags."""
        from evennia.server.portal.telnet import TelnetProtocol

        lines: list[str] = []
        protocol = object.__new__(TelnetProtocol)
        protocol.protocol_flags = {"TTYPE": True, "ANSI": True, "XTERM256": True, **flags}
        protocol.sendLine = lines.append
        for text in self.sent:
            protocol.send_text(text, options={})
        return lines

    def plain(self) -> list[str]:
        """The lines of a client without colours."""
        return self.telnet(NOCOLOR=True)

    def web(self) -> list[str]:
        """The lines as the web client gets them."""
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
    """The room, who is in it, the clock and the model."""

    def __init__(self, clock: Any, cast: tuple[int, ...] = ()) -> None:
        """On `cast`, the ids of what `a_cast` made; without it everything is made anew."""
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
        """The player of this id, with a screen of their own."""
        from evennia.objects.models import ObjectDB

        return _watched(ObjectDB.objects.get(id=known))

    def talks_with(self, *script: Any, delay_seconds: float = 0.0, **conf: Any) -> Any:
        """Install a model that says `script`; or a callable that makes each line."""
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
        """Use this access to a model, None for the one that the settings ask for.

        Nobody rests, nothing is limited and nobody shows that they think, where `conf` is silent.
        """
        from evennia_ai.services.llm.quotas import Quota, Quotas
        from evennia_ai.services.settings.conf import conf as settings

        endless = Quotas(player=Quota(), npc=Quota(), game=Quota())
        quick = {"cooldown_seconds": 0.0, "thinking_seconds": 0.0, "limits": endless}
        values = replace(settings(), **{**quick, **conf})
        self.running.install(self.running.runtime_of(values, clock=self.clock, access=access))

    def says(self, speaker: Any, text: str) -> None:
        """`speaker` says it as the command `say` does, and what follows at once happens."""
        speaker.at_say(text, msg_self=True)
        self.passes()

    def whispers(self, speaker: Any, text: str, to: Any = None) -> None:
        speaker.at_say(text, msg_self=True, receivers=[to or self.npc], whisper=True)
        self.passes()

    def passes(self, seconds: float = 0.0) -> None:
        """Time passes."""
        self.clock.advance(seconds)
        for _ in range(20):
            self.clock.advance(0)

    def screen_of(self, character: Any) -> list[str]:
        return character.screen.plain()

    def records(self, kind: str = "room") -> list[tuple[str, str, str]]:
        """(kind, name, body) of the records of the NPC's conversations of this kind.

        The texts of prompts are left out.
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
    """A room, an NPC in it and two players, in the database: their ids in this order."""
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
    """The character, with a screen of which a test reads what a client is sent."""
    character.screen = Screen()
    character.__dict__["sessions"] = _Sessions(character.screen)
    return character


@pytest.fixture(scope="module")
def _cast(world: Callable[[], AbstractContextManager[None]]) -> Iterator[tuple[int, ...]]:
    """The cast, made once for all tests of a file: making it takes longer than most of them."""
    with world():
        yield a_cast()


@contextmanager
def _set(cast: tuple[int, ...]) -> Iterator[Stage]:
    """A stage of this cast, on which nothing happened yet."""
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
    """Does something on the stage once for all tests of a file, and gives what comes of it.

    Every test finds it in the database; objects are other ones in each, their ids the same.
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
    """Anna's first `BEGUN` lines to Oren and his replies, said once for all tests of a file.

    Called with a test's stage it puts them on the screens as well.
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
    """The lines that were written to the game's log."""
    from evennia.utils import logger

    lines: list[str] = []
    for name in ("log_err", "log_warn", "log_msg", "log_sec", "log_trace"):
        monkeypatch.setattr(logger, name, lambda line="", **_: lines.append(str(line)))
    return lines
