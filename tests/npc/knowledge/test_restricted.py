"""A guarded base: the NPC's model gets safe summaries, and nothing else leaves the base."""

import json
from dataclasses import replace

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ModelRefused, ModelUnavailable, StoreError
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.endpoints import Models
from evennia_ai.store.history import turns
from evennia_ai.store.knowledge import knowledge_bases, knowledge_searches
from tests.npc.knowledge.cellars import (
    CANARIES,
    CODE,
    HARBOUR,
    PASSAGE,
    SUMMARY,
    TITLE,
    VAULT,
    WATCHWORD,
    a_page,
    answering,
    echoing,
    written,
)


def summary_in(text: str) -> dict:
    return json.loads(text)["restricted_safe_summary"]


@pytest.mark.req("S0-46", "S0-47")
def test_npc_model_gets_only_the_safe_summary(cellar, told):
    cellar.minds.mediates = answering(observations=["They trust nobody."], risks=["A fight."])
    envelope = json.loads(told())
    assert envelope["mode"] == "restricted_safe_summary"
    assert envelope["restricted_safe_summary"]["summary"] == SUMMARY
    assert envelope["restricted_safe_summary"]["observations"] == ["They trust nobody."]
    assert (envelope["results"], envelope["sources"], envelope["count"]) == ([], [], 0)
    assert envelope["total"] == 0  # the number of matching passages stays hidden


@pytest.mark.req("S0-45")
def test_mediator_gets_the_passages_at_temperature_0_1_without_tools(cellar, told):
    told()
    (request,) = cellar.minds.mediations
    assert PASSAGE in json.loads(request.messages[1].content)["chunks"][0]["content"]
    assert request.sampling.temperature == 0.1
    assert request.tools == ()


@pytest.mark.req("S0-43")
def test_mediator_is_not_asked_when_the_npc_does_not_search(cellar):
    cellar.minds.searches = None
    cellar.says(cellar.anna, "Oren, hello")
    assert len(cellar.minds.requests) == 1
    assert cellar.minds.mediations == []


@pytest.mark.req("S0-44")
def test_record_says_if_a_knowledge_base_was_searched_or_returned_whole(cellar, told):
    assert json.loads(told())["retrieval_mode"] == "rag_retrieval"
    knowledge_bases.save_base(replace(VAULT, direct_characters=5_000), by=trusted("builder"))
    written("vault", a_page("Ropes", "Knots of all sorts."))
    envelope = json.loads(told())
    assert envelope["retrieval_mode"] == "direct_injection"
    assert envelope["total"] == 2
    modes = [search.mode for search in knowledge_searches.searches_of(cellar.npc.ai.ref)]
    assert modes == ["rag_retrieval", "direct_injection"]


def fails(error: Exception):
    def mediate(request):
        raise error

    return mediate


@pytest.mark.req("S0-48")
@pytest.mark.parametrize(
    ("mediates", "reason"),
    [
        (fails(ModelUnavailable("m", "gone")), "safe_summary_model_unavailable"),
        (fails(ModelRefused("m", 400, PASSAGE)), "safe_summary_generation_failed"),
        (fails(ZeroDivisionError(PASSAGE)), "safe_summary_generation_failed"),
        (lambda request: "I cannot write JSON", "safe_summary_generation_failed"),
        (lambda request: PASSAGE, "safe_summary_generation_failed"),
        (answering(decision="perhaps"), "safe_summary_generation_failed"),
        (answering(confidence="sure"), "safe_summary_generation_failed"),
        (lambda request: "{}", "safe_summary_unclassified"),
        (answering(summary=PASSAGE), "safe_summary_withheld"),
        (answering(decision="refuse", reason="policy_meta"), "policy_meta"),
    ],
)
def test_every_mediator_failure_becomes_a_refusal_with_a_fixed_reason(
    cellar, told, mediates, reason
):
    cellar.minds.mediates = mediates
    summary = summary_in(told())
    assert (summary["decision"], summary["reason"]) == ("refuse", reason)
    assert (summary["summary"], summary["confidence"]) == ("", "low")


