"""Tests of mediation: the request to the mediator, and the checks of its answer."""

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
    build_envelope,
    mediator_messages,
    protect_passages,
    read_mediator_answer,
    refuse_answer,
    select_passages,
)

CANARY = "The watchword of the drowned vault is Mandragora, said over the fourth step."


def a_chunk(content: str = CANARY, **fields) -> PagePassage:
    usual = {"base": "vault", "base_name": "The vault", "title": "Watchword", "revision": "3"}
    return PagePassage(**{**usual, "score": 0.5, **fields}, content=content)


def an_answer(**fields) -> MediatorAnswer:
    usual = {"decision": "answer", "reason": "answerable", "summary": "Ask the keeper."}
    return MediatorAnswer(**{**usual, **fields})


def safe(answer: MediatorAnswer, *chunks: PagePassage) -> SafeSummary:
    return read_mediator_answer(answer, protect_passages(chunks or (a_chunk(),)))


@pytest.mark.req("S0-45")
def test_mediator_gets_at_most_24_passages():
    assert len(select_passages([a_chunk("x")] * 40)) == MOST_CHUNKS == 24


@pytest.mark.req("S0-45")
def test_mediator_gets_at_most_1200_characters_each_and_16000_in_all():
    sent = select_passages([a_chunk("x" * 5_000)] * 20)
    assert {len(one.content) for one in sent} == {1_200}
    assert sum(len(one.content) for one in sent) <= MOST_IN_ALL == 16_000
    assert len(sent) == 13


def test_mediator_gets_no_blank_passages():
    assert select_passages([a_chunk("  \n"), a_chunk("x")]) == (a_chunk("x"),)
    assert select_passages([]) == ()


@pytest.mark.req("S0-45")
def test_mediator_request_has_no_page_title():
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
def test_safe_summary_keeps_observations_risks_and_actions():
    made = safe(
        an_answer(observations=["It is old."], risks="Water.", recommended_actions=["Wait."])
    )
    told = build_envelope(made, mode="rag_retrieval", total=3)["restricted_safe_summary"]
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
def test_mediator_refusal_has_a_reason_of_the_closed_list(fields, reason):
    made = safe(MediatorAnswer(**fields))
    assert made == refuse_answer(reason)
    assert made.summary == ""


@pytest.mark.req("S0-48")
@pytest.mark.parametrize("fields", [{"decision": "maybe"}, {"confidence": "certain"}, {"risks": 3}])
def test_mediator_answer_is_invalid_with_a_value_outside_the_closed_lists(fields):
    with pytest.raises(ValidationError):
        MediatorAnswer(**fields)


def test_mediator_reason_in_its_own_words_becomes_other():
    assert safe(an_answer(reason=f"because {CANARY}")).reason == "other"


FIELDS = ("summary", "observations", "risks", "recommended_actions", "answer_guidance")


@pytest.mark.req("S0-46")
@pytest.mark.parametrize("field", FIELDS)
def test_mediator_answer_is_withheld_when_any_field_repeats_a_passage(field):
    value = CANARY if field in ("summary", "answer_guidance") else [CANARY]
    assert safe(an_answer(**{field: value})) == refuse_answer(WITHHELD)


@pytest.mark.req("S0-46")
def test_mediator_answer_is_withheld_when_its_fields_split_a_passage():
    head, tail = CANARY[:40], CANARY[40:]
    assert safe(an_answer(observations=[head], risks=[tail])) == refuse_answer(WITHHELD)


@pytest.mark.req("S0-46")
def test_mediator_answer_is_withheld_with_a_protected_title_or_term():
    assert safe(an_answer(summary="See the page Watchword.")) == refuse_answer(WITHHELD)
    secret = protect_passages([a_chunk("Said.")], terms=["Mandragora"])
    assert read_mediator_answer(an_answer(summary="Say mandragora"), secret) == refuse_answer(
        WITHHELD
    )


def test_safe_summary_fields_are_shortened_to_their_limits():
    made = safe(an_answer(summary="no " * 9_999, observations=["ja " * 999] * 99))
    assert len(made.summary) <= 2_000
    assert len(made.observations) == 8
    assert len(made.observations[0]) == 400


def test_safe_summary_preview_has_at_most_300_characters():
    assert len(safe(an_answer(summary="no " * 300)).preview) <= 300


@pytest.mark.req("S0-46")
@pytest.mark.parametrize("reason", [NO_CHUNKS, FAILED, UNAVAILABLE])
def test_restricted_search_result_has_no_pages_and_sources(reason):
    told = build_envelope(refuse_answer(reason), mode="direct_injection", total=2)
    assert told["mode"] == "restricted_safe_summary"
    assert told["retrieval_mode"] == "direct_injection"
    assert (told["results"], told["count"], told["sources"]) == ([], 0, [])
    assert told["total"] == 2
    assert told["restricted_safe_summary"]["decision"] == "refuse"
    assert told["restricted_safe_summary"]["confidence"] == "low"


def test_restricted_search_result_has_unrestricted_results_next_to_the_summary():
    told = build_envelope(
        refuse_answer(FAILED), mode="rag_retrieval", total=2, external=[{"title": "Ferry"}]
    )
    assert told["mode"] == "mixed_restricted_retrieval"
    assert told["results"] == [{"title": "Ferry"}]
    assert told["restricted_internal"]["results"] == []
