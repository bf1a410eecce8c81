"""`lore/import` and `lore/export`: books as files in the game's card folder."""

import json

import pytest
from django.test import override_settings

from evennia_ai.engine.actors import trusted
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.store.authored import lorebooks as store
from tests.commands.stage import one_line
from tests.modes import is_open_to_others

WORLD = {
    "entries": {
        "0": {
            "uid": 0,
            "key": ["ferry"],
            "keysecondary": [],
            "comment": "the ferry",
            "content": "It sails at dusk.",
            "constant": False,
            "selective": True,
            "order": 50,
            "position": 4,
            "depth": 2,
            "disable": False,
            "unknown": {"kept": [1, None]},
        }
    }
}
BAD_FILES = {
    "broken.json": (b"{", "JSON"),
    "list.json": (b"[]", "must be an object"),
    "nan.json": (b'{"entries": [], "a": NaN}', "NaN"),
    "empty.json": (b"", "JSON"),
    "latin.json": (b'{"name": "\xe9", "entries": []}', "UTF-8"),
    "card.json": (b'{"spec": "chara_card_v2", "data": {}}', "this is a character card"),
    "theme.json": (b'{"blur_strength": 1, "main_text_color": ""}', "this is a SillyTavern theme"),
    "deep.json": (b'{"entries":' * 50_000, "deep"),
}
OTHER_FILES = ("../secret", "..", "books/b.json", "/etc/passwd", "link.json", "nothing", "*.json")


@pytest.fixture
def folder(stage, tmp_path):
    books = tmp_path / "books"
    books.mkdir()
    (books / "world.json").write_text(json.dumps(WORLD), encoding="utf-8")
    (tmp_path / "secret.json").write_text(json.dumps(WORLD), encoding="utf-8")
    with override_settings(EVENNIA_AI_CARD_FOLDER=str(books)):
        yield books


def book(name):
    return read_book(json.loads(store.get_book(name).source), label=name)


def test_import_keeps_the_file_byte_for_byte(stage, folder):
    told = stage.builds("lore/import world")
    assert "Imported lorebook world, 1 entry, revision 1 (new)" in told
    assert store.get_book("world").source == (folder / "world.json").read_text()


def test_import_names_fields_without_effect(stage, folder):
    entries = {str(n): {"uid": n, "key": ["a"], "content": "On {{summary}}."} for n in range(2)}
    entries["1"] |= {"automationId": "run"}
    (folder / "odd.json").write_text(json.dumps({"entries": entries}), encoding="utf-8")
    told = " ".join(stage.builds("lore/import odd").split())
    assert "note: {{summary}} is an unknown macro and is sent as written (2 entries)" in told
    assert "note: automationId of 1 entry has no effect" in told


def test_import_under_another_name(stage, folder):
    stage.builds("lore/import world.json = The harbour")
    assert store.LOREBOOKS.list_keys() == ("The harbour",)


def test_import_again_changes_nothing(stage, folder):
    assert "nothing was changed" in stage.builds("lore/import world", "lore/import world")
    assert store.get_book("world").revision == 1


def test_import_over_a_book_makes_a_revision(stage, folder):
    stage.builds("lore/create World")
    assert "revision 2 (revision 1 before)" in stage.builds("lore/import world")
    assert store.LOREBOOKS.list_keys() == ("World",)
    stage.builds("lore/revert world = 1", "yes")
    assert book("World").entries == ()


def test_import_over_a_book_with_a_lock_is_refused(stage, folder):
    stage.builds("lore/create world")
    store.set_book_locks("world", "edit:perm(Admin)", by=trusted("Ada"))
    assert "may not change" in one_line(stage.builds("lore/import world"))
    assert book("world").entries == ()


def test_import_over_a_book_with_a_locked_entry_is_refused(stage, folder):
    stage.builds("lore/import world")
    store.set_entry_locks("world", "0", "edit:perm(Admin)", by=trusted("Ada"))
    (folder / "other.json").write_text('{"entries": []}')
    assert "may not change all" in one_line(stage.builds("lore/import other = world"))
    assert len(book("world").entries) == 1


def test_import_without_a_file_lists_the_folder(stage, folder):
    assert "world.json" in stage.builds("lore/import")
    assert store.LOREBOOKS.list_keys() == ()


def test_a_bad_file_gets_one_clear_line_and_stores_nothing(stage, folder):
    for name, (content, words) in BAD_FILES.items():
        (folder / name).write_bytes(content)
        assert words.lower() in one_line(stage.builds(f"lore/import {name}")).lower(), name
        assert store.LOREBOOKS.list_keys() == (), name


def test_import_reads_no_file_outside_its_folder(stage, folder):
    (folder / "link.json").symlink_to(folder.parent / "secret.json")
    for name in OTHER_FILES:
        assert one_line(stage.builds(f"lore/import {name}")), name
        assert store.LOREBOOKS.list_keys() == (), name


def test_import_names_a_doubled_member(stage, folder):
    (folder / "twice.json").write_text('{"name": "a", "name": "b", "entries": []}')
    assert "note: member 'name' occurs twice" in stage.builds("lore/import twice")


def test_export_writes_the_same_bytes_and_overwrites_no_file(stage, folder):
    stage.builds("lore/import world")
    assert "to world-2.json" in stage.builds("lore/export world")
    assert "to world-3.json" in stage.builds("lore/export world")
    assert not is_open_to_others(folder / "world-3.json")
    assert (folder / "world-2.json").read_text() == (folder / "world.json").read_text()


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "a b|c", "...", "|r"])
def test_book_with_an_odd_name_is_exported_inside_the_folder(stage, folder, name):
    store.save_book(name, '{"entries": []}', by=trusted("Mara"))
    before = {path.name for path in folder.parent.rglob("*")}
    stage.builds(f"lore/export {name}")
    (written,) = {path.name for path in folder.parent.rglob("*")} - before
    assert (folder / written).read_text() == '{"entries": []}'
    assert not set(written) & set("/\\|. ") - {"."}


def test_export_does_not_follow_a_link(stage, folder):
    stage.builds("lore/create moor")
    (folder / "moor.json").symlink_to(folder.parent / "elsewhere.json")
    stage.builds("lore/export moor")
    assert not (folder.parent / "elsewhere.json").exists()
    assert (folder / "moor-2.json").exists()


def test_export_in_both_formats_loses_nothing(stage, folder):
    stage.builds("lore/import world", "lore/export world = v3")
    converted = json.loads((folder / "world-2.json").read_text())
    assert converted["spec"] == "lorebook_v3"
    stage.builds("lore/import world-2 = back", "lore/export back = world")
    assert json.loads((folder / "back.json").read_text()) == WORLD


def test_lore_export_says_that_nothing_can_be_written_when_the_folder_is_missing(stage, folder):
    stage.builds("lore/create moor")
    with override_settings(EVENNIA_AI_CARD_FOLDER=str(folder / "gone")):
        assert "Nothing can be written" in one_line(stage.builds("lore/export moor"))
