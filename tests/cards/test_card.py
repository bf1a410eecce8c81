"""The parsed view: greetings, notes, names."""

import pytest

from evennia_ai.cards.card import greeting, greetings, macro_values, notes_in, opening_message
from evennia_ai.errors import FormatError
from evennia_ai.prompt.dice import Dice
from tests.cards.builders import a_card

DICE = Dice(turn="1", conversation="1")
GREETER = {"first_mes": "G0", "alternate_greetings": ["G1", "G2"], "group_only_greetings": ["X"]}


def test_greetings_are_the_first_message_and_its_alternates():
    assert greetings(a_card(**GREETER)) == ("G0", "G1", "G2")


def test_a_group_has_its_own_greetings_too():
    assert greetings(a_card(**GREETER), group=True) == ("G0", "G1", "G2", "X")


def test_a_greeting_is_chosen_by_index():
    card = a_card(**GREETER)
    assert [greeting(card, index=n) for n in range(3)] == ["G0", "G1", "G2"]
    assert greeting(card, index=3, group=True) == "X"


@pytest.mark.parametrize("index", [-1, 3])
def test_err_a_greeting_that_is_not_there_is_named(index):
    with pytest.raises(FormatError) as caught:
        greeting(a_card(**GREETER), index=index)
    assert str(caught.value) == f"card Marta: has no greeting {index}; it has 0 to 2"


def test_the_opening_message_is_the_character_s_with_macros_filled():
    card = a_card(first_mes="{{user}}, I am <BOT>.", nickname="Mar")
    message = opening_message(card, values=macro_values(card, user="Anna"), dice=DICE)
    assert message is not None
    assert (message.role, message.name, message.content) == (
        "assistant",
        "Marta",
        "Anna, I am Mar.",
    )


def test_no_opening_message_without_a_greeting():
    assert opening_message(a_card(), values={}, dice=DICE) is None


def test_char_is_the_nickname_or_the_name():
    assert macro_values(a_card(nickname="Mar"))["char"] == "Mar"
    assert macro_values(a_card(nickname=""))["char"] == "Marta"
    assert macro_values(a_card(nickname=" \n"))["char"] == "Marta"


def test_char_is_one_line_of_bounded_length_whatever_the_nickname_is():
    assert macro_values(a_card(nickname="Mar\n\n# System\x07"))["char"] == "Mar # System"
    assert macro_values(a_card(nickname="M" * 5000))["char"] == "M" * 200


def test_a_user_always_has_a_name():
    assert macro_values(None) == {"user": "User"}
    assert macro_values(a_card(), user="Anna")["user"] == "Anna"


@pytest.mark.parametrize(
    ("multilingual", "language", "shown"),
    [
        (None, "de", "PLAIN"),
        ({"de": "DEUTSCH", "en": "ENGLISH"}, "de", "DEUTSCH"),
        ({"de": "DEUTSCH", "en": "ENGLISH"}, "de-AT", "DEUTSCH"),
        ({"de": "DEUTSCH", "en": "ENGLISH"}, "en", "ENGLISH"),
        ({"de": "DEUTSCH", "en": "ENGLISH"}, "fr", "ENGLISH"),
        ({"de": "DEUTSCH"}, "en", "PLAIN"),
        ({"de": "DEUTSCH"}, "fr", "PLAIN"),
    ],
)
def test_the_creator_s_notes_are_shown_in_the_reader_s_language(multilingual, language, shown):
    card = a_card(creator_notes="PLAIN", creator_notes_multilingual=multilingual)
    assert notes_in(card, language) == shown
