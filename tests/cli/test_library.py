"""`evennia-ai library`: what the library has, the way into it, out of it, and of it."""

import pytest

from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.knowledge import knowledge_bases
from tests.shared_library import a_library, published_base, published_card
from tests.store.knowledge.knowledge_builders import a_base, a_saved_page


@pytest.fixture
def library(db, monkeypatch, tmp_path):
    """The test's own database in the place of a game's, and a library beside it."""
    from evennia_ai.store.core.snapshots import forget_everything

    forget_everything()
    monkeypatch.setattr("evennia_ai.cli.library_commands.opened_game", lambda folder: None)
    with a_library(tmp_path / "library.db3") as path:
        yield path
    forget_everything()


def test_a_base_is_published_listed_and_taken_out(call, library):
    a_base("moor")
    a_saved_page("Fog", "Thick.", base="moor")
    assert call("library", "publish", "moor").out == "moor is in the library from now on\n"
    assert "as it is now already" in call("library", "publish", "moor").out
    assert call("library", "list").out.rstrip().endswith("published here")
    told = call("library", "remove", "moor")
    assert (told.status, told.out) == (
        0,
        "moor is in the library no more; games that use it keep it\n",
    )
    assert call("library", "list").out == "The library is empty.\n"


def test_a_base_and_a_card_are_taken(call, library):
    published_base({"Ferry": "It crosses at dusk."})
    published_card("He rows.")
    assert "harbour of the game Saltholm is taken" in call("library", "use", "harbour").out
    assert "it waits: card/approve Oren" in call("library", "use", "card:Oren").out
    assert knowledge_bases.get_base("harbour").pages == 1
    assert len(log.waiting("Oren")) == 1
    found = call("library", "list", "--json").json["entries"]
    assert [(one["name"], one["game"], one["here"]) for one in found] == [
        ("harbour", "Saltholm", "used here"),
        ("card:Oren", "Saltholm", "used here"),
    ]


@pytest.mark.parametrize("words", [("use", "moor"), ("remove", "moor"), ("publish", "moor")])
def test_what_cannot_be_done_is_one_line(call, library, words):
    published_base({"Ferry": "It crosses at dusk."})
    told = call("library", *words)
    assert (told.status, told.out) == (2, "")
    assert "moor" in told.err
    assert told.err.count("\n") == 1
