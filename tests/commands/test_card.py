"""The command `card`: the list, one card, imported files, and files that are refused."""

import pytest
from django.test import override_settings

from evennia_ai.engine.actors import trusted
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.store.authored import cards
from evennia_ai.store.authored import cards as store
from tests.commands.card_files import OREN, as_json, oren
from tests.commands.stage import on_screen, one_line
from tests.formats.cards.carriers import a_picture, an_archive

BAD_FILES = {
    "broken.json": (b"{", "JSON"),
    "list.json": (b"[]", "object"),
    "nan.json": (b'{"name": NaN, "description": ""}', "NaN"),
    "empty.json": (b"", "empty"),
    "latin.json": (b'{"name": "\xe9", "description": ""}', "UTF-8"),
    "other.json": (b'{"spec": "chara_card_v9", "data": {}}', "chara_card_v3"),
    "nameless.json": (b'{"spec": "chara_card_v2", "data": {"name": ""}}', "name"),
    "picture.png": (b"\x89PNG\r\n\x1a\nrest", "refused"),
    "photo.jpg": (b"\xff\xd8\xff\xe0 only a picture", "refused"),
    "archive.charx": (b"PK\x03\x04rest", "refused"),
    "deep.json": (b"[" * 100_000, "deep"),
    "equals.json": (as_json(oren(name="a = b")), "give it another"),
    "slash.json": (as_json(oren(name="/import")), "give it another"),
}
NO_CARD_FILES = (
    "../secret.json",
    "../secret",
    "..",
    ".",
    "cards/oren.json",
    "/etc/passwd",
    "./oren.json",
    "..\\secret.json",
    "oren.json/",
    "link.json",
    "sub",
    "nothing.json",
    "notes.txt",
    "~",
    "*.json",
    "oren.json\x00",
    "x" * 1000,
)
BAD_INPUT = {
    "card oren = Oren Tallow": "card/assign",
    "card nobody": "no card",
    "card Oren Tallow/2": "without a number",
    "card/imprt oren": "There is no",
    "card/re Oren Tallow": "several switches",
    "card/import/approve oren": "one switch at a time",
    "card/import oren =": "Usage",
    "card/import oren = /oren": "no / at its start",
    "card/import oren = a=b": "no = and no /",
    "card/import oren = \x07": "printable",
}


def test_import_waits_and_changes_nothing(stage, card_folder):
    told = stage.builds("card/import oren.json")
    assert "Import 1 of card Oren Tallow, by Mara" in told
    assert "To approve it: card/approve Oren Tallow/1 [= <grants>]" in told
    assert cards.CARDS.list_keys() == ()


def test_import_keeps_the_file_byte_for_byte(stage, card_folder):
    stage.builds("card/import oren.json")
    change = cards.CARDS.revision("Oren Tallow", 1)
    file = cards.CARDS.revision_file("Oren Tallow", 1)
    assert file.content == (card_folder / "oren.json").read_bytes()
    assert (file.source, file.carrier) == (file.content.decode(), "json")
    assert change.changed_by == "Mara"


@pytest.mark.parametrize(
    ("name", "content", "carrier"),
    [
        ("oren.png", a_picture(OREN), "png"),
        ("oren.charx", an_archive(OREN), "charx"),
        ("photo.jpeg", an_archive(OREN, before=b"\xff\xd8\xff\xe0 a picture"), "charx"),
        ("wrong.json", a_picture(OREN), "png"),
        ("UPPER.PNG", a_picture(OREN), "png"),
    ],
)
def test_file_type_is_found_by_content_not_by_name(stage, card_folder, name, content, carrier):
    (card_folder / name).write_bytes(content)
    stage.builds(f"card/import {name}")
    file = cards.CARDS.revision_file("Oren Tallow", 1)
    assert (file.content, file.carrier) == (content, carrier)
    assert "mends nets" in file.source


def test_import_report_names_texts_with_a_depth(stage, card_folder):
    told = stage.builds("card/import oren")
    assert "by depth: 1" in told
    assert "top of the history (its depth is huge)" in told


def test_import_names_its_file_at_once(stage, card_folder):
    assert stage.builds("card/import oren").startswith("Reading oren.json (515 bytes)...\n")


def test_import_of_the_approved_file_changes_nothing_and_shows_the_report(stage, card_folder):
    stage.builds("card/import oren", "card/approve Oren Tallow = fields")
    told = stage.builds("card/import oren")
    assert "The same file is card Oren Tallow, revision 2, already" in told
    assert "ID 1020, role system" in told
    assert cards.CARDS.newest_number("Oren Tallow") == 2


def test_import_of_a_waiting_file_is_not_doubled(stage, card_folder):
    told = stage.builds("card/import oren", "card/import oren")
    assert told.count("Import 1 of card Oren Tallow") == 2
    assert len(cards.CARDS.waiting("Oren Tallow")) == 1


def test_import_under_another_name(stage, card_folder):
    stage.builds("card/import oren = The  net mender")
    assert cards.CARDS.waiting_names() == ("The net mender",)


