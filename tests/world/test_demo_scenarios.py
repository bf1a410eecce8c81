"""Test what the demo's scenarios compose, so that they show what the documents promise."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.formats.cards.card import card_from_text
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.scenario import run_scenario
from world.demo_content import DEMO

CARDS = sorted((DEMO / "cards").glob("*.json"))
BOOKS = sorted((DEMO / "lorebooks").glob("*.json"))
SCENARIOS = sorted((DEMO / "scenarios").glob("*.yaml"))
NO_FACTS: Mapping[str, str] = {}


def composed(name: str, *, facts: Mapping[str, str] = NO_FACTS) -> dict[str, Any]:
    """Return the result of a demo scenario, with `facts` instead of its own."""
    path = DEMO / "scenarios" / f"{name}.yaml"
    scenario = yaml.safe_load(path.read_text("utf-8"))
    known = scenario["settings"].get("facts", {})
    scenario["settings"]["facts"] = {**known, **facts}
    return run_scenario(scenario, folder=path.parent)


def awake(turn: dict[str, Any]) -> dict[str, str]:
    """Return the active entries of a turn by name, each with its reason."""
    return {entry["entry"]: entry["cause"] for entry in turn["activated"]}


def verdict(turn: dict[str, Any], origin: str) -> str:
    """Return the engine's verdict about one entry of a turn."""
    return next(str(v["reason"]) for v in turn["verdicts"] if v["item"] == origin)


def origins(message: dict[str, Any]) -> list[str]:
    return [part["origin"] for part in message["parts"]]


def history_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in result["messages"] if message["block"] == "history"]


def followed_by(result: dict[str, Any], origin: str) -> int:
    """Return how many messages of the conversation follow the injected text with this origin."""
    band = history_of(result)
    (place,) = (at for at, message in enumerate(band) if origin in origins(message))
    assert band[place]["injected"]
    return sum(not message["injected"] for message in band[place + 1 :])


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.stem)
def test_demo_card_is_read_without_notices(path: Path) -> None:
    card = card_from_text(path.read_text(encoding="utf-8"))
    assert card.notices == ()
    assert card.character_book is not None
    assert_nothing_is_refused(card.character_book)


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_shared_lorebook_is_read_without_refused_entries(path: Path) -> None:
    assert_nothing_is_refused(json.loads(path.read_text("utf-8")))


def assert_nothing_is_refused(book: Mapping[str, Any]) -> None:
    entries = read_book(book, label="book", attach="global", revision=1).entries
    assert entries
    assert [entry.name for entry in entries if entry.refused] == []


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario_composes_without_notices_and_uses_its_whole_history(path: Path) -> None:
    composed_now = composed(path.stem)
    scenario = yaml.safe_load(path.read_text("utf-8"))
    results = composed_now.get("turns", [composed_now])
    for result, turn in zip(results, scenario.get("turns", [scenario]), strict=True):
        assert [
            one for one in result["notices"] if "lacks the grant after_history" not in one
        ] == []
        assert [m["content"] for m in history_of(result) if not m["injected"]] == [
            message["content"] for message in turn.get("history", [])
        ]
        assert result["messages"][0]["content"].startswith("You are ")
        assert result["tokens"]["total"] <= result["tokens"]["limit"]


def test_orens_last_question_activates_the_night_ferry_by_its_key() -> None:
    result = composed("oren")
    (entry,) = (e for e in result["activated"] if e["entry"] == "the night ferry")
    assert "stopped running after the winter of the broken ice" in entry["content"]
    assert "night ferry" in entry["cause"]


def test_orens_mood_is_two_messages_before_the_end() -> None:
    assert followed_by(composed("oren"), "component:mood") == 2


def test_bridas_confidences_are_at_depth_two_because_of_the_word_secret() -> None:
    result = composed("brida")
    (entry,) = (e for e in result["activated"] if e["entry"] == "confidences")
    assert "secret" in entry["cause"]
    assert followed_by(result, f"lore:{entry['book']}#{entry['uid']}") == 2


