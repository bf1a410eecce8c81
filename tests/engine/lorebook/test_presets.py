"""Tests of each point in which the presets differ: one book gives two results."""

from dataclasses import fields

import pytest

from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock
from evennia_ai.engine.lorebook.rules import PresetFlags, read_rules
from evennia_ai.formats.lorebooks.books import read_book
from tests.engine.lorebook.builders import DICE, WORDS, a_scan, a_world_entry

OURS, THEIRS = "evennia_ai", "sillytavern"


def an_app_entry(content="Some lore.", **more):
    """Make an entry of a world file, whose chance is in use."""
    return a_world_entry(content, useProbability=True, **more)


def found(preset, entries, *lines, rules=None, state=NO_STATE, clock=None, attach=None, limit=1000):
    """Run the activation of entries in a history of these lines.

    With `attach`, each entry gets a book of its own, attached to one of these kinds of things.
    """
    split = list(entries) if attach else None
    books = [
        read_book({"entries": [entry]}, label=place, attach=place)
        for entry, place in zip(split or (), attach or (), strict=True)
    ] or [read_book({"entries": {str(n): entry for n, entry in enumerate(entries)}}, label="book")]
    return activate_lore(
        books,
        a_scan(*(f"user: {line}" for line in lines)),
        rules=read_rules({"rules": preset, **(rules or {})}),
        limit_tokens=limit,
        counter=WORDS,
        values={},
        dice=DICE,
        state=state,
        clock=clock or Clock(messages=len(lines)),
    )


def active(*args, **options):
    return [entry.text for entry in found(*args, **options).entries]


def both(*args, **options):
    """Return the active texts with the preset `evennia_ai`, then with `sillytavern`."""
    return active(OURS, *args, **options), active(THEIRS, *args, **options)


def placed(preset, entries, *lines):
    """Return the active texts in the order in which the prompt has them."""
    entries = found(preset, entries, *lines).entries
    return [entry.text for entry in sorted(entries, key=lambda entry: entry.sort_key)]


def test_high_order_first_processes_high_orders_first():
    entries = [an_app_entry("low", order=1), an_app_entry("high", order=2)]
    assert both(entries, "coin") == (["low", "high"], ["high", "low"])


def test_ties_narrow_first_processes_narrow_books_first_at_equal_order():
    entries = [an_app_entry("wide"), an_app_entry("narrow")]
    options = {"attach": ["global", "character"], "rules": {"strategy": "evenly"}}
    assert both(entries, "coin", **options) == (["narrow", "wide"], ["wide", "narrow"])


def test_player_follows_chat_before_other_books_in_every_strategy():
    places = ["global", "character", "player", "chat"]
    entries = [an_app_entry(place, order=order) for order, place in enumerate(places)]
    for strategy in ("evenly", "character_first", "global_first"):
        options = {"attach": places, "rules": {"strategy": strategy}}
        theirs = active(THEIRS, entries, "coin", **options)
        assert theirs[:2] == ["chat", "player"]
    assert active(OURS, entries, "coin", **options) == ["chat", "global", "character", "player"]


def test_ties_reversed_places_equal_orders_in_reverse():
    entries = [an_app_entry("one"), an_app_entry("two")]
    assert placed(OURS, entries, "coin") == ["one", "two"]
    assert placed(THEIRS, entries, "coin") == ["two", "one"]


def test_ascii_words_counts_only_ascii_letters_as_words():
    entries = [an_app_entry("part of a word", key=["cole"]), an_app_entry("cut", key=["red coin"])]
    whole = {"match_whole_words": True}
    assert both(entries, "école, bored coins", rules=whole) == ([], ["part of a word", "cut"])


def test_one_text_lets_a_regex_match_across_messages():
    entries = [an_app_entry("over two", key=["/red.*coin/s"])]
    assert both(entries, "coin", "red") == ([], ["over two"])


def test_one_text_joins_messages_without_blanks_around_them():
    entries = [an_app_entry("at the end", key=["/coin$/"])]
    assert both(entries, "a coin \n") == ([], ["at the end"])


def test_patterns_by_form_reads_slashes_as_a_regex():
    entry = {"keys": ["/co+in/"], "content": "By form.", "use_regex": False, "extensions": {}}
    entry |= {"enabled": True, "insertion_order": 1}
    assert both([entry], "a coooin") == ([], ["By form."])


def test_blank_keys_match_any_text():
    entries = [an_app_entry("blank", key=[" "])]
    assert both(entries, "two words", rules={"match_whole_words": False}) == ([], ["blank"])


RECURSIVE = {"recursive": True, "max_recursion_steps": 0}


def test_depth_0_is_blind_to_texts_of_entries():
    entries = [an_app_entry("gold"), an_app_entry("fed", key=["gold"], scanDepth=0)]
    assert both(entries, "coin", rules=RECURSIVE) == (["gold", "fed"], ["gold"])


def test_widening_is_fresh_ignores_texts_of_entries():
    # After a widened pass, one entry needs two keys: one in a message and one in the text of an
    # entry.
    entries = [
        an_app_entry("gold"),
        an_app_entry("both", key=["old"], keysecondary=["gold"], selectiveLogic=3, selective=True),
    ]
    rules = {**RECURSIVE, "scan_depth": 1, "min_activations": 2, "min_activations_depth_max": 2}
    assert active(OURS, entries, "old", "coin", rules=rules) == ["gold", "both"]


