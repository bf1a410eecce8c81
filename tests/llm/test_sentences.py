"""What is said before the reply ends is the start of what it says in the end."""

from evennia_ai.llm.sentences import SpokenStart


def test_nothing_is_said_before_the_end_unless_that_was_chosen() -> None:
    start = SpokenStart(["Oren"])
    assert start.feed("Aye. The ferry is late. ") == []
    assert start.rest("Aye. The ferry is late. Sit.") == "Aye. The ferry is late. Sit."
