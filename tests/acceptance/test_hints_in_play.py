"""Test an NPC whose secret knowledge base gives only hints, on a real server over telnet.

No model receives text of a page. The model that chooses among the hints may add other text, but the
player hears only hints.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from server.evennia_process import Evennia
from tests.acceptance.games import logs_of, shown
from tests.acceptance.interviews import interview
from tests.services.llm.clients.stub_server import answers, calls

pytestmark = pytest.mark.server

CANARIES = ("ship's oak", "Wagtail", "hoop of the barrel", "ninepence", "Eleven sacks")
HINT = "Help the cook, and the cellar is no secret."


@dataclass(slots=True)
class Models:
    """A stub for all models. `sent` has their requests, `choice` the reply that chooses hints."""

    choice: str = '{"hints": [1]}'
    sent: list[str] = field(default_factory=list)
    offered: list[dict[str, str]] = field(default_factory=list)

    def __call__(self, handler: Any) -> None:
        body = handler.stub.requests[-1].body
        messages = body["messages"]
        self.sent.append(json.dumps(body, ensure_ascii=False))
        if "numbered hints" in messages[0]["content"]:
            payload = next(one for one in messages if one["role"] == "user")["content"]
            self.offered.append(json.loads(payload)["hints"])
            answers(self.choice)(handler)
        elif "tools" not in body:
            answers("Nothing.")(handler)
        elif messages[-1]["role"] == "tool":
            told = json.loads(messages[-1]["content"])
            answers(_safe(told)["summary"] or "I cannot speak of it.")(handler)
        else:
            calls(
                "knowledge_base_search", json.dumps({"query": "cellar cook", "bases": ["secret"]})
            )(handler)


def _safe(told: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = told["restricted_safe_summary"]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The answers after a valid choice of a hint, and after a choice with additional text."""

    game: Evennia
    models: Models
    chosen: str
    disguised: str
    listed: str


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    models = Models()
    with interview(tmp_path_factory.mktemp("game"), models) as talk:
        shown(talk.builder, "kb/set secret/mediation = hints")
        shown(talk.builder, f"kb/hints secret/The Cellar Door = {HINT}")
        listed = shown(talk.builder, "kb/hints secret")
        chosen = talk.ask("What is behind the barrel?")
        models.choice = json.dumps({"hints": [1], "note": "ninepence, Wagtail"})
        disguised = talk.ask("And what does a sack cost?")
        yield Played(
            game=talk.game, models=models, chosen=chosen, disguised=disguised, listed=listed
        )


@pytest.mark.req("S0-40", "S0-46")
def test_models_never_receive_page_text_when_only_hints_are_allowed(played: Played) -> None:
    sent = "\n".join(played.models.sent).replace("ninepence, Wagtail", "")
    assert len(played.models.offered) == 3  # the invalid choice is asked for twice
    assert [canary for canary in CANARIES if canary.casefold() in sent.casefold()] == []


@pytest.mark.req("S0-46")
def test_player_hears_the_chosen_hint(played: Played) -> None:
    assert HINT in " ".join(played.chosen.split())
    assert played.models.offered[0]["1"] == HINT


@pytest.mark.req("S0-46", "S0-48")
def test_npc_refuses_when_the_choice_contains_more_than_hint_numbers(played: Played) -> None:
    assert "I cannot speak of it." in " ".join(played.disguised.split())


def test_kb_hints_command_lists_the_hints(played: Played) -> None:
    assert HINT in " ".join(played.listed.split())


def test_server_log_has_no_traceback_and_no_secret_after_hints(played: Played) -> None:
    logs = logs_of(played.game)
    assert "Traceback" not in logs
    assert [canary for canary in CANARIES if canary.casefold() in logs.casefold()] == []
