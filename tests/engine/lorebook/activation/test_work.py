"""Tests of the work limit: it applies to the macros of all entries together, with any cache."""

import random

import pytest

from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.templates.work import LORE_WORK
from tests.engine.lorebook.builders import WORDS, a_book, a_scan, an_entry

VALUES = {"char": "Oren", "user": "Anna"}
RULES = ActivationRules()
MACROS = {
    "dice": "{{roll:1d6}} ",
    "many dice": "{{roll:100d6}} ",
    "random": "{{random::a::b}} ",
    "pick": "{{pick::a::b}} ",
    "variables": "{{incvar::a}} ",
    "variables that double": "{{setvar::a::{{getvar::a}}{{getvar::a}}x}}",
    "names": "{{char}} and {{user}} ",
    "a long text with one name": "{{char}} " + "word " * 30,
}


def activated(book: Lorebook, *said: str, turn: str = "1", work: int = LORE_WORK) -> Activation:
    return activate_lore(
        [book],
        a_scan(*said or ("user Anna: coin",)),
        rules=RULES,
        limit_tokens=10**7,
        counter=WORDS,
        values=VALUES,
        dice=Dice(turn=turn, conversation="1"),
        work=work,
    )


def reasons(lore: Activation) -> list[str]:
    return [verdict.reason for verdict in lore.verdicts]


@pytest.mark.parametrize("fields", [{}, {"constant": True}], ids=["by a key", "constant"])
@pytest.mark.parametrize("macro", MACROS.values(), ids=MACROS.keys())
def test_entry_texts_of_a_book_share_one_work_limit(macro: str, fields: dict[str, bool]) -> None:
    work = LORE_WORK // 8
    entries = [an_entry(macro * 40 + str(n), **fields) for n in range(60)]
    book = a_book(*entries)
    lore = activated(book, work=work)
    assert 0 <= lore.work <= work
    left_out = [reason for reason in reasons(lore) if "need more work than is left" in reason]
    assert 0 < len(left_out) <= 60
    assert {entry.uid for entry in lore.entries}.isdisjoint(
        verdict.item.rpartition("#")[2] for verdict in lore.verdicts if not verdict.kept
    )
    fresh = a_book(*entries)
    again = [activated(one, work=work) for one in (fresh, book)]
    assert [reasons(one) for one in again] == [reasons(lore)] * 2


def test_entry_without_macros_costs_no_work() -> None:
    lore = activated(a_book(*(an_entry("word " * 500) for _ in range(200))))
    assert lore.work == 0
    assert len(lore.entries) > 0


def test_macros_that_expand_to_nothing_still_cost_work() -> None:
    lore = activated(a_book(an_entry("{{setvar::a::b}}" * 20)))
    assert lore.work > 20 * 30
    assert lore.entries == ()


@pytest.mark.parametrize("seed", range(6))
def test_cached_entry_texts_do_not_change_results_near_the_work_limit(seed: int) -> None:
    chance = random.Random(seed)
    keys = ["coin", "ferry", "harbour", "bell"]
    entries = [
        an_entry(
            chance.choice([*MACROS.values(), "Plain. "]) * chance.randint(0, 12)
            + chance.choice(["", "ferry", "bell"]),
            keys=chance.sample(keys, chance.randint(1, 2)),
            constant=chance.random() < 0.1,
        )
        for _ in range(30)
    ]
    kept = a_book(*entries, recursive_scanning=seed % 2 == 0)
    said: list[str] = []
    for turn in range(12):
        said.append(f"user Anna: {' '.join(chance.sample(keys, 2))}")
        work = chance.choice([50, 500, 3_000, LORE_WORK])
        fresh = a_book(*entries, recursive_scanning=seed % 2 == 0)
        now = activated(kept, *said, turn=str(turn % 3), work=work)
        anew = activated(fresh, *said, turn=str(turn % 3), work=work)
        assert reasons(now) == reasons(anew)
        assert [entry.text for entry in now.entries] == [entry.text for entry in anew.entries]
        assert now.work == anew.work <= work


def test_keys_with_random_macros_stay_as_written_beyond_the_work_limit() -> None:
    keys = [f"{{{{roll:100d6}}}}{n}" for n in range(200)]
    book = a_book(*(an_entry("Lore.", keys=[key]) for key in keys))
    lore = activated(book, "user Anna: {{roll:100d6}}199")
    assert len(lore.entries) == 1