@pytest.mark.req("S0-40", "S0-46")
@pytest.mark.parametrize(
    "told_so", ["9 pence", "The 14th step.", "Look behind barrel 3.", "Step XIV", "nine of them"]
)
def test_summary_with_a_secret_number_in_another_form_is_withheld(cellar, told, told_so):
    secret = "The watchword costs ninepence behind the third barrel, at the fourteenth step."
    written("vault", a_page("The Price of the Words", secret))
    cellar.minds.mediates = answering(summary=told_so)
    assert summary_in(told())["reason"] == "safe_summary_withheld"


@pytest.mark.req("S0-40")
def test_result_is_the_same_whether_or_not_a_page_has_the_word(cellar, told):
    cellar.minds.mediates = answering(decision="refuse", reason="other", confidence="low")
    envelopes = []
    for word in ("zeppelin", WATCHWORD, "stairs", "quartz"):
        cellar.minds.searches = {"query": word}
        envelopes.append(told())
    assert len(cellar.minds.mediations) == 2
    assert len({json.dumps(json.loads(one), sort_keys=True) for one in envelopes}) == 1


@pytest.mark.req("S0-48")
def test_search_without_hits_refuses_without_asking_the_mediator(cellar, told):
    cellar.minds.searches = {"query": "zeppelin"}
    assert summary_in(told())["reason"] == "other"
    assert cellar.minds.mediations == []


def test_search_refuses_when_the_game_has_no_mediator_model(cellar, told, monkeypatch):
    monkeypatch.setattr(Models, "ready", lambda models, role: None)
    assert summary_in(told())["reason"] == "safe_summary_model_unavailable"


@pytest.mark.req("S0-54", "S0-55", "S0-56")
def test_log_has_the_number_of_passages_and_the_decision(cellar, told, logged):
    cellar.minds.mediates = answering(reason=f"It says {PASSAGE}", summary="Wait. " * 100)
    told()
    (starting,) = [line for line in logged if line.startswith("Starting safe summary")]
    (completed,) = [line for line in logged if line.startswith("Safe summary completed")]
    assert "chunks 1" in starting
    assert "chunks 1, decision answer, reason other, preview 'Wait. Wait." in completed
    assert len(completed.partition("preview ")[2]) <= 302


@pytest.mark.req("S0-57")
def test_log_says_that_request_and_response_were_stored(cellar, told, logged):
    told()
    lines = [line.partition(":")[0] for line in logged if line.startswith("Persist")]
    assert lines == ["Persist request", "Persist response"] * 2


@pytest.mark.req("S0-57")
@pytest.mark.parametrize("write", ["begin_search", "end_search"])
def test_search_continues_when_it_cannot_be_recorded(cellar, told, logged, monkeypatch, write):
    def refuse(*args, **fields):
        raise StoreError(f"away: {PASSAGE}")

    monkeypatch.setattr(f"evennia_ai.store.knowledge.knowledge_searches.{write}", refuse)
    assert summary_in(told())["summary"] == SUMMARY
    assert any("not stored (StoreError)" in line for line in logged)
    assert not [line for line in logged if "fourth step" in line]


@pytest.mark.req("S0-52")
def test_request_log_has_the_name_but_no_text_of_a_mediator_call(cellar, told, logged):
    cellar.install(cellar.minds, log_llm_requests="full")
    cellar.minds.mediates = echoing
    told()
    lines = [line for line in logged if line.startswith("LLM_")]
    mediation = [line for line in lines if "restricted_kb_safe_summary" in line]
    assert [line.partition(" ")[0] for line in mediation] == ["LLM_REQUEST", "LLM_RESPONSE"]
    assert "[redacted]" in mediation[0]
    assert not [line for line in lines if any(canary in line for canary in CANARIES)]


