"""`evennia-ai knowledge`: a folder into a game, a search, and a folder out of the game."""

import pytest

from evennia_ai.store.knowledge import knowledge_bases, pages
from tests.cli.test_card_in_game import Game
from tests.modes import is_open_to_others

FOG = "---\naliases: [Mist]\nrequires: [Sources:Song]\n---\nIt is thick.\n"


@pytest.fixture
def moor(db, monkeypatch, write):
    """Use the test's database as that of a game, and create a folder with two pages."""
    monkeypatch.setattr("evennia_ai.cli.opened_game", lambda folder: None)
    write("moor/base.yaml", "name: The Moor\nsummary: Peat.\nkeywords: [peat]\n")
    write("moor/Fog.md", FOG)
    write("moor/Sources/Song.md", "Row, row.")
    return "moor"


def titles(base: str = "moor") -> list[str]:
    found = pages.all_pages(base, most_characters=10**9) or ()
    return [page.name.full for page in found]


def test_folder_is_stored_with_the_fields_of_its_knowledge_base(call, moor) -> None:
    told = call("knowledge", "import", "moor")
    assert (told.status, told.err) == (0, "")
    assert told.out.splitlines()[:2] == ["new      Fog", "new      Sources:Song"]
    assert told.out.splitlines()[-1].startswith("moor: knowledge base moor: 2 new, 0 changed")
    assert titles() == ["Fog", "Sources:Song"]
    assert knowledge_bases.get_base("moor").summary == "Peat."


def test_the_same_folder_again_changes_nothing(call, moor) -> None:
    call("knowledge", "import", "moor")
    before = knowledge_bases.get_base("moor")
    told = call("knowledge", "import", "moor", "--json")
    assert told.json == {
        "base": "moor",
        "dry_run": False,
        "new": [],
        "changed": [],
        "gone": [],
        "fields": [],
        "same": 2,
    }
    assert knowledge_bases.get_base("moor") == before


def test_dry_run_prints_the_same_and_writes_nothing(call, moor) -> None:
    told = call("knowledge", "import", "moor", "--dry-run")
    assert told.status == 0
    assert "new      Fog" in told.out
    assert "nothing was written (--dry-run)" in told.out
    assert knowledge_bases.base_or_none("moor") is None


def test_missing_pages_are_removed_only_with_remove(call, moor, tmp_path) -> None:
    call("knowledge", "import", "moor")
    (tmp_path / "moor" / "Fog.md").unlink()
    assert call("knowledge", "import", "moor", "--json").json["gone"] == ["Fog"]
    assert titles() == ["Fog", "Sources:Song"]
    call("knowledge", "import", "moor", "--remove")
    assert titles() == ["Sources:Song"]


def test_folder_is_imported_into_the_named_knowledge_base(call, moor) -> None:
    call("knowledge", "import", "moor", "--base", "heath")
    assert titles("heath") == ["Fog", "Sources:Song"]


def test_each_wrong_file_is_a_line_and_nothing_is_stored(call, moor, write, tmp_path) -> None:
    write("moor/Bad.md", "---\nrequires: [1]\n---\n")
    (tmp_path / "moor" / "Worse.md").write_bytes(b"\xff")
    told = call("knowledge", "import", "moor")
    assert (told.status, told.out) == (2, "")
    first, second = told.err.splitlines()
    assert "moor/Bad.md:2: requires must be a list of texts" in first
    assert "moor/Worse.md" in second
    assert knowledge_bases.base_or_none("moor") is None


def test_a_search_prints_the_pages_best_first(call, moor) -> None:
    call("knowledge", "import", "moor")
    told = call("knowledge", "search", "moor", "thick", "fog")
    assert (told.status, told.out) == (0, "Fog\n    It is thick.\n")
    (hit,) = call("knowledge", "search", "moor", "thick fog", "--json").json["hits"]
    assert (hit["page"], hit["revision"], hit["passage"]) == ("Fog", "1", "It is thick.")


def test_a_search_that_finds_nothing_prints_nothing(call, moor) -> None:
    call("knowledge", "import", "moor")
    told = call("knowledge", "search", "moor", "zeppelin")
    assert (told.status, told.out) == (0, "")


def test_import_of_an_exported_knowledge_base_changes_nothing(call, moor, tmp_path) -> None:
    call("knowledge", "import", "moor")
    told = call("knowledge", "export", "moor", "out")
    assert not is_open_to_others(tmp_path / "out")
    assert (told.status, told.out) == (0, "out: knowledge base moor, 2 pages\n")
    assert "requires:\n- Sources:Song\n" in (tmp_path / "out" / "Fog.md").read_text()
    again = call("knowledge", "import", "out", "--json").json
    assert (again["base"], again["new"], again["changed"], again["same"]) == ("moor", [], [], 2)
    assert again["fields"] == []


def test_export_overwrites_nothing(call, moor, tmp_path) -> None:
    call("knowledge", "import", "moor")
    told = call("knowledge", "export", "moor", "moor")
    assert (told.status, told.out) == (2, "")
    assert "exists already; name a new folder" in told.err
    assert (tmp_path / "moor" / "Fog.md").read_text() == FOG


def test_failed_export_leaves_no_folder(call, moor, tmp_path, monkeypatch) -> None:
    from pathlib import Path

    def full(self, content):
        raise OSError(28, "No space left on device")

    call("knowledge", "import", "moor")
    monkeypatch.setattr(Path, "write_bytes", full)
    told = call("knowledge", "export", "moor", "out")
    assert (told.status, "No space left" in told.err) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["import", "nowhere"], "is not a folder"),
        (["import", "moor", "--base", "The Moor"], "a slug"),
        (["search", "nobody", "fog"], "there is no knowledge base 'nobody'"),
        (["export", "nobody", "out"], "there is no knowledge base 'nobody'"),
        (["search", "nobody"], "WORDS"),
    ],
)
def test_bad_input_is_one_line(call, moor, words: list[str], told: str) -> None:
    called = call("knowledge", *words)
    assert called.status == 2
    assert told in called.err
    assert called.err.count("\n") == 1


@pytest.mark.long
def test_knowledge_opens_the_game_of_the_folder(tmp_path) -> None:
    game = Game(tmp_path)
    game.migrate()
    (tmp_path / "moor").mkdir()
    (tmp_path / "moor" / "Fog.md").write_text(FOG)
    words = ("-m", "evennia_ai.cli", "knowledge", "import", "moor", "--game", "game")
    told = game.run(*words, cwd=tmp_path)
    assert (told.status, told.err) == (0, "settings may print\n")
    assert "1 new" in told.out
