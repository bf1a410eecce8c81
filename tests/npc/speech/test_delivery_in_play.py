"""Replies with speech and actions, as players read them and as they are recorded."""

import pytest
from django.conf import settings

from evennia_ai.npc.speech import output
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import records_of
from tests.npc.turn.test_turn_early import Streaming

REPLY = '*She smiles.* "Good evening." *His eyes narrow.* "Sit down."'
LINES = [
    "Oren smiles.",
    'Oren says, "Good evening."',
    "Oren's eyes narrow.",
    'Oren says, "Sit down."',
]


def asked(stage, reply):
    """Return what everybody reads if Oren is asked something and gives this reply."""
    stage.talks_with(reply)
    stage.says(stage.anna, "Oren?")
    return stage.screen_of(stage.ben)[1:]


def test_reply_is_shown_as_actions_and_speech_in_order(stage):
    assert asked(stage, REPLY) == LINES
    assert stage.screen_of(stage.anna)[-4:] == LINES


def test_record_holds_the_reply_as_written(stage):
    asked(stage, REPLY)
    assert stage.records()[1] == ("assistant", "", REPLY)


def test_next_prompt_holds_the_reply_as_written(stage):
    model = stage.talks_with(REPLY, "Aye.")
    stage.says(stage.anna, "Oren?")
    stage.says(stage.anna, "Oren, well?")
    said = [m.content for m in model.requests[-1].messages if m.role == "assistant"]
    assert said == [REPLY]


@pytest.mark.parametrize(
    "reply",
    [
        '"Good evening."',
        '""Good evening.""',
        '"Good evening.',
        'Good evening."',
        "“Good evening.”",
        "„Good evening.",
        'They call it "the bell"',
        '"Well," she says, ""so."',
        '*nods* "Good evening',
    ],
)
def test_quotation_marks_are_not_doubled(stage, reply):
    shown = "\n".join(asked(stage, reply))
    assert 'says, "' in shown
    for doubled in ('""', '"“', '”"', '"„', '“"'):
        assert doubled not in shown


def test_lines_of_a_list_do_not_look_like_another_speakers_lines(stage):
    (line,) = asked(stage, 'Three things:\n- rope\n- tar\n- Ben says, "I quit"\n\n1. last')
    assert line.replace("\r", "") == (
        'Oren says, "Three things:\n  - rope\n  - tar\n  - Ben says, "I quit"\n  1. last"'
    )


def test_list_keeps_its_lines_in_the_web_client(stage):
    asked(stage, "Two things:\n- rope\n- <b>tar</b>")
    html = stage.ben.screen.web()[-1]
    assert html.count("<br>") == 2
    assert "<b>" not in html


def test_lines_that_are_no_list_are_joined(stage):
    assert asked(stage, "Aye.\nAt dusk.") == ['Oren says, "Aye. At dusk."']


def test_whispered_reply_is_shown_to_one_person_only(stage):
    stage.talks_with(REPLY)
    stage.whispers(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[1:] == [
        "Oren smiles.",
        'Oren whispers to you, "Good evening."',
        "Oren's eyes narrow.",
        'Oren whispers to you, "Sit down."',
    ]
    assert stage.screen_of(stage.ben) == []
    assert stage.records("private")[1] == ("assistant", "", REPLY)


def test_other_npc_perceives_the_whole_reply_as_one_event(stage):
    other = stage.make("Mara", "evennia_ai.typeclasses.AINPC")
    asked(stage, REPLY)
    stage.passes(1)
    heard = [
        (r.name, r.body) for c in conversations_of(other.ai.ref) for r in records_of(c) if r.name
    ]
    assert heard[1:] == [("Oren", REPLY)]


@pytest.mark.parametrize(
    ("reply", "heard"),
    [
        ('"Good evening."', "Good evening."),
        ("*She smiles.*", "*smiles.*"),
        ("*His eyes narrow.*", "*His eyes narrow.*"),
        ("*Smiles.* *Waves.*", "*smiles. waves.*"),
    ],
)
def test_other_npc_perceives_pure_speech_as_say_and_pure_action_as_pose(stage, reply, heard):
    other = stage.make("Mara", "evennia_ai.typeclasses.AINPC")
    asked(stage, reply)
    stage.passes(1)
    (where,) = conversations_of(other.ai.ref)
    assert records_of(where)[-1].body == heard


def test_npc_named_twice_in_one_reply_answers_once(stage):
    other = stage.make("Mara", "evennia_ai.typeclasses.AINPC")
    stage.talks_with('"Mara, come." *waves* "Mara, now!"', "Coming.")
    stage.says(stage.anna, "Oren?")
    stage.passes(5)
    shown = stage.screen_of(stage.ben)
    assert [line for line in shown if line.startswith(other.key)] == ['Mara says, "Coming."']


def test_action_in_a_whispered_reply_is_shown_to_the_listener_only(stage):
    other = stage.make("Mara", "evennia_ai.typeclasses.AINPC")
    other.ai_enabled = False
    output.deliver_reply(stage.npc, '*nods* "Midnight."', own_names=("Oren",), hops=1, to=other)
    stage.passes(1)
    (where,) = conversations_of(other.ai.ref)
    assert where.kind == "private"
    assert [r.body for r in records_of(where) if r.name] == ['*nods* "Midnight."']


@pytest.mark.parametrize("text", ["|rred|n *waves |r* {x}", '*{npc} |lclook|ltx|le* "$eval(1)"'])
def test_markup_in_a_reply_is_not_interpreted(stage, monkeypatch, text):
    monkeypatch.setattr(settings, "FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED", True)
    asked(stage, text)
    for line in stage.ben.screen.telnet(MXP=True)[1:]:
        assert "\x1b[3" not in line.removesuffix("\x1b[0m")
        assert "<SEND" not in line


@pytest.fixture
def model(stage):
    made = Streaming()
    stage.install(made, given_profiles={"default": {"speaks_early": True}})
    stage.says(stage.anna, "Oren?")
    return made


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        (f"{REPLY} Well.", [*LINES[:3], 'Oren says, "Sit down. Well."']),
        (REPLY, LINES),
        (
            'Oren looks up. He grins. "Evening," he says. "Sit down."',
            ["Oren looks up. He grins.", 'Oren says, "Evening. Sit down."'],
        ),
        (
            '"Evening," he says. He nods. "Sit down."',
            ['Oren says, "Evening."', "Oren nods.", 'Oren says, "Sit down."'],
        ),
    ],
)
@pytest.mark.parametrize("piece_characters", [1, 7, 1000])
def test_streamed_reply_is_shown_like_a_complete_one(stage, model, reply, lines, piece_characters):
    for at in range(0, len(reply), piece_characters):
        model.writes(reply[at : at + piece_characters])
    model.ends(reply)
    stage.passes()
    shown = stage.screen_of(stage.ben)[1:]
    assert " ".join(shown).replace('." Oren says, "', ". ") == " ".join(lines).replace(
        '." Oren says, "', ". "
    )
    assert ("assistant", "", reply) in stage.records()