def test_widens_beyond_reaches_one_message_more():
    entries = [an_app_entry("far")]
    rules = {"scan_depth": 1, "min_activations": 1, "min_activations_depth_max": 2}
    assert both(entries, "coin", "-", "-", rules=rules) == ([], ["far"])


def test_first_pass_counts_against_the_recursion_limit():
    entries = [an_app_entry("gold"), an_app_entry("fed", key=["gold"])]
    rules = {"recursive": True, "max_recursion_steps": 1}
    assert both(entries, "coin", rules=rules) == (["gold", "fed"], ["gold"])


def test_levels_are_walked_without_recursion():
    entries = [an_app_entry("one", delayUntilRecursion=1), an_app_entry("2", delayUntilRecursion=2)]
    ours, theirs = both(entries, "coin", rules=RECURSIVE)
    assert (ours, sorted(theirs)) == ([], ["2", "one"])


def test_losers_compete_in_their_other_groups():
    entries = [
        an_app_entry("a", group="g", order=3, groupOverride=True),
        an_app_entry("b", group="g,h", order=2, groupOverride=True),
        an_app_entry("c", group="h", order=1),
        an_app_entry("d", group="g", order=0),
    ]
    # `b` loses to `a` in group g. With `evennia_ai` it is out then; in SillyTavern it still beats
    # `c` in group h.
    assert both(entries, "coin") == (["c", "a"], ["a"])


def test_scores_as_written_counts_keys_with_their_blanks():
    entries = [
        an_app_entry("two", group="g", key=["coin   ", "gold   "]),
        an_app_entry("one", group="g", key=["coin"]),
    ]
    assert both(entries, "gold coin", rules={"group_scoring": True}) == (["two"], ["one"])


def test_served_by_whole_text_compares_the_whole_group_field():
    entries = [
        an_app_entry("gold", group="g,h"),
        an_app_entry("late", key=["gold"], group="g"),
    ]
    assert both(entries, "coin", rules=RECURSIVE) == (["gold"], ["gold", "late"])


def test_rest_ends_a_stay_of_a_sticky_group_member():
    entries = [
        an_app_entry("stays", group="g", sticky=5, cooldown=9),
        an_app_entry("other", group="g", key=["gold"]),
    ]
    for preset, kept in ((OURS, ["stays"]), (THEIRS, [])):
        first = found(preset, entries, "coin", rules={"clock": "messages"})
        clock = Clock(turns=2, messages=3)
        rules = {"clock": "messages", "dice": 0}
        later = active(preset, entries, "-", "gold", rules=rules, state=first.after, clock=clock)
        assert later == kept


def test_chance_is_inclusive_of_the_exact_roll():
    entries = [an_app_entry("half", probability=50)]
    assert both(entries, "coin", rules={"dice": 0.5}) == ([], ["half"])


def test_tiers_offers_constant_entries_room_first():
    entries = [an_app_entry("matched", order=9), an_app_entry("always", constant=True, order=1)]
    room = {"budget_tokens": 1, "overflow": "skip", "budget_percent": 100}
    assert active(OURS, entries, "coin", rules=room) == ["always"]
    assert active(THEIRS, entries, "coin", rules={**room, "budget_tokens": 2}) == ["matched"]


def test_budget_is_open_below_its_limit():
    entries = [an_app_entry("one two")]
    assert both(entries, "coin", rules={"budget_tokens": 2}) == (["one two"], [])


def test_counts_what_recursed_against_the_budget():
    entries = [
        an_app_entry("one two three gold", preventRecursion=False, order=9),
        an_app_entry("four five six", preventRecursion=True, order=8),
        an_app_entry("seven eight", key=["gold"], order=7),
    ]
    rules = {**RECURSIVE, "budget_tokens": 8, "overflow": "skip"}
    ours, theirs = both(entries, "coin", rules=rules)
    assert "seven eight" not in ours
    assert "seven eight" in theirs


def test_closed_budget_stays_closed_in_later_passes():
    entries = [
        an_app_entry("gold", order=9),
        an_app_entry("one two three four five six", order=8),
        an_app_entry("fed", key=["gold"], delayUntilRecursion=1),
    ]
    rules = {**RECURSIVE, "budget_tokens": 5, "overflow": "stop"}
    assert active(THEIRS, entries, "coin", rules=rules) == ["gold"]


def test_dry_run_leaves_out_an_entry_whose_delay_runs():
    assert both([an_app_entry(delay=5)], "coin", rules={"dry_run": True}) == ([], [])


def test_activate_in_any_case_ignores_timers():
    rests = an_app_entry("@@activate\nwaits", delay=5)
    assert both([rests], "-") == (["waits"], [])


def test_empty_is_active_without_text():
    assert both([an_app_entry("")], "coin") == ([], [""])


def test_rewinds_decides_if_a_timer_restarts_while_its_clock_stands_still():
    entries = [an_app_entry("stays", sticky=9)]
    for preset, kept in ((OURS, ["stays"]), (THEIRS, [])):
        rules = {"clock": "messages"}
        first = found(preset, entries, "-", "coin", rules=rules)
        again = active(preset, entries, "-", "-", rules=rules, state=first.after)
        assert again == kept


@pytest.mark.parametrize("flag", [field.name for field in fields(PresetFlags)])
def test_every_preset_flag_begins_the_name_of_a_test(flag):
    elsewhere = {"blank_notes_stay": "tests/conformance: it is about notes, which compose places"}
    assert any(name.startswith(f"test_{flag}_") for name in globals()) or flag in elsewhere
