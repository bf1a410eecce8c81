"""Words of a text, and the table of scripts without blanks."""

import pytest

from evennia_ai.engine.text.words import (
    SCRIPTS,
    Script,
    indexed_pairs,
    make_phrase,
    query_pairs,
    split_signs,
    word_pattern,
)

SAID: dict[Script, str] = {
    "thai": "กขค",
    "burmese": "ကခဂ",
    "khmer": "កខគ",
    "han": "渡船夫",
    "kana": "フェリ",
    "hangul": "나룻배",
}


def test_every_script_without_blanks_has_a_case() -> None:
    assert SAID.keys() == SCRIPTS.keys()


@pytest.mark.parametrize("script", SAID)
def test_each_letter_is_a_word_in_the_given_scripts(script: Script) -> None:
    said = f"Oren_s {SAID[script]}, 12"
    assert word_pattern(script).findall(said) == ["Oren", "s", *SAID[script], "12"]


@pytest.mark.parametrize("script", SAID)
def test_run_of_letters_is_one_word_in_scripts_other_than_the_given(script: Script) -> None:
    others = [one for one in SAID if one != script]
    assert word_pattern(*others).findall(f"a {SAID[script]}。") == ["a", SAID[script]]


def test_query_pairs_include_a_single_character_only_without_neighbours() -> None:
    assert indexed_pairs("渡船夫 и 水") == ["渡船", "船夫", "渡", "船", "夫", "水"]
    assert query_pairs("渡船夫 и 水") == ["渡船", "船夫", "水"]


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
def test_words_are_split_in_lower_case_and_normal_width(text, words):
    assert split_signs(text) == words


def test_phrase_contains_another_phrase_only_as_whole_words():
    assert make_phrase("Turn into!") in make_phrase("now turn, into prose")
    assert make_phrase("turn in") not in make_phrase("now turn into prose")
