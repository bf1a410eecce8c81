"""The command `lorekeeper`: its first message, its later answer, and the CONTEXT panel."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.engine.knowledge.settings import LorekeeperSettings
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.knowledge import knowledge_bases, page_drafts
from tests.commands.stage import on_screen, one_line
from tests.npc.lorekeeper.wikis import PAGES, TASK, Writer, a_wiki, restricted, stored, write

GOLDEN = Path(__file__).parent / "golden" / "lorekeeper_context.txt"


class Desk:
    """A builder's screen while a model writes. `waits` lets the model finish."""

    def __init__(self, stage: Any, clock: Clock) -> None:
        self.stage, self.clock = stage, clock
        self.frames: list[Any] = []

    def types(self, line: str) -> str:
        """Type a line. Return what is shown at once."""
        return self._read(lambda: self.stage.builder.execute_cmd(line))

    def waits(self) -> str:
        """Return what is shown after the models have answered."""
        return self._read(lambda: self.clock.pump([1.0] * 12))

    def asks(self, line: str) -> str:
        """Type a line. Return everything that is shown in the end."""
        self.types(line)
        return self.waits()

    def _read(self, act: Any) -> str:
        before = len(self.frames)
        act()
        texts = [frame[0] if isinstance(frame, tuple) else frame for frame in self.frames[before:]]
        return on_screen("\n".join(texts))


@contextmanager
def desk_with(stage: Any, writer: Any, **settings: Any) -> Iterator[Desk]:
    """Return a builder's desk with models that take five seconds."""
    from evennia_ai.npc import runtime as running
    from evennia_ai.services.endpoints import Access

    clock = Clock()
    access = Access(model=ScriptedModel(writer, delay_seconds=5.0, clock=clock), model_id="stub")
    values = replace(conf(), lorekeeper=LorekeeperSettings(**settings))
    before = running.install(running.runtime_of(values, clock=clock, access=access))
    desk = Desk(stage, clock)
    stage.builder.msg = lambda text=None, **_: desk.frames.append(text)
    try:
        yield desk
    finally:
        del stage.builder.msg
        running.runtime().close()
        running.install(before)


@pytest.fixture(scope="module")
def _wiki(world: Callable[[], AbstractContextManager[None]], _cast: object) -> Iterator[None]:
    """Create the wiki of all tests of this file."""
    with world():
        a_wiki()
        yield


@pytest.fixture
def wiki(_wiki: None, stage: Any) -> Any:
    """Return the stage with a wiki."""
    return stage


def test_task_is_confirmed_at_once(wiki):
    with desk_with(wiki, Writer()) as desk:
        assert one_line(desk.types(f"lorekeeper {TASK}")) == (
            "The lorekeeper is working on it; you get a message when it is done."
        )
        assert page_drafts.waiting_drafts() == ()


def test_written_page_is_a_draft_with_instructions(wiki):
    with desk_with(wiki, Writer()) as desk:
        told = desk.asks(f"lorekeeper {TASK}")
    (draft,) = page_drafts.waiting_drafts()
    assert told.splitlines()[0] == (
        f"The lorekeeper has written a page. Draft {draft.number}: kb/draft {draft.number}"
        f" shows what would change, kb/approve {draft.number} writes it."
    )


@pytest.mark.req("S4-49")
def test_panel_follows_each_answer_with_a_package(wiki):
    write("harbour", "The Ferry", "The ferry sails. " * 200)
    with desk_with(wiki, Writer(), budget_tokens=1000) as desk:
        first, second = (desk.asks(f"lorekeeper {TASK}") for _ in range(2))
        query = desk.asks("lorekeeper List the boats")
    panel = GOLDEN.read_text("utf-8").splitlines()[1:]
    for told in (first, second):
        assert told.splitlines()[1] == "CONTEXT of this task"
        assert told.splitlines()[2:] == panel
    assert "CONTEXT" not in query


def test_answer_without_a_page_is_shown_whole(wiki):
    with desk_with(wiki, Writer("Two boats.\nBoth leak.")) as desk:
        told = desk.asks("lorekeeper List the boats")
    assert told.splitlines()[:2] == ["Two boats.", "Both leak."]
    assert "no package" in told


