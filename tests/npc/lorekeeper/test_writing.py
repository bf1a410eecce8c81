"""Pages in an answer become drafts, which store what they were made from."""

from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.npc.lorekeeper.keeping import lorekeeper
from evennia_ai.npc.lorekeeper.writing import read_request
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.llm.chat import sent_sha256
from evennia_ai.services.llm.roles import chat_messages
from evennia_ai.store.knowledge import page_drafts, pages
from evennia_ai.store.knowledge.knowledge_bases import get_base
from tests.npc.lorekeeper.wikis import Writer, stored, write

TASK = "Write about the harbour"


def answered(stage: Any, mara: Any, text: str) -> Any:
    """Return the lorekeeper's answer if its model writes this text."""
    writer = Writer(text)
    stage.talks_with(writer)
    results: list[Any] = []
    lorekeeper(TASK, base="harbour", by=mara).addCallback(results.append)
    (told,) = results
    return told, writer


def drafts_of(stage: Any, mara: Any, text: str) -> list[Any]:
    told, _ = answered(stage, mara, text)
    return [page_drafts.draft_or_none(number) for number in told.drafts]


def notes_of(stage: Any, mara: Any, text: str) -> str:
    """Return the notes that say why a text became no draft."""
    told, _ = answered(stage, mara, text)
    assert page_drafts.waiting_drafts() == ()
    return " ".join(told.notes)


def test_draft_of_a_new_page_names_no_revision(stage, mara):
    (draft,) = drafts_of(stage, mara, "=== PAGE: Leek Show ===\nLeeks, once a year.")
    assert (draft.draft.page.name.full, draft.draft.was) == ("Leek Show", "")
    assert draft.draft.page.body == "Leeks, once a year.\n"
    assert (draft.task, draft.draft.by.name) == (TASK, "lorekeeper for Mara")
    assert pages.page_or_none("harbour", page_name("Leek Show")) is None


def test_draft_of_an_existing_page_names_the_revision_that_was_read(stage, mara):
    now = stored("harbour", "The Ferry")
    (draft,) = drafts_of(stage, mara, "=== PAGE: The Ferry ===\nThe ferry is blue.")
    assert draft.draft.was == now.revision


def test_page_draft_keeps_the_metadata_of_the_page_when_the_model_writes_no_metadata(stage, mara):
    (draft,) = drafts_of(stage, mara, "=== PAGE: The Ferry ===\nThe ferry is blue.")
    assert draft.draft.page.meta == stored("harbour", "The Ferry").meta


def test_answer_can_set_the_summary_of_a_page(stage, mara):
    text = "=== PAGE: The Ferry ===\n---\nsummary: A blue boat.\n---\nThe ferry is blue."
    (draft,) = drafts_of(stage, mara, text)
    assert draft.draft.page.meta.summary == "A blue boat."


def test_draft_for_an_alias_changes_the_page_itself(stage, mara):
    (draft,) = drafts_of(stage, mara, "=== PAGE: Boat ===\nThe ferry is blue.")
    assert draft.draft.page.name.full == "The Ferry"


@pytest.mark.req("S4-55")
def test_model_cannot_change_the_lock_of_a_page(stage, mara):
    mara.permissions.add("Admin")
    locked, new = drafts_of(
        stage,
        mara,
        "=== PAGE: The Vault ===\n---\nlocks: view:all()\n---\nOpen to all.\n"
        "=== PAGE: New ===\n---\nlocks: view:all()\n---\nNew.",
    )
    assert locked.draft.page.locks == "view:perm(Admin)"
    assert new.draft.page.locks == ""


@pytest.mark.req("S4-55")
def test_hidden_page_gets_no_draft(stage, mara):
    told = notes_of(stage, mara, "=== PAGE: The Vault ===\nEmpty.")
    assert told == "no draft was made of The Vault: the builder who asked may not read this page"


def test_each_page_of_an_answer_becomes_a_draft(stage, mara):
    text = "Here they are.\n\n=== PAGE: One ===\nFirst.\n\n=== page: [[Sources:Two]] ===\nSecond."
    found = drafts_of(stage, mara, text)
    assert [str(one.draft.page.name) for one in found] == ["One", "Sources:Two"]
    assert [one.draft.page.body for one in found] == ["First.\n", "Second.\n"]


