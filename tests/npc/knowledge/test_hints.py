"""A guarded base with mediation by hints: what the mediator and the NPC's model get."""

import json
from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.engine.knowledge.pages.page import PageDraft
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.services.endpoints import Models
from evennia_ai.store.knowledge import knowledge_bases, knowledge_searches, pages
from tests.npc.knowledge.cellars import CANARIES, PASSAGE, TITLE, VAULT, a_page, answering, written

LAMP, COOK = "Look for the lamp in the fog.", "Be friendly to the cook."
INN = "The Landlady of the Inn"


def now(title):
    return pages.page_or_none("vault", a_page(title, "").name)


def saved(page):
    pages.save_page("vault", PageDraft(page=page, was=page.revision, by=trusted("builder")))


@pytest.fixture
def hinting(cellar):
    """The stage whose guarded base offers only hints. Two of its pages have a hint."""
    knowledge_bases.save_base(replace(VAULT, mediation="hints"), by=trusted("builder"))
    page = now(TITLE)
    fields = {**page.meta.fields, "hints": [LAMP]}
    saved(replace(page, meta=replace(page.meta, fields=fields)))
    written("vault", a_page(INN, "She knows.", fields={"hints": COOK}))
    cellar.minds.mediates = lambda request: '{"hints": [1]}'
    return cellar


def summary_in(text: str) -> dict:
    return json.loads(text)["restricted_safe_summary"]


def offered(stage, place: int = -1) -> dict:
    return json.loads(stage.minds.mediations[place].messages[1].content)["hints"]


@pytest.mark.req("S0-40", "S0-46")
def test_no_model_gets_the_text_of_a_page(hinting, told):
    hinting.minds.searches = {"query": "watchword lamp"}
    told()
    assert set(offered(hinting).values()) == {LAMP, COOK}
    requests = [*hinting.minds.mediations, *hinting.minds.requests]
    sent = "\n".join(message.content for one in requests for message in one.messages)
    assert not [canary for canary in CANARIES if canary in sent]


@pytest.mark.req("S0-40", "S0-46")
def test_npc_gets_the_hint_whose_number_the_mediator_chose(hinting, told):
    summary = summary_in(told())
    assert (summary["decision"], summary["reason"]) == ("answer", "answerable")
    assert summary["summary"] == offered(hinting)["1"]


@pytest.mark.req("S0-48")
@pytest.mark.parametrize(
    "mediates",
    [
        answering(summary=PASSAGE),
        lambda request: PASSAGE,
        lambda request: '{"hints": [9]}',
        lambda request: json.dumps({"hints": [1], "note": PASSAGE}),
    ],
)
def test_mediator_reply_without_valid_hint_numbers_becomes_a_refusal(hinting, told, mediates):
    hinting.minds.mediates = mediates
    summary = summary_in(told())
    assert (summary["decision"], summary["summary"]) == ("refuse", "")
    assert summary["reason"] == "safe_summary_generation_failed"


@pytest.mark.req("S0-48")
def test_unavailable_mediator_becomes_a_refusal(hinting, told):
    def away(request):
        raise ModelUnavailable("m", "gone")

    hinting.minds.mediates = away
    assert summary_in(told())["reason"] == "safe_summary_model_unavailable"


def test_hint_is_chosen_by_words_without_a_mediator(hinting, told, monkeypatch):
    monkeypatch.setattr(Models, "thinking", lambda models, role: ())
    hinting.minds.searches = {"query": "does the cook know"}
    assert summary_in(told())["summary"] == COOK
    hinting.minds.searches = {"query": "fourth step of the cellar"}
    assert summary_in(told())["reason"] == "no_hint_fits"
    assert hinting.minds.mediations == []


@pytest.mark.req("S0-46")
def test_offered_hints_do_not_depend_on_page_texts(hinting, told):
    for query in ("watchword", "zeppelin"):
        hinting.minds.searches = {"query": query}
        told()
    assert offered(hinting, 0) == offered(hinting, 1) != {}


def test_hint_of_a_page_that_the_npc_may_not_find_is_not_offered(hinting, told):
    saved(replace(now(INN), locks="search:false()"))
    told()
    assert offered(hinting) == {"1": LAMP}


def test_knowledge_base_without_hints_refuses_without_asking_the_mediator(cellar, told):
    knowledge_bases.save_base(replace(VAULT, mediation="hints"), by=trusted("builder"))
    assert summary_in(told())["reason"] == "other"
    assert cellar.minds.mediations == []


@pytest.mark.req("S0-53")
def test_log_has_the_chosen_numbers_and_the_vault_is_empty(hinting, told, logged):
    hinting.install(hinting.minds, log_llm_requests="full")
    told()
    (line,) = [one for one in logged if one.startswith("LLM_RESPONSE") and "restricted_kb" in one]
    assert json.loads(json.loads(line.partition(" ")[2])["text"]) == {"hints": [1]}
    assert not knowledge_searches.open_vault("vault", by=trusted("Ada"))


def test_result_has_summary_and_hint_when_both_kinds_of_knowledge_bases_are_searched(hinting, told):
    other = replace(VAULT, key="attic", name="The attic", keywords=(), hint="")
    knowledge_bases.save_base(other, by=trusted("builder"))
    written("attic", a_page("The Attic of the Widow", "Here a watchword was kept in a drawer."))
    knowledge_bases.assign_base(
        "attic", Scope(kind="npc", ref=hinting.npc.ai.ref), by=trusted("builder")
    )

    def mediates(request):
        is_choice = "numbered hints" in request.messages[0].content
        return '{"hints": [2]}' if is_choice else answering(summary="Ask about.")(request)

    hinting.minds.mediates = mediates
    hinting.minds.searches = {"query": "watchword"}
    assert summary_in(told())["summary"].splitlines()[0] == "Ask about."
    assert summary_in(told())["summary"].splitlines()[1] in {LAMP, COOK}
