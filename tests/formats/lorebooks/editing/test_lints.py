"""Lints of lorebooks: each reports one problem, and a book without problems has none."""

import json
from pathlib import Path

import pytest

from evennia_ai.engine.lorebook.rules import ActivationRules, read_rules
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.editing.lints import lint_book
from tests.effort import little_work
from tests.engine.lorebook.builders import WORDS, a_book, a_world_entry, an_entry

DEMO = Path(__file__).parents[4] / "world" / "demo"
SILLYTAVERN = read_rules({"rules": "sillytavern"})
PROSE = "Six boats went out before dawn and came home late with herring, rope and one sad dog."


def found(book, **options):
    """Return the findings on a lorebook as lines of the form `uid kind: text`."""
    return [f"{lint.uid} {lint.kind}: {lint.text}" for lint in lint_book(book, **options)]


def kinds(book, **options):
    return [(lint.uid, lint.kind) for lint in lint_book(book, **options)]


def a_world(*entries, **more):
    numbered = {str(n): {"uid": n, **entry} for n, entry in enumerate(entries)}
    return read_book({"entries": numbered, **more}, label="book")


def waiting(content="A tower.", level=1, **fields):
    """Return an entry with a delay level, which is active only after recursion."""
    return a_world_entry(content, delayUntilRecursion=level, **fields)


def test_empty_book_has_no_lints():
    assert lint_book(a_book()) == ()


@pytest.mark.parametrize("path", sorted(DEMO.glob("lorebooks/*.json")), ids=lambda path: path.name)
def test_demo_books_have_no_lints(path):
    assert found(read_book(json.loads(path.read_text(encoding="utf-8")))) == []


def test_disabled_entry_has_no_lints():
    assert lint_book(a_book(an_entry("", keys=[], enabled=False))) == ()


def test_entry_without_keys_that_is_not_constant_is_unreachable():
    [text] = found(a_book(an_entry(PROSE, keys=[])))
    assert text == (
        "0 unreachable: has no keys and is not constant, so nothing activates it; "
        "give it keys, make it constant, or disable it"
    )


@pytest.mark.parametrize("fields", [{"constant": True}, {"content": f"@@activate\n{PROSE}"}])
def test_entry_that_is_always_active_needs_no_keys(fields):
    assert lint_book(a_book(an_entry(**{"content": PROSE, "keys": [], **fields}))) == ()


def test_entry_with_blank_keys_is_unreachable():
    [text] = found(a_book(an_entry(PROSE, keys=["", "  "])))
    assert text.startswith("0 unreachable: has only blank keys")


def test_blank_key_is_too_common_under_sillytaverns_rules():
    [text] = found(a_world(a_world_entry(PROSE, key=[" "])), rules=SILLYTAVERN)
    assert text.startswith("0 common_key: a blank key is found in every text")


def test_entry_that_must_not_activate_is_unreachable():
    [text] = found(a_book(an_entry(f"@@dont_activate\n{PROSE}")))
    assert text.startswith("0 unreachable: is never active: @@dont_activate")


def test_refused_entry_is_reported_once_as_an_error():
    lints = lint_book(a_book(an_entry(PROSE), None, {"keys": ["a"], "content": 5}))
    assert [(str(lint), lint.is_error) for lint in lints] == [
        ("entry 1: is never active: must be an object", True),
        ("entry 2: is never active: content must be text", True),
    ]


def test_additional_keys_that_are_excluded_make_an_entry_unreachable():
    head = "@@additional_keys Rope, sail\n@@exclude_keys sail, rope, mast\n"
    [text] = found(a_book(an_entry(head + PROSE)))
    assert text.startswith(
        "0 unreachable: @@exclude_keys has all keys of a line of @@additional_keys"
    )


def test_keys_that_are_all_excluded_make_an_entry_unreachable():
    [text] = found(a_book(an_entry(f"@@exclude_keys coin, purse\n{PROSE}", keys=["Coin", "purse"])))
    assert text.startswith("0 unreachable: @@exclude_keys has all keys of the entry")


