"""Differences between two texts, sentence by sentence."""

from evennia_ai.engine.text.differences import diff_texts


def test_diff_shows_a_changed_sentence_with_the_sentences_around_the_change():
    before = "One. Two. Three. Four. Five."
    after = "One. Two. Trois. Four. Five."
    assert list(diff_texts(before, after)) == [
        "  Two.",
        "- Three.",
        "+ Trois.",
        "  Four.",
    ]


def test_diff_marks_a_gap_between_changes():
    told = list(diff_texts("One. Two. Three. Four. Five.", "1. Two. Three. Four. 5."))
    assert told == ["- One.", "+ 1.", "  Two.", "  ...", "  Four.", "- Five.", "+ 5."]


def test_diff_is_empty_for_equal_texts():
    assert list(diff_texts("One.\nTwo.", "One.\nTwo.")) == []


def test_diff_from_an_empty_text_adds_all_sentences_within_the_width():
    assert list(diff_texts("", "A word or two more.", width=12)) == [
        "+ A word or",
        "+ two more.",
    ]


def test_diff_keeps_text_that_looks_like_a_diff():
    assert list(diff_texts("-- a\n@@ b", "-- c\n@@ d")) == ["- -- a", "- @@ b", "+ -- c", "+ @@ d"]


def test_diff_escapes_control_characters():
    assert "+ \\x1b[2J" in list(diff_texts("", "\x1b[2J"))
