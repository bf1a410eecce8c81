"""Tests of lore features: one for each row of docs/build/lorebook.md that needs a test."""

import pytest

from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.components import NO_GRANTS
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import event_message
from tests.engine.lorebook.builders import (
    DICE,
    WORDS,
    a_book,
    a_scan,
    an_entry,
    awake,
    reasons,
    texts,
)


def an_app_entry(content="Some lore.", **extensions):
    """Make a V3 entry with fields that SillyTavern writes as extensions."""
    fields = {name: extensions.pop(name) for name in ("keys", "constant") if name in extensions}
    return an_entry(content, extensions=extensions, **fields)


def our_entry(content="Some lore.", *, keys=("coin",), **own):
    """Make a V3 entry with data in `extensions.evennia_ai`."""
    return an_entry(content, keys=list(keys), extensions={"evennia_ai": own})


def turn(book, text, *, state=NO_STATE, rules=None, facts=None, sources=None, **clock):
    """Run the activation of a book in a turn in which Anna says this text."""
    return activate_lore(
        [book],
        Scan(history=History(), event=event_message(text, name="Anna"), sources=sources or {}),
        rules=rules or ActivationRules(),
        limit_tokens=1000,
        counter=WORDS,
        values={"char": "Oren", "user": "Anna"},
        dice=DICE,
        state=state,
        clock=Clock(**clock),
        facts=facts or {},
    )


def over_turns(book, lines, **options):
    """Return the active texts of several turns. In each turn Anna says one line."""
    state, said = NO_STATE, []
    for number, line in enumerate(lines, 1):
        result = turn(book, line, state=state, turns=number, messages=2 * number - 1, **options)
        state = result.after
        said.append(texts(result))
    return said


def test_keys_are_words_phrases_patterns_and_macros():
    book = a_book(
        an_entry("Word.", keys=["toll"]),
        an_entry("Phrase.", keys=["night ferry"]),
        an_entry("Pattern.", keys=["/ferr(y|ies)/i"], use_regex=True),
        an_entry("Macro.", keys=["{{user}}"]),
        an_entry("Silent.", keys=["ferr"]),
    )
    found = texts(turn(book, "The toll of the night ferry?"))
    assert found == ["Word.", "Phrase.", "Pattern.", "Macro."]


@pytest.mark.parametrize(
    ("logic", "line", "wakes"),
    [
        (0, "coin gold", True),
        (0, "coin", False),
        (1, "coin gold", True),
        (1, "coin gold silver", False),
        (2, "coin", True),
        (2, "coin gold", False),
        (3, "coin gold silver", True),
        (3, "coin gold", False),
    ],
    ids=str,
)
def test_secondary_keys_decide_by_four_logics(logic, line, wakes):
    entry = an_app_entry(selectiveLogic=logic, position=0)
    book = a_book({**entry, "selective": True, "secondary_keys": ["gold", "silver"]})
    assert bool(texts(turn(book, line))) is wakes


def test_entry_chooses_case_and_whole_words():
    entries = [
        an_app_entry("Any.", match_whole_words=False, keys=["OIN"]),
        an_app_entry("As written.", case_sensitive=True, keys=["Coin"]),
    ]
    assert texts(turn(a_book(*entries), "coins")) == ["Any."]
    assert texts(turn(a_book(*entries), "a Coin")) == ["Any.", "As written."]


def test_scan_depth_is_set_by_rules_book_or_entry():
    scan = a_scan("user: coin", "user: -", "user: -")
    deep = an_entry("@@scan_depth 3\nDeep.")
    assert texts(awake(a_book(an_entry(), deep, scan_depth=2), scan=scan)) == ["Deep."]
    assert texts(awake(a_book(an_entry(), scan_depth=3), scan=scan)) == ["Some lore."]
    assert texts(awake(a_book(an_entry()), scan=scan, rules=ActivationRules(scan_depth=2))) == []


def test_speaker_is_a_condition_and_speakers_names_are_scanned():
    book = a_book(our_entry("For players.", speakers=["player"]), an_entry("Anna.", keys=["Anna"]))
    assert texts(turn(book, "a coin", facts={"speaker.kind": "npc"})) == ["Anna."]
    both = texts(turn(book, "a coin", facts={"speaker.kind": "player"}))
    assert both == ["For players.", "Anna."]


