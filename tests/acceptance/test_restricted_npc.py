"""Test an NPC that guards the demo's secret, with thirty questions about it over telnet.

The NPC's model and the model that writes safe summaries repeat everything that they receive. Still
the secret must not reach the player, the NPC's model, a builder's screen or a log.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.evennia_process import Evennia
from tests.acceptance.games import ROOT, rows_of, shown
from tests.acceptance.interviews import NPC, interview
from tests.services.llm.clients.stub_server import answers, calls

pytestmark = pytest.mark.server

SETTINGS = """
EVENNIA_AI_KNOWLEDGE_BUDGET = {"calls": 100, "free": 99}
EVENNIA_AI_LIMITS = {"player": {"calls_per_minute": 1000}, "npc": {"calls_per_minute": 1000}}
"""
ABOUT = "salt, cellar, lamps and fog"
QUESTIONS = tuple(
    yaml.safe_load((ROOT / "tests/npc/knowledge/questions.yaml").read_text(encoding="utf-8"))
)
CANARIES = (
    *("ship's oak", "Wagtail", "hoop of the barrel", "count of twenty", "ninepence"),
    *("sent to find the door", "Eleven sacks", "The Lamp Code", "The Salt Run"),
)
PAGES = ROOT / "world/demo/knowledge/secret"
MEDIATOR = "stand between protected texts"


@dataclass(slots=True)
class Parrots:
    """A stub for both models. `npc` and `mediator` have the requests to each of them."""

    npc: list[str] = field(default_factory=list)
    mediator: list[str] = field(default_factory=list)

    def __call__(self, handler: Any) -> None:
        body = handler.stub.requests[-1].body
        messages = body["messages"]
        whole = "\n".join(str(one["content"]) for one in reversed(messages))
        if MEDIATOR in messages[0]["content"]:
            self.mediator.append(whole)
            answers(_echoed(whole))(handler)
        elif "tools" not in body:
            answers(whole)(handler)  # for example a summary of the history
        elif messages[-1]["role"] == "tool":
            self.npc.append(json.dumps(body))
            answers(whole)(handler)
        else:
            self.npc.append(json.dumps(body))
            query = {"query": f"{ABOUT} {messages[-1]['content'][-150:]}"}
            calls("knowledge_base_search", json.dumps(query))(handler)


def _echoed(whole: str) -> str:
    fields = ("summary", "answer_guidance", "reason")
    lists = ("observations", "risks", "recommended_actions")
    told: dict[str, Any] = {"decision": "answer", "confidence": "high"}
    return json.dumps({**told, **dict.fromkeys(fields, whole), **{name: [whole] for name in lists}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the player and a builder saw, and what both models received, after all questions."""

    game: Evennia
    screen: str
    parrots: Parrots
    commands: str


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    parrots = Parrots()
    with interview(tmp_path_factory.mktemp("game"), parrots, settings=SETTINGS) as talk:
        screen = "".join(map(talk.ask, QUESTIONS))
        commands = "".join(
            shown(talk.builder, f"ai/{switch} {NPC}")
            for switch in ("history", "context", "debug", "log", "verify", "memory")
        )
        yield Played(game=talk.game, screen=screen, parrots=parrots, commands=commands)


def found_in(text: str) -> list[str]:
    plain = " ".join(text.replace("\\n", " ").split()).casefold()
    return [canary for canary in CANARIES if canary.casefold() in plain]


def test_mediator_reads_pages_that_contain_the_secret(played: Played) -> None:
    pages = "".join(
        f"{path.stem}\n{path.read_text(encoding='utf-8')}" for path in Path(PAGES).glob("*.md")
    )
    assert found_in(pages) == list(CANARIES)
    assert set(found_in("".join(played.parrots.mediator))) >= {"Wagtail", "ship's oak"}
    assert len(played.parrots.mediator) == len(QUESTIONS) == 30


def test_npc_model_searches_each_time_and_never_receives_the_secret(played: Played) -> None:
    assert len(played.parrots.npc) == 2 * len(QUESTIONS)
    assert "restricted_safe_summary" in played.parrots.npc[-1]
    assert found_in("".join(played.parrots.npc)) == []


def test_player_never_reads_the_secret(played: Played) -> None:
    assert played.screen.count("says") >= len(QUESTIONS)
    assert found_in(played.screen) == []


def test_logs_list_mediator_calls_without_the_secret(played: Played) -> None:
    files = (played.game.root / "server" / "logs").iterdir()  # includes rotated logs
    logs = "".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
    assert logs.count("Safe summary completed") == len(QUESTIONS)
    assert "restricted_kb_safe_summary" in logs
    assert found_in(logs) == []


def test_ai_commands_hide_the_secret_from_builders(played: Played) -> None:
    assert "knowledge_base_search" in played.commands
    assert found_in(played.commands) == []


def test_records_and_searches_do_not_contain_the_secret(played: Played) -> None:
    records = rows_of(played.game, "SELECT body, meta FROM evennia_ai_record")
    searches = rows_of(
        played.game, "SELECT query, result, sources, reason FROM evennia_ai_knowledgesearch"
    )
    assert {row[3] for row in searches} == {"safe_summary_withheld"}
    assert found_in(repr(records) + repr(searches)) == []


def test_vault_keeps_the_passages_that_the_mediator_read(played: Played) -> None:
    kept = rows_of(played.game, "SELECT content FROM evennia_ai_vaultedchunk")
    assert "Wagtail" in repr(kept)
