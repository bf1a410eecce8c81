"""Table of utterances: is the NPC Oren meant by each of them, and why."""

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
        (said("waves to Oren.", kind="pose"), Addressed.MEANT, "named in a pose"),
        (said("asks the old ferryman the way.", kind="pose"), Addressed.MEANT, "named in a pose"),
        (said("kicks Oren's stool.", kind="pose"), Addressed.NONE, "a pose"),
        (said("nods at Brida.", kind="pose", alone=True), Addressed.NONE, "a pose"),
        (said("nods at Oren.", kind="pose", hops=1), Addressed.NONE, "a pose"),
        (said("Oren, come", hops=3), Addressed.MEANT, "called by name"),
        (said("Oren, come", hops=4), Addressed.NONE, "4 NPC replies in a row, 3 are allowed"),
        (said(hops=1, alone=True), Addressed.NONE, "said by an NPC that does not name it"),
        (
            said("Oren, come", hops=1, by_rote=True),
            Addressed.NONE,
            "said by an NPC without a model",
        ),
        (
            said("Oren, come", hops=1, by_rote=True, kind="whisper", private=True),
            Addressed.NONE,
            "said by an NPC without a model",
        ),
        (
            said(kind="give", to_ref="7", wants_answer=True),
            Addressed.MEANT,
            "the game wants an answer to give",
        ),
        (
            said(kind="alarm", wants_answer=True),
            Addressed.WILLING,
            "the game wants an answer to alarm",
        ),
        (
            said(kind="tick", speaker_ref="", wants_answer=True),
            Addressed.MEANT,
            "the game wants an answer to tick",
        ),
        (said(kind="arrive"), Addressed.NONE, "does not react to arrive"),
    ],
)
def test_address_has_the_expected_claim_and_reason(event, claim, why):
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
def test_response_mode_decides_claim_when_no_other_rule_applies(mode, event, claim):
    assert address_of(event, replace(OREN, mode=mode)).claim is claim


def test_greeting_gets_one_answer_when_speaker_is_the_only_person():
    among = replace(OREN, is_among_npcs=True)
    assert address_of(said("Good evening."), among).claim is Addressed.WILLING
    assert address_of(said("Good evening, Brida."), among).claim is Addressed.NONE
    assert address_of(said("It is raining."), among).claim is Addressed.NONE
    assert address_of(said("Good evening.", hops=1), among).claim is Addressed.NONE
    decides = replace(among, mode="decide")
    assert address_of(said("Good evening."), decides).claim is Addressed.UNDECIDED


def test_whisper_only_npc_ignores_a_pose_at_it():
    quiet = replace(OREN, mode="whisper_only")
    assert address_of(said("waves to Oren.", kind="pose"), quiet).claim is Addressed.NONE


def test_happening_in_react_to_makes_npc_willing_to_answer():
    react_to = replace(OREN, react_to=("arrive",))
    assert address_of(said(kind="arrive"), react_to).claim is Addressed.WILLING


def test_npc_answers_only_persons_when_the_npc_chain_is_over():
    weary = replace(OREN, is_chain_over=True)
    assert address_of(said("Oren?", hops=1), weary).claim is Addressed.NONE
    assert address_of(said("Oren?"), weary).claim is Addressed.MEANT


def test_engaged_npc_answers_speaker_without_being_named():
    engaged = replace(OREN, is_engaged=True)
    assert address_of(said("And tomorrow?"), engaged).claim is Addressed.ENGAGED


def test_engaged_npc_ignores_words_that_name_another_character():
    engaged = replace(OREN, is_engaged=True)
    assert address_of(said("Brida, and you?"), engaged).claim is Addressed.NONE


def test_engaged_npc_does_not_answer_another_npc_that_does_not_say_its_name():
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
def test_npc_is_meant_when_its_name_calls_it(text):
    assert address_of(said(text), OREN).why == "called by name"


@pytest.mark.parametrize("text", TELLING)
def test_npc_is_not_meant_when_its_name_is_only_mentioned(text):
    assert address_of(said(text), OREN).why == "not named"


def test_address_has_the_index_of_the_name_in_the_text():
    assert address_of(said("Well, Oren and Brida?"), OREN).named_at == 6


def test_names_match_literally_as_whole_words_in_any_script():
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
def test_common_word_counts_as_name_only_when_written_as_a_name(text, named):
    """Issue 14, Low: with a character named "the" in the room, NPCs answered nobody."""
    assert mentions(text, ("the", "Will")) is named


def test_npc_answers_when_a_character_named_the_is_present():
    beside_the = replace(OREN, names_another=lambda text: mentions(text, ("the",)))
    assert address_of(said("Is the ferry gone?", alone=True), beside_the).claim is Addressed.MEANT