def test_entry_may_search_texts_of_the_card_and_the_room():
    book = a_book(our_entry("Grey.", keys=["fog"], sources=["room"]), an_entry("No.", keys=["fog"]))
    result = turn(book, "hello", sources={"room": "A quay in the fog.", "persona": "fog"})
    assert texts(result) == ["Grey."]
    assert "room" in reasons(result)["book#0"]


def test_a_constant_entry_is_always_active():
    assert texts(turn(a_book(an_entry(keys=[], constant=True)), "hello")) == ["Some lore."]


@pytest.mark.parametrize(
    ("number", "position"),
    [
        *((0, "before"), (1, "after"), (2, "note_top"), (3, "note_bottom"), (4, "depth")),
        *((5, "examples_before"), (6, "examples_after"), (7, "outlet")),
    ],
)
def test_entry_is_placed_at_its_position(number, position):
    book = a_book(an_app_entry(position=number, depth=2, role=1, outlet_name="tides"))
    [entry] = turn(book, "coin").entries
    assert entry.position == position
    if position == "depth":
        assert (entry.depth, entry.role) == (2, "user")
    if position == "outlet":
        assert entry.outlet == "tides"


def test_entry_may_be_placed_next_to_a_component():
    book = a_book(our_entry(anchor={"component": "goals", "side": "before"}))
    [entry] = turn(book, "coin").entries
    assert entry.anchor is not None
    assert (entry.anchor.component, entry.anchor.side) == ("goals", "before")


def test_order_and_priority_are_separate():
    book = a_book(
        an_entry("two three", insertion_order=9, priority=1),
        an_entry("one", insertion_order=3, priority=5),
    )
    assert texts(turn(book, "coin")) == ["one", "two three"]
    few = ActivationRules(budget_tokens=2)
    assert texts(turn(book, "coin", rules=few)) == ["one"]


def test_lore_budget_is_set_by_percentage_cap_and_book():
    entries = [an_entry(f"one two three {n}", keys=["coin"]) for n in range(9)]
    assert len(awake(a_book(*entries), limit_tokens=64).entries) == 4
    capped = ActivationRules(budget_tokens=8)
    assert len(awake(a_book(*entries), rules=capped, limit_tokens=64).entries) == 2
    assert len(awake(a_book(*entries, token_budget=4), limit_tokens=64).entries) == 1


def test_entry_ignores_the_budget_only_in_a_book_with_the_grant():
    entry = an_app_entry("one two three", ignore_budget=True)
    none_left = ActivationRules(budget_tokens=0)
    assert texts(turn(a_book(entry), "coin", rules=none_left)) == ["one two three"]
    assert texts(turn(a_book(entry, grants=NO_GRANTS), "coin", rules=none_left)) == []


def test_each_of_several_speakers_has_a_share_of_the_budget():
    book = a_book(*(an_entry(f"one two three {n}", keys=[f"key{n}"]) for n in range(6)))
    scan = a_scan("user Ben: key5", event="Anna: key0 key1 key2 key3 key4")
    shared = ActivationRules(budget_percent=100, budget_tokens=24, speaker_share_percent=50)
    found = awake(book, scan=scan, rules=shared)
    assert [entry.uid for entry in found.entries] == ["0", "1", "2", "5"]
    counted = ActivationRules(budget_percent=100, speaker_matches=2)
    found = awake(book, scan=scan, rules=counted)
    assert [entry.uid for entry in found.entries] == ["0", "1", "5"]
    assert "Anna" in reasons(found)["book#3"]


def test_entry_that_does_not_fit_is_skipped_or_closes_the_budget():
    book = a_book(an_entry("one two three", priority=9), an_entry("one", priority=1))
    skip, stop = (ActivationRules(budget_tokens=2, overflow=how) for how in ("skip", "stop"))
    assert texts(turn(book, "coin", rules=skip)) == ["one"]
    assert texts(turn(book, "coin", rules=stop)) == []
    over = "over the lore budget: needs 3 tokens, 2 were left"
    assert over in reasons(turn(book, "coin", rules=skip))["book#0"]


