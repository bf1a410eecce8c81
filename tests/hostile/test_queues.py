"""Players who flood: none of them may block an NPC for others, or trigger all NPCs."""

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
"""How many lines one player types in a burst, and how many each player types in a joint burst."""

PRESSERS = tuple(f"Presser{letter}" for letter in string.ascii_lowercase[:10])
CROWD = tuple(f"Quip{letter}" for letter in string.ascii_lowercase[:12])
TURN_SECONDS = 0.3
"""How long the model takes, so that everything said must wait for it."""

MOST_TURNS = 2
"""The most turns until a person is answered who asks while others flood."""

TURNS = """
SELECT (
    SELECT count(*) FROM evennia_ai_turn AS began
    WHERE began.npc_ref = own.npc_ref
        AND began.created_at >= heard.created_at AND began.id <= own.id
)
FROM evennia_ai_turn AS own JOIN evennia_ai_record AS heard ON heard.id = own.event_record_id
WHERE heard.body LIKE '%{words}%'
"""
"""A query for how many turns began until the one that answers these words.

The database is asked, because screens lag when thousands of lines are on their way.
"""

CALLS_MADE = "SELECT count(*) FROM evennia_ai_modelcall WHERE role IN ('speaker', 'decider')"
"""A query for the model calls that answer or decide. Summaries in idle time are not counted."""

MOST_CALLS = 32
"""The setting `EVENNIA_AI_LINE_CALLS`: the most calls that one line may cause in all."""

MOST_CALLS_OF_AN_ECHO = 9
"""The most calls that one line may cause if one thing echoes the NPC."""

QUIET_SECONDS = 1.5
"""How many seconds without a model call count as quiet."""

BURSTS_OF_ONE = {
    "whisper": "whisper quill = answer me {n}!",
    "a line without a name": "say Will nobody answer me {n}?",
}
BURSTS_OF_ALL = {
    "say": "say Quill, answer me {n}!",
    "talk": "talk quill = answer me {n}!",
    "the same line": "talk quill = answer me!",
}
"""What one flooding player types, and what ten players type together."""
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
"""Things and scripted characters that answer everything they hear, and so keep an NPC talking."""

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
    """Let everybody type the line again and again, at the same time."""
    for one in pressing:
        typed = "".join(f"{line.format(n=n)}\r\n" for n in range(lines))
        one.client.send_bytes(typed.encode())


def turns_until_answered(scene: Scene, victim: Person) -> int:
    """Return how many turns of the NPC begin until it answers somebody else's words."""
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
    """Drop all waiting events, so that the next attack begins like the first."""
    harbour.builder.types("ai/stopall = an attack is over")
    wait_until_quiet(harbour)
    harbour.builder.types("ai/startall")


def wait_until_asked(harbour: Harbour, before: int) -> None:
    """Wait until an NPC has called a model once more."""
    end = time.monotonic() + PATIENCE_SECONDS
    while calls_made(harbour) == before and time.monotonic() < end:
        time.sleep(0.1)


def wait_until_quiet(harbour: Harbour, *, seconds: float = QUIET_SECONDS) -> None:
    """Wait until no model was called for a number of seconds."""
    end = time.monotonic() + PATIENCE_SECONDS
    known = -1
    while known != (known := len(harbour.model.requests)) and time.monotonic() < end:
        harbour.builder.types("look")
        time.sleep(seconds)
