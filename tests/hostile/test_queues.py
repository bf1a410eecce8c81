"""Players who press: none of them keeps an NPC from the others, or sets all of them off."""

import string
import time
from collections.abc import Sequence
from itertools import count

import pytest

from tests.acceptance.games import rows_of
from tests.hostile.audit import audit
from tests.hostile.harbour import PATIENCE_SECONDS, Harbour, Person, Scene
from tests.services.llm.clients.stub_server import answers, answers_after

pytestmark = [pytest.mark.server, pytest.mark.minutes(4)]

LINES, LINES_OF_EACH = 60, 12
"""What one types in a burst; and what each of all types, together twice what an NPC keeps."""

PRESSERS = tuple(f"Presser{letter}" for letter in string.ascii_lowercase[:20])
CROWD = tuple(f"Quip{letter}" for letter in string.ascii_lowercase[:12])
TURN_SECONDS = 0.3
"""How long the model takes, so that all that is said waits for it."""

MOST_TURNS = 2
"""Turns that begin until somebody is answered who asks while others press, theirs among them."""

TURNS = """
SELECT (
    SELECT count(*) FROM evennia_ai_turn AS began
    WHERE began.npc_ref = own.npc_ref
        AND began.created_at >= heard.created_at AND began.id <= own.id
)
FROM evennia_ai_turn AS own JOIN evennia_ai_record AS heard ON heard.id = own.event_record_id
WHERE heard.body LIKE '%{words}%'
"""
"""How many turns began from when the NPC heard these words to the one that answers them.

Asked of the database: a screen shows things late where thousands of lines are on their way to it.
"""

CALLS_MADE = "SELECT count(*) FROM evennia_ai_modelcall WHERE role IN ('speaker', 'decider')"
"""What NPCs asked to answer, or to know whether to; what they sum up in idle time is their own."""

MOST_CALLS = 32
"""`EVENNIA_AI_LINE_CALLS`: what one line and all that follows from it may set off."""

MOST_CALLS_OF_AN_ECHO = 9
"""What one line may set off where one thing echoes the NPC."""

QUIET_SECONDS = 1.5
"""For how long no model is asked where nothing is going on any more."""

BURSTS_OF_ONE = {
    "whisper": "whisper quill = answer me {n}!",
    "a line without a name": "say Will nobody answer me {n}?",
}
BURSTS_OF_ALL = {
    "say": "say Quill, answer me {n}!",
    "talk": "talk quill = answer me {n}!",
    "the same line": "talk quill = answer me!",
}
"""What one types who presses, and what twenty do. A burst of all waits for the NPC longest."""
CALLS = {
    "all by name": f"say {', '.join(CROWD)}, what do you say?",
    "all at once": "say Everybody, what do you all say?",
    "by talk": f"talk {CROWD[0]} = Ask {', '.join(CROWD)} what they say.",
    "a pose": f"pose waves at {', '.join(CROWD)}.",
    "a shout": f"say {'! '.join(CROWD)}! Wake up!",
}
ECHOES = """
from evennia.objects.objects import DefaultCharacter, DefaultObject
from evennia.utils import delay

from evennia_ai.npc.senses.happenings import happened


class Echo(DefaultObject):
    \"\"\"Something that answers each line at once.\"\"\"

    seconds = 0.1
    line = '{name} says, "{words}"'

    def at_msg_receive(self, text=None, from_obj=None, **kwargs):
        if from_obj is not self and isinstance(text, tuple) and text[1].get("type") == "say":
            delay(self.seconds, self.answers, text[0].split('"', 1)[-1].rstrip('" '))
        return True

    def answers(self, words):
        if self.location:
            line = self.line.format(name=self.key, words=words)
            self.location.msg_contents((line, {"type": "say"}), from_obj=self, exclude=[self])


class Slow(Echo):
    seconds = 7


class Calls(Echo):
    line = '{name} says, "Quill, what do you say?"'


class Growls(Echo):
    def answers(self, words):
        happened(self.location, "growl", "{actor} growls.", actor=self, wants_answer=True)


class Speaks(Echo, DefaultCharacter):
    def answers(self, words):
        self.execute_cmd(f"say Quill, you said: {words}")
"""
"""Things and scripted characters that answer whatever they hear, and so keep an NPC talking."""

