"""Random crowds: no line is taken for another speaker's line, and none is answered twice."""

import re
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.npc.inputs.shipped_providers import HEADING
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.quotas import Quota, Quotas
from evennia_ai.store.core.snapshots import forget_everything
from tests.properties import up_to

LINE = re.compile(r"line (\d+)\.")
REPLY = re.compile(r"Reply to number (\d+),")
WHO = re.compile(r"Who (?:speaks|whispers to you): (\w+) \(")
PLAYERS = ("Anna", "Ben", "Cara")
NPCS = ("Oren", "Brida", "Ismay")
NAMED = st.lists(st.sampled_from(NPCS), max_size=2, unique=True)
STEPS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(PLAYERS), NAMED),
    st.tuples(st.just("say"), st.sampled_from(PLAYERS), NAMED),
    st.tuples(st.just("whisper"), st.sampled_from(PLAYERS), st.sampled_from(NPCS)),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 3.0, 20.0])),
    st.tuples(st.just("move"), st.sampled_from(PLAYERS)),
)


@dataclass
class Said:
    """A line that a player said."""

    by: str
    named: tuple[str, ...] = ()
    whispered_to: str = ""
    heard_by: tuple[str, ...] = ()


@dataclass
class Model:
    """A model that answers each request after a random time, and keeps the requests."""

    clock: Any
    delays: list[float]
    requests: list[Any] = field(default_factory=list)
    name: str = "slow"
    offline: bool = False

    def complete(self, request: Any, *, listener: Any = None) -> Deferred[ChatReply]:
        numbers = tuple(map(int, LINE.findall(request.question)))
        self.requests.append((request.speaker, numbers, request))
        reply = ChatReply(text=f"Reply to number {numbers[-1]}, my friend.", model=self.name)
        call = None
        answer: Deferred[ChatReply] = Deferred(lambda _: call.cancel())
        delay = self.delays[len(self.requests) % len(self.delays)]
        call = self.clock.callLater(delay, answer.callback, reply)
        return answer

    def close(self) -> None:
        """Do nothing, because the model holds no connection."""


