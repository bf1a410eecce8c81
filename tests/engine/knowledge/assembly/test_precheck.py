"""Tests of the pre-check, which recognises a task that only asks for information."""

import pytest

from evennia_ai.engine.knowledge.assembly.config import AssemblyRules
from evennia_ai.engine.knowledge.assembly.planning import is_obviously_query

TABLE = {
    "show exits": True,
    "SHOW the exits!": True,
    "  list: all sources on the mill": True,
    "Who is Agda Rook?": True,
    "what's in the ledger": True,
    "search for the weir": True,
    "How many houses are there?": True,
    "“Find” the oldest source": True,
    "Ｓｈｏｗ the exits": True,  # full-width letters
    "list three rumours and write one": False,
    "Show me the mill, then REWRITE its page": False,
    "find the stub and expand it": False,
    "turn the list into prose": False,
    "Read the ledger and report what no article has": False,
    "What if the weir broke in winter?": False,
    "showcase the mill": False,
    "listen to the weir": False,
    "a list of rumours": False,
    "Write a letter": False,
    "": False,
    "!!!": False,
    "показать выходы": False,
}


@pytest.mark.req("S4-08")
@pytest.mark.parametrize(("task", "expected"), TABLE.items())
def test_precheck_recognises_a_question_by_its_words(task, expected):
    assert is_obviously_query(task, rules=AssemblyRules()) is expected


@pytest.mark.parametrize(
    ("task", "expected"), [("列出所有来源", True), ("列出来源并写一首歌", False)]
)
def test_precheck_finds_words_in_scripts_without_blanks(task, expected):
    rules = AssemblyRules(query_starters=("列出",), generative_keywords=("写",))

    assert is_obviously_query(task, rules=rules) is expected


def test_precheck_uses_the_words_that_a_game_sets():
    rules = AssemblyRules(query_starters=("zeig mir",), generative_keywords=("schreib",))

    assert is_obviously_query("Zeig mir die Mühle", rules=rules)
