"""The demo's scenarios, composed: what the village shows a newcomer is really so."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.cards.reading import card_from_text
from evennia_ai.lorebook.books import read_book
from evennia_ai.scenario import run_scenario
from world.demo_content import DEMO

CARDS = sorted((DEMO / "cards").glob("*.json"))
SCENARIOS = sorted((DEMO / "scenarios").glob("*.yaml"))


def composed(name: str) -> dict[str, Any]:
    path = DEMO / "scenarios" / f"{name}.yaml"
    return run_scenario(yaml.safe_load(path.read_text("utf-8")), folder=path.parent)


def origins(message: dict[str, Any]) -> list[str]:
    return [part["origin"] for part in message["parts"]]


def history_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in result["messages"] if message["block"] == "history"]


def followed_by(result: dict[str, Any], origin: str) -> int:
    """How many messages of the conversation follow the injected one of this origin."""
    band = history_of(result)
    (place,) = (at for at, message in enumerate(band) if origin in origins(message))
    assert band[place]["injected"]
    return sum(not message["injected"] for message in band[place + 1 :])


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.stem)
def test_a_card_is_read_without_a_single_notice(path: Path) -> None:
    card = card_from_text(path.read_text(encoding="utf-8"))
    assert card.notices == ()
    assert card.character_book is not None
    assert_nothing_is_refused(card.character_book)


def test_the_shared_lorebook_is_read_without_a_refused_entry() -> None:
    assert_nothing_is_refused(json.loads((DEMO / "lorebooks/harbour.json").read_text("utf-8")))


def assert_nothing_is_refused(book: Mapping[str, Any]) -> None:
    entries = read_book(book, label="book", attach="global", trust="builder", revision=1).entries
    assert entries
    assert [entry.name for entry in entries if entry.refused] == []


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_composes_without_a_notice_and_uses_its_history_whole(path: Path) -> None:
    result = composed(path.stem)
    spoken = yaml.safe_load(path.read_text("utf-8"))["history"]
    assert result["notices"] == []
    assert [m["content"] for m in history_of(result) if not m["injected"]] == [
        message["content"] for message in spoken
    ]
    assert result["messages"][0]["content"].startswith("You are ")
    assert result["tokens"]["total"] <= result["tokens"]["limit"]


def test_orens_last_question_wakes_the_night_ferry_by_its_key() -> None:
    result = composed("oren")
    (entry,) = (e for e in result["activated"] if e["entry"] == "the night ferry")
    assert "stopped running after the winter of the broken ice" in entry["content"]
    assert "night ferry" in entry["cause"]


def test_orens_mood_stands_two_messages_from_the_newest() -> None:
    assert followed_by(composed("oren"), "component:mood") == 2


def test_bridas_confidences_stand_at_depth_two_because_of_the_word_secret() -> None:
    result = composed("brida")
    (entry,) = (e for e in result["activated"] if e["entry"] == "confidences")
    assert "secret" in entry["cause"]
    assert followed_by(result, f"lore:{entry['book']}#{entry['uid']}") == 2


def test_ismay_hears_of_the_bell_from_the_village_and_from_her_own_book() -> None:
    books = {e["book"] for e in composed("ismay")["activated"] if "bell" in e["content"]}
    assert {"Ismay", "harbour"} <= books


@pytest.mark.req("S3-06", "S3-07")
def test_a_hostile_card_stays_inside_the_history_whatever_depth_it_asks_for() -> None:
    result = composed("hostile_card")
    band = history_of(result)
    assert [origins(m) for m in band[:2]] == [["lore:letter#1"], ["lore:letter#2"]]
    assert origins(band[-1]) == ["lore:letter#3"]
    outside = [m for m in result["messages"] if m["block"] != "history"]
    assert not any("lore:" in origin for m in outside for origin in origins(m))
    assert "{{char}} @@depth 0" in band[4]["content"]
