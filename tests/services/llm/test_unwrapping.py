"""Test what is taken for wrapping around speech, and what only resembles it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.services.llm.odd_replies import oddities
from evennia_ai.services.llm.speech import speech_in
from evennia_ai.services.llm.unwrapping import unwrapped
from tests.effort import little_work

NAMES = ("Mira",)
OTHERS = ("Anna", "Bo")


@pytest.mark.parametrize(
    "text",
    [
        'Anna says, "Come", and everybody comes.',
        '"Never trust a cat," Anna says, and she is right.',
        '"Never trust a cat," says Bo each morning.',
        "Anna “the Cat” Smith sent me.",
        "Bo says: never trust a cat.",
        "*Anna's cat jumps on the counter*",
        "*points at Anna* You!",
        "Here is the answer you wanted: no.",
        'Here is his response, word for word: "Leave."',
        "Sure, here is the reply he gave me: not a penny more.",
        "Output: three barrels a day.",
        "Would you like me to write it down for you?",
        "Shall I write the letter for you?",
        "Look at <the big one>, not {the small one}.",
        "— Who goes there? — I ask. — Nobody.",
        "Mira > Bo, when it comes to cards.",
        "I charge 10% | 20% on Sundays.",
        "You break character when you smile, actor.",
        "The user of this salve must be careful.",
        "---",
    ],
)
def test_speech_that_resembles_wrapping_is_said_unchanged(text: str) -> None:
    assert speech_in(text, own_names=NAMES, other_names=OTHERS) == text
    assert oddities(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        '{"speech":',
        '{"speech": 3}',
        '{"speaker": "Anna", "text": "Hello."}',
        '{"a": 1} and {"b": 2}',
        "[1, 2]",
        "",
    ],
)
def test_json_without_speech_of_the_speaker_is_not_unwrapped(text: str) -> None:
    assert unwrapped(text, own_names=NAMES) == text


@given(text=st.text(max_size=200) | st.text('*_#|>`[]{}()<"-—:.\n aAn', max_size=200))
def test_any_text_is_unwrapped_without_an_error(text: str) -> None:
    speech_in(text, own_names=NAMES, other_names=OTHERS)


@pytest.mark.parametrize(
    "unit",
    [
        *("**", "**a", "[a:", "`", "```a\n", "{", "# a\n", "| a |\n", "|-", "> ", "— a ", "<b>"),
        *("Anna says, ", 'Anna "', '"a," Anna ', "*Anna nods", "Mira (", "Sure! ", "Tamsin: a\n"),
        *("would you like me to continue ", "Here is a reply ", "[a](", '{"say":', "[{", "「"),
    ],
)
def test_hostile_replies_are_unwrapped_in_linear_time(unit: str) -> None:
    text = unit * (8_000 // len(unit))
    with little_work():
        speech_in(text, own_names=NAMES, other_names=OTHERS)
