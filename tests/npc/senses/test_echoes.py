"""Exchanges of NPCs with scripted echoes end by themselves, and persons are still answered."""

from typing import Any

import pytest
from evennia.objects.objects import DefaultCharacter, DefaultObject
from evennia.utils.create import create_object

from evennia_ai.npc.senses.happenings import happened
from evennia_ai.npc.senses.perception import AISpeakerMixin
from evennia_ai.services.settings.conf import conf

LONG = 600.0
MOST_CALLS = 6
"""The most calls of models after one line of a person to an NPC next to an echo."""


class Echo(DefaultObject):
    """A thing that answers each line that it hears, after `delay` seconds."""

    delay: float = 0.0
    clock: Any = None

    def at_msg_receive(self, text: Any = None, from_obj: Any = None, **kwargs: Any) -> bool:
        if from_obj is not self and isinstance(text, tuple) and text[1].get("type") != "move":
            words = text[0].split('"', 1)[-1].rstrip('" ')
            self.clock.callLater(self.delay, self.answers, words, from_obj)
        return True

    def answers(self, words: str, to: Any) -> None:
        self.shouts(f'The parrot says, "{words}"', "say")

    def shouts(self, line: str, kind: str) -> None:
        self.location.msg_contents((line, {"type": kind}), from_obj=self, exclude=[self])


class Shouting(Echo):
    def answers(self, words: str, to: Any) -> None:
        self.shouts(f'The parrot says, "{words.upper()} {words.upper()}!"', "say")


class Posing(Echo):
    def answers(self, words: str, to: Any) -> None:
        self.shouts(f"The monkey apes Oren: {words}", "pose")


class Calling(Echo):
    """An echo that answers everything with the same line."""

    def answers(self, words: str, to: Any) -> None:
        self.shouts('The doll says, "Oren, I love you."', "say")


class Growling(Echo):
    def answers(self, words: str, to: Any) -> None:
        happened(self.location, "growl", "{actor} growls.", actor=self, wants_answer=True)


class EchoSpeaker(AISpeakerMixin, DefaultCharacter):
    """A character of a game, with the mixin for speakers."""


class Speaking(Echo, EchoSpeaker):
    """A scripted character as in Evennia's tutorial, which answers with `at_say`."""

    def answers(self, words: str, to: Any) -> None:
        self.at_say(f"Oren, you said: {words}")


class Whispering(Echo, EchoSpeaker):
    def answers(self, words: str, to: Any) -> None:
        self.at_say(words, whisper=True, receivers=[to])


KINDS = [Echo, Shouting, Posing, Calling, Growling, Speaking, Whispering]


def put(stage, kind: type, *, delay: float = 0.0) -> Any:
    echo = create_object(kind, key=kind.__name__, location=stage.room, nohome=True)
    echo.clock, echo.delay = stage.clock, delay
    return echo


def lasts(stage, seconds: float) -> None:
    for _ in range(int(seconds * 4)):
        stage.passes(0.25)