def test_chance_is_rolled_once_a_turn():
    book = a_book(an_app_entry(probability=40))
    for dice, wakes in ((0.39, True), (0.41, False)):
        result = turn(book, "coin", rules=ActivationRules(dice=dice))
        assert bool(result.entries) is wakes
        assert f"rolled {dice * 100:.1f} with a chance of 40 %" in reasons(result)["book#0"]
    assert turn(book, "coin").verdicts == turn(book, "coin").verdicts


def test_one_member_of_a_group_wins_by_weight_preference_or_score():
    weighed = a_book(
        an_app_entry("Rain.", group="weather", group_weight=30),
        an_app_entry("Sun.", group="weather", group_weight=70),
    )
    for dice, winner in ((0.2, "Rain."), (0.9, "Sun.")):
        assert texts(turn(weighed, "coin", rules=ActivationRules(dice=dice))) == [winner]
    preferred = a_book(
        an_app_entry("Rain.", group="weather"),
        an_app_entry("Sun.", group="weather", group_override=True),
    )
    assert texts(turn(preferred, "coin", rules=ActivationRules(dice=0))) == ["Sun."]
    scored = a_book(
        an_app_entry("Rain.", group="weather", keys=["coin"]),
        an_app_entry("Sun.", group="weather", keys=["coin", "gold"]),
    )
    rules = ActivationRules(dice=0, group_scoring=True)
    assert texts(turn(scored, "coin gold", rules=rules)) == ["Sun."]


def test_group_may_have_a_cooldown():
    entries = [our_entry("Rain.", group_cooldown=2), our_entry("Sun.", keys=["gold"])]
    for entry in entries:
        entry["extensions"]["group"] = "weather"
    assert over_turns(a_book(*entries), ["coin", "gold", "gold"]) == [["Rain."], [], ["Sun."]]


def test_sticky_entry_stays_then_has_its_cooldown_then_returns():
    book = a_book(an_app_entry(sticky=2, cooldown=2))
    lines = ["coin", "-", "coin", "coin", "coin"]
    active = [bool(found) for found in over_turns(book, lines)]
    assert active == [True, True, False, False, True]


def test_delayed_entry_is_inactive_until_its_time():
    book = a_book(an_app_entry(delay=3))
    assert over_turns(book, ["coin"] * 4) == [[], [], ["Some lore."], ["Some lore."]]


def test_timers_count_turns_messages_or_seconds():
    entry = our_entry(clock="seconds")
    entry["extensions"]["delay"] = 60
    assert texts(turn(a_book(entry), "coin", turns=99, messages=99, seconds=59)) == []
    assert texts(turn(a_book(entry), "coin", seconds=60)) == ["Some lore."]


@pytest.mark.parametrize(
    ("decorator", "active"),
    [
        ("keep_activate_after_match", [True, True, True]),
        ("dont_activate_after_match", [True, False, False]),
    ],
)
def test_entry_may_be_active_always_or_never_after_its_first_match(decorator, active):
    book = a_book(an_entry(f"@@{decorator}\nLore."))
    lines = ["coin", "-" if active[1] else "coin", "coin"]
    assert [bool(found) for found in over_turns(book, lines)] == active


def test_scan_is_widened_until_enough_entries_are_active():
    scan = a_scan("user: gold", "user: coin", "user: -")
    book = a_book(an_entry("C."), an_entry("G.", keys=["gold"]))
    rules = ActivationRules(scan_depth=1, min_activations=1)
    assert texts(awake(book, scan=scan, rules=rules)) == ["C."]
    limited = ActivationRules(scan_depth=1, min_activations=2, min_activations_depth_max=2)
    assert texts(awake(book, scan=scan, rules=limited)) == ["C."]


def test_recursion_has_at_most_three_passes():
    chain = [an_entry(f"key{n + 1}", keys=[f"key{n}"]) for n in range(6)]
    result = turn(a_book(*chain), "key0")
    assert texts(result) == ["key1", "key2", "key3", "key4"]
    assert "book#0" in reasons(result)["book#1"]
    assert len(turn(a_book(*chain, recursive_scanning=False), "key0").entries) == 1