def returned(logged: list[str]) -> dict:
    """Return the first mediator reply in the request log."""
    lines = [line for line in logged if line.startswith("LLM_RESPONSE")]
    line = next(line for line in lines if "restricted_kb_safe_summary" in line)
    values: dict = json.loads(line.partition(" ")[2])
    return values


@pytest.mark.req("S0-53")
@pytest.mark.parametrize(
    ("fields", "decided"),
    [
        ({}, ("answer", "answerable", "high")),
        ({"decision": "refuse", "reason": "policy_meta"}, ("refuse", "policy_meta", "high")),
        ({"reason": PASSAGE, "confidence": PASSAGE}, ("answer", "other", "other")),
        ({"decision": PASSAGE}, ("other", "answerable", "high")),
    ],
)
def test_request_log_has_the_decision_but_no_text_of_a_mediator_reply(
    cellar, told, logged, fields, decided
):
    cellar.install(cellar.minds, log_llm_requests="full")
    texts = {"summary": PASSAGE, "observations": [PASSAGE], PASSAGE: PASSAGE}
    cellar.minds.mediates = answering(**texts, **fields)
    told()
    text = json.loads(returned(logged)["text"])
    assert (text["decision"], text["reason"], text["confidence"]) == decided
    assert text["summary"].startswith("[redacted] ")
    assert text["other_fields"] == 1
    assert not [line for line in logged if any(canary in line for canary in CANARIES)]


@pytest.mark.req("S0-53")
def test_preview_log_has_decision_and_reason_of_a_mediator_reply(cellar, told, logged):
    cellar.install(cellar.minds, log_llm_requests="preview")
    cellar.minds.mediates = answering(decision="refuse", reason="safe_summary_unclassified")
    told()
    assert returned(logged)["text"].startswith(
        '{"decision":"refuse","reason":"safe_summary_unclassified"'
    )


@pytest.mark.req("S0-53")
def test_request_log_redacts_a_mediator_reply_that_is_not_json(cellar, told, logged):
    cellar.install(cellar.minds, log_llm_requests="full")
    cellar.minds.mediates = lambda request: f"I would rather say: {PASSAGE}"
    told()
    lines = [one for one in logged if one.startswith("LLM_RESPONSE") and "restricted_kb" in one]
    assert all("[redacted]" in line for line in lines)
    assert not [line for line in lines if any(canary in line for canary in CANARIES)]


def test_record_of_a_restricted_search_has_no_secret(cellar, told):
    told()
    (search,) = knowledge_searches.searches_of(cellar.npc.ai.ref)
    assert (search.decision, search.reason, search.sent) == ("answer", "answerable", 1)
    assert [one["title"] for one in search.sources] == ["Source 1"]
    assert search.query not in search.result
    assert not [canary for canary in CANARIES if canary in repr(search)]


def vaulted() -> list[str]:
    return [one.content for one in knowledge_searches.open_vault("vault", by=trusted("Ada"))]


def test_vault_keeps_the_passages_of_a_search(cellar, told):
    told()
    assert vaulted() == [PASSAGE]


def test_vault_is_empty_when_the_knowledge_base_keeps_no_passages(cellar, told):
    knowledge_bases.save_base(replace(VAULT, keeps_chunks=False), by=trusted("builder"))
    told()
    assert vaulted() == []


def test_vault_is_empty_when_the_game_has_no_vault(cellar, told):
    cellar.install(cellar.minds, knowledge_vault=False)
    told()
    assert vaulted() == []


@pytest.fixture
def beside(cellar):
    """An open base in addition to the guarded one."""
    knowledge_bases.save_base(HARBOUR, by=trusted("builder"))
    written("harbour", a_page("Smugglers", "The watchword of the watch is told at noon."))
    knowledge_bases.assign_base(
        "harbour", Scope(kind="room", ref=str(cellar.room.id)), by=trusted("builder")
    )


