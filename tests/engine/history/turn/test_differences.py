"""The list of differences between the messages of two prompts."""

from evennia_ai.engine.history.turn.replay import (
    MOST_DIFF_LINES,
    message_differences,
    shared_messages,
)
from evennia_ai.engine.prompt.messages import said


def messages(*texts, role="user"):
    return [said(role, text) for text in texts]


def told(older, newer):
    return [(one.change, one.at, one.lines) for one in message_differences(older, newer)]


def test_equal_prompts_have_no_differences():
    assert message_differences(messages("a", "b"), messages("a", "b")) == ()
    assert message_differences([], []) == ()


def test_inserted_message_is_the_only_difference_between_prompts():
    assert told(messages("a", "b"), messages("a", "new", "b")) == [("added", 1, ("+ new",))]


def test_removed_message_is_reported_with_its_old_index():
    assert told(messages("a", "old", "b"), messages("a", "b")) == [("removed", 1, ("- old",))]


def test_changed_message_is_reported_with_a_diff_of_its_text():
    ((change, at, lines),) = told(messages("one\ntwo\nthree"), messages("one\n2\nthree"))
    assert (change, at) == ("changed", 0)
    assert lines == ("  one", "- two", "+ 2", "  three")


def test_changed_sentence_of_a_long_line_is_reported_alone():
    before, after = "One. Two is here. Three. Four.", "One. Two is gone. Three. Four."
    ((_, _, lines),) = told(messages(before), messages(after))
    assert lines == ("  One.", "- Two is here.", "+ Two is gone.", "  Three.")


def test_message_in_which_only_blanks_differ_is_reported_with_its_lines():
    ((_, _, lines),) = told(messages("One. Two."), messages("One.  Two."))
    assert lines[1:] == ("-One. Two.", "+One.  Two.")


def test_message_with_another_role_is_reported_as_changed():
    (one,) = message_differences(messages("a"), messages("a", role="system"))
    assert (one.change, one.role, one.lines) == ("changed", "user->system", ())


def test_message_difference_shows_the_number_of_further_lines_when_it_is_long():
    (one,) = message_differences([], messages("\n".join(map(str, range(100)))))
    assert len(one.lines) == MOST_DIFF_LINES + 1
    assert one.lines[-1] == f"... and {100 - MOST_DIFF_LINES} more lines"


def test_prompts_share_their_messages_before_the_first_difference():
    assert shared_messages(messages("a", "b", "c"), messages("a", "x", "c")) == 1
    assert shared_messages(messages("a"), messages("a", "b")) == 1
    assert shared_messages([], messages("a")) == 0
