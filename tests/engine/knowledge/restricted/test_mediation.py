"""Mediation: what the mediator is sent, and what of its answer goes on."""

import json

import pytest
from pydantic import ValidationError

from evennia_ai.engine.knowledge.restricted.mediation import (
    FAILED,
    MOST_CHUNKS,
    MOST_IN_ALL,
    NO_CHUNKS,
    UNAVAILABLE,
    UNCLASSIFIED,
    WITHHELD,
    MediatorAnswer,
    PagePassage,
    SafeSummary,
    envelope,
    mediator_messages,
    protected_by,
    refused,
    sendable,
    summary_of,
)

CANARY = "The watchword of the drowned vault is Mandragora, said over the fourth step."


def a_chunk(content: str = CANARY, **fields) -> PagePassage:
    usual = {"base": "vault", "base_name": "The vault", "title": "Watchword", "revision": "3"}
    return PagePassage(**{**usual, "score": 0.5, **fields}, content=content)


def an_answer(**fields) -> MediatorAnswer:
    usual = {"decision": "answer", "reason": "answerable", "summary": "Ask the keeper."}
    return MediatorAnswer(**{**usual, **fields})


def safe(answer: MediatorAnswer, *chunks: PagePassage) -> SafeSummary:
    return summary_of(answer, protected_by(chunks or (a_chunk(),)))


@pytest.mark.req("S0-45")
def test_at_most_24_chunks_are_sent():
    assert len(sendable([a_chunk("x")] * 40)) == MOST_CHUNKS == 24


@pytest.mark.req("S0-45")
def test_a_chunk_has_at_most_1200_characters_and_all_have_16000():
    sent = sendable([a_chunk("x" * 5_000)] * 20)
    assert {len(one.content) for one in sent} == {1_200}
    assert sum(len(one.content) for one in sent) <= MOST_IN_ALL == 16_000
    assert len(sent) == 13


def test_blank_chunks_are_none():
    assert sendable([a_chunk("  \n"), a_chunk("x")]) == (a_chunk("x"),)
    assert sendable([]) == ()


@pytest.mark.req("S0-45")
def test_the_mediator_gets_question_bases_and_chunks_and_no_title():
    system, user = mediator_messages("how do I get in?", [a_chunk(), a_chunk("Other.")])
    told = json.loads(user.content)
    assert system.role == "system"
    assert told["query"] == "how do I get in?"
    assert told["knowledge_bases"] == [{"id": "vault", "name": "The vault"}]
    assert [one["source_index"] for one in told["chunks"]] == [1, 2]
    assert set(told["chunks"][0]) == {
        *("knowledge_base_id", "knowledge_base_name", "source_index", "score", "content")
    }
    assert "Watchword" not in user.content.replace(CANARY, "")


@pytest.mark.req("S0-47")
def test_observations_risks_and_actions_go_on():
    made = safe(
        an_answer(observations=["It is old."], risks="Water.", recommended_actions=["Wait."])
    )
    told = envelope(made, mode="rag_retrieval", total=3)["restricted_safe_summary"]
    assert told["observations"] == ["It is old."]
    assert told["risks"] == ["Water."]
    assert told["recommended_actions"] == ["Wait."]


@pytest.mark.req("S0-48")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, UNCLASSIFIED),
        ({"decision": "refuse", "reason": "policy_meta"}, "policy_meta"),
        ({"decision": "refuse", "reason": " POLICY_INVENTORY "}, "policy_inventory"),
        ({"decision": "refuse", "reason": "answerable"}, "other"),
        ({"decision": "refuse", "reason": CANARY}, "other"),
        ({"decision": "refuse", "reason": UNAVAILABLE}, "other"),
        ({"decision": "refuse", "reason": "policy_meta", "summary": CANARY}, "policy_meta"),
    ],
)
def test_what_is_no_answer_is_a_refusal_with_a_reason_of_the_list(fields, reason):
    made = safe(MediatorAnswer(**fields))
    assert made == refused(reason)
    assert made.summary == ""


@pytest.mark.req("S0-48")
@pytest.mark.parametrize("fields", [{"decision": "maybe"}, {"confidence": "certain"}, {"risks": 3}])
def test_a_value_outside_the_enums_is_no_answer_at_all(fields):
    with pytest.raises(ValidationError):
        MediatorAnswer(**fields)


def test_a_reason_in_the_models_own_words_becomes_other():
    assert safe(an_answer(reason=f"because {CANARY}")).reason == "other"


FIELDS = ("summary", "observations", "risks", "recommended_actions", "answer_guidance")


@pytest.mark.req("S0-46")
@pytest.mark.parametrize("field", FIELDS)
def test_an_answer_that_repeats_a_passage_anywhere_is_withheld(field):
    value = CANARY if field in ("summary", "answer_guidance") else [CANARY]
    assert safe(an_answer(**{field: value})) == refused(WITHHELD)


@pytest.mark.req("S0-46")
def test_a_passage_that_is_parted_between_fields_is_withheld():
    head, tail = CANARY[:40], CANARY[40:]
    assert safe(an_answer(observations=[head], risks=[tail])) == refused(WITHHELD)


@pytest.mark.req("S0-46")
def test_a_title_and_a_term_are_withheld():
    assert safe(an_answer(summary="See the page Watchword.")) == refused(WITHHELD)
    secret = protected_by([a_chunk("Said.")], terms=["Mandragora"])
    assert summary_of(an_answer(summary="Say mandragora"), secret) == refused(WITHHELD)


def test_fields_are_bounded():
    made = safe(an_answer(summary="no " * 9_999, observations=["ja " * 999] * 99))
    assert len(made.summary) <= 2_000
    assert len(made.observations) == 8
    assert len(made.observations[0]) == 400


def test_the_preview_has_at_most_300_characters():
    assert len(safe(an_answer(summary="no " * 300)).preview) <= 300


@pytest.mark.req("S0-46")
@pytest.mark.parametrize("reason", [NO_CHUNKS, FAILED, UNAVAILABLE])
def test_the_envelope_has_no_results_and_no_sources(reason):
    told = envelope(refused(reason), mode="direct_injection", total=2)
    assert told["mode"] == "restricted_safe_summary"
    assert told["retrieval_mode"] == "direct_injection"
    assert (told["results"], told["count"], told["sources"]) == ([], 0, [])
    assert told["total"] == 2
    assert told["restricted_safe_summary"]["decision"] == "refuse"
    assert told["restricted_safe_summary"]["confidence"] == "low"


def test_ordinary_results_stand_beside_the_safe_summary():
    told = envelope(refused(FAILED), mode="rag_retrieval", total=2, external=[{"title": "Ferry"}])
    assert told["mode"] == "mixed_restricted_retrieval"
    assert told["results"] == [{"title": "Ferry"}]
    assert told["restricted_internal"]["results"] == []
