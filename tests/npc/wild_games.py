"""Random games in which everything happens at once and anything may fail.

`Game` does the steps that it is given. `wild_checks` checks the result.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection
from django.db.utils import OperationalError
from twisted.internet.task import Clock

from evennia_ai import models
from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.errors import BudgetError, EvenniaAIError, HistoryConflictError
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.npc import service
from evennia_ai.npc.mind import emergency
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.witness import show_departure
from evennia_ai.npc.tools.tool import Refused
from evennia_ai.store import erasing
from evennia_ai.store.authored import cards
from evennia_ai.store.authored.cards import save_card
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import conversations, record_rows
from evennia_ai.store.history.windows import windows
from tests.npc.upkeep.compacting_games import SMALL, rules
from tests.npc.wild_models import TOOLS, Errand, Model, Request

LINE: Final = re.compile(r"line (\d+)\.")
WORD: Final = re.compile(r"\bw\d+[a-z]\b")
"""A word of an NPC. Each of these words is said only once."""

CARD: Final = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {"name": "Ismay", "first_mes": "Mind the planks.", "description": "Dry."},
}
PLAYERS: Final = ("Anna", "Ben", "Cara")
NPCS: Final = ("Oren", "Brida", "Ismay")


@dataclass
class Said:
    """A line that a player said."""

    by: str
    private_with: str = ""


@dataclass
class Game:
    """The stage with three players, three NPCs, two rooms and everything that can fail."""

    stage: Any
    habits: list[str]
    conf: dict[str, Any] = field(default_factory=dict)
    mode: str = "always"
    """The mode of two of the NPCs."""
    said: list[Said] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)
    """Words of NPCs that were erased."""
    lost_calls: int = 0
    _unknown: list[Any] = field(default_factory=list)
    fuse: int | None = None
    """The database fails after so many writes. None: it does not fail."""
    reads_fail: bool = False
    has_failed: bool = False

    def __post_init__(self) -> None:
        stage = self.stage
        self.hill = stage.make("Hill", "evennia.objects.objects.DefaultRoom", place=None)
        for here, there in ((stage.room, self.hill), (self.hill, stage.room)):
            path = stage.make("path", "evennia.objects.objects.DefaultExit", place=here)
            path.destination = there
        self.watchers = {place.id: self._watcher(place) for place in (stage.room, self.hill)}
        self.players = {"Anna": stage.anna, "Ben": stage.ben, "Cara": stage.player("Cara")}
        brida, ismay = (stage.make(key, "evennia_ai.typeclasses.AINPC") for key in NPCS[1:])
        self.npcs = {"Oren": stage.npc, "Brida": brida, "Ismay": ismay}
        self.refs = {str(npc.id): name for name, npc in self.npcs.items()}
        change_settings(stage.npc, tools=TOOLS, by=THE_GAME)
        change_settings(brida, mode=self.mode, tools=("note", "say"), profile="spare", by=THE_GAME)
        change_settings(ismay, mode=self.mode, by=THE_GAME)
        save_card("ismay", json.dumps(CARD), by=trusted("builder"))
        cards.CARDS.assign("ismay", of_npc(str(ismay.id)), by=trusted("builder"))
        cards.set_greeting(str(ismay.id), 0, by=trusted("builder"))
        self.model = Model(self, self.habits)
        self.starts(_clock_at(time.time()))
        connection.execute_wrappers.append(self._database)

    @property
    def clock(self) -> Any:
        return self.stage.clock

    def _watcher(self, place: Any) -> Any:
        """Return an object in this room that sees everything."""
        from tests.npc.conftest import Screen, _Sessions

        eye = self.stage.make("eye", "evennia.objects.objects.DefaultObject", place=place)
        eye.screen = Screen()
        eye.__dict__["sessions"] = _Sessions(eye.screen)
        return eye

    def starts(self, clock: Any) -> None:
        """Start a process with this clock."""
        self.stage.clock = clock
        self.stage.install(
            self.model,
            compaction=rules(keep_messages=6, rest_turns=2),
            **{**SMALL, **self.conf},
        )
        service.at_server_start()

    def _database(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        is_met = self.reads_fail or not sql.startswith("SELECT")
        if self.fuse is not None and is_met and '"evennia_ai_' in sql:
            self.fuse -= 1
            if self.fuse < 0:
                self.has_failed = True
                raise OperationalError("database is locked")
        return execute(sql, params, many, context)

    def ends(self) -> None:
        """Let everything that runs or waits come to its end."""
        self.fuse = None
        emergency.start_all(by=trusted("Mira"))
        for npc in self._living():
            emergency.resume(npc, by=trusted("Mira"))
        for _ in range(40):
            for one in [one for one in self.model.asked if one.is_open]:
                self.model.ends(one)
            self.end_errand(True)
            self.stage.passes(20)
        service._stop_timers()
        for _ in range(5):
            self.stage.passes(120)
        # a process notices the records of other processes when it writes
        for where in self._unknown:
            with suppress(HistoryConflictError):
                conversations.append_records(
                    where, [NewRecord(kind=RecordKind.EVENT, role="user", body="-")]
                )

    def closes(self) -> None:
        connection.execute_wrappers.remove(self._database)
        service.at_server_stop()

    def _living(self) -> list[Any]:
        return [npc for npc in self.npcs.values() if npc.pk is not None]

    def check_request(self, one: Request) -> None:
        from tests.npc.wild_checks import check_request

        check_request(self, one)

    # The steps of a game.

    def say(self, by: str, named: list[str]) -> None:
        line = f"{', '.join([*named, ''])}line {len(self.said)}."
        self.said.append(Said(by))
        self.players[by].at_say(line, msg_self=True)
        self.stage.passes()

    def whisper(self, by: str, to: str) -> None:
        npc, speaker = self.npcs[to], self.players[by]
        if npc.pk is None or speaker.location is None or speaker.location != npc.location:
            return
        line = f"line {len(self.said)}."
        self.said.append(Said(by, private_with=str(npc.id)))
        speaker.at_say(line, msg_self=True, receivers=[npc], whisper=True)
        self.stage.passes()

    def hand(self, by: str, to: str) -> None:
        npc, giver = self.npcs[to], self.players[by]
        if npc.pk is not None and giver.location is not None and npc.location == giver.location:
            coin = self.stage.make("coin", "evennia.objects.objects.DefaultObject", place=giver)
            coin.move_to(npc, quiet=True, move_type="give")
        self.stage.passes()

    def move(self, who: str) -> None:
        player = self.players[who]
        there = self.hill if player.location == self.stage.room else self.stage.room
        player.move_to(there)
        self.stage.passes()

    def log_out(self, who: str) -> None:
        player, place = self.players[who], self.players[who].location
        if place is not None:
            player.location = None
            show_departure(place, player, None)
        self.stage.passes()

    def delete(self, name: str) -> None:
        if self.npcs[name].pk is not None:
            self.npcs[name].delete()
        self.stage.passes()

    def switch(self, name: str) -> None:
        npc = self.npcs[name]
        if npc.pk is not None:
            if npc.ai.enabled:
                npc.ai.disable()
            else:
                npc.ai.enable()

    def pause(self, name: str) -> None:
        self._if_written(emergency.pause, self.npcs[name], by=trusted("Mira"))

    def resume(self, name: str) -> None:
        self._if_written(emergency.resume, self.npcs[name], by=trusted("Mira"))

    def stop_all(self) -> None:
        self._if_written(emergency.stop_all, by=trusted("Mira"))

    def start_all(self) -> None:
        self._if_written(emergency.start_all, by=trusted("Mira"))

    def forget(self, who: str) -> None:
        """Erase a player's private conversations."""
        ref = str(self.players[who].id)
        known = [c for c in self.all_conversations() if c.partner_ref == ref]
        self._erased(known, erasing.erase_private, ref)

    def erase(self, name: str) -> None:
        """Erase one conversation of an NPC."""
        known = [c for c in self.all_conversations() if self.refs[c.npc_ref] == name]
        for where in known[:1]:
            self._erased([where], erasing.erase_conversation, where)

    def _erased(self, known: list[Any], erase: Any, what: Any) -> None:
        with self.looking():
            words = {
                word
                for where in known
                for record in record_rows.records_of(where)
                for word in WORD.findall(f"{record.body} {record.meta}")
            }
        if self._if_written(erase, what, by=trusted("Anna")):
            self.forgotten |= words

    def set(self, name: str, values: dict[str, Any]) -> None:
        if self.npcs[name].pk is not None:
            change_settings(self.npcs[name], **values, by=THE_GAME)

    def end_errand(self, is_done: bool) -> None:
        waiting = [one for one in Errand.sent if not one.called]
        for one in waiting[:1]:
            if is_done:
                one.callback("The boy is back.")
            else:
                one.errback(Refused("The boy got lost."))
        self.stage.passes()

    def answer(self) -> None:
        """Let the model answer the oldest open request."""
        for one in [one for one in self.model.asked if one.is_open][:1]:
            self.model.ends(one)
        self.stage.passes()

    def compact(self, name: str) -> None:
        if self.npcs[name].pk is not None:
            self._if_written(
                runtime().compactor.compact_room, self.npcs[name].ai, by=trusted("Mira")
            )
        self.stage.passes()

    def conflict(self, name: str) -> None:
        """Let another process write to a conversation of the NPC."""
        known = [c for c in self.all_conversations() if self.refs[c.npc_ref] == name]
        note = NewRecord(kind=RecordKind.EVENT, role="user", body="A gull cries.")
        for where in known[:1]:
            with self.looking():
                end = windows._load(where.id).end
            if self._if_written(conversations.write_record, where, end, note):
                self._unknown.append(where)

    def fail(self, after: int, reads_too: bool, seconds: float) -> None:
        self.fuse, self.reads_fail = after, reads_too
        self.clock.callLater(seconds, self.heal)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Let a test read the database while the game cannot."""
        fuse, self.fuse = self.fuse, None
        try:
            yield
        finally:
            self.fuse = fuse

    def heal(self) -> None:
        self.fuse = None

    def wait(self, seconds: float) -> None:
        self.stage.passes(seconds)

    def crash(self) -> None:
        """End the process without a stop, and start another one."""
        for one in self.model.asked:
            one.is_open = False
        self._loses_calls()
        service._calls.clear()
        service._timers.clear()
        Errand.sent.clear()
        self._begins_again(_clock_at(self.clock.seconds()))

    def reload(self) -> None:
        service.at_server_stop()
        assert self.stage.running.current.installed is None, "something began after the stop"
        if self.has_failed:  # writes that still wait for the database are lost
            self._loses_calls()
        self._begins_again(_clock_at(self.clock.seconds()))

    def _loses_calls(self) -> None:
        """Remember how many rows of model calls are lost, because they were not written yet."""
        asked = models.ModelCall.objects.filter(role="speaker").exclude(outcome="failed:stopped")
        rows = asked.exclude(outcome__startswith="unsent:")
        with self.looking():
            self.lost_calls = len(self.model.asked) - rows.count()

    def _begins_again(self, clock: Any) -> None:
        for npc in self.npcs.values():
            npc.__dict__.pop("ai", None)
            npc.__dict__.pop("witness", None)
        forget_everything()
        self.starts(clock)

    def _if_written(self, do: Any, *args: Any, **kwargs: Any) -> bool:
        """Return whether the database accepted a change. A real user would read the error."""
        try:
            do(*args, **kwargs)
        except (EvenniaAIError, OperationalError, BudgetError):
            return False
        finally:
            self.stage.passes()
        return True

    def all_conversations(self) -> list[Any]:
        with self.looking():
            return self._all_conversations()

    def _all_conversations(self) -> list[Any]:
        return [known for ref in self.refs for known in conversations.conversations_of(ref)]


def _clock_at(seconds: float) -> Clock:
    clock = Clock()
    clock.advance(seconds)
    return clock