def test_code_fence_around_a_page_is_removed(stage, mara):
    (draft,) = drafts_of(stage, mara, "=== PAGE: One ===\n```markdown\nFirst.\n```")
    assert draft.draft.page.body == "First.\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("=== PAGE: <b> ===\nText.", "'<b>' is not a valid page title"),
        ("=== PAGE: One ===\n", "no draft was made of One: the answer has no text for this page"),
        ("=== PAGE: One ===\n---\naliases: 3\n---\nText.", "aliases must be a list of texts"),
        ("=== PAGE: Oren ===\nOren rows [[The Ferry]].", ""),
    ],
)
def test_answer_notes_why_a_page_became_no_draft(stage, mara, text, told):
    write("harbour", "Oren", "Oren rows [[The Ferry]].\n")
    assert (told or "no draft was made of Oren: the page already says this") in notes_of(
        stage, mara, text
    )


def test_invisible_characters_are_removed_from_a_page(stage, mara):
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    text = f"=== PAGE: One ===\n* Fir\u200bst\u202e.{hidden}\n  * \x1b[31mSecond\x00."
    (draft,) = drafts_of(stage, mara, text)
    assert draft.draft.page.body == "* First.\n  * [31mSecond.\n"


def test_reasoning_is_removed_from_an_answer(stage, mara):
    (draft,) = drafts_of(
        stage, mara, "<think>=== PAGE: Thought ===\nHm.</think>=== PAGE: One ===\nFirst."
    )
    assert draft.draft.page.name.full == "One"


@pytest.mark.req("S4-54")
def test_draft_stores_revision_and_hash_of_each_source_page(stage, mara):
    (draft,) = drafts_of(stage, mara, "=== PAGE: One ===\nFirst.")
    for told in draft.context_meta["pages"]:
        page = stored("harbour", told["page"])
        assert (told["revision"], told["sha256"]) == (page.revision, page.sha256)


@pytest.mark.req("S4-54")
def test_stored_request_stays_the_same_after_its_pages_were_edited(stage, mara):
    told, writer = answered(stage, mara, "=== PAGE: One ===\nFirst.")
    for title in ("Instructions:World Bible", "The Ferry", "Oren", "Sources:The Log"):
        write("harbour", title, "Something else.")
    draft = page_drafts.draft_or_none(told.draft)
    assert draft is not None
    replayed = chat_messages(read_request(draft.package))
    assert [one.wire() for one in replayed] == [one.wire() for one in writer.asked[0].messages]
    assert sent_sha256(replayed) == draft.context_meta["sent_sha256"]


def test_answer_has_text_and_a_note_when_a_draft_cannot_be_stored(stage, mara, monkeypatch):
    monkeypatch.setattr(page_drafts, "MOST_WAITING", 1)
    drafts_of(stage, mara, "=== PAGE: One ===\nFirst.")
    told, _ = answered(stage, mara, "=== PAGE: Two ===\nSecond.")
    assert told.drafts == ()
    assert (
        "no draft was made of Two: 1 drafts of knowledge base 'harbour' wait already"
        in told.notes[0]
    )
    assert told.text == "=== PAGE: Two ===\nSecond."


def test_approved_draft_is_written_by_the_backend(stage, mara):
    (draft,) = drafts_of(stage, mara, "=== PAGE: Leek Show ===\nLeeks of [[Oren]].")
    written = (
        runtime().backends.of(get_base("harbour")).write(replace(draft.draft, by=trusted("Ada")))
    )
    assert stored("harbour", "Leek Show") == written
    assert [link.full for link in written.links] == ["Oren"]


def test_draft_is_not_written_when_its_page_changed_meanwhile(stage, mara):
    (draft,) = drafts_of(stage, mara, "=== PAGE: Oren ===\nOren sings.")
    write("harbour", "Oren", "Oren rows.")
    with pytest.raises(Exception, match="builder"):
        runtime().backends.of(get_base("harbour")).write(replace(draft.draft, by=trusted("Ada")))
    assert stored("harbour", "Oren").body == "Oren rows."
