"""The pages about knowledge: bases, their texts, searches as an NPC, drafts and the vault."""

import json
from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.markup import read_page
from evennia_ai.engine.knowledge.pages.page import BaseInfo, PageDraft, page_name
from evennia_ai.engine.knowledge.restricted.mediation import PagePassage
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.knowledge import (
    knowledge_bases,
    knowledge_searches,
    page_drafts,
    pages,
)
from tests.npc.lorekeeper.wikis import write
from tests.web.test_pages import as_json

CANARY = "canary-7731"


@pytest.fixture
def base(played):
    knowledge_bases.save_base(
        BaseInfo(key="harbour", name="The Harbour", summary="Ships."), by=trusted("builder")
    )
    write("harbour", "The Ferry", "The ferry sails at dusk. See [[The Bell]].")
    write("harbour", "The Bell", "The bell hung in the chapel.")
    knowledge_bases.assign_base(
        "harbour", Scope(kind="npc", ref=played.npc.ai.ref), by=trusted("builder")
    )
    return "harbour"


@pytest.fixture
def draft(base):
    now = pages.page_or_none(base, page_name("The Bell"))
    wanted = read_page(now.name, "The bell hung in the chapel until the winter of the ice.")
    made = PageDraft(page=wanted, was=now.revision, by=trusted("lorekeeper"), note="")
    return page_drafts.add_draft(base, made, task="Say until when.", context_meta={}).number


def test_knowledge_base_is_listed_searched_and_its_pages_shown(base, browser):
    client = browser("Builder")
    listed = {one["key"]: one for one in as_json(client, "/ai/kb/")["bases"]}
    assert (listed[base]["pages"], listed[base]["assigned_to"]) == (2, ["npc Oren"])
    told = as_json(client, f"/ai/kb/{base}/?words=dusk")
    assert told["titles"] == ["The Bell", "The Ferry"]
    assert [one["title"] for one in told["hits"]] == ["The Ferry"]
    assert as_json(client, f"/ai/kb/{base}/?find=bell")["titles"] == ["The Bell"]
    page = as_json(client, f"/ai/kb/{base}/page/The Bell/")
    assert page["linked_from"] == ["The Ferry"]
    assert "in the chapel" in client.get(f"/ai/kb/{base}/page/The Bell/").content.decode()


def test_knowledge_page_shows_what_a_revision_changed(base, browser):
    write(base, "The Ferry", "The ferry sails at dawn.")
    told = as_json(browser("Builder"), f"/ai/kb/{base}/page/The Ferry/?revision=2")
    changed = [(one["how"], one["text"]) for one in told["difference"]]
    assert ("gone", "The ferry sails at dusk.") in changed
    assert ("new", "The ferry sails at dawn.") in changed
    answer = browser("Admin").get(f"/ai/kb/{base}/page/The Ferry/?revision=9")
    assert answer.status_code == 404


def test_search_as_an_npc_shows_what_the_npc_finds_and_stores_nothing(played, base, browser):
    write(
        base, "Below", f"---\nlocks: search:tag(smuggler)\n---\nBelow the quay at dusk: {CANARY}."
    )
    client = browser("Builder")
    asked = {"npc": "oren", "words": "what happens at dusk"}
    told = client.post(f"/ai/kb/{base}/?format=json", asked).json()["as_npc"]
    assert [one["title"] for one in told["passages"]] == ["The Ferry"]
    assert (told["may_search"], told["guards"]) == (True, False)
    assert knowledge_searches.bases_of(played.npc.ai.ref) == frozenset()
    text = client.post(f"/ai/kb/{base}/", asked).content.decode()
    assert "Oren finds 1 passage." in text
    knowledge_bases.unassign_base(
        base, Scope(kind="npc", ref=played.npc.ai.ref), by=trusted("builder")
    )
    assert "may not search this base" in client.post(f"/ai/kb/{base}/", asked).content.decode()


@pytest.mark.parametrize(
    ("npc", "words", "problem"),
    [("nobody", "dusk", "no NPC has this name"), ("Oren", " ", "no words to search for")],
)
def test_search_as_an_npc_is_refused_without_npc_or_words(base, browser, npc, words, problem):
    answer = browser("Builder").post(f"/ai/kb/{base}/", {"npc": npc, "words": words})
    assert (answer.status_code, problem in answer.content.decode()) == (400, True)


def test_draft_page_shows_and_approves_a_draft(base, draft, browser):
    client = browser("Builder")
    assert draft in [one["number"] for one in as_json(client, "/ai/kb/")["drafts"]]
    told = as_json(client, f"/ai/drafts/{draft}/")
    assert {one["how"] for one in told["difference"]} >= {"gone", "new"}
    answer = client.post(f"/ai/drafts/{draft}/", {"do": "approve"})
    assert (answer.status_code, answer["Location"]) == (302, f"/ai/drafts/{draft}/")
    assert "winter of the ice" in pages.page_or_none(base, page_name("The Bell")).body
    assert page_drafts.draft_or_none(draft).decided_by == "a-Builder"
    answer = client.post(f"/ai/drafts/{draft}/", {"do": "approve"})
    assert (answer.status_code, "already approved by a-Builder" in answer.content.decode()) == (
        409,
        True,
    )


