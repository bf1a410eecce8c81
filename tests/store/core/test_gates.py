"""Test that every store function that writes on request checks an actor in its transaction.

The functions are read from the source. A new one must be in the table, and must reach a gate:
`changing`, `one_change`, or `Actor.check` itself.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import pytest

from tests.acceptance.games import ROOT

STORE: Final = ROOT / "evennia_ai" / "store"
OPENERS: Final = frozenset({"changing", "one_change"})
"""Functions that open a transaction and check an actor (`test_actors_in_the_store`)."""

GATED: Final[Mapping[str, str]] = {
    "authored/cards": "import_card save_card create_card edit_card set_greeting",
    "authored/components": "create update",
    "authored/contexts": "switch_off",
    "authored/life_cycle": "revert remove assign unassign approve reject grant revoke set_grants",
    "authored/lorebooks": "save_book set_book_locks set_entry_locks",
    "authored/notes": "set_note clear_notes",
    "authored/personas": "set_persona clear_persona erase_persona_text",
    "authored/presets": "import_preset switch",
    "authored/regex_scripts": "edit_preset_file save_script",
    "erasing": "erase_private erase_conversation erase_branches forget_person erase_persona"
    " erase_about forget_room",
    "history/branches": "open_branch open_branch_without_past",
    "history/control": "reset_conversation undo_exchanges take_back_answer correct_utterance",
    "history/transcripts": "import_lines",
    "history/windows": "reset_lore",
    "knowledge/knowledge_bases": "save_base set_restricted remove_base assign_base unassign_base"
    " hold_npc release_npc",
    "knowledge/knowledge_searches": "open_vault empty_vault",
    "knowledge/page_drafts": "decide_draft",
    "knowledge/page_imports": "import_pages import_folder",
    "knowledge/pages": "remove_page rename_page",
    "memories": "add_memory change_memory remove_memory merge_memories fade_memories",
    "model_calls": "add_halt remove_halt",
}
"""By module: the public functions that take an actor as `by` and check it."""

ASKED_ELSEWHERE: Final = frozenset(
    {
        *("core/authoring.write", "core/authoring.write_all"),
        *("authored/life_cycle.save", "authored/cards.save", "authored/life_cycle.check"),
        *("authored/life_cycle.import_file", "authored/life_cycle.approve_at_once"),
        *(
            f"authored/{kind}.check"
            for kind in ("components", "lorebooks", "notes", "regex_scripts")
        ),
        *("core/snapshots.changing", "core/snapshots.one_change"),
        "history/prompt_texts.erase_texts",
        *("knowledge/pages.write_all", "knowledge/pages.remove_all"),
        *("knowledge/page_rows.record_changes", "knowledge/page_rows.record_removal_of_all"),
        "knowledge/page_rows.refuse_locked_pages",
        "knowledge/knowledge_bases.refuse_locked",
        "memories.record_all",
    }
)
"""Parts of a change whose actor is checked elsewhere, and the gates themselves."""

IN_VALUES: Final = frozenset({"knowledge/pages.save_page", "history/chats.import_chat"})
"""Functions that get the actor inside another argument: `PageDraft.by`, `ChatSource.by`."""

OPENS_WITHOUT_REQUEST: Final = frozenset(
    {"knowledge/page_search.reindex_bases", "memories.settle_names"}
)
"""Functions with which the game itself changes authored things. The actor is `THE_GAME`."""


@cache
def functions() -> Mapping[str, ast.FunctionDef]:
    """Return the functions of the store by module and name, methods included."""
    found: dict[str, ast.FunctionDef] = {}
    for path in sorted(STORE.rglob("*.py")):
        module = path.relative_to(STORE).with_suffix("").as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                found[f"{module}.{node.name}"] = node
    return found


def with_actor() -> Iterator[str]:
    """Return the public functions of the store that have a parameter `by`."""
    for name, node in functions().items():
        is_public = not name.rpartition(".")[2].startswith("_")
        if is_public and any(one.arg == "by" for one in node.args.kwonlyargs):
            yield name


def calls_of(node: ast.FunctionDef) -> Iterator[ast.Call]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def is_gated(name: str, seen: frozenset[str] = frozenset()) -> bool:
    """True if the function opens a change with its actor, or passes it to one that does."""
    for call in calls_of(functions()[name]):
        gives = [one for one in call.keywords if one.arg == "by"]
        text = ast.unparse(call)
        if text.startswith("by.check(") or (gives and called(call) in OPENERS):
            return True
        nexts = (n for n in functions() if n.rpartition(".")[2] == called(call) and n not in seen)
        if gives and any(is_gated(one, seen | {name}) for one in nexts):
            return True
    return False


def listed() -> list[str]:
    return [f"{module}.{name}" for module, names in GATED.items() for name in names.split()]


def test_store_function_with_an_actor_is_in_the_table() -> None:
    assert sorted(set(with_actor()) - ASKED_ELSEWHERE) == sorted(listed())


@pytest.mark.parametrize("name", listed())
def test_store_function_checks_its_actor(name: str) -> None:
    (actor,) = (one for one in functions()[name].args.kwonlyargs if one.arg == "by")
    assert (ast.unparse(actor.annotation or actor), is_gated(name)) == ("Actor", True)


@pytest.mark.parametrize("name", sorted(IN_VALUES))
def test_store_function_checks_the_actor_of_its_value(name: str) -> None:
    opened = [ast.unparse(call) for call in calls_of(functions()[name]) if called(call) in OPENERS]
    assert any("by=draft.by" in one or "by=source.by" in one for one in opened)


WRITES: Final = frozenset(
    {
        *("create", "save", "delete", "bulk_create", "update_or_create", "get_or_create"),
        "update",
    }
)
AUTHORED: Final = ("authored/", "knowledge/")
OF_THE_GAME: Final[Mapping[str, str]] = {
    "authored/files.store_file": "a file; the change that names it asks",
    "authored/life_cycle.before_removal": "part of a removal, which asks",
    "knowledge/knowledge_bases.keep_locks_in_holds": "part of a removal, which asks",
    "knowledge/knowledge_bases.add_to_counts": "counts, part of a change of pages",
    "knowledge/knowledge_searches.begin_search": "an NPC's own search",
    "knowledge/knowledge_searches.end_search": "an NPC's own search",
    "knowledge/page_drafts.add_draft": "a draft only waits; who approves it is asked",
    "knowledge/page_drafts.begin_task": "a task of the lorekeeper",
    "knowledge/page_rows.newest_numbers": "updates a dictionary, writes nothing",
    "knowledge/page_vectors.keep_vectors": "vectors, made from pages",
}
"""Functions that write authored tables without an actor, with the reason."""


def test_store_function_that_writes_authored_things_takes_an_actor() -> None:
    asked = {*with_actor(), *IN_VALUES, *OPENS_WITHOUT_REQUEST}
    writing = {
        name
        for name, node in functions().items()
        if name.startswith(AUTHORED)
        and not name.rpartition(".")[2].startswith("_")
        and any(called(c) in WRITES and "objects" in ast.unparse(node) for c in calls_of(node))
    }
    assert sorted(writing - asked) == sorted(OF_THE_GAME)


def test_change_of_authored_things_names_who_makes_it() -> None:
    known = {*listed(), *IN_VALUES, *OPENS_WITHOUT_REQUEST}
    opening = {
        name
        for name, node in functions().items()
        if any(called(call) in OPENERS for call in calls_of(node))
    }
    private = {name for name in opening if name.rpartition(".")[2].startswith("_")}
    assert opening - private - ASKED_ELSEWHERE <= known
