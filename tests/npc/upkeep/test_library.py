"""The library beside a game that is played: what changes there is in the next prompt."""

from dataclasses import replace

import pytest

from evennia_ai.commands.ai.status import library_lines
from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.npc import service
from evennia_ai.npc.npc_settings import changed
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.service import Garbage
from evennia_ai.npc.upkeep.library import LOOK_SECONDS
from evennia_ai.store.knowledge import knowledge_bases
from evennia_ai.store.library.bases import take_base
from evennia_ai.store.library.entries import entry, reading, remove
from tests.npc.knowledge.cellars import Minds
from tests.shared_library import a_library, published_base

DUSK = {"Ferry": "The ferry crosses at dusk."}
DAWN = {"Ferry": "The ferry crosses at dawn."}
NAMES = ("begin", "search_new", "search_if_grown", "search_everything", "end")


@pytest.fixture
def shared(stage, tmp_path, monkeypatch):
    """The stage; Oren may search a base that the game Saltholm published."""
    for name in NAMES:  # none of this is about garbage
        monkeypatch.setattr(Garbage, name, lambda self, **_: None)
    with a_library(tmp_path / "library.db3") as path:
        published_base(DUSK)
        with reading():
            found = entry("base", "harbour")
        take_base(found, by=trusted("Mara"))
        knowledge_bases.bind("harbour", Scope(kind="npc", ref=stage.npc.ai.ref), by=trusted("Mara"))
        changed(stage.npc, tools=(TOOL,), by=THE_GAME)
        stage.minds = Minds()
        stage.minds.searches = {"query": "ferry"}
        stage.install(stage.minds)
        stage.library = path
        yield stage


@pytest.fixture
def running(shared, logged):
    service.at_server_start()
    shared.logged = logged
    yield shared
    service.at_server_stop()


def told(stage) -> str:
    """What the NPC's model was told of its search."""
    stage.says(stage.anna, "Oren, the ferry?")
    return str(stage.minds.requests[-1].messages[-1].content)


def said(stage, words: str) -> list[str]:
    return [line for line in stage.logged if words in line]


def of_ai() -> str:
    return "\n".join(library_lines(runtime().library.status))


def test_a_page_of_the_library_is_in_the_prompt_of_who_uses_it(shared):
    assert told(shared) == "[harbour] Ferry: The ferry crosses at dusk."


def test_what_changed_while_the_game_was_down_is_there_after_the_start(shared, logged):
    published_base(DAWN)
    service.at_server_start()
    assert told(shared).endswith("at dawn.")
    service.at_server_stop()
    assert any("harbour changed in the library, and was taken" in line for line in logged)


def test_what_changes_while_the_game_is_played_is_there_after_some_minutes(running):
    published_base(DAWN)
    assert told(running).endswith("at dusk.")
    running.passes(LOOK_SECONDS)
    assert told(running).endswith("at dawn.")


def test_a_library_that_is_away_is_told_once_and_the_game_plays_on(running):
    away = running.library.rename(running.library.with_suffix(".away"))
    for _ in range(3):
        running.passes(LOOK_SECONDS)
    assert len(said(running, "the game plays on without its library")) == 1
    assert "! The library is away, and the game uses what it has: the library is not" in of_ai()
    assert told(running).endswith("at dusk.")
    away.rename(running.library)
    published_base(DAWN)
    running.passes(LOOK_SECONDS)
    assert len(said(running, "the library is there again")) == 1
    assert of_ai() == ""
    assert told(running).endswith("at dawn.")


def test_what_cannot_be_taken_is_told_once_and_stays_as_it_is(running, monkeypatch):
    from evennia_ai.store.library import following

    monkeypatch.setattr(following, "MOST_WRITTEN", 0)
    published_base(DAWN)
    for _ in range(2):
        running.passes(LOOK_SECONDS)
    assert len(said(running, "harbour changed in the library, and was not taken: harbour")) == 1
    assert of_ai() == "! not taken from the library: harbour; the log says why"
    assert told(running).endswith("at dusk.")


def test_what_is_taken_out_of_the_library_is_told_and_stays(running):
    remove("base", "harbour", by=trusted("Mira"))
    for _ in range(2):
        running.passes(LOOK_SECONDS)
    assert len(said(running, "harbour is in the library no more; this game keeps")) == 1
    assert told(running).endswith("at dusk.")


def test_whom_a_lock_of_this_game_holds_guards_a_base_that_the_library_restricts(running):
    info = knowledge_bases.get_base("harbour")
    own = "restricted:tag(outsider)"

    knowledge_bases.save_base(replace(info, locks=own), by=trusted("Mara"))
    running.npc.tags.add("outsider")
    published_base(DUSK, restricted=True)
    running.passes(LOOK_SECONDS)
    assert knowledge_bases.held_refs("harbour") == {running.npc.ai.ref}


def test_a_game_without_a_library_asks_for_none(stage, no_queries):
    with no_queries():
        found = stage.running.runtime().library.look()
    assert found.result == ()