def test_markup_in_an_answer_is_shown_literally(wiki):
    with desk_with(wiki, Writer("|rred|n \x1b[31m {name}")) as desk:
        assert "|rred|n" in desk.asks("lorekeeper List the boats")
    assert "\x1b[31m" not in str(desk.frames)


def test_text_is_shown_if_no_draft_could_be_made(wiki):
    with desk_with(wiki, Writer("=== PAGE: <b> ===\nA lost text.")) as desk:
        told = desk.asks(f"lorekeeper {TASK}")
    assert "A lost text." in told
    assert "'<b>' is not a valid page title" in told


def test_an_error_is_one_line(wiki):
    with desk_with(wiki, Writer(ModelUnavailable("stub", "is broken"))) as desk:
        assert "is broken" in one_line(desk.asks(f"lorekeeper {TASK}"))


def test_knowledge_base_must_be_named_if_there_are_several(wiki):
    a_wiki("island", texts={"The Pans": "Salt."})
    writer = Writer()
    with desk_with(wiki, writer) as desk:
        told = one_line(desk.types(f"lorekeeper {TASK}"))
        assert "lorekeeper/in <base> = <task>; there are harbour, island" in told
        desk.asks("lorekeeper/in island = Write about salt")
    assert [draft.base for draft in page_drafts.waiting_drafts()] == ["island"]


def test_setting_names_the_usual_knowledge_base(wiki):
    a_wiki("island", texts={"The Pans": "Salt."})
    with desk_with(wiki, Writer(), base="island") as desk:
        desk.asks("lorekeeper Write about salt")
    assert [draft.base for draft in page_drafts.waiting_drafts()] == ["island"]


def test_restricted_knowledge_base_is_used_only_by_name(wiki):
    restricted(a_wiki("secret", texts={}))
    with desk_with(wiki, Writer()) as desk:
        desk.asks(f"lorekeeper {TASK}")
    assert [draft.base for draft in page_drafts.waiting_drafts()] == ["harbour"]


@pytest.mark.req("S4-53")
def test_a_type_and_pages_can_be_given(wiki):
    writer = Writer()
    with desk_with(wiki, writer) as desk:
        desk.asks("lorekeeper/type Create Source = Write a letter")
        assert "by override" in desk.types("lorekeeper/context")
        desk.asks("lorekeeper/pages Oren; Sources:The Log = Do something")
        assert "Oren revision 1" in desk.types("lorekeeper/context")


def test_revise_continues_a_draft(wiki):
    writer = Writer()
    with desk_with(wiki, writer) as desk:
        desk.asks(f"lorekeeper/type create_source = {TASK}")
        (first,) = page_drafts.waiting_drafts()
        desk.asks(f"lorekeeper/revise {first.number} = Half as long")
    assert [role for role, _ in writer.sent] == ["system", "user", "assistant", "user"]
    assert writer.sent[1][1] == TASK
    assert writer.sent[2][1].startswith("=== PAGE: Lantern Night ===\nOn [[Lantern Night]]")
    assert len(page_drafts.waiting_drafts()) == 2
    assert writer.planned == []


@pytest.mark.req("S4-49")
def test_the_panel_shows_what_was_assembled(wiki):
    write("harbour", "The Ferry", "The ferry sails. " * 200)
    with desk_with(wiki, Writer(), budget_tokens=1000) as desk:
        desk.asks(f"lorekeeper {TASK}")
        told = desk.types("lorekeeper/context")
    assert told == GOLDEN.read_text("utf-8")


@pytest.mark.req("S4-49")
def test_panel_of_a_draft_stays_after_pages_changed(wiki):
    with desk_with(wiki, Writer()) as desk:
        desk.asks(f"lorekeeper {TASK}")
        (draft,) = page_drafts.waiting_drafts()
        before = desk.types(f"lorekeeper/context = {draft.number}")
        for title in PAGES:
            write("harbour", title, "Something else.")
        assert desk.types(f"lorekeeper/context {draft.number}") == before
    assert f"CONTEXT of draft {draft.number}, harbour/Lantern Night" in before
    assert stored("harbour", "The Ferry").revision not in ("", "1")


