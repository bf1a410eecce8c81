"""A room with an NPC and two players, run by the real game code in a process that may die.

The process reports each step, what players read and what is logged. Evennia must be started before
this module is imported.
"""

import json
import os
import random
import time
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from evennia.objects.models import ObjectDB
from evennia.utils.create import create_object
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.logger import formatEvent, globalLogPublisher

from evennia_ai.commands.ai.status import status_lines
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import EvenniaAIError, ModelUnavailable
from evennia_ai.engine.history.compaction.planning import CompactionRules, CompactionSettings
from evennia_ai.engine.history.records import NewRecord, RecordKind, find_broken
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.npc import runtime as running
from evennia_ai.npc import service
from evennia_ai.npc.mind.control import commit_retry
from evennia_ai.npc.recording import unanswered
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.turn.rehearsal import rehearse
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.chat import ChatReply, ChatRequest
from evennia_ai.services.llm.clients.scripted import Line, ScriptedModel
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.database import database as settings_of
from evennia_ai.store.authored import cards
from evennia_ai.store.erasing import erase_branches
from evennia_ai.store.history import (
    branches,
    control,
    conversations,
    past_turns,
    record_rows,
    turns,
)
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.turns import StoredTurn
from tests.acceptance.doomed_steps import (
    THE_END,
    Steps,
    Tell,
    Troubles,
    committed_open_turns,
    is_address,
)
from tests.commands.stage import played
from tests.threaded_clock import ThreadedClock

NPC: Final = "Oren"
PLAYERS: Final = ("Anna", "Ben")
GREETING: Final = "Mind the wet planks."
ANSWER_SECONDS: Final = 1.0
CALL: Final = "call-1"
AN_HOUR: Final = 3600.0
WAIT_SECONDS: Final = 0.02
"""The real time of one wait for the writer's thread."""
MOST_SECONDS: Final = 60.0
"""The longest real time for a compaction, which counts tokens in other threads."""
# Short limits, so that `compacts` compacts a conversation of few lines.
_SHORT: Final = CompactionSettings(
    rules=CompactionRules(keep_messages=2, summary_tokens=20, most_summary_tokens=100)
)

MIXED: Final = (
    *("says", "says", "says", "compacts", "takes_back", "takes_back", "begins_anew"),
    *("has_it_answer_again", "corrects", "rehearses", "rehearses"),
)
"""The acts from which `mixes` chooses: lines of players, and corrections by builders."""

_CARD: Final = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {"name": NPC, "first_mes": GREETING},
}