def test_draft_is_not_approved_when_its_page_was_changed_since(base, draft, browser):
    write(base, "The Bell", "It was sold.")
    client = browser("Builder")
    assert "cannot be approved" in client.get(f"/ai/drafts/{draft}/").content.decode()
    answer = client.post(f"/ai/drafts/{draft}/", {"do": "approve"})
    assert (answer.status_code, "Nothing was written" in answer.content.decode()) == (409, True)
    assert pages.page_or_none(base, page_name("The Bell")).body.strip() == "It was sold."
    client.post(f"/ai/drafts/{draft}/", {"do": "refuse"})
    assert page_drafts.draft_or_none(draft).state == "refused"


def test_builder_who_may_not_change_a_knowledge_base_cannot_decide_its_drafts(base, draft, browser):
    info = knowledge_bases.get_base(base)
    knowledge_bases.save_base(replace(info, locks="edit:perm(Admin)"), by=trusted("builder"))
    client = browser("Builder")
    for do in ("approve", "refuse"):
        assert client.post(f"/ai/drafts/{draft}/", {"do": do}).status_code == 403
    assert page_drafts.draft_or_none(draft).state == "waiting"
    answer = browser("Admin").post(f"/ai/drafts/{draft}/", {"do": "approve"})
    assert answer.status_code == 302


def vaulted(stage, text):
    """Let a restricted search of the NPC find this passage, so that the vault stores it."""
    [known] = [one for one in conversations_of(stage.npc.ai.ref) if one.kind == "room"]
    passage = PagePassage(
        base="cellar", base_name="Cellar", title="Quay", revision="1", score=1.0, content=text
    )
    new = knowledge_searches.NewSearch(
        conversation=known,
        turn=1,
        speaker_ref="",
        bases=("cellar",),
        query="the quay",
        restricted=True,
        mode="rag_retrieval",
        total=1,
        sent=1,
    )
    knowledge_searches.begin_search(new, [passage], vaulted=[passage])


@pytest.fixture
def cellar(played, base):
    knowledge_bases.save_base(
        BaseInfo(key="cellar", name="Cellar", restricted=True), by=trusted("builder")
    )
    page = write("cellar", "Quay", f"Under the quay: {CANARY}.")
    wanted = read_page(page.name, f"Under the old quay: {CANARY}.")
    made = PageDraft(page=wanted, was=page.revision, by=trusted("lorekeeper"))
    number = page_drafts.add_draft("cellar", made, task="Older.", context_meta={}).number
    knowledge_bases.assign_base(
        "cellar", Scope(kind="npc", ref=played.npc.ai.ref), by=trusted("builder")
    )
    vaulted(played, f"Under the quay: {CANARY}.")
    return number


def everywhere(draft):
    return (
        "/ai/kb/",
        "/ai/kb/cellar/?words=quay",
        "/ai/kb/cellar/page/Quay/",
        "/ai/kb/cellar/page/Quay/?revision=1",
        "/ai/kb/cellar/vault/",
        f"/ai/drafts/{draft}/",
    )


@pytest.mark.long
@pytest.mark.parametrize("rank", ["Builder", "Admin"])
def test_restricted_texts_are_shown_only_in_the_vault(cellar, browser, rank):
    client = browser(rank)
    told = [client.get(one).content.decode() for one in everywhere(cellar)]
    told += [json.dumps(as_json(client, one)) for one in everywhere(cellar)]
    told.append(client.post("/ai/kb/cellar/", {"npc": "Oren", "words": "quay"}).content.decode())
    assert "The base is restricted for this NPC" in told[-1]
    assert not any(CANARY in text for text in told)
    assert knowledge_searches.vault_readings("cellar") == ()
    assert CANARY in client.post("/ai/kb/cellar/vault/").content.decode()
    [reading] = knowledge_searches.vault_readings("cellar")
    assert (reading.by, reading.chunks) == (f"a-{rank}", 1)


def test_hidden_knowledge_base_and_hidden_page_are_not_found(cellar, base, browser):
    info = knowledge_bases.get_base("cellar")
    knowledge_bases.save_base(replace(info, locks="view:perm(Admin)"), by=trusted("builder"))
    write(base, "Hidden", f"---\nlocks: view:perm(Admin)\n---\nA ledger: {CANARY}.")
    forget_everything()
    client = browser("Builder")
    for one in (*everywhere(cellar)[1:], f"/ai/kb/{base}/page/Hidden/"):
        assert client.get(one).status_code == 404, one
    assert client.post("/ai/kb/cellar/vault/").status_code == 404
    assert knowledge_searches.vault_readings("cellar") == ()
    told = json.dumps(
        [
            as_json(client, "/ai/kb/"),
            as_json(client, f"/ai/kb/{base}/?words=ledger"),
            client.post(f"/ai/kb/{base}/?format=json", {"npc": "Oren", "words": "ledger"}).json(),
        ]
    )
    assert "cellar" not in told.lower() and "Hidden" not in told and CANARY not in told
    admin = browser("Admin")
    assert CANARY in admin.get(f"/ai/kb/{base}/page/Hidden/").content.decode()
