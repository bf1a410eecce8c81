"""Test stored searches, and the vault."""

import json

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.knowledge.restricted.mediation import PagePassage
from evennia_ai.store.erasing import erase_conversation, forget_person
from evennia_ai.store.history import conversations
from evennia_ai.store.knowledge import knowledge_bases, knowledge_searches
from evennia_ai.store.knowledge.knowledge_searches import NewSearch

CANARY = "The watchword is Mandragora."


def a_chunk(content: str = CANARY, **fields) -> PagePassage:
    usual = {"base": "vault", "base_name": "The vault", "title": "Watchword", "revision": "3"}
    return PagePassage(**{**usual, "score": 0.5, **fields}, content=content)


@pytest.fixture
def where(db):
    for key in ("vault", "other"):
        knowledge_bases.save_base(BaseInfo(key=key, name=f"The {key}"), by=trusted("Ada"))
    return conversations.get_or_open_conversation("7", kind="room", place_ref="2")


def a_search(where, **fields) -> NewSearch:
    usual = {"turn": 4, "speaker_ref": "9", "bases": ("vault",), "query": "the watchword"}
    counts = {"restricted": True, "mode": "rag_retrieval", "total": 3, "sent": 1}
    return NewSearch(conversation=where, **{**usual, **counts, **fields})


def test_search_is_stored_when_it_begins_and_when_it_ends(where):
    number = knowledge_searches.begin_search(a_search(where), [a_chunk()])
    (begun,) = knowledge_searches.searches_of("7")
    assert (begun.id, begun.ended_at, begun.result) == (number, None, "")
    knowledge_searches.end_search(number, "told", decision="refuse", reason="other")
    (ended,) = knowledge_searches.searches_of_turns("7", 4, 4)
    assert (ended.result, ended.decision, ended.reason) == ("told", "refuse", "other")
    assert ended.ended_at is not None
    assert ended.conversation == where
    assert knowledge_searches.searches_of_turns("7", 5, 9) == ()


def test_sources_of_a_restricted_search_are_numbers_and_hashes(where):
    knowledge_searches.begin_search(a_search(where), [a_chunk(), a_chunk("Else.")])
    (found,) = knowledge_searches.searches_of("7")
    assert [one["title"] for one in found.sources] == ["Source 1", "Source 2"]
    assert found.sources[0]["sha256"] == a_chunk().sha256
    assert "Watchword" not in json.dumps(found.sources)


def test_sources_of_an_ordinary_search_have_titles(where):
    knowledge_searches.begin_search(a_search(where, restricted=False), [a_chunk()])
    assert knowledge_searches.searches_of("7")[-1].sources[0]["title"] == "Watchword"


def test_searches_are_counted_by_conversation_speaker_and_time(where):
    other = conversations.get_or_open_conversation("7", kind="private", partner_ref="9")
    for one in (a_search(where), a_search(where, speaker_ref="8"), a_search(other)):
        knowledge_searches.begin_search(one, [])
    assert knowledge_searches.count_since(where, "9", since=0) == 1
    assert knowledge_searches.count_since(where, "9", since=10**11) == 0


def test_vault_has_only_the_passages_put_into_it(where):
    knowledge_searches.begin_search(a_search(where), [a_chunk()])
    assert knowledge_searches.open_vault("vault", by=trusted("Ada")) == ()
    knowledge_searches.begin_search(a_search(where), [a_chunk()], vaulted=[a_chunk()])
    (kept,) = knowledge_searches.open_vault("vault", by=trusted("Ada"))
    assert (kept.title, kept.revision, kept.content) == ("Watchword", "3", CANARY)
    assert knowledge_searches.open_vault("other", by=trusted("Ada")) == ()


def test_every_reading_of_a_vault_is_recorded(where):
    knowledge_searches.begin_search(a_search(where), [a_chunk()], vaulted=[a_chunk()])
    knowledge_searches.open_vault("vault", by=trusted("Ada"))
    knowledge_searches.open_vault("vault", by=trusted("Bo"))
    assert [(one.by, one.chunks) for one in knowledge_searches.vault_readings("vault")] == [
        ("Bo", 1),
        ("Ada", 1),
    ]


def test_emptied_vault_has_no_passages(where):
    knowledge_searches.begin_search(a_search(where), [a_chunk()], vaulted=[a_chunk()])
    assert knowledge_searches.empty_vault("vault", by=trusted("Ada")) == 1
    assert knowledge_searches.open_vault("vault", by=trusted("Ada")) == ()


def test_removed_knowledge_base_leaves_an_empty_vault(where):
    knowledge_searches.begin_search(a_search(where), [a_chunk()], vaulted=[a_chunk()])
    knowledge_bases.remove_base("vault", by=trusted("Ada"))
    with pytest.raises(NotStoredError, match="there is no knowledge base 'vault'"):
        knowledge_searches.open_vault("vault", by=trusted("Ada"))


def _is_erased() -> bool:
    (found,) = knowledge_searches.searches_of("7")
    kept = knowledge_searches.open_vault("vault", by=trusted("Ada"))
    return not (found.query or found.result or found.sources or found.speaker_ref or kept)


@pytest.fixture
def searched(where):
    number = knowledge_searches.begin_search(a_search(where), [a_chunk()], vaulted=[a_chunk()])
    knowledge_searches.end_search(number, "told")
    return where


def test_forgetting_a_person_erases_their_searches(searched):
    forget_person("9", by=trusted("Ada"), npc_ref="8")
    assert not _is_erased()
    forget_person("9", by=trusted("Ada"), npc_ref="7")
    assert _is_erased()


def test_erasing_a_conversation_erases_its_searches(searched):
    said = NewRecord(kind=RecordKind.USER, role="user", body="Hm?")
    conversations.append_records(searched, [said])
    erase_conversation(searched, by=trusted("Ada"))
    assert _is_erased()