def test_secondary_keys_that_exclude_every_key_make_an_entry_unreachable():
    entry = a_world_entry(PROSE, keysecondary=["coin"], selective=True, selectiveLogic=2)
    [text] = found(a_world(entry))
    assert text.startswith("0 unreachable: its secondary keys (NOT ANY) have all keys of the entry")


def test_ignored_secondary_keys_are_reported():
    entry = a_world_entry(PROSE, keysecondary=["purse"], selective=False)
    assert kinds(a_world(entry)) == [("0", "secondary")]


def test_delay_level_of_an_entry_excluded_from_recursion_is_reported():
    book = a_world(a_world_entry(PROSE), waiting(excludeRecursion=True))
    [text] = found(book)
    assert text == (
        "1 recursion: has delay level 1 and is excluded from recursion, "
        "so it is never active; remove one of the two"
    )


def test_delay_level_without_recursion_is_reported():
    book = a_world(a_world_entry("A coin buys a tower."), waiting(key=["tower"]))
    [text] = found(book, rules=ActivationRules(recursive=False))
    assert text.startswith("1 level: has delay level 1, and recursion is off for this book")
    assert lint_book(book) == ()


def test_recursion_flag_of_a_book_wins_over_the_rules():
    entries = (an_entry("A coin buys a tower."), an_entry("T.", keys=["tower"]))
    entries[1]["extensions"] = {"delay_until_recursion": 1}
    assert kinds(a_book(*entries, recursive_scanning=False)) == [("1", "level")]


def test_delay_level_is_reported_when_recursion_searches_no_other_text():
    book = a_world(a_world_entry("A tower.", preventRecursion=True), waiting(key=["tower"]))
    [text] = found(book)
    assert text.startswith(
        "1 level: has delay level 1, and recursion searches no text of another entry"
    )


def test_delay_level_is_reported_when_the_only_other_entry_is_disabled():
    book = a_world(a_world_entry("A tower.", disable=True), waiting(key=["tower"]))
    assert kinds(book) == [("1", "level")]


def test_delay_level_is_reported_when_no_other_text_has_a_key():
    book = a_world(a_world_entry(PROSE), waiting("The tower fell.", key=["tower"]))
    [text] = found(book)
    assert text.startswith("1 level: has delay level 1, and no other entry's text has")


def test_delay_level_beyond_max_recursion_steps_is_never_reached():
    levels = (waiting(f"A tower {n}.", level=n * 10, key=["tower"]) for n in (1, 2, 3, 4))
    book = a_world(a_world_entry("A tower."), *levels)
    [text] = [text for text in found(book) if "level:" in text]
    assert text.startswith(
        "4 level: delay level 40 is number 4 of the book's levels, and recursion"
    )
    assert "level" not in {
        kind for _, kind in kinds(book, rules=ActivationRules(max_recursion_steps=4))
    }


def test_entry_with_scan_depth_0_is_activated_only_by_texts_of_entries():
    tower = a_world_entry("Tall.", key=["tower"], scanDepth=0)
    [text] = found(a_world(a_world_entry("A tower."), tower))
    assert text.startswith(
        "1 scan_depth: has scan depth 0: only texts of other entries activate it"
    )


def test_entry_with_scan_depth_0_is_unreachable_when_no_text_has_its_key():
    tower = a_world_entry("Tall.", key=["tower"], scanDepth=0)
    [text] = found(a_world(a_world_entry(PROSE), tower))
    assert text.startswith("1 scan_depth: has scan depth 0 and no other entry's text has one")


@pytest.mark.parametrize("rules", [SILLYTAVERN, ActivationRules(recursive=False)])
def test_entry_with_scan_depth_0_is_unreachable_without_recursion(rules):
    tower = a_world_entry("Tall.", key=["tower"], scanDepth=0)
    assert kinds(a_world(a_world_entry("A tower."), tower), rules=rules) == [("1", "unreachable")]


