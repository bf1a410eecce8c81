"""Test the texts of the demo's evening: one table of facts, and what makes each person a person."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from world.demo_content import DEMO, DemoContent, read_content
from world.help_entries import HELP_ENTRY_DICTS

ROOT = DEMO.parents[1]
NOT_TEXTS = {"facts.yaml", "questions.yaml"}
BY_CODE = {"letter", "trusted", "spoilt", "knock"}
"""Findings that the code gives. All others belong to a room or a thing."""


@pytest.fixture(scope="module")
def content() -> DemoContent:
    return read_content()


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Return all texts of the demo by their place, each on one line."""
    paths = [p for p in DEMO.rglob("*") if p.suffix in (".yaml", ".json", ".md")]
    found = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in (*paths, ROOT / "docs" / "play" / "demo.md")
        if path.name not in NOT_TEXTS and path.parent.name not in ("kept", "presets")
    }
    found["help"] = "\n".join(entry["text"] for entry in HELP_ENTRY_DICTS)
    return {place: " ".join(text.split()) for place, text in found.items()}


def entries(path: Path) -> list[dict[str, Any]]:
    data = json.loads(path.read_text(encoding="utf-8"))["data"]
    rows: list[dict[str, Any]] = data.get("character_book", data)["entries"]
    return rows


def own(entry: dict[str, Any], field: str) -> Any:
    return entry["extensions"].get("evennia_ai", {}).get(field, [])


def test_texts_agree_with_the_table_of_facts(texts: dict[str, str]) -> None:
    rows = yaml.safe_load((DEMO / "facts.yaml").read_text(encoding="utf-8"))
    wrong = []
    for row in rows:
        found = [(place, one[1]) for place, text in texts.items() for one in _all(row, text)]
        wrong += [
            f"{row['about']}: {place} says {said!r}, not {' or '.join(row['values'])}"
            for place, said in found
            if said.casefold() not in [value.casefold() for value in row["values"]]
        ]
        if len(found) < row.get("times", 2):
            wrong.append(f"{row['about']}: only {len(found)} texts have it; mend the pattern")
    assert wrong == []


def _all(row: dict[str, Any], text: str) -> list[re.Match[str]]:
    return list(re.finditer(row["pattern"], text))


def test_ledger_adds_up_to_the_duty_that_was_not_paid(content: DemoContent) -> None:
    (ledger,) = (thing.written for thing in content.objects if thing.kind == "writing")
    spent = {"thirty-two": 32 * 12, "fourteen": 14 * 12, "eleven shillings and ninepence": 141}
    assert all(words in ledger for words in spent)
    assert "fifty-seven shillings and ninepence" in ledger
    assert 7 * 11 * 9 == 57 * 12 + 9 == sum(spent.values())


def test_each_person_has_goals_opinions_and_habits_in_every_part(content: DemoContent) -> None:
    names = {person.key for person in content.npcs}
    assert len(names) == 6
    for person in content.npcs:
        named = {key for entry in entries(DEMO / person.card) for key in entry["keys"]}
        assert len(person.goals) == 2, person.key
        assert len(named & names - {person.key}) == 2, f"{person.key} has opinions about two others"
        for part in content.evening:
            assert part.habits[person.id], (person.key, part.id)
    assert len({goal for person in content.npcs for goal in person.goals}) == 12


def test_each_person_keeps_something_back_until_something_changes_their_mind(
    content: DemoContent,
) -> None:
    rows = [
        *entries(DEMO / "lorebooks" / "evening.json"),
        *entries(DEMO / "lorebooks" / "salt.json"),
    ]
    for person in content.npcs:
        tests = [
            condition["test"]
            for entry in rows
            if person.key in own(entry, "npcs")
            for condition in own(entry, "when")
            if condition["fact"] == "speaker.found"
        ]
        assert {"has_none", "has_any"} <= set(tests), person.key


def test_every_finding_of_lore_and_locks_can_be_found_and_has_a_text(content: DemoContent) -> None:
    given = {one.finding for one in (*content.rooms, *content.objects)} - {""}
    given |= BY_CODE
    assert given == set(content.findings)
    rows = [entry for path in (DEMO / "lorebooks").glob("*.json") for entry in entries(path)]
    tested = {
        value
        for entry in rows
        for condition in own(entry, "when")
        if condition["fact"] == "speaker.found"
        for value in condition["values"]
    }
    locks = " ".join(bar.lock for room in content.rooms for way in room.exits for bar in way.bars)
    assert tested | set(re.findall(r"found\((\w+)\)", locks)) <= given


def test_parts_of_the_evening_name_existing_people_rooms_and_parts(content: DemoContent) -> None:
    rooms, people = {room.id for room in content.rooms}, {one.id for one in content.npcs}
    parts = {part.id for part in content.evening}
    for part in content.evening:
        assert set(part.sounds) | set(part.people.values()) <= rooms
        assert set(part.people) | set(part.habits) <= people
    for room in content.rooms:
        assert set(room.at) <= parts
    for entry in entries(DEMO / "lorebooks" / "evening.json"):
        for condition in own(entry, "when"):
            if condition["fact"] == "evening.part":
                assert set(condition["values"]) <= parts


def test_no_text_of_the_secret_is_in_a_book_that_everybody_reads() -> None:
    """Only entries with a condition on what the speaker found out tell more than the rumour."""
    telling = ("Wagtail", "ship's oak", "third barrel", "doctor's coach", "find that door")
    for path in [*(DEMO / "lorebooks").glob("*.json"), *(DEMO / "cards").glob("*.json")]:
        for entry in entries(path):
            if any(words in entry["content"] for words in telling):
                facts = {c["fact"] for c in own(entry, "when") if c["test"] == "has_any"}
                assert facts == {"speaker.found"}, (path.stem, entry["name"])
