"""The glossary is alphabetical and explains each word in one sentence."""

import re

from tests.docs.fences import PAGES

ROWS = re.findall(
    r"^\| \*\*(.+?)\*\* \| (.+) \|$",
    (PAGES / "reference" / "glossary.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_glossary_is_alphabetical_and_names_each_word_once() -> None:
    words = [word.lower() for word, _ in ROWS]
    assert words == sorted(set(words))
    assert 40 <= len(words) <= 50


def test_glossary_explains_each_word_in_one_sentence_that_uses_it() -> None:
    for word, text in ROWS:
        assert re.fullmatch(r"[A-Z][^.!?]*\.", text), word
        assert word.lower() in text.lower(), word
