"""Tests of hostile books: bounded time, and a notice or a verdict for whatever is left out.

The limits of time are generous. Without protection, these books take minutes or forever.
"""

import json

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import parse_json
from evennia_ai.engine.lorebook.activation.timers import LoreState, Spell
from evennia_ai.engine.lorebook.rules import ActivationRules, read_rules
from evennia_ai.engine.lorebook.scan.key_index import INDEXES
from evennia_ai.engine.prompt.components import ALL_GRANTS, NO_GRANTS
from evennia_ai.formats.lorebooks.books import MAX_ENTRIES, read_book
from evennia_ai.formats.lorebooks.editing.lints import lint_book
from tests.effort import little_work
from tests.engine.lorebook.builders import (
    a_book,
    a_scan,
    a_world_entry,
    an_entry,
    awake,
    reasons,
    texts,
)
from tests.engine.lorebook.turns import a_turn

PRESETS = pytest.mark.parametrize("preset", ["evennia_ai", "sillytavern"])
PATTERNS = ["(a+)+$", "(?:a|aa)+$", "(.*)*x", r"(\w|\w\w)*$", "(x+x+)+y", "((((a*)*)*)*)*b"]


def rules_of(preset, **more):
    return read_rules({"rules": preset, "recursive": True, "budget_percent": 100, **more})


def a_world(*entries, **more):
    return read_book({"entries": {str(n): entry for n, entry in enumerate(entries)}, **more})


@pytest.fixture(scope="module")
def large_book():
    """Make a book of fifty thousand entries. Each has a key of its own and one that all share."""
    entries = [an_entry(f"Lore {n}.", keys=[f"key{n}", "common"]) for n in range(50_000)]
    with little_work(60):
        return read_book({"entries": entries}, label="book")


@pytest.mark.long
@PRESETS
def test_book_of_fifty_thousand_entries_is_scanned(large_book, preset):
    with little_work(30):
        result = awake(large_book, scan=a_scan("user: key7"), rules=rules_of(preset))
        assert texts(result) == ["Lore 7."]
    with little_work(1):
        again = awake(large_book, scan=a_scan("user: key8"), rules=rules_of(preset))
        assert len(again.touched) == 1


@pytest.mark.long
def test_key_of_fifty_thousand_entries_activates_a_limited_number(large_book):
    with little_work(30):
        result = awake(large_book, scan=a_scan("user: common"), limit_tokens=100)
        assert len(result.entries) == 12
        assert any("not judged" in verdict.reason for verdict in result.touched)


@pytest.mark.long
def test_book_of_fifty_thousand_entries_is_linted(large_book):
    with little_work(30):
        assert lint_book(large_book) == ()


def test_book_with_too_many_entries_is_refused():
    data = {"entries": [an_entry()] * (MAX_ENTRIES + 1)}
    with little_work(10), pytest.raises(FormatError, match="split it"):
        read_book(data)


@PRESETS
def test_entry_of_a_megabyte_takes_linear_time(preset):
    text = "coin tower gate " * 65_000
    with little_work(10):
        book = a_book(an_entry(text), an_entry("Tall.", keys=["tower"]))
        result = awake(book, scan=a_scan("user: coin"), rules=rules_of(preset), limit_tokens=100)
        assert "content must have at most" in reasons(result)["book#0"]


@pytest.mark.long
def test_book_with_a_million_keys_is_cut_or_refused_with_a_notice():
    entries = [an_entry(f"Lore {n}.", keys=[f"k{n}x{k}" for k in range(1000)]) for n in range(1000)]
    with little_work(60):
        book = a_book(*entries)
        result = awake(book, scan=a_scan("user: k0x5 k999x5"))
        assert texts(result) == ["Lore 0."]
    assert any("keys" in notice for notice in book.notices)
    assert "keys" in reasons(result)["book#999"]


def test_entry_with_a_million_keys_is_cut_with_a_notice():
    with little_work(20):
        book = a_book(an_entry(keys=[f"key{n}" for n in range(1_000_000)]))
        assert texts(awake(book, scan=a_scan("user: key5"))) == ["Some lore."]
    assert any("keys" in notice for notice in book.notices)


