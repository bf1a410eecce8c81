"""The differences between a prompt and the previous prompt, by item."""

from evennia_ai.engine.prompt.changes import MOST_LINES, compare_messages, compare_reports
from evennia_ai.engine.prompt.messages import Part
from evennia_ai.engine.prompt.report import Report, ReportMessage
from evennia_ai.engine.prompt.trace import Verdict


def a_report(*texts, said=(), verdicts=()):
    """Return a report with `texts` (pairs of origin and text) and with numbered messages `said`."""
    messages = [
        ReportMessage(
            role="system",
            content=text,
            block="ordered",
            parts=(Part(origin=origin, start=0, end=len(text)),),
        )
        for origin, text in texts
    ]
    messages += [
        ReportMessage(role="user", content="Hello.", block="history", record=record)
        for record in said
    ]
    return Report(messages=tuple(messages), verdicts=tuple(verdicts), **_figures())


def _figures():
    return {
        "tokens": 1,
        "limit_tokens": 10,
        "layout": "cache",
        "counter": "estimate",
        "by_origin": {},
        "breakpoints": (),
        "stable_tokens": 0,
        "sha256": "",
    }


def test_equal_prompts_have_no_changes():
    one = a_report(("component:mood", "Calm."), said=("1",))
    assert compare_reports(one, one) == []
    assert compare_messages(one, one) == ([], [])


def test_changed_prompt_text_is_reported_as_a_unified_diff():
    (change,) = compare_reports(
        a_report(("component:mood", "One.\nTwo.\nThree.")),
        a_report(("component:mood", "One.\n2.\nThree.")),
    )
    assert (change.item, change.how) == ("component:mood", "changed")
    assert change.lines == ("  One.", "- Two.", "+ 2.", "  Three.")


def test_added_item_is_reported_with_its_text_and_a_removed_one_with_a_reason():
    left = Verdict(stage="activate", item="lore:a#1", kept=False, reason="no key")
    came, went = compare_reports(
        a_report(("lore:a#1", "Old.")), a_report(("note:cold", "Ill."), verdicts=[left])
    )
    assert (came.item, came.how, came.lines) == ("note:cold", "came", ("Ill.",))
    assert (went.item, went.how, went.why) == ("lore:a#1", "went", "no key")


def test_kept_memory_without_a_separate_text_is_reported_as_added():
    kept = Verdict(stage="recall", item="memory:3", kept=True, reason="recalled")
    (change,) = compare_reports(a_report(), a_report(verdicts=[kept]))
    assert (change.item, change.how, change.lines) == ("memory:3", "came", ())


def test_comparison_shows_the_number_of_further_lines_when_a_changed_text_is_long():
    text = "\n".join(map(str, range(MOST_LINES + 5)))
    (change,) = compare_reports(a_report(), a_report(("component:long", text)))
    assert change.lines[-1] == "... and 5 more lines"


def test_added_and_removed_messages_are_reported_by_number():
    assert compare_messages(a_report(said=("1", "2")), a_report(said=("2", "3"))) == (
        ["#3"],
        ["#1"],
    )