def test_import_takes_the_name_of_the_card_that_differs_only_in_case(stage, card_folder):
    stage.builds("card/import oren = oren tallow", "card/approve oren tallow")
    (card_folder / "oren.json").write_bytes(as_json(oren(personality="kind")))
    stage.builds("card/import oren.json")
    assert cards.CARDS.waiting_names() == ("oren tallow",)


def test_import_report_names_fields_that_differ(stage, card_folder):
    stage.builds("card/import oren", "card/approve Oren Tallow = fields")
    (card_folder / "oren.json").write_bytes(as_json(oren(personality="kind", nickname="Ory")))
    told = stage.builds("card/import oren")
    assert "Differs from revision 2, the approved one, in: personality, nickname." in told
    assert "Revision 2 has grants that the import does not get by itself: fields." in told


def test_import_report_says_no_field_differs_if_only_blanks_do(stage, card_folder):
    stage.builds("card/import oren", "card/approve Oren Tallow")
    (card_folder / "oren.json").write_bytes(as_json(OREN) + b"\n")
    assert "No field differs from revision 2" in stage.builds("card/import oren")


def test_import_without_a_file_lists_the_folder(stage, card_folder):
    (card_folder / "b.png").write_bytes(b"")
    (card_folder / "notes.txt").write_bytes(b"")
    told = stage.builds("card/import")
    assert [name for name in ("b.png", "oren.json", "secret", "notes") if name in told] == [
        "b.png",
        "oren.json",
    ]
    assert cards.CARDS.waiting_names() == ()


def test_import_refuses_a_name_that_two_files_have(stage, card_folder):
    (card_folder / "oren.png").write_bytes(a_picture(OREN))
    assert "oren.json or oren.png" in one_line(stage.builds("card/import oren"))


def test_import_reads_no_file_outside_its_folder(stage, card_folder):
    (card_folder / "link.json").symlink_to(card_folder.parent / "secret.json")
    (card_folder / "sub.json").mkdir()
    (card_folder / "notes.txt").write_bytes(as_json(OREN))
    for name in NO_CARD_FILES:
        assert one_line(stage.builds(f"card/import {name}")), name
        assert cards.CARDS.names_ever() == (), name


def test_import_of_another_suffix_names_the_allowed_suffixes(stage, card_folder):
    (card_folder / "oren.txt").write_bytes(as_json(oren()))
    told = one_line(stage.builds("card/import oren.txt"))
    assert "'oren.txt' exists, but only files that end in .json, .png" in told
    assert cards.CARDS.names_ever() == ()


def test_a_bad_file_gets_one_clear_line_and_stores_nothing(stage, card_folder):
    for name, (content, words) in BAD_FILES.items():
        (card_folder / name).write_bytes(content)
        reading, told = stage.builds(f"card/import {name}").split("\n", 1)
        assert reading.startswith(f"Reading {name}"), name
        assert words.lower() in one_line(told).lower(), name
        assert cards.CARDS.names_ever() == (), name


def test_a_file_over_a_limit_is_refused_by_the_name_of_the_limit(stage, card_folder):
    (card_folder / "big.json").write_bytes(b" " * 5000)
    with override_settings(EVENNIA_AI_CARD_LIMITS={"file_bytes": 1000}):
        told = stage.builds("card/import big.json")
    assert "file_bytes" in told
    assert cards.CARDS.names_ever() == ()


def test_byte_order_mark_is_removed_from_a_card(stage, card_folder):
    (card_folder / "bom.json").write_bytes(b"\xef\xbb\xbf" + as_json(OREN))
    stage.builds("card/import bom.json")
    assert cards.CARDS.revision_file("Oren Tallow", 1).source.startswith("{")


def test_card_without_switch_lists_the_cards(stage, card_folder):
    assert "no cards yet" in stage.builds("card")
    stage.builds("card/import oren", "card/approve Oren Tallow = fields, roles")
    stage.builds("card/assign Oren Tallow = oren", "card/import oren = Another")
    told = " ".join(stage.builds("card").split())
    assert f"2 Oren Tallow fields, roles Oren (#{stage.npc.id})" in told
    assert "- Another not approved yet waits: number 1 by Mara" in told


def test_card_is_found_in_any_case_of_its_name(stage, card_folder):
    stage.builds("card/import oren", "card/approve Oren Tallow = fields")
    told = stage.builds("card oren tallow")
    assert "approved by Mara" in told
    assert "may: fields, given by Mara" in told
    assert "played by           nobody" in told
    assert "ID 1020, role system" in told
    assert "depth 4 in the history, role user" in told


def test_one_card_is_shown_with_the_imports_that_wait(stage, card_folder):
    stage.builds("card/import oren", "card/approve Oren Tallow")
    (card_folder / "oren.json").write_bytes(as_json(oren(personality="kind")))
    stage.builds("card/import oren")
    assert "waits: number 3 by Mara" in stage.builds("card Oren Tallow")