@PRESETS
def test_entries_that_activate_each_other_in_a_circle_are_active_once(preset):
    count = 300
    entries = [
        an_entry(f"word{(n + 1) % count} word{(n * 7) % count}", keys=[f"word{n}"])
        for n in range(count)
    ]
    rules = rules_of(preset, max_recursion_steps=0)
    with little_work(20):
        result = awake(a_book(*entries), scan=a_scan("user: word0"), rules=rules)
    assert len(result.entries) == count
    assert len({entry.label for entry in result.entries}) == count


@PRESETS
def test_entry_that_activates_itself_is_active_once(preset):
    book = a_book(an_entry("coin coin coin"))
    assert texts(awake(book, rules=rules_of(preset))) == ["coin coin coin"]


@PRESETS
@pytest.mark.parametrize(
    "more",
    [
        {"overflow": "skip", "budget_percent": 10},
        {"speaker_share_percent": 1},
        {"speaker_matches": 1},
        {"min_activations": 9},
    ],
    ids=str,
)
def test_entry_without_room_does_not_recurse_endlessly(preset, more):
    book = a_world(*(a_world_entry("coin " * 60, key=["coin"]) for _ in range(3)))
    with little_work(5):
        result = awake(
            book, rules=rules_of(preset, max_recursion_steps=0, **more), limit_tokens=120
        )
    assert len(result.verdicts) == 3


@PRESETS
def test_activation_with_huge_delay_levels_ends(preset):
    entries = [
        a_world_entry("coin", key=["coin"], delayUntilRecursion=n * 10**9) for n in range(500)
    ]
    with little_work(20):
        result = awake(a_world(*entries), rules=rules_of(preset, max_recursion_steps=0))
    assert len(result.verdicts) == 500


@pytest.mark.long
@PRESETS
def test_ten_thousand_delay_levels_are_limited_with_a_reason(preset):
    entries = [
        a_world_entry("coin", key=["coin"], delayUntilRecursion=n + 1) for n in range(10_000)
    ]
    book = a_world(*entries)
    with little_work(20):
        result = awake(book, rules=rules_of(preset, max_recursion_steps=0))
    assert len(result.verdicts) == 10_000
    assert "not judged: the limit of" in result.verdicts[-1].reason


@PRESETS
@pytest.mark.parametrize("keys", [[], [""], [" ", "\t", "\n"], ["\u00a0", "\u200b"]], ids=repr)
def test_entry_with_blank_keys_has_a_verdict(preset, keys):
    result = awake(a_book(an_entry(keys=keys)), rules=rules_of(preset))
    assert len(result.verdicts) == 1
    assert result.verdicts[0].reason


@PRESETS
def test_empty_book_activates_nothing(preset):
    for book in (a_book(), a_world()):
        assert awake(book, rules=rules_of(preset)).verdicts == ()
        assert lint_book(book) == ()


@pytest.mark.long
def test_ten_thousand_entries_with_one_key_take_bounded_time():
    book = a_book(*(an_entry("the end of the road", keys=["the"]) for _ in range(10_000)))
    with little_work(20):
        result = awake(book, scan=a_scan("user: the"), limit_tokens=100)
        assert sum(entry.tokens for entry in result.entries) <= 25
    with little_work(20):
        assert len(lint_book(book)) >= 10_000


@PRESETS
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("grants", [ALL_GRANTS, NO_GRANTS])
def test_catastrophic_regex_key_is_stopped_with_a_verdict(preset, pattern, grants):
    text = "a" * 5000 + "x" * 5000 + "!"
    book = a_book(an_entry(keys=[f"/{pattern}/"], use_regex=True), grants=grants)
    with little_work(5):
        for turn in range(3):
            result = awake(book, scan=a_scan(f"user: {text}{turn}"), rules=rules_of(preset))
    assert len(result.verdicts) == 1


def test_thousand_catastrophic_regex_keys_take_bounded_time():
    entries = [
        an_entry(keys=[f"/(?:{letters}+)+$/"], use_regex=True)
        for letters in (f"a{n % 10}?a{n}?" for n in range(1000))
    ]
    with little_work(60):
        book = a_book(*entries)
        result = awake(book, scan=a_scan(*[f"user: {'a' * 60}{n}!" for n in range(4)]))
    assert len(result.verdicts) == 1000