class Crowd:
    """Three players and three NPCs, two of which answer without being named."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage
        self.elsewhere = stage.make("Hill", "evennia.objects.objects.DefaultRoom", place=None)
        self.players = {"Anna": stage.anna, "Ben": stage.ben, "Cara": stage.player("Cara")}
        others = {key: stage.make(key, "evennia_ai.typeclasses.AINPC") for key in NPCS[1:]}
        self.npcs = {"Oren": stage.npc, **others}
        change_settings(self.npcs["Brida"], mode="always", by=THE_GAME)
        change_settings(
            self.npcs["Ismay"], mode="always", talkativeness=0.9, cooldown_seconds=2.0, by=THE_GAME
        )

    def plays(self, steps: list[Any], delays: list[float], **conf: Any) -> None:
        self.model = Model(self.stage.clock, delays)
        self.stage.install(self.model, **conf)
        self.said: dict[int, Said] = {}
        for npc in self.npcs.values():
            npc.ai.attention.__dict__["last_verdicts"] = deque()
        for kind, *options in steps:
            getattr(self, kind)(*options)
        for _ in range(30):
            self.stage.passes(5)

    def forgets(self) -> None:
        """Clear everything that an example left in memory, and put its players back."""
        for player in self.players.values():
            player.location = self.stage.room
        self.stage.passes(5)
        self.stage.running.runtime().close()
        forget_everything()
        for npc in self.npcs.values():
            npc.__dict__.pop("ai", None)
            npc.__dict__.pop("witness", None)

    def say(self, by: str, named: list[str]) -> None:
        number = len(self.said)
        is_there = self.players[by].location == self.stage.room
        self.said[number] = Said(by, tuple(named), heard_by=NPCS if is_there else ())
        called = f"{' and '.join(named)}, " if named else ""
        self.players[by].at_say(f"{called}line {number}.", msg_self=True)

    def whisper(self, by: str, to: str) -> None:
        if self.players[by].location != self.stage.room:
            return
        number = len(self.said)
        self.said[number] = Said(by, whispered_to=to, heard_by=(to,))
        speaker, npc = self.players[by], self.npcs[to]
        speaker.at_say(f"line {number}.", msg_self=True, receivers=[npc], whisper=True)

    def wait(self, seconds: float) -> None:
        self.stage.passes(seconds)

    def move(self, who: str) -> None:
        player = self.players[who]
        here = player.location == self.stage.room
        player.move_to(self.elsewhere if here else self.stage.room)
        self.stage.passes()

    # What must be true.

    def check(self) -> None:
        asked = Counter((who, one) for who, numbers, _ in self.model.requests for one in numbers)
        assert not asked or max(asked.values()) == 1, "answered twice"
        for speaker, numbers, request in self.model.requests:
            assert {self.said[one].by for one in numbers} == {self.said[numbers[-1]].by}
            self.check_prompt(speaker, numbers[-1], request)
        for number, said in self.said.items():
            for npc in said.heard_by:
                self.check_fate(npc, number, said, asked)
        assert not any(npc.ai.is_busy for npc in self.npcs.values())

    def check_prompt(self, speaker: str, number: int, request: Any) -> None:
        said = self.said[number]
        last = request.messages[-1].content
        assert last.startswith(f"{said.by}: "), "another speaker"
        assert last.endswith(f"line {number}."), "another line is answered"
        told = [found[1] for m in request.messages for found in WHO.finditer(m.content)]
        assert told[-1] == said.by
        assert not said.whispered_to or said.whispered_to == speaker
        for message in request.messages[:-1]:
            self.check_message(speaker, said, message.content)

    def check_message(self, speaker: str, answered: Said, content: str) -> None:
        if HEADING in content:
            self.check_elsewhere(speaker, content)
            return
        found = LINE.search(content)
        if found is None:
            return
        shown = self.said[int(found[1])]
        assert content.startswith(f"{shown.by}: "), "a line of another"
        if answered.whispered_to or shown.whispered_to:
            assert shown.whispered_to == answered.whispered_to == speaker, "a whisper elsewhere"
            assert shown.by == answered.by, "a whisper of another"

    def check_elsewhere(self, speaker: str, facts: str) -> None:
        """Check that lines from other rooms were said aloud there and heard by the NPC."""
        for line in facts.partition(HEADING)[2].partition("\n\n")[0].splitlines():
            if found := LINE.search(line):
                shown = self.said[int(found[1])]
                assert line.startswith(f"  - {shown.by}: "), "a line of another"
                assert speaker in shown.heard_by, "it was not there"
                assert not shown.whispered_to, "a whisper in another conversation"
            elif found := REPLY.search(line):
                assert not self.said[int(found[1])].whispered_to, "an answer to a whisper"

    def check_fate(self, npc: str, number: int, said: Said, asked: Counter[Any]) -> None:
        verdicts = [
            verdict
            for verdict in self.npcs[npc].ai.attention.last_verdicts
            if verdict.text.endswith(f"line {number}.")
        ]
        assert verdicts, "nobody knows what became of it"
        assert all(verdict.why for verdict in verdicts)
        if not verdicts[-1].answers:
            return
        assert asked[npc, number] == 1, "it was to be answered and was not"
        if said.whispered_to:
            return
        spoke = [one for one in NPCS if asked[one, number]]
        if said.named:
            assert npc in said.named, "answered though others were named"
        else:
            assert spoke == [npc], "several answered what was said to nobody"


@pytest.fixture
def crowd(stage):
    return Crowd(stage)


@pytest.mark.long
@given(
    steps=st.lists(STEPS, min_size=3, max_size=25),
    delays=st.lists(st.sampled_from([0.1, 2.0, 9.0]), min_size=1, max_size=5),
    cooldown_seconds=st.sampled_from([0.0, 3.0]),
    calls=st.sampled_from([None, 2]),
)
@settings(
    max_examples=up_to(30),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # shrinking would play too many games
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_each_line_of_a_crowd_is_answered_once_or_has_a_reason_for_silence(
    crowd, steps, delays, cooldown_seconds, calls
):
    from django.db import transaction

    player = Quota(calls_per_minute=calls)
    conf = {
        "cooldown_seconds": cooldown_seconds,
        "limits": Quotas(player=player, npc=Quota(), game=Quota()),
        "max_concurrent_calls": 2,
    }
    try:
        with transaction.atomic():
            crowd.plays(steps, delays, **conf)
            crowd.check()
            crowd.forgets()
            raise _UndoneError
    except _UndoneError:
        forget_everything()


class _UndoneError(Exception):
    """Raised to roll back what an example wrote."""