@pytest.mark.usefixtures("beside")
def test_result_has_hits_of_an_open_knowledge_base_and_the_safe_summary(told):
    envelope = json.loads(told())
    assert envelope["mode"] == "mixed_restricted_retrieval"
    assert envelope["restricted_internal"]["results"] == []
    assert [one["knowledge_base_id"] for one in envelope["results"]] == ["harbour"]
    assert "at noon" in envelope["results"][0]["content"]


@pytest.mark.req("S0-19")
@pytest.mark.usefixtures("beside")
def test_search_is_limited_to_the_knowledge_bases_in_its_arguments(cellar, told):
    cellar.minds.searches = {"bases": ["harbour"]}
    assert "at noon" in told()
    assert cellar.minds.mediations == []
    cellar.minds.searches = {"bases": ["vault"]}
    assert json.loads(told())["mode"] == "restricted_safe_summary"


def test_restricted_lock_decides_which_npc_guards_the_knowledge_base(cellar, told):
    knowledge_bases.save_base(
        replace(VAULT, locks="restricted:tag(outsider)"), by=trusted("builder")
    )
    assert PASSAGE in told()
    cellar.npc.tags.add("outsider")
    assert json.loads(told())["mode"] == "restricted_safe_summary"


@pytest.mark.req("S0-40", "S0-46", "S0-48")
@pytest.mark.parametrize(
    ("summary", "secret"),
    [
        (f"One would turn it to {CODE}.", CODE),
        ("It wants four seven one one zero eight one five.", "four seven one one"),
        (f"Others read of {TITLE}.", TITLE),
        ("Ask in the Old Cellar.", "Old Cellar"),
        (f"A friend says {WATCHWORD}.", WATCHWORD),
    ],
    ids=["a number", "a number in words", "a title", "an alias", "a term"],
)
def test_summary_that_contains_one_secret_is_withheld(cellar, told, summary, secret):
    cellar.minds.mediates = answering(summary=summary)
    kept = summary_in(told())
    sent = [message.content for one in cellar.minds.requests for message in one.messages]

    assert (kept["decision"], kept["reason"]) == ("refuse", "safe_summary_withheld")
    assert [text for text in sent if secret in text] == []


@pytest.mark.req("S0-40")
def test_player_screen_has_no_secret_when_the_mediator_repeats_everything(cellar, told):
    cellar.minds.mediates = echoing
    told()
    said = " ".join(cellar.screen_of(cellar.anna))
    assert not [canary for canary in CANARIES if canary in said]
    assert "safe_summary_withheld" in said


def test_mediator_call_is_cancelled_with_its_turn(cellar):
    asked: list[Deferred] = []
    cellar.minds.mediates = lambda request: asked.append(Deferred()) or asked[-1]
    cellar.says(cellar.anna, "Oren, the watchword?")
    assert not asked[0].called
    cellar.ben.location = None
    cellar.anna.move_to(cellar.make("Quay", "evennia.objects.objects.DefaultRoom", place=None))
    cellar.passes(1)
    assert asked[0].called
    assert turns.last_turn(cellar.npc.ai.ref).state != "open"


def test_mediator_call_is_recorded_once(cellar, told):
    told()
    used = runtime().limits
    assert used is not None
    from evennia_ai import models

    roles = list(models.ModelCall.objects.values_list("role", flat=True))
    assert roles.count("mediator") == 1


def test_call_of_the_search_tool_has_its_name(cellar, told):
    told()
    call = cellar.minds.requests[-1].messages[-2].tool_calls[0]
    assert isinstance(call, ToolCall)
    assert call.name == TOOL


@pytest.mark.req("S0-41", "S0-42")
def test_turn_shows_the_safe_block_then_searches_then_gets_the_summary(cellar, told):
    told()
    first, second = cellar.minds.requests
    (block,) = [one for one in first.messages if "vault" in one.content]
    assert block.role == "user"
    assert first.messages.index(block) == len(first.messages) - 2
    assert VAULT.name in block.content
    assert VAULT.summary not in block.content
    assert json.loads(cellar.minds.mediations[0].messages[1].content)["chunks"]
    assert summary_in(second.messages[-1].content)["summary"] == SUMMARY