def test_ismay_gets_the_bell_from_the_village_and_her_own_book() -> None:
    books = {e["book"] for e in composed("ismay")["activated"] if "bell" in e["content"]}
    assert {"Ismay", "harbour"} <= books


@pytest.mark.req("S3-06", "S3-07")
def test_hostile_card_stays_inside_the_history_at_any_depth() -> None:
    result = composed("hostile_card")
    band = history_of(result)
    assert [origins(m) for m in band[:2]] == [["lore:letter#1"], ["lore:letter#2"]]
    assert origins(band[-1]) == ["lore:letter#3"]
    outside = [m for m in result["messages"] if m["block"] != "history"]
    assert not any("lore:" in origin for m in outside for origin in origins(m))
    assert "{{char}} @@depth 0" in band[4]["content"]


def test_oren_keeps_the_ferry_active_for_three_turns() -> None:
    turns = composed("ferry_in_mind")["turns"]
    causes = [awake(turn).get("the ferry", "") for turn in turns]
    assert causes[1] == "key 'ferry' in the event at 9-14"
    assert causes[2].startswith("sticky: activated earlier and stays for 2 more turns")
    assert causes[3].startswith("sticky: activated earlier and stays for 1 more turn")
    assert (causes[0], causes[4]) == ("", "")
    assert [turn["timed"]["sticky"] for turn in turns] == [[], *[["harbour#5"]] * 3, []]


def test_ferry_activates_the_broken_ice_and_no_unintended_entry() -> None:
    spoken_of = awake(composed("ferry_in_mind")["turns"][1])
    assert "in the text of harbour#5" in spoken_of["the winter of the broken ice"]
    assert "in the text of harbour#5" in spoken_of["slack water"]
    assert set(spoken_of) == {
        *("his trade", "Ebbwick", "the ferry", "the winter of the broken ice", "slack water"),
    }


def test_asking_three_times_gives_three_rumours() -> None:
    rumours = {"the Bishop's pie", "the whistle", "the one knot"}
    turns = composed("hearsay")["turns"][:3]
    told = [rumours & awake(turn).keys() for turn in turns]
    assert [len(names) for names in told] == [1, 1, 1]
    assert set.union(*told) == rumours
    lost = verdict(turns[0], "lore:hearsay#2")
    assert "lost group 'rumour' of 3 to hearsay#1 (weight 50 of 100" in lost


def test_oren_does_not_gossip_about_his_own_whistle() -> None:
    turns = composed("hearsay", facts={"npc.key": "Oren"})["turns"][:3]
    assert not any("the whistle" in awake(turn) for turn in turns)
    assert "npc.key must not be Oren" in verdict(turns[0], "lore:hearsay#2")


def test_villagers_hear_no_rumours_from_each_other() -> None:
    first = composed("hearsay", facts={"speaker.kind": "npc"})["turns"][0]
    assert "speaker.kind must be player" in verdict(first, "lore:hearsay#1")


def test_hour_of_the_clock_is_matched_by_a_pattern() -> None:
    cause = awake(composed("hearsay")["turns"][3])["no hours"]
    assert cause.endswith("in the event at 21-30")


def test_word_about_a_storm_is_placed_next_to_the_mood() -> None:
    turns = composed("hearsay")["turns"]
    (message,) = (m for m in turns[3]["messages"] if "lore:hearsay#7" in origins(m))
    assert message["block"] == "dynamic"
    (entry,) = (e for e in turns[3]["activated"] if e["entry"] == "one eye on the sky")
    assert entry["position"] == "anchor"
    assert "stays for 1 more" in awake(turns[4])["one eye on the sky"]


@pytest.mark.parametrize(("part", "is_awake"), [("evening", True), ("night", True), ("day", False)])
def test_darkness_is_mentioned_only_in_the_evening_and_at_night(part: str, is_awake: bool) -> None:
    last = composed("hearsay", facts={"time.part": part})["turns"][4]
    assert ("after dark" in awake(last)) is is_awake


def test_note_over_the_water_depends_on_chance() -> None:
    assert "with a chance of 35 %" in verdict(composed("hearsay")["turns"][4], "lore:hearsay#4")
