"""What is different in two texts, sentence by sentence."""

from evennia_ai.engine.text.differences import differences


def test_one_sentence_of_a_paragraph_is_told_with_those_beside_it():
    before = "One. Two. Three. Four. Five."
    after = "One. Two. Trois. Four. Five."
    assert list(differences(before, after)) == [
        "  Two.",
        "- Three.",
        "+ Trois.",
        "  Four.",
    ]


def test_between_two_changes_is_told_that_there_is_more():
    told = list(differences("One. Two. Three. Four. Five.", "1. Two. Three. Four. 5."))
    assert told == ["- One.", "+ 1.", "  Two.", "  ...", "  Four.", "- Five.", "+ 5."]


def test_the_same_text_tells_nothing():
    assert list(differences("One.\nTwo.", "One.\nTwo.")) == []


def test_from_nothing_all_is_new_and_lines_are_as_wide_as_wanted():
    assert list(differences("", "A word or two more.", width=12)) == [
        "+ A word or",
        "+ two more.",
    ]


def test_text_that_looks_like_a_diff_is_told_as_it_is():
    assert list(differences("-- a\n@@ b", "-- c\n@@ d")) == ["- -- a", "- @@ b", "+ -- c", "+ @@ d"]


def test_what_could_act_on_a_terminal_is_told_as_an_escape():
    assert "+ \\x1b[2J" in list(differences("", "\x1b[2J"))