@PRESETS
def test_a_message_of_a_megabyte_is_scanned(preset):
    book = a_book(*(an_entry(f"L{n}.", keys=[f"aa{n}", f"a a{n}", "龙" * n]) for n in range(1, 40)))
    with little_work(10):
        result = awake(book, scan=a_scan("user: " + "a" * 1_000_000), rules=rules_of(preset))
        assert result.entries == ()
        awake(book, scan=a_scan("user: " + "龙" * 300_000), rules=rules_of(preset))


@PRESETS
def test_long_repetitive_keys_take_bounded_time(preset):
    keys = ["a" * n for n in range(500, 1000)] + ["a " * n for n in range(250, 500)]
    book = a_book(an_entry(keys=keys[:700]))
    with little_work(10):
        awake(book, scan=a_scan("user: " + "a" * 50_000), rules=rules_of(preset))
        awake(book, scan=a_scan("user: " + "a " * 50_000), rules=rules_of(preset))


def test_group_of_thousands_of_entries_takes_bounded_time():
    names = ", ".join(f"group{n}" for n in range(200))
    entries = [a_world_entry(f"L{n}.", key=["coin"], group=names) for n in range(500)]
    with little_work(20):
        result = awake(a_world(*entries), rules=ActivationRules())
    assert len(result.entries) == 1


def test_first_of_half_a_million_groups_count_with_a_notice():
    names = ",".join(f"g{n}" for n in range(500_000))
    book = a_world(a_world_entry("A.", key=["coin"], group=names), a_world_entry("B."))
    assert book.entries[0].grouping.names == tuple(f"g{n}" for n in range(32))
    assert any("group has more than 32 names" in notice for notice in book.notices)


@PRESETS
def test_group_name_may_be_a_number_of_any_length(preset):
    entries = [a_world_entry(group="9" * 1999 + ",7") for _ in range(2)]
    result = awake(a_world(*entries), rules=rules_of(preset))
    assert sum("won group" in verdict.reason for verdict in result.verdicts) >= 1


@pytest.mark.long
def test_ten_thousand_sticky_group_members_have_short_reasons():
    entries = [a_world_entry(key=["coin"], group="g", sticky=9) for _ in range(10_000)]
    state = LoreState(sticky={f"book#{n}": Spell(0, 9) for n in range(10_000)})
    with little_work(20):
        result = a_turn(a_world(*entries), scan=a_scan("user: coin"), state=state)
        assert max(len(verdict.reason) for verdict in result.touched) < 300


def test_endlessly_nested_lorebook_file_is_refused():
    deep = '{"entries": ' + "[" * 100_000 + "]" * 100_000 + "}"
    with little_work(10), pytest.raises(FormatError, match="nested"):
        parse_json(deep, kind="book", where="book")


def test_lorebook_file_of_twenty_megabytes_is_refused_before_it_is_read():
    huge = json.dumps({"entries": [an_entry("x" * 1000)]}) + " " * 21_000_000
    with little_work(5), pytest.raises(FormatError, match="make it smaller"):
        parse_json(huge, kind="book", where="book")


@pytest.mark.long
def test_key_that_changes_every_turn_does_not_fill_the_cache():
    book = a_book(*(an_entry(keys=[f"k{n}", "{{user}}"]) for n in range(5000)))
    for number in range(24):
        awake(book, scan=a_scan("user: k7"), values={"user": f"Ann {number}"})
    assert [len(kept) <= 11 for kept in book.of_entries[INDEXES].values()] == [True]


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        (["{{roll:6}}" * 2_001], "book.entries[0].content: has 2001 macros"),
        (["Lore.", "<USER>" * 5_000], "book.entries[1].content: has 5000 macros"),
        (["{{random:a,b}}" * 2_000] * 60, "book.entries[50].content: the texts of the file have"),
    ],
    ids=["one entry", "the second entry", "all entries"],
)
def test_book_with_too_many_macros_is_refused_with_the_name_of_the_entry(contents, told):
    for write, listed in ((an_entry, list), (a_world_entry, lambda made: dict(enumerate(made)))):
        entries = listed([write(content) for content in contents])
        if isinstance(entries, dict):
            entries = {str(name): entry for name, entry in entries.items()}
        with pytest.raises(FormatError) as caught, little_work(5):
            read_book({"entries": entries})
        assert told in str(caught.value)