@pytest.mark.parametrize("key", ["a", "no", "Ё"])
def test_key_of_one_or_two_letters_is_too_common(key):
    assert kinds(a_book(an_entry(PROSE, keys=[key]))) == [("0", "common_key")]


def test_word_of_everyday_talk_is_too_common_unless_secondary_keys_narrow_it():
    [text] = found(a_book(an_entry(PROSE, keys=["Letter", "to pay"])))
    assert text.startswith("0 common_key: key 'Letter' is a word of everyday talk: it will")
    narrow = {"secondary_keys": ["ferry"], "selective": True}
    assert lint_book(a_book(an_entry(PROSE, keys=["letter"], **narrow))) == ()


def test_entry_with_scan_depth_0_is_reachable_with_min_activations():
    rules = ActivationRules(scan_depth=0, min_activations=1)
    assert lint_book(a_book(an_entry(PROSE)), rules=rules) == ()


def test_short_key_in_a_script_without_blanks_is_not_too_common():
    assert lint_book(a_book(an_entry(PROSE, keys=["龙"]))) == ()


def test_key_in_many_other_entries_is_too_common():
    others = [an_entry(f"{n} {PROSE} Herring!", keys=[f"port{n}"]) for n in range(10)]
    [text] = found(a_book(an_entry("Fish.", keys=["dog", "shark"]), *others))
    assert text == (
        "0 common_key: key 'dog' is in 10 of the 10 other entries: "
        "it will activate the entry most of the time; use a longer or rarer key"
    )


def test_entrys_own_text_does_not_make_its_key_common():
    own = [an_entry(f"Port{n} port{n}, {n * n} sails.", keys=[f"port{n}"]) for n in range(10)]
    assert lint_book(a_book(*own)) == ()


def test_key_that_is_one_of_the_books_most_frequent_words_is_too_common():
    book = a_book(an_entry(f"The dog, the rope, the boat, the sea. {PROSE * 2}", keys=["the"]))
    assert kinds(book) == [("0", "common_key")]


def test_constant_entry_may_have_common_keys():
    assert lint_book(a_book(an_entry(PROSE, keys=["a"], constant=True))) == ()


def test_entries_with_the_same_keys_and_text_are_reported_as_duplicates():
    book = a_book(an_entry(PROSE, keys=["rope", "Coin"]), an_entry(PROSE, keys=["coin ", "rope"]))
    assert found(book) == ["1 double: has the keys and the text of entry 0; remove one of them"]


def test_constant_entries_over_the_budget_are_reported():
    entries = [an_entry("one two three four", constant=True, keys=[f"key{n}"]) for n in range(3)]
    [text] = found(a_book(*entries, token_budget=10), counter=WORDS)
    assert text.startswith(" budget: its constant entries have 12 tokens and its budget is 10")


def test_book_larger_than_its_budget_is_reported():
    entries = [an_entry(f"one two three {n}", keys=[f"key{n}"]) for n in range(3)]
    book = a_book(*entries)
    for options in (
        {"rules": ActivationRules(budget_tokens=10)},
        {"rules": ActivationRules(budget_percent=10), "limit_tokens": 100},
    ):
        [text] = found(book, counter=WORDS, **options)
        assert text.startswith(" budget: its entries have 12 tokens and its budget is 10")
    assert lint_book(book, counter=WORDS, limit_tokens=100) == ()


def test_entry_larger_than_the_whole_budget_is_reported_as_never_fitting():
    book = a_book(an_entry("one two three"), token_budget=2)
    assert kinds(book, counter=WORDS) == [("", "budget"), ("0", "budget")]


def test_notices_on_reading_a_book_are_lint_findings():
    [text] = found(a_book(an_entry(f"@@wake_me_up\n{PROSE}")))
    assert text.startswith(" notice: entry 0: @@wake_me_up is unknown")


