"""Words of tasks and pages, as they are compared."""

import pytest

from evennia_ai.text.words import phrase_of, signs_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Weir's groan", ["the", "weir", "s", "groan"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("ＷＥＩＲ", ["weir"]),
        ("The_Weir-side", ["the", "weir", "side"]),
        ("列出、来源。", ["列", "出", "来", "源"]),
        ("mill水mill", ["mill", "水", "mill"]),
        ("¡…!", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_whatever_their_case_and_width(text, words):
    assert signs_of(text) == words


def test_a_phrase_is_in_another_by_whole_words():
    assert phrase_of("Turn into!") in phrase_of("now turn, into prose")
    assert phrase_of("turn in") not in phrase_of("now turn into prose")
