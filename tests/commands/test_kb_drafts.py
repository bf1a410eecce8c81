"""Drafts in `kb`: listed, shown as a difference, approved into a base, rejected."""

from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.markup import read_page
from evennia_ai.engine.knowledge.pages.page import BackendError, PageDraft, page_name
from evennia_ai.npc.knowledge.backends import Backends
from evennia_ai.store.knowledge import page_drafts as drafts
from tests.commands.knowledge_bases import everything, make_base, page, write
from tests.commands.stage import one_line


@pytest.fixture(scope="module")
def harbour(beforehand):
    """Store a base with six pages."""
    return beforehand(lambda stage: make_base())


def draft(title, text, *, was="", base="harbour"):
    """Store a draft of the lorekeeper. Return its number."""
    wanted = PageDraft(page=read_page(page_name(title), text), was=was, by=trusted("lorekeeper"))
    return drafts.add_draft(base, wanted, task="Write it down.", context_meta={}).number


def state(number):
    return drafts.draft_or_none(number).state


def test_waiting_drafts_are_listed_with_their_kind(stage, harbour):
    new = draft("Fog", "It is thick.")
    change = draft("Oren", "Oren is gone.", was="1")
    rows = stage.builds("kb/drafts").splitlines()
    assert "new page harbour/Fog by lorekeeper" in next(
        r for r in rows if r.startswith(f"{new:5}  ")
    )
    assert "change of harbour/Oren by lorekeeper" in next(
        r for r in rows if r.startswith(f"{change:5}  ")
    )


def test_kb_drafts_says_that_no_draft_is_waiting(stage, harbour):
    assert "No draft is waiting." in one_line(stage.builds("kb/drafts"))


def test_draft_is_shown_as_a_difference(stage, harbour):
    told = stage.builds(f"kb/draft {draft('Oren', 'Oren is gone.', was='1')}")
    assert "-Oren rows the [[The Ferry|ferry]]." in told
    assert "+Oren is gone." in told
    assert "task: Write it down." in told


def test_draft_note_that_repeats_the_task_is_shown_once(stage, harbour):
    page = read_page(page_name("Fog"), "It is thick.")
    noted = PageDraft(page=page, was="", by=trusted("lorekeeper"), note="Write it")
    number = drafts.add_draft("harbour", noted, task="Write it down.", context_meta={}).number
    assert stage.builds(f"kb/draft {number}").count("Write it") == 1


def test_an_approved_draft_is_a_page_with_a_revision_of_the_builder(stage, harbour):
    number = draft("Fog", "It is thick.")
    told = one_line(stage.builds(f"kb/approve {number}"))
    assert "harbour/Fog is written, revision 1" in told
    assert page("Fog").body == "It is thick."
    assert "by Mara: draft" in stage.builds("kb/revisions harbour/Fog")
    assert state(number) == "approved"


def test_a_rejected_draft_changes_no_page(stage, harbour):
    number = draft("Fog", "It is thick.")
    before = everything()
    stage.builds(f"kb/reject {number}")
    assert everything() == before
    assert state(number) == "refused"
    assert "No draft is waiting." in stage.builds("kb/drafts")


def test_draft_cannot_be_decided_twice(stage, harbour):
    number = draft("Fog", "It is thick.")
    stage.builds(f"kb/reject {number}")
    assert "refused by Mara already" in one_line(stage.builds(f"kb/approve {number}"))
    assert page("Fog") is None


def test_approve_is_refused_if_the_page_changed_since(stage, harbour):
    number = draft("Oren", "Oren is gone.", was="1")
    write("Oren", "Oren is back.", was="1")
    told = one_line(stage.builds(f"kb/approve {number}"))
    assert "written from revision 1" in told
    assert "revision 2 by now" in told
    assert page("Oren").body == "Oren is back."
    assert state(number) == "waiting"


def test_approve_writes_nothing_if_the_page_has_the_text_already(stage, harbour):
    number = draft("Oren", "Oren is gone.", was="1")
    write("Oren", "Oren is gone.", was="1")
    stage.builds(f"kb/approve {number}")
    assert page("Oren").revision == "2"
    assert state(number) == "approved"


def test_failed_write_leaves_the_draft_waiting(stage, harbour, monkeypatch):

    number = draft("Fog", "It is thick.")

    class Away:
        def fetch(self, names):
            return [None for _ in names]

        def write(self, draft):
            raise BackendError("the wiki is away")

    monkeypatch.setattr(Backends, "of", lambda self, info: Away())
    assert "The wiki is away." in one_line(stage.builds(f"kb/approve {number}"))
    assert state(number) == "waiting"


def test_approve_waits_for_a_slow_backend(stage, harbour, monkeypatch):
    from twisted.internet.defer import Deferred

    number, written = draft("Fog", "It is thick."), Deferred()

    class Slow:
        def fetch(self, names):
            return [None for _ in names]

        def write(self, draft):
            return written

    monkeypatch.setattr(Backends, "of", lambda self, info: Slow())
    stage.builds(f"kb/approve {number}")
    assert state(number) == "waiting"
    assert "being written already" in one_line(stage.builds(f"kb/approve {number}"))
    written.callback(replace(read_page(page_name("Fog"), "It is thick."), revision="77"))
    assert state(number) == "approved"


def test_drafts_of_a_hidden_knowledge_base_are_hidden(stage, harbour):
    number = draft("Fog", "It is thick.")
    stage.builds("kb/set harbour/locks = view:perm(Admin)", "yes")
    assert "No draft is waiting." in stage.builds("kb/drafts")
    for switch in ("draft", "approve", "reject"):
        assert f"no draft {number}" in one_line(stage.builds(f"kb/{switch} {number}"))
    assert state(number) == "waiting"