def test_invalid_regex_is_reported_with_the_reason():
    [text] = found(a_world(a_world_entry(PROSE, key=["coin", "/co(in/i"])))
    assert text.startswith("0 regex: key '/co(in/i' is not a regular expression: ")
    assert text.endswith("; it is searched as plain text: fix it")


def test_unsupported_regex_is_reported_with_the_reason():
    [unreachable, text] = found(a_book(an_entry(PROSE, keys=["a{1,99999}"], use_regex=True)))
    assert unreachable.startswith("0 unreachable: none of its keys can be found")
    assert text.startswith("0 regex: key 'a{1,99999}' is not supported: ")
    assert text.endswith("; it is never found: write it in another way")


def test_too_long_key_is_reported():
    [text] = found(a_book(an_entry(PROSE, keys=["coin", "x" * 1001])))
    assert text.startswith(" notice: entry 0: a key of more than 1000 characters")


def test_group_of_one_entry_and_group_weight_0_are_reported():
    book = a_world(
        a_world_entry("One.", group="weather"),
        a_world_entry("Two.", group="guards"),
        a_world_entry("Three.", group="guards", groupWeight=0),
    )
    assert found(book) == [
        (
            "0 group: is the only one in group 'weather'; a group has an effect only with two or"
            " more entries"
        ),
        "2 weight: has group weight 0, so it never wins against others; give it a weight",
    ]


def test_chance_of_0_is_reported():
    book = a_world(a_world_entry(PROSE, probability=0, useProbability=True))
    assert kinds(book) == [("0", "chance")]
    assert lint_book(a_world(a_world_entry(PROSE, probability=0, useProbability=False))) == ()


def test_duration_without_effect_is_reported():
    book = a_world(
        a_world_entry("One.", sticky=1),
        a_world_entry("Two.", cooldown=1),
        a_world_entry("Three.", sticky=2, cooldown=1),
    )
    over = "is over before the NPC speaks again; use 2 or more"
    assert found(book) == [
        f"0 timing: sticky 1 on the clock of turns {over}",
        f"1 timing: cooldown 1 on the clock of turns {over}",
    ]
    messages = ActivationRules(clock="messages")
    assert kinds(book, rules=messages) == [("0", "timing"), ("1", "timing"), ("2", "timing")]


def test_unused_outlet_is_reported_once():
    entries = [a_world_entry(f"{n}.", position=7, outletName="tides") for n in range(3)]
    [text] = found(a_world(*entries))
    assert text.startswith("0 outlet: is in the outlet 'tides', which no component here shows")
    assert lint_book(a_world(*entries), outlets=["tides"]) == ()


def test_entry_without_content_is_reported():
    assert kinds(a_book(an_entry("@@depth 2\n "))) == [("0", "content")]


def test_every_finding_on_any_book_is_one_line():
    nasty = "x\n\x1b[31m|r" * 50
    book = a_world(
        a_world_entry(nasty, key=["a\x1b", nasty, f"/({nasty}/"], group=nasty, uid=nasty),
        a_world_entry("", key=[nasty], position=7, outletName=nasty, delayUntilRecursion=7),
    )
    for lint in lint_book(book):
        assert (lint.uid + lint.text).isprintable()
        assert len(lint.text) < 600


@pytest.mark.long
def test_ten_thousand_entries_are_linted_with_bounded_work():
    words = [f"{a}{b}{c}or" for a in "bdfgklmnpr" for b in "aeiou" for c in "bdfgklmnpr"]
    entries = [
        an_entry(" ".join(words[(n * 7 + k * 13) % 500] for k in range(60)), keys=[words[n % 500]])
        for n in range(10_000)
    ]
    with little_work(20):
        assert {kind for _, kind in kinds(a_book(*entries))} <= {"double", "common_key"}


def test_unknown_macro_is_reported_as_written():
    text = f"{PROSE} {{{{summary}}}} {{{{getvar::mood}}}} {{{{char}}}}"
    book = a_book(an_entry(text, keys=["herring boats"]))
    assert found(book) == ["0 macro: {{summary}} is an unknown macro and is sent as written"]
