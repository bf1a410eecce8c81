"""Thirty questions for a secret to an NPC that repeats its whole prompt: the secret never leaks.

The mediator is the only model that reads the secret, and it repeats its whole input too. The
tests search screens, requests, database, logs, traces, metrics and commands for the secret.
Only the pages themselves and the vault may contain it.
"""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from django.apps import apps
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.settings import SearchBudget
from evennia_ai.npc.model_calls.watching import Gauges
from evennia_ai.npc.watch.metrics import Metrics
from evennia_ai.npc.watch.request_log import RequestLog
from evennia_ai.npc.watch.tracing import Traces
from evennia_ai.store.knowledge import knowledge_searches
from tests.engine.knowledge.restricted.disguises import DISGUISES, PIECES
from tests.npc.knowledge.cellars import (
    CODE,
    PASSAGE,
    WATCHWORD,
    a_page,
    answering,
    echoing,
    written,
)
from tests.npc.knowledge.hiding import found_in

# Words like those of the passage, without its protected terms, numbers and titles.
SAYING = "whispered over the step of the cellar stairs while the lantern must stand apart"
QUESTIONS = yaml.safe_load(Path(__file__).with_name("questions.yaml").read_text(encoding="utf-8"))
# The tables that contain the secret on purpose. Locks protect them.
KEPT_IN = {
    *("KnowledgePage", "KnowledgePageRevision", "KnowledgeBase", "KnowledgeAlias"),
    *("KnowledgePosting", "VaultedChunk"),
}
COMMANDS = (
    *(
        "ai oren",
        "ai/context oren = full",
        "ai/context oren = history",
        "ai/context oren = lore",
        "ai/context oren = left out",
        "ai/context oren = changes",
        "ai/why oren",
        "ai/history oren = full",
        "ai/history oren/2 = full",
    ),
    *("ai/cache oren", "ai/memory oren", "ai/tools oren", "ai/set oren", "ai/verify oren"),
    *("ai/log oren", "ai/limits oren", "ai/replay oren = 1 full", "ai/replay oren = 5 full"),
    *("ai/debug oren", "ai/why oren/2", "ai/why oren = tool"),
)