def test_entry_may_be_excluded_from_recursion_or_delayed_until_it():
    book = a_book(
        an_entry("gold silver"),
        an_app_entry("Excluded.", keys=["gold"], exclude_recursion=True),
        an_app_entry("Waits.", keys=["coin"], delay_until_recursion=1),
        an_app_entry("lead", keys=["silver"], prevent_recursion=True),
        an_entry("Never.", keys=["lead"]),
    )
    assert texts(turn(book, "coin")) == ["gold silver", "Waits.", "lead"]


def test_recursion_of_entries_that_activate_each_other_ends():
    book = a_book(an_entry("gold"), an_entry("coin", keys=["gold"]))
    rules = ActivationRules(max_recursion_steps=0)
    assert texts(turn(book, "coin", rules=rules)) == ["gold", "coin"]


@pytest.mark.parametrize(
    ("own", "fact"),
    [
        ({"npcs": ["Oren"]}, {"npc.key": "Oren"}),
        ({"tags": ["guard"]}, {"npc.tags": ("guard", "smith")}),
        ({"zones": ["harbour"]}, {"room.zones": ("harbour",)}),
        ({"events": ["whisper"]}, {"event.kind": "whisper"}),
        ({"speakers": ["!npc"]}, {"speaker.kind": "player"}),
    ],
    ids=str,
)
def test_entry_may_be_filtered_by_npc_place_event_and_speaker(own, fact):
    book = a_book(our_entry(**own))
    assert texts(turn(book, "coin", facts=fact)) == ["Some lore."]
    [name] = fact
    other = {name: "npc"} if own == {"speakers": ["!npc"]} else {name: "nobody"}
    result = turn(book, "coin", facts=other)
    assert texts(result) == []
    assert name in reasons(result)["book#0"]


def test_entry_may_have_conditions_on_facts():
    question = {"fact": "tide", "test": "at_least", "values": [3]}
    book = a_book(our_entry("High water.", when=[question]))
    assert texts(turn(book, "coin", facts={"tide": 3})) == ["High water."]
    assert texts(turn(book, "coin", facts={"tide": 2})) == []
    assert texts(turn(book, "coin")) == []


def test_books_are_read_by_attachment_from_chat_to_game():
    books = [
        a_book(an_entry(attach), label=attach, attach=attach)
        for attach in ("global", "zone", "room", "character", "player", "chat")
    ]
    assert texts(awake(*books)) == ["chat", "player", "character", "room", "zone", "global"]
    wide_first = ActivationRules(strategy="global_first")
    found = texts(awake(*books, rules=wide_first))
    assert (found[0], found[1], found[-1]) == ("chat", "global", "player")


def test_constant_entries_are_offered_room_before_matched_ones():
    book = a_book(
        an_entry("one two three", priority=99),
        an_entry("one two", keys=[], constant=True, priority=1),
    )
    assert texts(turn(book, "coin", rules=ActivationRules(budget_tokens=4))) == ["one two"]


@pytest.mark.parametrize("rules", ["evennia_ai", "sillytavern"])
@pytest.mark.parametrize("sensitive", [True, False])
@pytest.mark.parametrize(
    ("key", "line", "spoken"),
    [
        ("café", "At the cafe\u0301?", "cafe\u0301"),
        ("miller's wife", "The miller\u2019s wife?", "miller\u2019s wife"),
        ("night\u2013ferry", "The night-ferry?", "night-ferry"),
        ("lantern", "Not the __lantern__!", "lantern"),
        ("__lantern__", "Not the lantern!", "lantern"),
        ("snake_case", "A snake_case, then.", "snake_case"),
        ("{{user}}'s lantern", "Zoe\u0308\u2019s lantern!", "Zoe\u0308\u2019s lantern"),
    ],
)
def test_keys_match_in_normal_form_and_spans_are_of_the_written_text(
    rules, sensitive, key, line, spoken
):
    result = awake(
        a_book(an_entry("Lore.", keys=[key])),
        scan=a_scan(f"user: {line}"),
        rules=ActivationRules(rules=rules, case_sensitive=sensitive),
        values={"user": "Zo\u00eb"},
    )
    begin = line.index(spoken)
    assert texts(result) == ["Lore."]
    assert f"at {begin}-{begin + len(spoken)}" in str(reasons(result))
