"""Why lore is active, in sentences, and the words to highlight in the texts of the prompt."""

import pytest

from evennia_ai.engine.compose import compose_with_lore
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.npc.views.looking import past_reader
from evennia_ai.npc.views.lore_reasons import Because, marked_spans, why_active
from evennia_ai.store.history import turns
from tests.npc.scripted_games import a_book, an_entry

ENTRIES = (
    an_entry("night ferry", "No ferry goes at night since the winter.", name="the night ferry"),
    an_entry("winter", "The Slee froze over.", name="the broken ice"),
    an_entry("fog", "It hides the quay.", keys=["fog"], secondary_keys=["bell"], selective=True),
    an_entry("", "It is damp.", keys=[], constant=True, name="the damp"),
    an_entry("rowed", "He has rowed for years.", name="the rower"),
    an_entry("/ic(e|y)/i", "Ice is thin.", name="ice", use_regex=True),
    an_entry("quay", "The quay is wet.", name="the quay", extensions={"sticky": 3}),
)


@pytest.fixture
def reasons(stage):
    """Return a function that returns why lore was active in the last turn, by name of the entry."""
    a_book("harbour", ENTRIES, GAME)
    stage.talks_with(lambda _: "I rowed her myself.")

    def why():
        turn = turns.last_turn(stage.npc.ai.ref)
        inputs = past_reader().inputs(turn).inputs
        lore = compose_with_lore(inputs).lore
        return {one.item.partition("#")[2]: one for one in why_active(inputs, lore)}

    return why


@pytest.mark.parametrize(
    ("lines", "entry", "sentence"),
    [
        (["Oren, the Night Ferry?"], "0", 'because Anna said "Night Ferry"'),
        (["Oren, the night ferry?"], "1", "because 'the night ferry' mentions \"winter\""),
        (["Oren, fog and bell?"], "2", "because Anna said \"fog\", with one of 'bell'"),
        (["Oren, hello?"], "3", "because it is always active"),
        (["Oren, the ferry?", "Oren, well?"], "4", 'because Oren said "rowed"'),
        (["Oren, is it ICY?"], "5", 'because Anna said "ICY"'),
        (
            ["Oren, the quay?", *["Oren, hm?"] * 2],
            "6",
            "because it was activated earlier and stays for 1 more turn, including this one",
        ),
    ],
)
def test_reason_of_active_lore_is_a_sentence(stage, reasons, lines, entry, sentence):
    for line in lines:
        stage.says(stage.anna, line)
    assert reasons()[entry].sentence == sentence


def test_words_are_marked_in_the_message_and_in_the_text_of_the_other_entry(stage, reasons):
    stage.says(stage.anna, "Oren, the night ferry?")
    found = reasons()
    said, mentioned = found["0"], found["1"]
    event = turns.last_turn(stage.npc.ai.ref).manifest.inputs["event"]
    assert (said.record, said.text[said.start :]) == (str(event), "night ferry?")
    assert mentioned.origin == "lore:harbour#0"
    text = "No ferry goes at night since the winter."
    [(start, end)] = marked_spans(f"Lore: {text}", found.values(), origin="lore:harbour#0")
    assert f"Lore: {text}"[start:end] == "winter"
    assert marked_spans(text, found.values(), origin="lore:harbour#9") == []
    assert marked_spans("Oren, the night ferry?", found.values(), record="0") == []


def test_overlapping_words_are_marked_once():
    def found(words, start):
        return Because(item="x", lead="y", words=words, record="7", text="the ferry", start=start)

    both = (found("the ferry", 0), found("ferry", 4))
    assert marked_spans("the ferry", both, record="7") == [(0, 9)]
