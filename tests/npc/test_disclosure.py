"""Players are told which NPCs speak through a model: once per kind of NPC, at login, when asked."""

import itertools
from random import Random
from typing import Any

import pytest
from evennia.utils.create import create_account

from evennia_ai.npc.mind import entering
from evennia_ai.npc.senses import choices
from evennia_ai.npc.senses.sincere import language_of_sincere_question
from evennia_ai.npc.speech.output import say_aloud, show_pose, whisper_to
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.kinds import NOTHING_DISCLOSED, Disclosure
from evennia_ai.typeclasses import AINPC

ON = Disclosure()
GERMAN_ANSWER = "(OOC) {npc} ist kein Mensch. Ein Sprachmodell, eine KI, schreibt, was {npc} sagt."
KINDS = 10
PEOPLE = 50
for _number in range(KINDS):
    _name = f"Kind{_number}"
    globals()[_name] = type(_name, (AINPC,), {"__module__": __name__})


def with_account(who: Any) -> Any:
    """Return a character, which gets an account here."""
    who.account = create_account(f"player of {who.key}", "", "a-password-of-a-test")
    return who


def told(stage: Any, who: Any) -> list[str]:
    return [line for line in stage.screen_of(who) if line.startswith("(OOC)")]


@pytest.mark.long
def test_five_hundred_first_meetings_are_disclosed_once_each(stage: Any) -> None:
    stage.talks_with(disclosure=ON)
    npcs = [stage.make(f"Npc{n}", f"{__name__}.Kind{n}") for n in range(KINDS)]
    twins = [stage.make(f"Twin{n}", f"{__name__}.Kind{n}") for n in range(KINDS)]
    people = [with_account(stage.player(f"Player{n}")) for n in range(PEOPLE)]
    random = Random(48)
    for person in people:
        person.location = None
    meetings = list(itertools.product(people, range(KINDS))) * 2
    random.shuffle(meetings)
    for person, kind in meetings:
        speaker = random.choice([npcs[kind], twins[kind]])
        person.location = stage.room
        way = random.choice([say_aloud, show_pose])
        if random.random() < 0.5:
            whisper_to(speaker, person, "psst")
        else:
            way(speaker, "nods")
        person.location = None
    lines = {person: told(stage, person) for person in people}
    kinds = {
        person: [line.split()[1].removeprefix("Npc").removeprefix("Twin") for line in shown]
        for person, shown in lines.items()
    }
    assert sum(map(len, lines.values())) == 500
    assert all(sorted(found) == [str(n) for n in range(KINDS)] for found in kinds.values())


def test_first_words_of_an_npc_follow_the_disclosure(stage: Any) -> None:
    anna, ben = with_account(stage.anna), with_account(stage.ben)
    stage.talks_with("Aye.", disclosure=ON)
    stage.says(anna, "Oren, good evening.")
    line = ON.meeting.replace("{npc}", "Oren")
    assert stage.screen_of(anna)[-2:] == [line, 'Oren says, "Aye."']
    assert stage.screen_of(ben)[-2:] == [line, 'Oren says, "Aye."']
    assert not any("(OOC)" in body for _, _, body in stage.records())


@pytest.mark.parametrize("why", ["switched off", "no model", "own words", "ignored"])
def test_meeting_line_is_shown_only_where_it_is_wanted(stage: Any, why: str) -> None:
    anna = with_account(stage.anna)
    stage.talks_with("Aye.", disclosure=ON)
    if why == "switched off":
        stage.talks_with("Aye.", disclosure=NOTHING_DISCLOSED)
    if why == "no model":
        stage.opens(None, disclosure=ON)
    if why == "own words":
        stage.talks_with("Aye.", disclosure=Disclosure(meeting="{npc}: a made mind."))
    if why == "ignored":
        choices.ignore(anna.account, str(stage.npc.id))
    stage.says(anna, "Oren, good evening.")
    assert told(stage, anna) == []
    assert ("Oren: a made mind." in stage.screen_of(anna)) == (why == "own words")


