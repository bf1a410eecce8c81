"""Lore entries with fields and decorators: positions, gates and limits, in both formats."""

import pytest

from evennia_ai.engine.lorebook.entry import NO_GATES, Anchor, LoreEntry
from evennia_ai.engine.prompt.components import MAX_DEPTH
from tests.engine.lorebook.builders import a_book, a_world_entry, an_entry


def read(content: str, **fields: object) -> LoreEntry:
    [entry] = a_book(an_entry(content, **fields), absent={}).entries
    return entry


def test_entry_without_decorators_has_no_gates():
    assert read("Lore.").gates is NO_GATES


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("@@activate", "forced", True),
        ("@@dont_activate", "forbidden", True),
        ("@@is_greeting 2", "greeting", 2),
        ("@@activate_only_after 3", "replies_from", 3),
        ("@@activate_only_every 4", "every_replies", 4),
        ("@@exclude_keys sea, moon", "excluded", ("sea", "moon")),
        ("@@additional_keys sea\n@@additional_keys moon", "additional", (("sea",), ("moon",))),
        ("@@is_user_icon red cap", "user_icon", "red cap"),
        ("@@keep_activate_after_match", "kept_after_match", True),
        ("@@dont_activate_after_match", "never_after_match", True),
    ],
)
def test_decorator_becomes_a_gate(line, name, value):
    assert getattr(read(f"{line}\nLore.").gates, name) == value


@pytest.mark.parametrize(
    ("place", "position", "anchor"),
    [
        ("before_desc", "before", Anchor(component="char_description", side="before")),
        ("after_desc", "after", Anchor(component="char_description", side="after")),
        ("personality", "anchor", Anchor(component="char_personality", side="after")),
        ("scenario", "anchor", Anchor(component="scenario", side="after")),
    ],
)
def test_position_decorator_wins_over_the_field(place, position, anchor):
    entry = read(f"@@position {place}\nLore.", extensions={"position": 4})
    assert (entry.position, entry.anchor, entry.depth) == (position, anchor, None)


@pytest.mark.parametrize(
    ("line", "depth", "from_oldest"),
    [
        ("@@depth 2", 2, False),
        ("@@depth -2", 0, False),
        ("@@depth 99999999999999999999999", MAX_DEPTH, False),
        ("@@reverse_depth 1", 1, True),
    ],
)
def test_depth_decorator_wins_over_the_field_and_is_clamped(line, depth, from_oldest):
    entry = read(f"{line}\nLore.", extensions={"position": 1})
    assert (entry.position, entry.depth, entry.from_oldest) == ("depth", depth, from_oldest)


def test_role_scan_depth_and_budget_rank_are_read_from_decorators():
    entry = read("@@role user\n@@scan_depth 9\n@@ignore_on_max_context\nLore.")
    assert (entry.role, entry.scan_depth, entry.first_to_go) == ("user", 9, True)
    assert entry.template.source == "Lore."


def test_decorators_are_read_in_entries_of_world_files():
    [entry] = a_book(a_world_entry("@@depth 3\n@@activate\nLore.", position=1)).entries
    assert (entry.position, entry.depth, entry.gates.forced) == ("depth", 3, True)


def test_too_long_key_gives_a_notice_and_never_matches():
    long = "k" * 1001
    book = a_book(an_entry(keys=["coin", long], selective=True, secondary_keys=[long]))
    assert book.entries[0].keys == ("coin", "")
    assert book.entries[0].secondary_keys == ("",)
    assert book.notices == (
        "entry 0: a key of more than 1000 characters: it never matches",
        "entry 0: a secondary key of more than 1000 characters: it never matches",
    )


def test_long_regex_key_is_not_shortened():
    pattern = "/" + "k" * 1001 + "/"
    book = a_book(a_world_entry(key=[pattern]))
    assert (book.entries[0].keys, book.notices) == ((pattern,), ())


def test_first_keys_of_an_entry_are_used_when_there_are_too_many():
    book = a_book(an_entry(keys=[f"k{n}" for n in range(1001)]))
    assert book.entries[0].keys[-1] == "k999"
    assert len(book.entries[0].keys) == 1000
    assert book.notices == ("entry 0: has 1001 keys: only the first 1000 are used",)


def test_fallback_decorator_is_used_when_the_users_icon_is_unknown():
    book = a_book(an_entry("@@is_user_icon red cap\n@@@depth 2\nLore."))
    [entry] = book.entries
    assert (entry.gates, entry.depth) == (NO_GATES, 2)
    assert "is_user_icon needs the user's icon" in book.notices[0]