@pytest.mark.req("S4-50")
def test_a_query_has_a_panel_as_well(wiki):
    with desk_with(wiki, Writer("Two.")) as desk:
        desk.asks("lorekeeper List the boats")
        assert "none, no package" in desk.types("lorekeeper/context")


@pytest.mark.req("S4-51")
def test_developer_tools_get_the_whole_context(wiki):
    heard: list[Any] = []
    wiki.player.msg = lambda text=None, **_: heard.append(text)
    with desk_with(wiki, Writer()) as desk:
        desk.asks(f"lorekeeper {TASK}")
    (draft,) = page_drafts.waiting_drafts()
    (meta,) = [frame[1]["context_meta"] for frame in desk.frames if isinstance(frame, tuple)]
    assert meta == draft.context_meta
    assert "context_meta" not in str(heard)


@pytest.mark.req("S4-01")
def test_panel_survives_a_reload_without_a_page(wiki):
    with desk_with(wiki, Writer("Two.")) as desk:
        desk.asks("lorekeeper List the boats")
        before = desk.types("lorekeeper/context")
    wiki.builder.nattributes.clear()
    with desk_with(wiki, Writer()) as desk:
        assert desk.types("lorekeeper/context") == before
    assert "List the boats" in before


def test_the_panel_says_why_there_is_no_answer(wiki):
    with desk_with(wiki, Writer(ModelUnavailable("stub", "is broken"))) as desk:
        desk.types(f"lorekeeper {TASK}")
        desk.clock.pump([1.0] * 6)
        assert "no answer  none yet" in desk.types("lorekeeper/context")
        desk.waits()
        told = desk.types("lorekeeper/context")
    assert "is broken" in told
    assert "Oren revision 1" in told


def test_panel_of_a_hidden_knowledge_base_is_refused(wiki):
    with desk_with(wiki, Writer()) as desk:
        desk.asks(f"lorekeeper {TASK}")
        knowledge_bases.save_base(
            replace(knowledge_bases.get_base("harbour"), locks="view:perm(Admin)"),
            by=trusted("Ada"),
        )
        assert "no task yet, or only for a base" in one_line(desk.types("lorekeeper/context"))


def test_a_builder_does_not_see_a_draft_of_what_is_hidden(wiki):
    wiki.builder.permissions.add("Admin")
    with desk_with(wiki, Writer("=== PAGE: The Vault ===\nThe code is eighteen.")) as desk:
        desk.asks("lorekeeper Change The Vault")
        (draft,) = page_drafts.waiting_drafts()
        wiki.builder.permissions.remove("Admin")
        told = desk.types(f"lorekeeper/context = {draft.number}")
    assert one_line(told).startswith(f"There is no draft {draft.number}")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("lorekeeper", "Usage: lorekeeper <task>"),
        ("lorekeeper/type create_source", "Usage: lorekeeper/type"),
        ("lorekeeper/in nowhere = x", "There is no knowledge base 'nowhere'; there are harbour."),
        ("lorekeeper/context = 99", "There is no draft 99"),
        ("lorekeeper/context = x", "The number of a draft must be a whole number from 1 on"),
        ("lorekeeper/context", "You have given the lorekeeper no task yet"),
        ("lorekeeper/pages <b> = x", "the title '<b>' has '<' in it"),
        ("lorekeeper/revise 99 = x", "There is no draft 99"),
    ],
)
def test_lorekeeper_errors_are_one_line(wiki, line, told):
    with desk_with(wiki, Writer()) as desk:
        assert told.lower() in one_line(desk.types(line)).lower()


def test_lorekeeper_is_refused_to_players(wiki):
    assert "not available" in wiki.plays(f"lorekeeper {TASK}")


def test_stopping_server_ends_the_task_silently(wiki, monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr("evennia.utils.logger.log_err", lambda line, **_: lines.append(line))
    with desk_with(wiki, Writer()) as desk:
        desk.types(f"lorekeeper {TASK}")
        said = len(desk.frames)
    assert (lines, len(desk.frames)) == ([], said)
    assert page_drafts.waiting_drafts() == ()
