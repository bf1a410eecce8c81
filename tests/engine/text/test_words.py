"""Words of a text, and the one table of scripts without blanks between them."""

import pytest

from evennia_ai.engine.text.words import (
    SCRIPTS,
    Script,
    neighbours_of,
    pairs_of,
    phrase_of,
    signs_of,
    words_and_signs,
)

SAID: dict[Script, str] = {
    "thai": "กขค",
    "burmese": "ကခဂ",
    "khmer": "កខគ",
    "han": "渡船夫",
    "kana": "フェリ",
    "hangul": "나룻배",
}


def test_every_script_of_the_table_has_a_case() -> None:
    assert SAID.keys() == SCRIPTS.keys()


@pytest.mark.parametrize("script", SAID)
def test_in_the_scripts_that_are_named_each_letter_is_a_word(script: Script) -> None:
    said = f"Oren_s {SAID[script]}, 12"
    assert words_and_signs(script).findall(said) == ["Oren", "s", *SAID[script], "12"]


@pytest.mark.parametrize("script", SAID)
def test_in_the_others_a_run_of_letters_is_one(script: Script) -> None:
    others = [one for one in SAID if one != script]
    assert words_and_signs(*others).findall(f"a {SAID[script]}。") == ["a", SAID[script]]


def test_what_is_looked_for_has_one_alone_only_where_it_has_no_neighbour() -> None:
    assert pairs_of("渡船夫 и 水") == ["渡船", "船夫", "渡", "船", "夫", "水"]
    assert neighbours_of("渡船夫 и 水") == ["渡船", "船夫", "水"]


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
