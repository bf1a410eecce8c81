"""Tests of caching between turns: what has not changed is not judged, offered or rendered again."""

from typing import Any

import pytest

from evennia_ai.engine.lorebook.activation import active_books
from evennia_ai.engine.lorebook.activation.passes import ActivationRun
from evennia_ai.engine.lorebook.rules import ActivationRules, read_rules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.messages import said
from tests.engine.lorebook.builders import a_book, a_history, an_entry, awake, reasons, texts

PRESETS = ("evennia_ai", "sillytavern")
ENTRIES = [
    an_entry("Coin.", keys=["coin"]),
    an_entry("Gate, beside a tower.", keys=["gate"]),
    an_entry("Tower.", keys=["tower"]),
]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the indexes of the entries that are judged from now on."""
    indexes: list[int] = []
    judge = active_books.judge_entry

    def noted(entry: Any, *args: Any, **more: Any) -> Any:
        indexes.append(entry.index)
        return judge(entry, *args, **more)

    monkeypatch.setattr(active_books, "judge_entry", noted)
    return indexes


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the labels of the candidates that are offered tokens from now on."""
    labels: list[str] = []
    decide = ActivationRun._decide

    def noted(self: ActivationRun, candidates: Any) -> Any:
        labels.extend(one.label for one in candidates)
        return decide(self, candidates)

    monkeypatch.setattr(ActivationRun, "_decide", noted)
    return labels


def rules_of(preset: str, **more: Any) -> ActivationRules:
    return read_rules({"rules": preset, "recursive": True, "scan_depth": 3, **more})


@pytest.mark.parametrize("preset", PRESETS)
def test_turn_judges_no_entry_when_no_key_changed_its_place(preset, judged, offered):
    book, rules = a_book(*ENTRIES), rules_of(preset)
    history = a_history("user: coin and gate")
    before = awake(book, scan=Scan(history=history), rules=rules)
    assert sorted(set(judged)) == [0, 1, 2]
    assert sorted(offered) == ["book#0", "book#1", "book#2"]
    judged.clear()
    offered.clear()
    after = awake(book, scan=Scan(history=history.appended(said("user", "-"))), rules=rules)
    assert (judged, offered) == ([], [])
    assert texts(after) == texts(before)
    assert all(now is then for now, then in zip(after.entries, before.entries, strict=True))


@pytest.mark.parametrize("preset", PRESETS)
def test_new_message_causes_judgement_only_of_entries_with_its_keys(preset, judged, offered):
    book, rules = a_book(*ENTRIES), rules_of(preset)
    history = a_history("user: coin and gate")
    awake(book, scan=Scan(history=history), rules=rules).touched  # noqa: B018
    judged.clear()
    offered.clear()
    later = history.appended(said("user", "a coin"))
    result = awake(book, scan=Scan(history=later), rules=rules)
    assert (judged, offered) == ([0], [])
    assert reasons(result)["book#0"] == "+ key 'coin' in message 2 at 2-6"


def test_entries_become_inactive_when_their_message_leaves_the_scan_depth(judged):
    book, rules = a_book(*ENTRIES), rules_of("evennia_ai")
    history = a_history("user: coin", "user: tower", "user: -")
    assert texts(awake(book, scan=Scan(history=history), rules=rules)) == ["Coin.", "Tower."]
    judged.clear()
    later = history.appended(said("user", "-"))
    result = awake(book, scan=Scan(history=later), rules=rules)
    assert (judged, texts(result)) == ([], ["Tower."])
    assert [verdict.item for verdict in result.touched] == ["lore:book#2"]


def test_verdict_of_the_previous_turn_is_reused_when_unchanged():
    book, rules = a_book(*ENTRIES), rules_of("evennia_ai")
    history = a_history("user: coin and tower")
    before = awake(book, scan=Scan(history=history), rules=rules).touched
    later = history.appended(said("user", "coin"))
    after = awake(book, scan=Scan(history=later), rules=rules).touched
    assert after[1] is before[1]
    assert (before[0].reason, after[0].reason) == (
        "key 'coin' in message 1 at 0-4; budget 2500 -> 2499 tokens",
        "key 'coin' in message 2 at 0-4; budget 2500 -> 2499 tokens",
    )


def test_verdicts_of_a_turn_do_not_change_in_later_turns():
    book, rules = a_book(*ENTRIES), rules_of("evennia_ai")
    history = a_history("user: coin")
    first = awake(book, scan=Scan(history=history), rules=rules)
    later = history.appended(said("user", "gate"))
    awake(book, scan=Scan(history=later), rules=rules).touched  # noqa: B018
    assert [verdict.item for verdict in first.touched] == ["lore:book#0"]


def test_entry_becomes_active_in_the_first_pass_with_its_key():
    book, rules = a_book(*ENTRIES), rules_of("evennia_ai")
    history = a_history("user: gate")
    fed = awake(book, scan=Scan(history=history), rules=rules)
    assert reasons(fed)["book#2"].startswith("+ key 'tower' in the text of book#1")
    history = history.appended(said("user", "tower"))
    heard = awake(book, scan=Scan(history=history), rules=rules)
    assert reasons(heard)["book#2"] == "+ key 'tower' in message 2 at 0-5"
    for _ in range(2):
        history = history.appended(said("user", "-"))
    gone = awake(book, scan=Scan(history=history), rules=rules)
    assert texts(gone) == ["Tower."]


def test_entry_text_is_rendered_again_when_a_value_changes():
    book = a_book(an_entry("Of {{user}}."))
    history = a_history("user: coin")
    for user in ("Ann", "Bob", "Ann"):
        result = awake(book, scan=Scan(history=history), values={"user": user})
        assert texts(result) == [f"Of {user}."]