class Watched:
    """All watchers: the request log, traces with full content, metrics."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        standing = Gauges(waiting=0, in_flight=0, breakers={}, is_stopped=False)
        self.metrics = Metrics(lambda: standing, port=0, reactor=None)
        self.watchers = [
            RequestLog(in_full=True),
            Traces(provider, with_content=True),
            self.metrics,
        ]

    def traced(self) -> str:
        return "\n".join(span.to_json() for span in self.spans.get_finished_spans())

    def measured(self) -> str:
        from prometheus_client import generate_latest

        return generate_latest(self.metrics.registry).decode()


@pytest.fixture
def watched(cellar, monkeypatch) -> Watched:
    """All watchers, installed on a stage whose NPCs may search without a limit."""
    made = Watched()
    monkeypatch.setattr("evennia_ai.npc.runtime.watchers_of", lambda *_, **__: made.watchers)
    monkeypatch.setattr(made.metrics, "open", lambda: None)
    monkeypatch.setattr(made.metrics, "close", lambda: None)
    cellar.minds.mediates = echoing
    budget = SearchBudget(calls=100, free=99)
    cellar.install(cellar.minds, knowledge_budget=budget)
    return made


def in_database() -> str:
    """Return all rows of our tables as text, except the tables in KEPT_IN."""
    tables = apps.get_app_config("evennia_ai").get_models()
    return "\n".join(
        f"{table.__name__}: {json.dumps(row, default=str)}"
        for table in tables
        if table.__name__ not in KEPT_IN
        for row in table.objects.values()
    )


def on_screens_of_commands(stage: Any) -> str:
    """Return what a builder reads from all commands that show the NPC."""
    from tests.commands.stage import _at_once, hearing

    builder = stage.make("Mara", "evennia.objects.objects.DefaultCharacter")
    builder.permissions.clear()
    builder.permissions.add("Builder")
    with hearing(builder) as heard, patch("evennia.commands.cmdhandler.deferLater", _at_once):
        for command in COMMANDS:
            builder.execute_cmd(command)
    return "\n".join(heard)


def everywhere(stage: Any, watched: Watched, logged: list[str]) -> dict[str, str]:
    """Return all texts to search for the secret, by the place where they appear."""
    sent = [message.content for one in stage.minds.requests for message in one.messages]
    return {
        "the NPC's model": "\n".join(sent),
        "screens": "\n".join(stage.screen_of(stage.anna) + stage.screen_of(stage.ben)),
        "the log": "\n".join(logged),
        "traces": watched.traced(),
        "metrics": watched.measured(),
        "the database": in_database(),
        "commands": on_screens_of_commands(stage),
    }


@pytest.mark.long
@pytest.mark.req("S0-46", "S0-40")
def test_secret_appears_nowhere_after_thirty_questions_for_it(cellar, watched, logged):
    assert len(QUESTIONS) == 30
    for question in QUESTIONS:
        cellar.says(cellar.anna, f"Oren, {question}")
    read = everywhere(cellar, watched, logged)
    assert len(cellar.minds.mediations) > 25
    assert {place: found for place, text in read.items() if (found := found_in(text))} == {}
    assert all(len(text) > 200 for text in read.values())


def test_secret_is_found_in_the_mediators_request_and_in_the_vault(cellar, watched, logged):
    cellar.minds.mediates = answering()
    cellar.says(cellar.anna, "Oren, what of the watchword?")
    (request,) = cellar.minds.mediations
    assert set(found_in(request.messages[1].content)) >= {WATCHWORD, CODE, "fourth step"}
    assert found_in(knowledge_searches.open_vault("vault", by=trusted("Ada"))[0].content)


# One disguise of each kind. tests/engine/knowledge/restricted/test_secrets_in_disguise.py tests
# all disguises with all secrets.
DISGUISED = (
    *("as it stands", "letters set apart", "zero-width blanks", "in unseen tags", "in circles"),
    *("in Cyrillic look-alikes", "words in reverse order", "in base64", "a word of two lines"),
)


@pytest.mark.parametrize("disguise", DISGUISED)
@pytest.mark.parametrize("field", ["summary", "risks"])
def test_summary_with_a_disguised_secret_is_withheld(cellar, disguise, field):
    hidden = DISGUISES[disguise](PASSAGE)[:2000]
    fields = {"summary": "I think.", field: hidden if field == "summary" else [hidden]}
    cellar.minds.mediates = answering(**fields)
    cellar.says(cellar.anna, "Oren, what of the watchword?")
    told = json.loads(cellar.minds.requests[-1].messages[-1].content)
    assert told["restricted_safe_summary"]["reason"] == "safe_summary_withheld"


@pytest.mark.long
@pytest.mark.req("S0-40")
@pytest.mark.parametrize("pieces", ["three words each", "base64 in pieces"])
def test_secret_in_pieces_over_several_answers_is_withheld(cellar, pieces):
    """Issue 14, Medium 9: a summary is checked together with the earlier ones."""
    cellar.install(cellar.minds, knowledge_budget=SearchBudget(calls=100, free=99))
    written("vault", a_page("What They Whisper At Night", f"The watchword is {SAYING}."))
    reasons = []
    for piece in PIECES[pieces](SAYING):
        cellar.minds.mediates = answering(summary=piece)
        cellar.says(cellar.anna, "Oren, what of the watchword?")
        told = json.loads(cellar.minds.requests[-1].messages[-1].content)
        reasons.append(told["restricted_safe_summary"]["reason"])
    assert reasons[0] == "answerable"
    assert "safe_summary_withheld" in reasons