def test_waiting_card_must_be_approved_before_use(stage, card_folder):
    stage.builds("card/import oren")
    assert "card/approve Oren Tallow/1" in one_line(stage.builds("card Oren Tallow"))


def test_unreadable_stored_card_reports_its_error(stage, card_folder):
    store.save_card("odd", '{"name": 7}', by=trusted("world"))
    assert "Card odd, revision 2" in stage.builds("card odd")
    assert "has neither" in stage.builds("card odd").splitlines()[-1]


def test_name_with_slash_and_number_is_found_if_a_card_has_it(stage, card_folder):
    store.save_card("unit/7", '{"name": "Unit", "description": "Hums."}', by=trusted("world"))
    stage.builds("card/import oren = unit")
    assert "Card unit/7, revision 2" in stage.builds("card unit/7")
    assert "Import 1 of card unit," in stage.builds("card/report unit/1")


@pytest.mark.parametrize("name", ["oren\ufe0f", "\u3164", "or\u034fen"])
def test_import_refuses_a_name_that_looks_like_another(stage, card_folder, name):
    (card_folder / "evil.json").write_bytes(as_json(oren(name=name)))
    told = stage.builds("card/import oren = oren", "card/import evil")
    assert "printable characters" in told
    assert cards.CARDS.names_ever() == ("oren",)


@pytest.mark.parametrize("name", ["oren/1", "oren / 1", "Unit/000000007"])
def test_import_refuses_a_name_that_reads_like_a_revision(stage, card_folder, name):
    (card_folder / "evil.json").write_bytes(as_json(oren(name=name)))
    told = stage.builds("card/import oren = oren", "card/import evil")
    assert "no / before a number at its end" in told
    assert cards.CARDS.names_ever() == ("oren",)


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, card_folder):
    stage.builds("card/import oren", "card/approve Oren Tallow")
    for typed, words in BAD_INPUT.items():
        told = stage.builds(typed).removeprefix("Reading oren.json (515 bytes)...\n")
        assert words.lower() in one_line(told).lower(), typed
        assert cards.CARDS.names_ever() == ("Oren Tallow",), typed
        assert cards.CARDS.newest_number("Oren Tallow") == 2, typed
        assert cards.card_of(str(stage.npc.id)) is None, typed


def test_hostile_card_is_shown_literally(stage, card_folder):
    evil = oren(name="|rOren|n {x} |lclook|ltgo|le", creator_notes="$eval(1+1) \x1b[2J |r\nPaid")
    (card_folder / "evil.json").write_bytes(as_json(evil))
    sent = stage.sent(
        stage.builder,
        "card/import evil = |rOren|n {x}",
        "card/approve |rOren|n {x}",
        "card |rOren|n {x}",
        "card",
        "card/import",
    )
    assert "\x1b" not in sent
    assert "|rOren|n {x}" in on_screen(sent)
    assert "$eval(1+1) \\x1b[2J |r" in on_screen(sent)
    assert "|lc" not in on_screen(sent)


def test_a_file_whose_name_holds_a_line_break_forges_no_line(stage, card_folder):
    (card_folder / "a\nThere are no card files.json").write_bytes(b"{}")
    assert "a\\x0aThere are" in stage.builds("card/import")


def test_a_card_with_a_book_that_cannot_be_read_says_so_at_import(stage, card_folder):
    (card_folder / "broken.json").write_bytes(as_json(oren(character_book={"entries": 3})))
    told = stage.builds("card/import broken")
    assert "character_book has no list of entries: it is read as empty" in " ".join(told.split())


BROKEN_BOOKS = {
    "a text is null": {"entries": [{"id": 0, "keys": ["mill"], "content": None}]},
    "keys are null": {"entries": [{"id": 0, "keys": None, "content": "Lit.", "constant": True}]},
    "what is no entry": {"entries": [None, {"id": 0, "keys": "mill", "content": 5}]},
    "both spellings": {"entries": [{"key": ["mill"], "uid": 0, "content": "Lit.", "order": []}]},
    "no entries": {"name": "b", "entries": None},
    "no book": {},
    "our own data": {"entries": [], "extensions": {"evennia_ai": 5}},
}


@pytest.mark.parametrize("book", BROKEN_BOOKS.values(), ids=BROKEN_BOOKS.keys())
def test_imported_odd_card_can_be_changed_shown_and_exported(stage, card_folder, book):
    (card_folder / "odd.json").write_bytes(as_json(oren(name="Odd", character_book=book)))
    stage.builds("card/import odd", "card/approve Odd = fields")
    assert "Card Odd, revision" in stage.builds("card Odd")
    stage.builds("card/edit Odd/personality = dry")
    told = stage.builds("card/export Odd = json")
    written = max(card_folder.rglob("*.json"), key=lambda one: one.stat().st_mtime_ns)
    assert load_card(written).card.personality == "dry", told
    if "extensions" not in book:
        stage.builds("lore/create card:Odd/sage = sage: Sage grows.")
        assert "Sage grows." in store.get_card("Odd").source