class World:
    """The game world of one process. Each public method is an act that a job can name."""

    def __init__(
        self,
        tell: Tell,
        steps: Steps,
        troubles: Troubles,
        *,
        database: str,
        model: str,
        writer: bool,
    ) -> None:
        self._tell = tell
        self._has_writer = writer
        self._steps = steps
        self._troubles = troubles
        self._database = database
        self._clock = ThreadedClock()
        self._people: dict[str, Any] = {}
        self._answers = 0
        globalLogPublisher.addObserver(lambda event: tell(log=formatEvent(event)))
        script = {"answers": self._answer, "fails": self._fail, "uses a tool": self._use_a_tool}
        self._install(script[model])

    def builds(self) -> None:
        """Make the room, the NPC and the players. Once per database."""
        room = create_object("evennia.objects.objects.DefaultRoom", key="Landing", nohome=True)
        for name, typeclass in [
            (NPC, "evennia_ai.typeclasses.AINPC"),
            *((name, "evennia.objects.objects.DefaultCharacter") for name in PLAYERS),
        ]:
            create_object(typeclass, key=name, location=room, nohome=True)

    def greets(self) -> None:
        """Let the NPC open conversations with a greeting. Once per database."""
        cards.save_card("oren", json.dumps(_CARD), by=trusted("builder"))
        cards.CARDS.assign("oren", of_npc(self._npc.ai.ref), by=trusted("builder"))
        cards.set_greeting(self._npc.ai.ref, 0, by=trusted("builder"))

    def starts(self) -> None:
        """Do what the game does at the start of a server."""
        # On a slow machine, lines from before the start would be too old to be answered.
        unanswered.FRESH_SECONDS = unanswered.LOOKED_BACK_SECONDS = AN_HOUR
        service.at_server_start()
        self.passes(0)

    def says(self, who: str, text: str) -> None:
        self._character(who).at_say(text, msg_self=True)
        self.passes(0)

    def whispers(self, who: str, text: str) -> None:
        self._character(who).at_say(text, msg_self=True, receivers=[self._npc], whisper=True)
        self.passes(0)

    def compacts(self) -> None:
        """Compact the NPC's history of the room, as a builder does.

        Other threads count the tokens, so this waits in real time.
        """
        done = runtime().compactor.compact_room(self._npc.ai, by=trusted("Mira"))
        outcomes: list[Any] = []
        done.addCallback(outcomes.append)
        ends = time.monotonic() + MOST_SECONDS
        while not outcomes and time.monotonic() < ends:
            self._clock.hear(at_most_seconds=WAIT_SECONDS)
            self.passes(ANSWER_SECONDS)
        self._tell(compacted=[outcome.told for outcome in outcomes])

    def controls(self, text: str) -> None:
        """Correct the first answer, undo the last exchange and reset, as a builder does."""
        (where,) = conversations.conversations_of(self._npc.ai.ref)
        first = next(r for r in record_rows.records_of(where) if r.kind is RecordKind.ASSISTANT)
        for step in (
            partial(control.correct_utterance, where, first, text, by=trusted("Mira")),
            partial(control.undo_exchanges, where, 1, by=trusted("Mira")),
            partial(control.reset_conversation, where, by=trusted("Mira")),
        ):
            runtime().writer.write(step)
            self.passes(0)

    def mixes(self, seed: int, count: int) -> None:
        """Do `count` random acts of players and builders, chosen with this seed."""
        dice = random.Random(seed)
        for _ in range(count):
            step = dice.choice(MIXED)
            if step == "says":
                self.says("Anna", f"Oren, is it foggy on day {dice.randrange(1000)}?")
            elif step == "compacts":
                self.compacts()
            else:
                doing = maybeDeferred(getattr(self, f"_{step}"), dice)
                doing.addErrback(lambda failure: failure.trap(EvenniaAIError))  # nothing to undo
            self.passes(2)

    def _takes_back(self, dice: random.Random) -> "Deferred[Any]":
        count = dice.randint(1, 3)
        return runtime().writer.write(
            partial(control.undo_exchanges, self._room, count, by=trusted("Mira"))
        )

    def _begins_anew(self, dice: random.Random) -> "Deferred[Any]":
        return runtime().writer.write(
            partial(control.reset_conversation, self._room, by=trusted("Mira"))
        )

    def _has_it_answer_again(self, dice: random.Random) -> "Deferred[Any]":
        return commit_retry(self._npc, self._room, "Be brief.", by=trusted("Mira"))

    def _corrects(self, dice: random.Random) -> "Deferred[Any]":
        said = [one for one in record_rows.records_of(self._room) if one.role == "assistant"]
        one = partial(
            control.correct_utterance, self._room, dice.choice(said), "Never.", by=trusted("Mira")
        )
        return runtime().writer.write(one)

    def _rehearses(self, dice: random.Random) -> "Deferred[Any]":
        """Open a branch of a random turn and speak in it. Sometimes erase old branches first."""
        mira = self._character("Ben")
        if dice.random() < 0.3:
            erase_branches(self._npc.ai.ref, str(mira.id), by=trusted("Mira"))
        number = dice.randint(1, turns.next_number(self._npc.ai.ref) - 1)
        turn = turns.get_turn(self._npc.ai.ref, number)
        branch = branches.open_branch(turn, by_ref=str(mira.id), by=trusted("Mira"))
        return rehearse(self._npc, branch, "What if I had paid?", typist=mira)

    @property
    def _room(self) -> ConversationRef:
        return conversations.conversations_of(self._npc.ai.ref)[0]

    def passes(self, seconds: float) -> None:
        """Let time pass in steps of half a second."""
        for _ in range(int(seconds * 2)):
            self._advance(0.5)
        for _ in range(20):
            self._advance(0)

    def _advance(self, seconds: float) -> None:
        """Move the clock, then wait for the writer unless the database is locked."""
        self._clock.advance(seconds)
        writer = runtime().writer
        while writer.is_at_work or self._troubles.is_paused:
            is_stuck = bool(writer.locked_out) and not self._troubles.is_paused
            if not self._clock.hear(at_most_seconds=WAIT_SECONDS) and is_stuck:
                return

    def heals(self) -> None:
        """End the trouble."""
        self._troubles.heal()
        self._tell(healed=True)

    def dies(self) -> None:
        """Kill the process, if the trouble has not killed it before."""
        self._steps.reached(THE_END)
        self._troubles.kill()

    def reports(self) -> None:
        """Report the NPC's status, and the conversations whose record chains are broken."""
        self._tell(report={"status": status_lines(self._npc), "broken": self._broken()})

    def verifies(self) -> None:
        """Report the conversations whose record chains are broken."""
        self._tell(report={"broken": self._broken()})

    def replays(self) -> None:
        """Report the turns whose replay differs from what was sent."""
        unlike = [
            f"{ref} {turn.number}"
            for ref in dict.fromkeys(where.npc_ref for where in self._known())
            for turn in past_turns.turns_in_order(ref)
            if not turn.manifest.erased and not _is_told_again(turn)
        ]
        self._tell(unlike=unlike)

    def _broken(self) -> list[str]:
        return [str(one) for one in self._known() if find_broken(record_rows.records_of(one))]

    def _known(self) -> list[ConversationRef]:
        """Return the NPC's conversations and their branches."""
        own = conversations.conversations_of(self._npc.ai.ref)
        return [*own, *(branch for where in own for branch in branches.branches_of(where))]

    @property
    def _npc(self) -> Any:
        return self._character(NPC)

    def _character(self, name: str) -> Any:
        """Return the character with this name. What a player reads is reported."""
        if name not in self._people:
            found = ObjectDB.objects.get(db_key=name)
            self._people[name] = found
            if name in PLAYERS:
                played(found).msg = lambda text="", **_: self._read(name, text)
        return self._people[name]

    def _read(self, name: str, text: Any) -> None:
        line = text[0] if isinstance(text, tuple) else text
        self._steps.reached(f"before {name} reads")
        self._tell(read=str(line), by=name)

    def _install(self, script: Any) -> None:
        model = _Model(script, self._steps, self._tell, clock=self._clock, database=self._database)
        values = replace(conf(), cooldown_seconds=0.0, compaction=_SHORT)
        access = Access(model=model)
        live = running.runtime_of(values, clock=self._clock, access=access)
        running.install(live)
        if self._has_writer:
            live.writer.begin()
        for name in PLAYERS if _is_built() else ():
            self._character(name)

    def _answer(self, request: ChatRequest) -> Line:
        """Return a reply that no process has given before."""
        self._answers += 1
        return f"Aye, at {os.getpid()} past {self._answers}."

    def _fail(self, request: ChatRequest) -> Line:
        return ModelUnavailable("stub", "it is out of order")

    def _use_a_tool(self, request: ChatRequest) -> Line:
        """Call a tool that changes the world, in the order of a turn: call, run, result, reply."""
        (where,) = conversations.conversations_of(self._npc.ai.ref)
        call = {"id": CALL, "name": "ring_bell", "arguments": "{}"}
        conversations.append_records(where, [_record(RecordKind.TOOL_CALL, tool_calls=[call])])
        self._steps.reached("before a tool runs")
        self._tell(ran="ring_bell")
        self._steps.reached("after a tool ran")
        result = _record(RecordKind.TOOL_RESULT, "The bell rings.", tool_call_id=CALL)
        conversations.append_records(where, [result])
        return "Hear the bell?"