def test_look_shows_the_mark_of_an_npc_that_a_model_speaks_for(stage: Any) -> None:
    stage.talks_with(disclosure=ON)
    assert stage.anna.at_look(stage.npc).endswith(ON.mark)
    stage.talks_with(disclosure=Disclosure(mark=""))
    assert "language model" not in stage.anna.at_look(stage.npc)
    stage.opens(None, disclosure=ON)
    assert "language model" not in stage.anna.at_look(stage.npc)


def test_login_line_is_shown_when_a_character_enters(stage: Any) -> None:
    stage.talks_with(disclosure=ON)
    for sender in (stage.anna, stage.npc):
        entering._on_puppet(sender, account=None)
    assert stage.screen_of(stage.anna) == [ON.login]
    stage.opens(None, disclosure=ON)
    entering._on_puppet(stage.ben)
    assert stage.screen_of(stage.ben) == []


ASKED = {
    "Oren, are you an AI?": "en",
    "are you actually a bot": "en",
    "OOC: are you a bot?": "en",
    "((are you a real person?))": "en",
    "(ooc) are you human": "en",
    "Are you a real person or an AI?": "en",
    "am I talking to a language model?": "en",
    "are you ChatGPT?": "en",
    "Oren, bist du eine KI?": "de",
    "Bist du wirklich ein Bot?": "de",
    "OOC: bist du ein Mensch?": "de",
    "Rede ich hier mit einem Sprachmodell?": "de",
    "ooc: sind Sie eine Maschine?": "de",
}
NOT_ASKED = (
    "Are you a robot?",
    "Are you human, stranger?",
    "Are you real, ghost?",
    "are you afraid of a bot fly",
    "Bist du ein Mensch oder ein Geist?",
    "Is the AI of the tower awake?",
    "I am an AI.",
    "OOC: brb, phone",
    "are you an aide of the king?",
    "are you a bottler?",
    "Bist du ein Kind?",
    "ooc: are you personally going tonight?",
    "are you maid",
)


@pytest.mark.parametrize("line", [*ASKED, *NOT_ASKED])
def test_sincere_question_is_told_from_talk_in_character(line: str) -> None:
    assert language_of_sincere_question(line) == ASKED.get(line, "")
    assert language_of_sincere_question(f'Anna says, "{line}"') == ASKED.get(line, "")


@pytest.mark.parametrize(
    ("line", "answer", "is_heard"),
    [
        ("Oren, are you an AI?", ON.answer, True),
        ("Oren, bist du eine KI?", GERMAN_ANSWER, True),
        ("OOC: Oren, are you a human?", ON.answer, False),
        ("are you an AI?", ON.answer, True),
    ],
)
def test_asker_alone_gets_the_true_answer_beside_the_characters_own(
    stage: Any, line: str, answer: str, is_heard: bool
) -> None:
    anna, ben = with_account(stage.anna), with_account(stage.ben)
    stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    stage.talks_with(lambda _: "I am a ferryman.", disclosure=Disclosure(meeting=""))
    stage.says(anna, line)
    assert told(stage, anna) == [answer.replace("{npc}", "Oren")]
    assert told(stage, ben) == []
    assert not any("(OOC)" in body for _, _, body in stage.records())
    assert bool(stage.records()) == is_heard


def test_whispered_question_is_answered_by_the_npc_that_hears_it(stage: Any) -> None:
    anna, brida = with_account(stage.anna), stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    stage.talks_with(lambda _: "Hm.", disclosure=Disclosure(meeting=""))
    stage.whispers(anna, "Are you a chatbot?", to=brida)
    assert told(stage, anna) == [ON.answer.replace("{npc}", "Brida")]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(True, ON), (False, NOTHING_DISCLOSED), ({"mark": ""}, Disclosure(mark=""))],
)
def test_setting_switches_the_disclosure_on_with_the_games_words(given: Any, wanted: Any) -> None:
    from django.test import override_settings

    with override_settings(EVENNIA_AI_DISCLOSURE=given):
        assert conf().disclosure == wanted
