"""A guarded base that tells hints alone: what any model gets of it, and what an NPC is told."""

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
    """The cellar's base tells hints alone; two of its pages have one."""
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
def test_no_text_of_a_page_is_sent_to_any_model(hinting, told):
    hinting.minds.searches = {"query": "watchword lamp"}
    told()
    assert set(offered(hinting).values()) == {LAMP, COOK}
    requests = [*hinting.minds.mediations, *hinting.minds.requests]
    sent = "\n".join(message.content for one in requests for message in one.messages)
    assert not [canary for canary in CANARIES if canary in sent]


@pytest.mark.req("S0-40", "S0-46")
def test_the_npc_is_told_the_hint_of_the_number_and_nothing_else(hinting, told):
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
def test_anything_but_numbers_of_hints_is_a_refusal(hinting, told, mediates):
    hinting.minds.mediates = mediates
    summary = summary_in(told())
    assert (summary["decision"], summary["summary"]) == ("refuse", "")
    assert summary["reason"] == "safe_summary_generation_failed"


@pytest.mark.req("S0-48")
def test_a_model_that_is_away_is_a_refusal(hinting, told):
    def away(request):
        raise ModelUnavailable("m", "gone")

    hinting.minds.mediates = away
    assert summary_in(told())["reason"] == "safe_summary_model_unavailable"


def test_without_a_model_words_choose(hinting, told, monkeypatch):
    monkeypatch.setattr(Models, "thinking", lambda models, role: ())
    hinting.minds.searches = {"query": "does the cook know"}
    assert summary_in(told())["summary"] == COOK
    hinting.minds.searches = {"query": "fourth step of the cellar"}
    assert summary_in(told())["reason"] == "no_hint_fits"
    assert hinting.minds.mediations == []


@pytest.mark.req("S0-46")
def test_what_is_offered_depends_on_no_text_of_a_page(hinting, told):
    for query in ("watchword", "zeppelin"):
        hinting.minds.searches = {"query": query}
        told()
    assert offered(hinting, 0) == offered(hinting, 1) != {}


def test_a_page_that_the_npc_may_not_find_has_no_hint_for_it(hinting, told):
    saved(replace(now(INN), locks="search:false()"))
    told()
    assert offered(hinting) == {"1": LAMP}


def test_a_base_without_hints_refuses_and_asks_nobody(cellar, told):
    knowledge_bases.save_base(replace(VAULT, mediation="hints"), by=trusted("builder"))
    assert summary_in(told())["reason"] == "other"
    assert cellar.minds.mediations == []


@pytest.mark.req("S0-53")
def test_the_log_has_the_numbers_and_the_vault_nothing(hinting, told, logged):
    hinting.install(hinting.minds, log_llm_requests="full")
    told()
    (line,) = [one for one in logged if one.startswith("LLM_RESPONSE") and "restricted_kb" in one]
    assert json.loads(json.loads(line.partition(" ")[2])["text"]) == {"hints": [1]}
    assert not knowledge_searches.open_vault("vault", by=trusted("Ada"))


def test_beside_a_base_with_summaries_both_are_told(hinting, told):
    other = replace(VAULT, key="attic", name="The attic", keywords=(), hint="")
    knowledge_bases.save_base(other, by=trusted("builder"))
    written("attic", a_page("The Attic of the Widow", "Here a watchword was kept in a drawer."))
    knowledge_bases.bind_base(
        "attic", Scope(kind="npc", ref=hinting.npc.ai.ref), by=trusted("builder")
    )

    def mediates(request):
        is_choice = "numbered hints" in request.messages[0].content
        return '{"hints": [2]}' if is_choice else answering(summary="Ask about.")(request)

    hinting.minds.mediates = mediates
    hinting.minds.searches = {"query": "watchword"}
    assert summary_in(told())["summary"].splitlines()[0] == "Ask about."
    assert summary_in(told())["summary"].splitlines()[1] in {LAMP, COOK}
