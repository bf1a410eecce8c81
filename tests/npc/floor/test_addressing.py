"""Who is meant by what is said, case by case."""

from dataclasses import replace

import pytest

from evennia_ai.npc.floor.addressing import Addressed, Listener, address_of, mentions
from evennia_ai.npc.senses.events import Event

OREN = Listener(
    ref="7", names=("Oren", "old ferryman"), names_another=lambda text: mentions(text, ("Brida",))
)


def said(text="Good evening.", **fields):
    return Event(
        **{
            "kind": "say",
            "speaker_ref": "1",
            "speaker_name": "Anna",
            "text": text,
            "room_ref": "2",
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("event", "claim", "why"),
    [
        (said("Oren, is there a ferry?"), Addressed.MEANT, "called by name"),
        (said("is there a ferry, OREN?"), Addressed.MEANT, "called by name"),
        (said("where is the Old Ferryman"), Addressed.MEANT, "called by name"),
        (said("the orenda rises"), Addressed.NONE, "not named"),
        (said("ask Orens"), Addressed.NONE, "not named"),
        (said(), Addressed.NONE, "not named"),
        (said(alone=True), Addressed.MEANT, "alone with the speaker"),
        (said("Brida, a word", alone=True), Addressed.NONE, "somebody else is named"),
        (said(kind="talk", to_ref="7"), Addressed.MEANT, "spoken to directly"),
        (said("Oren!", kind="talk", to_ref="8"), Addressed.NONE, "said to somebody else"),
        (said(kind="whisper", private=True), Addressed.MEANT, "whispered to"),
        (said("waves.", kind="pose", alone=True), Addressed.NONE, "a pose"),
        (said("waves to Oren.", kind="pose"), Addressed.MEANT, "a pose at it"),
        (said("asks the old ferryman the way.", kind="pose"), Addressed.MEANT, "a pose at it"),
        (said("kicks Oren's stool.", kind="pose"), Addressed.NONE, "a pose"),
        (said("nods at Brida.", kind="pose", alone=True), Addressed.NONE, "a pose"),
        (said("nods at Oren.", kind="pose", hops=1), Addressed.NONE, "a pose"),
        (said("Oren, come", hops=3), Addressed.MEANT, "called by name"),
        (said("Oren, come", hops=4), Addressed.NONE, "4 NPC replies in a row, 3 are allowed"),
        (said(hops=1, alone=True), Addressed.NONE, "said by an NPC that names it not"),
        (
            said("Oren, come", hops=1, by_rote=True),
            Addressed.NONE,
            "said by an NPC that no model spoke for",
        ),
        (
            said("Oren, come", hops=1, by_rote=True, kind="whisper", private=True),
            Addressed.NONE,
            "said by an NPC that no model spoke for",
        ),
        (said(kind="give", to_ref="7", wants_answer=True), Addressed.MEANT, "meant for it: give"),
        (said(kind="alarm", wants_answer=True), Addressed.WILLING, "meant for it: alarm"),
        (
            said(kind="tick", speaker_ref="", wants_answer=True),
            Addressed.MEANT,
            "meant for it: tick",
        ),
        (said(kind="arrive"), Addressed.NONE, "does not react to arrive"),
    ],
)
def test_the_npc_answers_when_it_is_meant_and_only_then(event, claim, why):
    address = address_of(event, OREN)
    assert (address.claim, address.why) == (claim, why)


@pytest.mark.parametrize(
    ("mode", "event", "claim"),
    [
        ("always", said(), Addressed.WILLING),
        ("always", said("Brida, and you?"), Addressed.NONE),
        ("always", said(hops=1), Addressed.NONE),
        ("always", said("Oren?"), Addressed.MEANT),
        ("decide", said(), Addressed.UNDECIDED),
        ("decide", said("Oren?"), Addressed.MEANT),
        ("decide", said(alone=True), Addressed.MEANT),
        ("decide", said("Brida, and you?"), Addressed.NONE),
        ("decide", said(hops=1), Addressed.NONE),
        ("whisper_only", said("Oren?"), Addressed.NONE),
        ("whisper_only", said(alone=True), Addressed.NONE),
        ("whisper_only", said(kind="talk", to_ref="7"), Addressed.NONE),
        ("whisper_only", said(kind="whisper", private=True), Addressed.MEANT),
        ("whisper_only", said(kind="give", to_ref="7", wants_answer=True), Addressed.MEANT),
    ],
)
def test_a_mode_says_what_else_is_answered(mode, event, claim):
    assert address_of(event, replace(OREN, mode=mode)).claim is claim


def test_among_npcs_alone_a_greeting_to_nobody_is_for_one_of_them():
    among = replace(OREN, is_among_npcs=True)
    assert address_of(said("Good evening."), among).claim is Addressed.WILLING
    assert address_of(said("Good evening, Brida."), among).claim is Addressed.NONE
    assert address_of(said("It is raining."), among).claim is Addressed.NONE
    assert address_of(said("Good evening.", hops=1), among).claim is Addressed.NONE
    decides = replace(among, mode="decide")
    assert address_of(said("Good evening."), decides).claim is Addressed.UNDECIDED


def test_one_that_answers_whispers_only_answers_no_pose():
    quiet = replace(OREN, mode="whisper_only")
    assert address_of(said("waves to Oren.", kind="pose"), quiet).claim is Addressed.NONE


def test_what_it_reacts_to_is_answered_by_one_of_those_there():
    react_to = replace(OREN, react_to=("arrive",))
    assert address_of(said(kind="arrive"), react_to).claim is Addressed.WILLING


def test_npcs_that_talked_long_enough_by_themselves_answer_no_npc():
    weary = replace(OREN, is_chain_over=True)
    assert address_of(said("Oren?", hops=1), weary).claim is Addressed.NONE
    assert address_of(said("Oren?"), weary).claim is Addressed.MEANT


def test_a_conversation_goes_on_without_the_name():
    engaged = replace(OREN, is_engaged=True)
    assert address_of(said("And tomorrow?"), engaged).claim is Addressed.ENGAGED


def test_a_conversation_does_not_take_what_is_said_to_somebody_else():
    engaged = replace(OREN, is_engaged=True)
    assert address_of(said("Brida, and you?"), engaged).claim is Addressed.NONE


def test_another_npc_is_not_in_conversation_by_going_on_talking():
    engaged = replace(OREN, is_engaged=True)
    assert address_of(said("Quite so.", hops=1), engaged).claim is Addressed.NONE


CALLING = (
    *("Oren, when?", "When does she leave, Oren?", "hey Oren what's up", "Oren", "oren?"),
    *("Oren when does the ferry sail?", "Good evening Oren.", "when does the ferry sail Oren"),
    *("Well, Oren, what now?", "Thank you Oren.", "What do you say, Oren, old friend?"),
    *("Anna! Oren! Come here.", "Hello there, Oren.", "Is that you Oren?", "Oren tell me"),
    *(
        "Oren is the ferry late?",
        "I know. Oren, you too.",
        "*Oren*, come",
    ),
    *("Wann geht die Fähre, Oren?", "Oren, où est le bac ?", "I wait for you, Oren..."),
)
TELLING = (
    *("I met Oren yesterday, he was drunk.", "Is this Oren's hat?", "Is this Oren’s hat?"),
    *("Oren was drunk yesterday.", "I gave it to Oren.", "Tell Oren about it, Anna."),
    *("We saw Oren and Ben at the pier.", "Oren's stool is wet.", "She told Oren everything!"),
    *("I told Anna that Oren is late, did I not?", "Ich traf Oren gestern."),
)


@pytest.mark.parametrize("text", CALLING)
def test_who_is_called_by_name_is_meant(text):
    assert address_of(said(text), OREN).why == "called by name"


@pytest.mark.parametrize("text", TELLING)
def test_who_is_only_told_of_is_not_meant(text):
    assert address_of(said(text), OREN).why == "not named"


def test_it_is_known_where_in_the_text_a_name_stands():
    assert address_of(said("Well, Oren and Brida?"), OREN).named_at == 6


def test_names_are_words_in_any_script_and_never_patterns():
    assert mentions("Hé, Zoë!", ("Zoë",))
    assert mentions("a (b) c", ("(b)",))
    assert not mentions("anything", (".*",))
    assert not mentions("anything", ("", "  "))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("is the ferry here?", False),
        ("The ferry is late.", False),
        ("the, come here", True),
        ("Come here, the!", True),
        ("will you come?", False),
        ("Will you come?", False),
        ("I asked Will to come.", True),
        ("I will come.", False),
        ("Will!", True),
        ("Well, Will, what now?", True),
    ],
)
def test_who_is_called_like_a_common_word_is_named_where_it_is_written_as_a_name(text, named):
    """Issue 14, Low: with a character called "the" nobody else in the room was answered."""
    assert mentions(text, ("the", "Will")) is named


def test_a_character_called_the_silences_nobody():
    beside_the = replace(OREN, names_another=lambda text: mentions(text, ("the",)))
    assert address_of(said("Is the ferry gone?", alone=True), beside_the).claim is Addressed.MEANT