_asked = count(1)


def test_floods_do_not_block_queues(harbour: Harbour) -> None:
    scene = harbour.scene("queues", npc="Quill")
    victim = scene.enters(harbour.anna)
    pressing = [scene.enters(harbour.newcomer(name)) for name in PRESSERS]
    with audit("queues", harbour) as subject:
        for who, lines, bursts in (
            (pressing[:1], LINES, BURSTS_OF_ONE),
            (pressing, LINES_OF_EACH, BURSTS_OF_ALL),
        ):
            for way, line in bursts.items():
                with subject.attack(f"{len(who)} with {lines} lines each, {way}"):
                    harbour.model.behaves(answers_after(TURN_SECONDS, "Aye."))
                    press(who, line, lines)
                    assert turns_until_answered(scene, victim) <= MOST_TURNS
                settle(harbour)
        (harbour.game.root / "world" / "echoes.py").write_text(ECHOES, encoding="utf-8")
        for kind in ("Echo", "Slow", "Calls", "Growls", "Speaks", "Echo and Calls"):
            with subject.attack(f"something that echoes the NPC: {kind}"):
                harbour.model.behaves(answers("Quill says she leaves at the slack of noon."))
                for one in kind.split(" and "):
                    harbour.builder.types(f"create/drop echo{one}:world.echoes.{one}")
                before = calls_made(harbour)
                victim.types("say Quill, when does she leave?")
                wait_until_asked(harbour, before)
                wait_until_quiet(harbour, seconds=9 if kind == "Slow" else QUIET_SECONDS)
                most = MOST_CALLS if " and " in kind else MOST_CALLS_OF_AN_ECHO
                assert 1 <= calls_made(harbour) - before <= most
            for one in kind.split(" and "):
                harbour.builder.types(f"@destroy/force echo{one}", "yes")
        harbour.builder.types("ai/off quill")
        for name in CROWD:
            harbour.builder.types(
                f"create/drop {name}:evennia_ai.typeclasses.AINPC", f"ai/mode {name} = always"
            )
        for way, line in CALLS.items():
            with subject.attack(f"one line to a crowd of NPCs, {way}"):
                harbour.model.behaves(answers(f"Hear me, {', '.join(CROWD)}!"))
                before = calls_made(harbour)
                victim.types(line)
                wait_until_quiet(harbour)
                assert calls_made(harbour) - before <= MOST_CALLS
            settle(harbour)


def press(pressing: Sequence[Person], line: str, lines: int) -> None:
    """Have everybody type the line again and again, all at once."""
    for one in pressing:
        typed = "".join(f"{line.format(n=n)}\r\n" for n in range(lines))
        one.client.send_bytes(typed.encode())


def turns_until_answered(scene: Scene, victim: Person) -> int:
    """Turns of the NPC that begin once somebody else was heard, up to the one for them."""
    words = f"When sails the ferry, number {next(_asked)}"
    victim.client.send(f"talk {scene.npc} = {words}?")
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if found := rows_of(scene.harbour.game, TURNS.format(words=words)):
            return int(found[0][0])
        time.sleep(0.2)
    raise AssertionError("not answered")


def calls_made(harbour: Harbour) -> int:
    return int(rows_of(harbour.game, CALLS_MADE)[0][0])


def settle(harbour: Harbour) -> None:
    """Drop what waits, so that the next attack begins as the first did."""
    harbour.builder.types("ai/stopall = an attack is over")
    wait_until_quiet(harbour)
    harbour.builder.types("ai/startall")


def wait_until_asked(harbour: Harbour, before: int) -> None:
    """Wait until an NPC has asked a model once more."""
    end = time.monotonic() + PATIENCE_SECONDS
    while calls_made(harbour) == before and time.monotonic() < end:
        time.sleep(0.1)


def wait_until_quiet(harbour: Harbour, *, seconds: float = QUIET_SECONDS) -> None:
    """Wait until no model was asked for anything for so many seconds."""
    end = time.monotonic() + PATIENCE_SECONDS
    known = -1
    while known != (known := len(harbour.model.requests)) and time.monotonic() < end:
        harbour.builder.types("look")
        time.sleep(seconds)
