"""Tests of the key index: numbers of keys, macros in keys, patterns, and keys never found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.entry import MAX_KEY
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.key_index import (
    INDEXES,
    NEVER,
    FilledKey,
    KeyReader,
    book_index_of,
)
from evennia_ai.engine.prompt.dice import Dice
from tests.engine.lorebook.builders import DICE, a_book, a_scan, an_entry, awake, reasons, texts

BY_FORM = {"evennia_ai": {"patterns": "by_form"}}
RULES = ActivationRules()


def an_index(book, *, rules=RULES, values=None, dice=DICE):
    return book_index_of(book, rules=rules, values=values or {}, dice=dice)


def a_pattern(*keys, **more):
    return an_entry(**{"keys": list(keys), "use_regex": True, **more})


def test_equal_keys_of_entries_share_a_number():
    book = a_book(an_entry(keys=["coin", "Gate"]), an_entry(keys=["gate"]), an_entry(keys=["coin"]))
    key_index = an_index(book)
    coin, gate = key_index.entry_keys[0].primary
    assert key_index.owners == {coin: (0, 2), gate: (0, 1)}


ODD_KEYS = st.lists(
    st.sampled_from(["coin", " Coin ", "gate house", "", "/a+/i", "{{user}}", "k" * 1001, "месяц"]),
    max_size=4,
)
ODD_ENTRIES = st.fixed_dictionaries(
    {"keys": ODD_KEYS, "secondary_keys": ODD_KEYS},
    optional={
        "enabled": st.just(False),
        "use_regex": st.just(True),
        "case_sensitive": st.just(True),
        "constant": st.just(True),
        "content": st.sampled_from(["@@exclude_keys sea\nLore.", "@@activate\nLore."]),
        "extensions": st.just({"group": "moons"}),
    },
)


def keys_of(book, rules):
    """Return the keys of a book by the number that its index gives them."""
    reader = KeyReader(rules, filled={"{{user}}": FilledKey("Anna", "Anna")})
    reader.book_keys(book.entries)
    return dict(reader.keys())


@pytest.mark.parametrize("preset", ["evennia_ai", "sillytavern"])
@given(entries=st.lists(ODD_ENTRIES, max_size=6))
def test_keys_numbered_in_bulk_equal_keys_numbered_one_by_one(preset, entries):
    rules = ActivationRules(rules=preset)
    book = a_book(*(an_entry(**fields) for fields in entries))
    index = an_index(book, rules=rules, values={"user": "Anna"})
    key_of = keys_of(book, rules)
    owners: dict[object, list[int]] = {}
    for at, fields in enumerate(entries):
        only = a_book(an_entry(**fields))
        alone = an_index(only, rules=rules, values={"user": "Anna"})
        its_key = keys_of(only, rules)
        one, other = index.entry_keys[at], alone.entry_keys[0]
        assert (one.texts, one.keys_decide, one.refused) == (
            other.texts,
            other.keys_decide,
            other.refused,
        )
        numbers = zip(one.numbers, other.numbers, strict=True)
        assert all(key_of.get(n, n < 0) == its_key.get(m, m < 0) for n, m in numbers)
        assert (at in index.always_judged, at in index.alike) == (
            0 in alone.always_judged,
            0 in alone.alike,
        )
        for number in {*one.primary}:
            owners.setdefault(number, []).append(at)
    assert index.owners == {number: tuple(those) for number, those in owners.items()}


def test_case_sensitive_key_has_another_number():
    book = a_book(an_entry(keys=["coin"]), an_entry(keys=["coin"], case_sensitive=True))
    assert len(an_index(book).owners) == 2


def test_key_index_is_shared_by_equal_rules_and_macro_values():
    book = a_book(an_entry(), an_entry(keys=["{{char}}"]))
    oren = an_index(book, values={"char": "Oren", "user": "Anna"})
    assert an_index(book, values={"char": "Oren", "user": "Ben"}) is oren
    assert an_index(book, values={"char": "Oren"}, dice=Dice(turn="9", conversation="1")) is oren
    assert an_index(book, values={"char": "Brida"}) is not oren
    assert an_index(book, values={"char": "Oren"}, rules=ActivationRules(scan_depth=9)) is oren
    cased = ActivationRules(case_sensitive=True)
    assert an_index(book, values={"char": "Oren"}, rules=cased) is not oren


def test_number_of_cached_key_indexes_is_limited():
    book = a_book(an_entry(keys=["{{user}}"]))
    for number in range(1000):
        an_index(book, values={"user": f"player{number}"})
    assert max(map(len, book.of_entries[INDEXES].values())) <= 64


def test_keys_of_never_active_entries_are_not_searched():
    book = a_book(an_entry(keys=["coin"], enabled=False), an_entry(keys=["gate"]))
    assert list(an_index(book).owners.values()) == [(1,)]


def test_entries_active_without_a_key_are_judged_in_every_turn():
    book = a_book(
        an_entry(),
        an_entry(constant=True),
        an_entry("@@activate\nA."),
        an_entry("@@keep_activate_after_match\nA."),
        an_entry("@@activate\nA.", enabled=False),
    )
    assert an_index(book).always_judged == (1, 2, 3)


def test_macro_in_a_key_has_the_value_of_the_current_npc():
    book = a_book(an_entry(keys=["the boat of {{char}}"]))
    scan = a_scan("user: Is this the boat of Oren?")
    assert texts(awake(book, scan=scan, values={"char": "Oren"}))
    assert not texts(awake(book, scan=scan, values={"char": "Brida"}))


@pytest.mark.parametrize("name", ["/./", "/(?:)/", ".*", "/.*/s", "^"])
@pytest.mark.parametrize("key", ["{{user}}", "/{{user}}/", "{{user}}|{{user}}", "/^{{user}}$/"])
@pytest.mark.parametrize("patterns", ["by_form", "all"])
def test_player_name_in_a_key_never_becomes_a_regex(name, key, patterns):
    book = a_book(an_entry(keys=[key], extensions={"evennia_ai": {"patterns": patterns}}))
    scan = a_scan("user: something else")
    assert texts(awake(book, scan=scan, values={"user": name})) == []


def test_player_name_in_a_regex_key_is_escaped():
    book = a_book(a_pattern("/^{{user}} pays/"))
    for name in ("Anna", "A. (the 2nd)", "a/b [c]"):
        scan = a_scan(f"user: {name} pays")
        assert texts(awake(book, scan=scan, values={"user": name})) == ["Some lore."]
    scan = a_scan("user: AX (the 2nd) pays")
    assert texts(awake(book, scan=scan, values={"user": "A. (the 2nd)"})) == []


def test_key_that_expands_to_nothing_is_never_found():
    book = a_book(an_entry(keys=["{{user}}"]))
    result = awake(book, scan=a_scan("user: anything"), values={"user": " "})
    assert reasons(result) == {"book#0": "- has no keys"}


def test_unknown_macro_in_a_key_is_searched_as_written():
    book = a_book(an_entry(keys=["{{nobody}}"]))
    assert texts(awake(book, scan=a_scan("user: {{nobody}}"))) == ["Some lore."]
    assert texts(awake(book, scan=a_scan("user: nobody"))) == []


def test_key_expanded_beyond_the_limit_is_never_found_with_a_reason():
    book = a_book(an_entry(keys=["{{user}}"]))
    name = "x" * (MAX_KEY + 1)
    result = awake(book, scan=a_scan(f"user: {name}"), values={"user": name})
    assert texts(result) == []
    assert an_index(book, values={"user": name}).entry_keys[0].primary == (NEVER,)
    told = f"key '{'x' * 40}...' has more than 1000 characters"
    assert reasons(result) == {"book#0": f"- no key in the newest 4 messages; {told}"}


def test_reason_names_a_regex_that_cannot_run():
    book = a_book(an_entry(keys=["/a{2,9999}/", "gate"], extensions=BY_FORM))
    [reason] = reasons(awake(book)).values()
    assert reason == (
        "- no key in the newest 4 messages; "
        "pattern '/a{2,9999}/' is not supported: a repetition count above 1,000"
    )
    assert texts(awake(book, scan=a_scan("user: gate"))) == ["Some lore."]


def test_invalid_regex_keeps_an_entry_with_use_regex_inactive():
    result = awake(a_book(a_pattern("coin", "(gate")))
    [reason] = reasons(result).values()
    assert reason.startswith("- pattern '(gate' ")


def test_invalid_regex_in_slashes_is_an_ordinary_key_without_use_regex():
    entry = an_entry(keys=["/co(in/"], extensions=BY_FORM)
    assert texts(awake(a_book(entry), scan=a_scan("user: /co(in/"))) == ["Some lore."]


def test_invalid_regex_of_one_entry_is_an_ordinary_key_of_another():
    by_form = an_entry(keys=["/co(in/"], extensions=BY_FORM)
    for entries in ([by_form, a_pattern("/co(in/")], [a_pattern("/co(in/"), by_form]):
        assert texts(awake(a_book(*entries), scan=a_scan("user: /co(in/"))) == ["Some lore."]


def test_additional_and_excluded_keys_are_in_the_index():
    book = a_book(an_entry("@@additional_keys {{char}}\n@@exclude_keys gate\nA."))
    found = [
        texts(awake(book, scan=a_scan(f"user: {said}"), values={"char": "Oren"}))
        for said in ("coin", "coin Oren", "coin Oren gate")
    ]
    assert found == [[], ["A."], []]