class _Model(ScriptedModel):
    """A scripted model with a delay, whose requests are reported as steps."""

    def __init__(
        self, script: Any, steps: Steps, tell: Tell, *, clock: Clock, database: str
    ) -> None:
        super().__init__(script, delay_seconds=ANSWER_SECONDS, clock=clock)
        self._steps = steps
        self._tell_all = tell
        self._database = database

    def complete(self, request: ChatRequest, *, listener: object = None) -> "Deferred[ChatReply]":
        self._tell_all(asked=_shown(request), open_turns=committed_open_turns(self._database))
        self._steps.reached("asked")
        return super().complete(request)


def _is_told_again(turn: StoredTurn) -> bool:
    """True if the replay of the turn equals what was sent."""
    return replay_turn(turn.manifest, record_rows.records(turn.manifest.sent_ids)).is_same


def _shown(request: ChatRequest) -> list[dict[str, Any]]:
    return [
        {
            "role": message.role,
            "content": message.content,
            "calls": [call.id for call in message.tool_calls],
            "answers": message.tool_call_id,
        }
        for message in request.messages
    ]


def _record(kind: RecordKind, body: str = "", **meta: Any) -> NewRecord:
    role = "assistant" if kind is RecordKind.TOOL_CALL else "tool"
    return NewRecord(kind=kind, role=role, body=body, meta=meta)


def _is_built() -> bool:
    return ObjectDB.objects.filter(db_key=NPC).exists()


def connect(database: str) -> BaseDatabaseWrapper:
    """Connect to this database. A locked SQLite file fails at once instead of waiting."""
    if is_address(database):
        connection.settings_dict.update(settings_of(database)["default"])
    else:
        connection.settings_dict["NAME"] = database
        connection.settings_dict["OPTIONS"] = {
            "timeout": 0,
            "init_command": "PRAGMA journal_mode=WAL",
        }
    connection.ensure_connection()
    return connection
