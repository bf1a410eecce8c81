"""The part of a prompt's report that explains one item."""

from dataclasses import replace

import pytest

from evennia_ai.engine.prompt.report import Report, explain_lines, origins_meant
from evennia_ai.engine.prompt.trace import Verdict
from tests.effort import little_work
from tests.engine.prompt.test_report import HOSTILE, a_report

NAMES = {"lore:harbour#7": "the ferry", "lore:harbour#8": "the toll", "lore:moor#1": "The Ferry"}


def with_lore(*origins: str) -> Report:
    """Return a report that also has a verdict on each of these lore entries."""
    judged = [
        Verdict(stage="activate", item=origin, kept=False, reason="no key") for origin in origins
    ]
    report = a_report()
    return replace(report, verdicts=(*report.verdicts, *judged))


def test_explanation_of_a_text_has_verdicts_of_all_stages_its_place_and_its_content() -> None:
    lines = explain_lines(a_report(), "mood")
    assert lines[0] == "component:mood"
    text = " ".join(" ".join(lines).split())
    assert "budget: kept: fits" in text
    assert "placement: kept: in the history, depth 2 from the newest: 2 messages follow" in text
    assert "is in message 4, characters 0 to 19: | You are in a hurry." in text


def test_text_is_explained_when_left_out_of_the_prompt() -> None:
    assert explain_lines(a_report(), "component:off") == [
        "component:off",
        "  expansion: left out: disabled",
    ]


def test_message_is_explained_by_its_number() -> None:
    lines = explain_lines(a_report(), "#4")
    assert lines[0].startswith("message 4: block history, injected by depth, role system,")
    assert lines[-1] == "    | You are in a hurry."


def test_explaining_an_unknown_name_lists_similar_names() -> None:
    (line, *_) = explain_lines(a_report(), "moood")
    assert line.startswith("nothing here is called moood; similar names: component:mood")


@pytest.mark.parametrize("item", ["99", "#99", "-1", "9" * 5000])
def test_explaining_an_unknown_message_number_lists_the_existing_numbers(item: str) -> None:
    (line,) = explain_lines(a_report(), item)
    assert line.startswith("there is no message ")
    assert line.endswith(f"they are 0 to {len(a_report().messages) - 1}")


@pytest.mark.parametrize(
    "item", ["lore:harbour#7", "harbour#7", "the ferry", "THE FERRY", "harbour#the ferry"]
)
def test_lore_entry_is_explained_by_label_and_by_name(item: str) -> None:
    lines = explain_lines(with_lore("lore:harbour#7", "lore:harbour#8"), item, names=NAMES)
    assert lines == ["lore:harbour#7 (the ferry)", "  lore activation: left out: no key"]


def test_explaining_an_ambiguous_name_lists_all_texts_with_it() -> None:
    report = with_lore("lore:harbour#7", "lore:moor#1")
    text = " ".join(explain_lines(report, "the ferry", names=NAMES))
    assert "could be lore:harbour#7 (the ferry), lore:moor#1 (The Ferry); name one" in text
    assert explain_lines(report, "moor#the ferry", names=NAMES)[0] == "lore:moor#1 (The Ferry)"


def test_name_of_a_lore_entry_without_a_verdict_cannot_be_explained() -> None:
    assert origins_meant(with_lore("lore:harbour#8"), "the ferry", names=NAMES) == []


def test_explaining_prefers_a_component_key_to_an_entry_name() -> None:
    report = with_lore("lore:harbour#7")
    assert origins_meant(report, "mood", names={"lore:harbour#7": "mood"}) == ["component:mood"]


def test_explaining_a_misspelt_name_suggests_the_right_one() -> None:
    (line, *_) = explain_lines(with_lore("lore:harbour#7"), "the fery", names=NAMES)
    assert "similar names: lore:harbour#7 (the ferry)" in line


def test_control_characters_of_an_unknown_name_are_escaped() -> None:
    names = {"lore:harbour#7": HOSTILE}
    text = "".join(explain_lines(with_lore("lore:harbour#7"), "harbour#7", names=names))
    assert "\\x1b[2J" in text
    assert not set(text) & {"\x1b", "\x07", "\u202e", "\u2028", "\n"}


def test_explaining_a_misspelt_name_among_ten_thousand_names_takes_limited_work() -> None:
    names = {f"lore:big#{number}": f"the thing {number}" for number in range(10_000)}
    report = with_lore(*names)
    with little_work(5):
        assert "similar names" in explain_lines(report, "the thin 77", names=names)[0]
