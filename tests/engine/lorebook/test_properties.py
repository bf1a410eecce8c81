"""Properties that hold for every book, among them the invariants of the fuzz target."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.lorebook.rules import read_rules
from evennia_ai.formats.lorebooks.books import read_book
from fuzz.lore_checks import HEADS, KEYS, LINES, TEXTS, case_of, check
from fuzz.lore_seeds import seeds
from tests.engine.lorebook.builders import a_book, a_scan, an_entry, awake, texts
from tests.properties import up_to

PRESETS = st.sampled_from(["evennia_ai", "sillytavern"])
WORDS = st.sampled_from(["coin", "gate", "tower", "red", "ferry"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        *("keys", "key", "content", "enabled", "insertion_order", "use_regex", "constant", "id"),
        *("extensions", "position", "secondary_keys", "selective", "priority", "uid", "order"),
        *("depth", "role", "probability", "sticky", "group", "delayUntilRecursion", "evennia_ai"),
        *("characterFilter", "selectiveLogic", "scanDepth", "disable", "triggers", "comment"),
    ]
)


@pytest.mark.parametrize("seed", seeds(), ids=len)
def test_seeds_of_the_lorebook_fuzz_target_pass(seed):
    check(seed)


def test_lorebook_fuzz_target_reaches_both_formats_and_all_grants():
    cases = [case_of(bytes(range(n, 256)) * 2) for n in range(40)]
    kinds = {(isinstance(case.book.get("entries"), dict), case.grants) for case in cases}
    assert len(kinds) == 6


@given(st.binary(max_size=300))
def test_activation_of_any_book_in_any_conversation_keeps_the_invariants(data):
    check(b"\x01" + data)


@settings(max_examples=up_to(50))
@given(st.lists(st.dictionaries(FIELDS, JSON, max_size=5), max_size=3), st.booleans())
def test_any_json_is_read_as_a_lorebook_or_refused_in_one_line(entries, named):
    listed = {str(n): entry for n, entry in enumerate(entries)} if named else entries
    try:
        book = read_book({"entries": listed})
    except EvenniaAIError as error:
        assert "\n" not in str(error)
    else:
        assert len(book.entries) == len(entries)


@settings(max_examples=up_to(50))
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6), PRESETS, st.data())
def test_active_entries_do_not_depend_on_the_order_of_the_book(pairs, preset, data):
    entries = [
        an_entry(f"{wakes} {n}", keys=[key], id=n, insertion_order=n)
        for n, (key, wakes) in enumerate(pairs)
    ]
    rules = read_rules({"rules": preset, "recursive": True, "budget_percent": 100})
    shuffled = data.draw(st.permutations(entries))
    plain, mixed = (awake(a_book(*some), rules=rules) for some in (entries, shuffled))
    assert texts(plain) == texts(mixed)


@settings(max_examples=up_to(50))
@given(st.lists(st.sampled_from(KEYS), max_size=4), st.sampled_from(LINES), PRESETS)
@example(["/(a+)+$/"], "a" * 40 + "!", "evennia_ai")
def test_more_keys_never_make_an_entry_inactive(keys, line, preset):
    rules = read_rules({"rules": preset})
    scan = a_scan(f"user: {line} coin")
    book = a_book(an_entry(keys=[*keys, "coin"]))
    assert texts(awake(book, scan=scan, rules=rules)) == ["Some lore."]


@given(st.sampled_from(HEADS), st.sampled_from(TEXTS), PRESETS)
def test_lorebook_round_trips_through_json(head, text, preset):
    written = {"entries": [an_entry(head + text), an_entry("Gate.", keys=["gate"])]}
    rules = read_rules({"rules": preset})
    first, second = (
        awake(read_book(data, label="book"), rules=rules)
        for data in (written, json.loads(json.dumps(written)))
    )
    assert first.verdicts == second.verdicts
