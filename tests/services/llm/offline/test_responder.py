"""Test the responder without a model: small talk, and quotations that answer."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.services.llm.chat import ChatMessage, Passage
from evennia_ai.services.llm.offline.quoting import ANSWER_CHARACTERS
from evennia_ai.services.llm.offline.responder import SHRUG, OfflineResponder
from tests.effort import little_work
from tests.services.llm.builders import a_message, a_passage, a_request
from tests.services.llm.test_resilience import outcome

FERRY = a_passage(
    "Saltmere is a village. The last ferry leaves at dusk. Its captain is called Mr. Hale."
)
UNKNOWN = "I could not tell you."
ADA = (
    a_passage("I mend whatever is of iron.", constant=True),
    a_passage("Moor End is a village below the moor.", constant=True),
    a_passage("A horseshoe costs four pence. A nail costs nothing to look at."),
    a_passage("The mill stands behind the bridge."),
    a_passage("Market is held on Fridays."),
    a_passage(
        "{{char}} Brook is the smith of Moor End, thirty-one years old. She keeps her tongs in a"
        " leather apron. For nine years she has kept the fire burning.",
        kind="description",
    ),
    a_passage(
        "<START>\nBen: What about the miller?\nAda: He grinds everybody's grain and nobody's axe.",
        kind="examples",
    ),
    a_passage('"Oh, a customer." Ada looks up. "Sit down."', kind="greeting"),
)
AT_THE_FORGE: dict[str, Any] = {
    "speaker": "Ada",
    "asker": "Ben",
    "place": "The Forge",
    "company": ("Cato", "Dora"),
}
LIGHT = a_passage("The lighthouse has been dark since spring.", score=1.0)


def said(question: str, *passages: Passage, **more: Any) -> str:
    request = a_request(question, passages=passages, **more)
    return str(outcome(OfflineResponder("Hm.").complete(request)).text)


def test_character_says_in_the_words_of_its_card_that_it_does_not_know() -> None:
    lines = ("Not my iron.", "Ask the miller.")
    examples = "".join(
        f"<START>\nBen: (asks what Ada does not know)\nAda: {line}\n" for line in lines
    )
    card = (*ADA, a_passage(examples, kind="examples"))
    assert said("Who is the queen of France?", *card, **AT_THE_FORGE) == "Not my iron."
    before = (a_message("assistant", "Not my iron."),)
    asked = said("Why is the moon small?", *card, messages=before, **AT_THE_FORGE)
    assert asked == "Ask the miller."
    assert said("Thanks!", *card, **AT_THE_FORGE) == "You are welcome."
    assert said("She asks what nobody knows.", *card, **AT_THE_FORGE) not in lines


def test_offline_responder_answers_at_once_and_marks_the_reply_as_offline() -> None:
    model = OfflineResponder("Hm.")
    reply = outcome(model.complete(a_request("When does the ferry leave?", passages=(FERRY,))))
    assert (reply.offline, model.offline, reply.usage) == (True, True, None)
    assert reply.text == "The last ferry leaves at dusk."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is there a FERRY?", "The last ferry leaves at dusk."),
        ("any ferries tonight?", "The last ferry leaves at dusk."),
        ("Who is the captain?", "Its captain is called Mr. Hale."),
        ("Is the lighthouse working?", "The lighthouse has been dark since spring."),
    ],
)
def test_offline_answer_is_the_sentence_with_the_questions_words(
    question: str, answer: str
) -> None:
    assert said(question, FERRY, LIGHT) == answer


def test_two_equally_good_sentences_are_said_in_order() -> None:
    daily = a_passage("A ferry leaves at dawn. It is old. The ferry is back at dusk.")
    answer = said("When does the ferry run?", daily)
    assert answer == "A ferry leaves at dawn. The ferry is back at dusk."


def test_common_words_and_the_npcs_name_select_no_sentence() -> None:
    them = a_passage("That is what you would call the best of them.")
    assert said("Oren, what is it that you want of them?", them, speaker="Oren") == UNKNOWN


def test_equally_good_sentences_are_ordered_by_score_and_place() -> None:
    first, second = a_passage("A gull is grey."), a_passage("A gull is white.")
    assert said("gull", first, second).startswith("A gull is grey.")
    best = a_passage("One gull is red and " + "very " * 54 + "old.", score=2.0)
    assert said("gull", first, best).startswith("One gull is red")


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("Wann fährt die Fähre?", "Die Fähre fährt um acht.", "Die Fähre fährt um acht."),
        ("где паром", "Вот паром. Вот дом.", "Вот паром."),
        ("灯塔在哪里", "这是港口。灯塔在北边。", "灯塔在北边。"),
    ],
)
def test_words_of_any_script_select_a_sentence(question: str, text: str, answer: str) -> None:
    assert said(question, a_passage(text)) == answer


@pytest.mark.parametrize("passages", [(), (FERRY, LIGHT), (a_passage("", constant=True),)])
def test_unanswered_question_gets_an_unknown_line(passages: tuple[Passage, ...]) -> None:
    assert said("Which songs are sung?", *passages) == UNKNOWN


def test_constant_passage_that_does_not_answer_is_not_said() -> None:
    assert said("Which songs are sung?", a_passage("Fish is cheap.", constant=True)) == UNKNOWN


def test_same_line_is_not_said_twice_in_a_row() -> None:
    heard: list[ChatMessage] = []
    for _ in range(7):
        answer = said("Which songs are sung?", messages=tuple(heard))
        assert not heard or heard[-1].content != answer
        heard += [a_message("user", "Which songs?"), a_message("assistant", answer)]


def test_unknown_language_gets_the_fallback_then_a_shrug() -> None:
    asked = tuple(a_message("user", "Ben: Wo ist der Turm?") for _ in range(4))
    heard = [(*asked[: n + 1], a_message("user", "Place: The Forge.")) for n in range(4)]
    answers = [said("Wo ist der Turm?", messages=one, asker="Ben") for one in heard]
    assert answers == ["Hm.", SHRUG, "Hm.", SHRUG]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Hello, Ada!", "Oh, a customer. Sit down."),
        ("Thanks a lot", "You are welcome."),
        ("good night", "Good night, Ben."),
        ("Ada?", "Yes?"),
        ("What's your name, please?", "I am Ada Brook."),
        ("Who are you?", "I am Ada Brook, the smith of Moor End. I mend whatever is of iron."),
        ("what do you do?", "I am the smith of Moor End. I mend whatever is of iron."),
        ("How old are you?", "I am thirty-one."),
        ("Who am I?", "You are Ben, as far as I know."),
        ("where am I?", "This is the Forge. Moor End is a village below the moor."),
        ("Is anybody else here?", "Cato and Dora are here, besides you and me."),
        ("Do you know the miller?", "He grinds everybody's grain and nobody's axe."),
        ("How much is a horseshoe?", "A horseshoe costs four pence."),
        ("Where is the mill?", "The mill stands behind the bridge."),
        ("How do I get to the mill?", "The mill stands behind the bridge."),
        ("When is the market?", "Market is held on Fridays."),
        ("How long have you been a smith?", "For nine years I have kept the fire burning."),
        ("What is in that apron?", "I keep my tongs in a leather apron."),
        ("hi Ada, how much is the horseshoe?", "A horseshoe costs four pence."),
        ("Would you sell me a sword?", "I am afraid I cannot help you with that."),
        ("I am on my way home.", "Is that so?"),
        ("Who poisoned the well?", "I could not tell you who."),
    ],
)
def test_small_talk_and_questions_are_answered_from_card_and_lore(
    question: str, answer: str
) -> None:
    assert said(question, *ADA, **AT_THE_FORGE) == answer


def test_card_greeting_is_said_once_then_the_greeting_is_returned() -> None:
    heard = (a_message("assistant", "Oh, a customer. Sit down."),)
    assert said("Good morning", *ADA, messages=heard, **AT_THE_FORGE) == "Good morning, Ben."


@pytest.mark.parametrize(
    ("greeting", "spoken"),
    [
        ('"Later," he says, and then: "It is always later."', "Later. It is always later."),
        ('"Later," he says, "but not today."', "Later, but not today."),
        ('"Sit, Ben," she says.', "Sit, Ben."),
    ],
)
def test_quotes_in_a_greeting_become_sentences(greeting: str, spoken: str) -> None:
    assert said("Hello", a_passage(greeting, kind="greeting"), **AT_THE_FORGE) == spoken


def test_farewell_of_the_place_is_used() -> None:
    custom = a_passage("Here we say: cold iron, and never goodbye.")
    assert said("Goodbye!", custom, asker="Ben") == "Here we say: cold iron, and never goodbye."


def test_price_answer_needs_a_sum_and_place_answer_a_place() -> None:
    sword = a_passage("A sword is heavy.", keys=("sword",))
    assert said("How much is a sword?", sword) == "I could not name you a price for that."
    assert said("Where is a sword?", sword) == "I could not tell you where."


def test_text_with_a_matching_key_is_an_answer_without_shared_words() -> None:
    stew = a_passage("Tonight it is eel with barley.", keys=("dinner",))
    assert said("What is there for dinner?", stew) == stew.text
    assert said("What is there for breakfast?", stew) == UNKNOWN


def test_offline_npc_does_not_answer_with_the_price_of_another_thing() -> None:
    fare = a_passage("The fare to cross costs two pennies a head.", keys=("fare", "cost", "price"))
    maren = a_passage(
        "Maren runs the chandlery. She sells rope at 4 coppers a fathom.", kind="description"
    )
    unknown = "I could not name you a price for that."
    assert said("Maren, what does rope cost?", fare, speaker="Maren") == unknown
    assert said("Maren, what is the price of rope?", fare, speaker="Maren") == unknown
    assert said("What does it cost?", fare) == fare.text
    for question in (
        "what does rope cost?",
        "how much is your rope?",
        "what is the price of rope?",
    ):
        answer = said(f"Maren, {question}", fare, maren, speaker="Maren")
        assert answer == "I sell rope at 4 coppers a fathom."
    where = said("Where is the rope made?", maren, speaker="Maren")
    assert where == "I could not tell you where."


def test_npc_never_speaks_of_itself_in_the_third_person() -> None:
    told = a_passage("Some people say that the whistle of Ada is cursed.")
    assert said("Tell me of the whistle", told, speaker="Ada") == UNKNOWN


def test_words_just_said_by_another_person_are_not_repeated() -> None:
    heard = (a_message("user", f"Cato: {LIGHT.text}"),)
    told = said("Is the lighthouse dark?", LIGHT, messages=heard, company=("Cato",))
    assert told == "I could not say for sure."


def test_secret_in_a_description_is_not_said() -> None:
    kept = a_passage("She secretly owns the mill.", kind="description")
    assert "mill" not in said("Who owns the mill?", kept, speaker="Ada")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("@@depth 4\n@@role system\nThe ferry is red.", "The ferry is red."),
        ("# The ferry\nThe ferry is red.", "The ferry is red."),
        ("== Ferry ==\nThe ferry is red.\n---", "The ferry is red."),
        ("[The ferry is red.]", "The ferry is red."),
        ("[[The **ferry** is _red_.\n]]", "The ferry is red."),
        ("The ferry - the old one - is 2. to none.", "The ferry - the old one - is 2."),
        ("The ferry sea_gull is red.", "The ferry sea_gull is red."),
        ("- The ferry is red.", "The ferry is red."),
        ("1. The ferry is red.", "The ferry is red."),
        ("<lore>The ferry is red.</lore>", "The ferry is red."),
        ("{{//a note}}The ferry is red.", "The ferry is red."),
        ("{{char}} rows the ferry.", "I row the ferry."),
        ("<START>\nThe  ferry\tis red.", "The ferry is red."),
    ],
)
def test_markup_is_not_said_offline(text: str, answer: str) -> None:
    assert said("Which ferry?", a_passage(text), speaker="Oren") == answer


def test_offline_answer_ends_at_a_word_when_the_sentence_is_too_long() -> None:
    answer = said("ferry", a_passage("The ferry " + "rocks " * 200 + "gently."))
    assert len(answer) <= ANSWER_CHARACTERS
    assert answer.endswith("rocks…")


def test_sentence_in_two_passages_is_said_once() -> None:
    assert said("lighthouse", LIGHT, LIGHT) == LIGHT.text


@settings(deadline=None)
@given(st.text(max_size=80), st.lists(st.text(max_size=400), max_size=4))
def test_offline_answer_is_never_empty_nor_too_long_and_deterministic(
    question: str, texts: list[str]
) -> None:
    passages = tuple(map(a_passage, texts))
    answer = said(question, *passages)
    assert 0 < len(answer) <= ANSWER_CHARACTERS
    assert answer == said(question, *passages)


@pytest.mark.parametrize("unit", ["[", "{{", "<a ", ". ", "ferry ", "ferry. ", "*", "船"])
def test_hostile_passages_cost_linear_time(unit: str) -> None:
    with little_work():
        said("ferry 船船", a_passage(unit * 50_000))