@pytest.mark.parametrize("delay", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_exchange_of_an_npc_with_an_echo_ends_by_itself(stage, kind, delay):
    model = stage.talks_with(lambda _: "Oren says she leaves at the slack of noon.", **NO_LIMITS)
    put(stage, kind, delay=delay)
    stage.says(stage.anna, "Oren, when does the ferry leave?")
    lasts(stage, 40)
    asked = len(model.requests)
    assert 1 <= asked <= MOST_CALLS
    lasts(stage, 20)
    assert len(model.requests) == asked


NO_LIMITS = {"hop_seconds": LONG, "line_calls": 10_000}


@pytest.mark.long
def test_exchange_of_two_echoes_and_two_npcs_ends_by_itself(stage):
    model = stage.talks_with(lambda _: "Oren, Clo, she leaves at the slack.", **NO_LIMITS)
    stage.make("Clo", "evennia_ai.typeclasses.AINPC")
    put(stage, Echo, delay=0.5)
    put(stage, Calling, delay=0.5)
    stage.says(stage.anna, "Oren, when does the ferry leave?")
    lasts(stage, 30)
    asked = len(model.requests)
    assert asked <= 3 * MOST_CALLS
    lasts(stage, 10)
    assert len(model.requests) == asked


class Radio(Echo):
    """One of a pair: each shouts in its room what the other hears."""

    other: Any = None

    def answers(self, words: str, to: Any) -> None:
        if to is not self.other:
            self.other.shouts(f'The radio says, "{words}"', "say")


def test_exchange_of_npcs_in_two_rooms_over_a_radio_ends_by_itself(stage):
    model = stage.talks_with(lambda _: "Oren, Clo, she leaves at the slack.", **NO_LIMITS)
    here = put(stage, Radio, delay=6.0)
    quay = stage.make("Quay", "evennia.objects.objects.DefaultRoom", place=None)
    stage.make("Clo", "evennia_ai.typeclasses.AINPC", place=quay)
    there = put(stage, Radio, delay=6.0)
    there.location = quay
    here.other, there.other = there, here
    stage.says(stage.anna, "Oren, when does the ferry leave?")
    lasts(stage, 60)
    asked = len(model.requests)
    assert 1 <= asked <= 2 * MOST_CALLS
    lasts(stage, 30)
    assert len(model.requests) == asked


def test_person_is_answered_each_time_in_a_room_with_an_echo(stage):
    model = stage.talks_with(lambda _: "She leaves at noon.", **NO_LIMITS)
    put(stage, Echo)
    for at in range(5):
        before = len(model.requests)
        stage.says(stage.anna, f"Oren, and on day {at}?")
        assert len(model.requests) > before
        assert model.requests[before].messages[-1].content == f"Anna: Oren, and on day {at}?"


def test_scripted_character_that_speaks_first_is_answered(stage):
    model = stage.talks_with(lambda _: "Aye, so it is.", **NO_LIMITS)
    crier = put(stage, Echo)
    crier.at_msg_receive = lambda *_, **__: True
    for hour in ("eight", "nine", "ten"):
        lasts(stage, 20)
        before = len(model.requests)
        crier.shouts(f'The crier says, "Oren, it is {hour} and all is well!"', "say")
        stage.passes(1)
        assert len(model.requests) == before + 1


def test_scripted_character_is_answered_when_it_names_the_npc_after_its_reply(stage):
    model = stage.talks_with(lambda _: "Aye.", **NO_LIMITS)
    crier = put(stage, Echo)
    crier.at_msg_receive = lambda *_, **__: True
    stage.says(stage.anna, "Oren, what time is it?")
    crier.shouts('The crier says, "Oren, it is nine and all is well!"', "say")
    stage.passes(1)
    assert len(model.requests) == 2


def test_calls_caused_by_an_echo_count_against_the_line_of_the_player(stage):
    model = stage.talks_with(lambda _: "She leaves at noon.", line_calls=1)
    put(stage, Echo)
    stage.says(stage.anna, "Oren, when does the ferry leave?")
    stage.passes(2)
    assert conf().line_calls > 1
    assert len(model.requests) <= 2


class Chatting(Echo):
    """A scripted character that says something new each time, like another program's NPC."""

    said: int = 0

    def answers(self, words: str, to: Any) -> None:
        self.said += 1
        self.shouts(f'The stranger says, "Oren, my tale number {self.said} is long."', "say")


@pytest.mark.parametrize("delay", [6.0, 9.0])
def test_exchange_with_a_slow_scripted_character_ends_until_a_person_speaks(stage, delay):
    model = stage.talks_with(lambda _: "Go on then.", line_calls=10_000)
    put(stage, Chatting, delay=delay)
    stage.says(stage.anna, "Oren, who is the stranger?")
    lasts(stage, 180)
    asked = len(model.requests)
    lasts(stage, 60)
    assert len(model.requests) == asked
    stage.says(stage.anna, "Oren, do go on.")
    assert len(model.requests) > asked
