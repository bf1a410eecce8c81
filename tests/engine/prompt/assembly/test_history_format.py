"""The format of history messages under assembly rules; the records stay unchanged."""

from evennia_ai.engine.prompt.assembly.history_format import format_history
from evennia_ai.engine.prompt.assembly.rules import PLAIN, AssemblyRules
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, said
from tests.engine.prompt.builders import a_tool_pair

QUOTED = AssemblyRules(quote_user=True)
NAMED = AssemblyRules(names="content")


def test_formatting_returns_the_same_history_when_no_rule_changes_the_messages() -> None:
    history = History([said("user", "Where to?", name="Anna")])
    assert format_history(history, PLAIN) is history


def test_formatted_message_has_no_record() -> None:
    history = History([said("user", "Where to?", name="Anna", record="7")])
    [shown] = format_history(history, QUOTED)
    assert (shown.content, shown.name, shown.record) == ('"Where to?"', "Anna", None)
    assert shown.origins == ["history:7"]
    assert history[0].content == "Where to?"


def test_formatting_returns_the_same_message_when_no_rule_changes_the_message() -> None:
    history = History([said("assistant", "Over.", name="Oren", record="8")])
    assert format_history(history, QUOTED)[0] is history[0]


def test_bookkeeping_and_tool_messages_are_not_formatted() -> None:
    facts = Message("user", "It rains.", name="Facts", counted=False)
    history = History([facts, *a_tool_pair(1)])
    assert format_history(history, NAMED)[0] is facts
    assert [message.content for message in format_history(history, NAMED)][-1] == "result 1"


def test_formatted_history_with_appended_messages_equals_one_formatted_from_scratch() -> None:
    lines = [said("user", f"m{number}", name="Anna") for number in range(4)]
    grown = History(lines[:1], earlier=3, earlier_users=2)
    shorter = format_history(grown, NAMED)
    for line in lines[1:]:
        grown = grown.appended(line)
        shown = format_history(grown, NAMED)
    assert [*shown] == [*format_history(History(lines, earlier=3), NAMED)]
    assert (shown.earlier, shown.stop, shown.user_messages) == (3, 7, 6)
    assert shown[3] is shorter[3]


def test_cached_formatted_history_is_not_used_for_older_views_or_other_rules() -> None:
    old = History([said("user", "m1", name="Anna")])
    new = old.appended(said("user", "m2", name="Ben"))
    assert len(format_history(new, NAMED)) == 2
    assert [message.content for message in format_history(old, NAMED)] == ["Anna: m1"]
    assert [message.content for message in format_history(new, QUOTED)] == ['"m1"', '"m2"']


def test_speakers_name_is_inside_the_quotes_around_a_message() -> None:
    both = AssemblyRules(names="content", quote_user=True)
    [shown] = format_history(History([said("user", "Why?", name="Anna")]), both)
    assert (shown.content, shown.name) == ('"Anna: Why?"', None)
