"""Test that the files of the demo world are valid and refer only to existing things."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.engine.prompt.components import STATIC_COMPONENTS
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.editing.lints import lint_book
from server.newcomer import first_question
from world.demo_content import DEMO, DemoContent, read_content

CARDS = sorted((DEMO / "cards").glob("*.json"))
BOOKS = sorted((DEMO / "lorebooks").glob("*.json"))
SCENARIOS = sorted((DEMO / "scenarios").glob("*.yaml"))
# Scenarios of several turns, and every scenario by the NPC that is spoken to.
IN_TURNS = {"ferry_in_mind": "oren", "hearsay": "brida"}
PLAYED = {**{name: name for name in ("brida", "ismay", "oren")}, **IN_TURNS}
GUEST = DEMO / "cards" / "bottle.json"
"""The hostile card, which a builder may invite. Nobody in the village plays it."""
CAST = [path for path in CARDS if path != GUEST]

# The required fields of Card V3 (interface CharacterCardV3), with their types.
CARD_FIELDS = {
    "name": str,
    "description": str,
    "personality": str,
    "scenario": str,
    "first_mes": str,
    "mes_example": str,
    "creator_notes": str,
    "system_prompt": str,
    "post_history_instructions": str,
    "alternate_greetings": list,
    "group_only_greetings": list,
    "tags": list,
    "creator": str,
    "character_version": str,
    "extensions": dict,
}
ENTRY_FIELDS = {
    "keys": list,
    "content": str,
    "extensions": dict,
    "enabled": bool,
    "insertion_order": int,
    "use_regex": bool,
}
USED_ENTRY_FIELDS = {
    *ENTRY_FIELDS,
    *("secondary_keys", "selective"),
    *("case_sensitive", "constant", "position", "name", "comment", "id", "priority"),
}
USED_DECORATORS = {"depth", "role", "position", "scan_depth"}
# The features of the engine that the shared books show, as members of an entry's extensions.
HARBOUR_SHOWS = {"sticky", "scan_depth", "exclude_recursion", "prevent_recursion"}
HEARSAY_SHOWS = {"group", "group_weight", "cooldown", "probability", "useProbability", "sticky"}
OWN_SHOWN = {"speakers", "npcs", "when", "anchor"}


@pytest.fixture(scope="module")
def content() -> DemoContent:
    return read_content()


def entries_of(book: dict[str, Any]) -> Iterator[dict[str, Any]]:
    entries = book["entries"]
    assert entries
    yield from entries


def all_books() -> dict[str, dict[str, Any]]:
    """Return every lorebook of the demo by a label: the shared ones and those inside cards."""
    found = {path.stem: load(path)["data"] for path in BOOKS}
    for path in CARDS:
        found[f"card {path.stem}"] = load(path)["data"]["character_book"]
    return found


def shared(name: str) -> dict[str, Any]:
    """Return the content of a shared lorebook's file without its entries."""
    return load(DEMO / "lorebooks" / f"{name}.json")


def shown_by(entries: list[dict[str, Any]]) -> tuple[set[str], set[str]]:
    """Return the members of the entries' extensions: the common ones, and ours."""
    common, ours = set(), set()
    for entry in entries:
        common |= entry["extensions"].keys() - {"evennia_ai"}
        ours |= entry["extensions"].get("evennia_ai", {}).keys()
    return common, ours


def load(path: Path) -> dict[str, Any]:
    loaded = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def decorators(text: str) -> list[tuple[str, str]]:
    return re.findall(r"(?m)^@@+(\w+)(?: (.*))?$", text)


def test_demo_has_six_people_and_five_shared_lorebooks() -> None:
    assert [path.stem for path in CAST] == ["brida", "ismay", "odile", "oren", "pell", "wren"]
    assert [path.stem for path in BOOKS] == ["evening", "harbour", "hearsay", "people", "salt"]
    assert len(list(entries_of(shared("harbour")["data"]))) >= 12


@pytest.mark.parametrize("path", CAST, ids=lambda path: path.stem)
def test_demo_card_has_every_required_field_of_card_v3(path: Path) -> None:
    card = load(path)
    assert (card["spec"], card["spec_version"]) == ("chara_card_v3", "3.0")
    for field, kind in CARD_FIELDS.items():
        assert isinstance(card["data"][field], kind), field
    for field in ("description", "personality", "scenario", "first_mes", "creator_notes"):
        assert card["data"][field].strip(), field
    assert card["data"]["mes_example"].startswith("<START>\n{{user}}:")


@pytest.mark.parametrize("path", CAST, ids=lambda path: path.stem)
def test_demo_card_has_a_constant_entry_and_one_at_depth_two(path: Path) -> None:
    entries = list(entries_of(load(path)["data"]["character_book"]))
    assert 3 <= len(entries) <= 10
    assert any(entry["constant"] for entry in entries)
    assert any(e["content"].startswith("@@depth 2\n@@role system\n") for e in entries)


@pytest.mark.parametrize(("label", "book"), all_books().items(), ids=all_books())
def test_demo_entry_is_complete_and_uses_documented_fields(
    label: str, book: dict[str, Any]
) -> None:
    for entry in entries_of(book):
        name = f"{label}: {entry['name']}"
        for field, kind in ENTRY_FIELDS.items():
            assert isinstance(entry[field], kind), (name, field)
        assert set(entry) <= USED_ENTRY_FIELDS, name
        assert entry["keys"] or entry["constant"], name
        assert all(key == key.strip() and key for key in entry["keys"]), name
        assert all(key.startswith("/") == entry["use_regex"] for key in entry["keys"]), name
        assert {word for word, _ in decorators(entry["content"])} <= USED_DECORATORS, name


@pytest.mark.parametrize(("label", "book"), all_books().items(), ids=all_books())
def test_entry_ids_and_names_are_unique_in_a_book(label: str, book: dict[str, Any]) -> None:
    for field in ("id", "name"):
        values = [entry[field] for entry in entries_of(book)]
        assert len(values) == len(set(values)), (label, field)


def test_harbour_book_shows_depth_positions_constant_and_sticky_entries() -> None:
    book = shared("harbour")
    entries = list(entries_of(book["data"]))
    assert book["spec"] == "lorebook_v3"
    assert (book["data"]["scan_depth"], book["data"]["recursive_scanning"]) == (1, True)
    assert {entry.get("position") for entry in entries} >= {"before_char", "after_char"}
    assert sum(entry["constant"] for entry in entries) == 1
    used = {word for entry in entries for word, _ in decorators(entry["content"])}
    assert used == USED_DECORATORS
    assert shown_by(entries) == (HARBOUR_SHOWS, set())


def test_hearsay_book_shows_groups_chance_patterns_and_conditions() -> None:
    book = shared("hearsay")
    entries = list(entries_of(book["data"]))
    assert book["spec"] == "lorebook_v3"
    assert shown_by(entries) == (HEARSAY_SHOWS, OWN_SHOWN)
    assert [entry["use_regex"] for entry in entries].count(True) == 1
    rumours = [entry for entry in entries if entry["extensions"].get("group") == "rumour"]
    assert len(rumours) == 3
    assert len({tuple(entry["keys"]) for entry in rumours}) == 1


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_shared_demo_lorebook_has_no_findings(path: Path) -> None:
    frame = load(path)
    assert lint_book(read_book(frame, label=frame["data"]["name"])) == ()


def test_entry_next_to_a_component_names_an_existing_component(content: DemoContent) -> None:
    anchors = [
        entry["extensions"]["evennia_ai"]["anchor"]["component"]
        for entry in entries_of(shared("hearsay")["data"])
        if "anchor" in entry["extensions"].get("evennia_ai", {})
    ]
    assert set(anchors) <= {component.key for component in content.components}
    assert anchors


def test_lore_consists_of_sentences_that_can_be_said_aloud() -> None:
    for label, book in all_books().items():
        for entry in entries_of(book):
            spoken = re.sub(r"(?m)^@@.*\n", "", entry["content"])
            assert re.fullmatch(r"[A-Z][^\n*\[\]{}]+[.?!]", spoken), (label, entry["name"])


def test_first_question_activates_an_entry_that_answers_it(content: DemoContent) -> None:
    npc, question = first_question(DEMO.parent / "build_demo.py")
    entries = entries_of(shared("harbour")["data"])
    woken = [e for e in entries if any(key in question for key in e["keys"])]
    (answer,) = (e for e in woken if "stopped running after" in e["content"])
    assert not answer["constant"]
    assert answer["priority"] == max(e["priority"] for e in woken)
    assert npc in {person.id for person in content.npcs}


def test_every_exit_leads_to_a_room_and_has_a_way_back(content: DemoContent) -> None:
    ways = {(room.id, way.to) for room in content.rooms for way in room.exits}
    rooms = {room.id for room in content.rooms}
    assert {content.start, content.ferry.boat, content.ferry.home, content.ferry.away} <= rooms
    for here, there in ways:
        assert there in rooms
        assert (there, here) in ways, f"no way back from {there} to {here}"


def test_every_room_can_be_reached_from_the_start(content: DemoContent) -> None:
    ways = {room.id: [way.to for way in room.exits] for room in content.rooms}
    ways[content.ferry.boat].append(content.ferry.away)
    reached: set[str] = set()
    ahead = [content.start]
    while ahead:
        if (room := ahead.pop()) not in reached:
            reached.add(room)
            ahead += ways[room]
    assert reached == set(ways)


def test_exits_of_a_room_share_no_word(content: DemoContent) -> None:
    for room in content.rooms:
        words = [word for way in room.exits for word in (way.key, *way.aliases)]
        assert len(words) == len(set(words)), room.id


def test_people_and_things_are_in_rooms_and_have_unique_ids(content: DemoContent) -> None:
    rooms = {room.id for room in content.rooms}
    assert {p.room for p in content.npcs} | {t.room for t in content.objects} <= rooms
    for kind in (content.rooms, content.npcs, content.objects):
        ids = [one.id for one in kind]
        assert len(ids) == len(set(ids))
        assert all(one.desc.strip() for one in kind)


def test_every_npc_has_a_card_a_fallback_line_and_a_note(
    content: DemoContent,
) -> None:
    for person in content.npcs:
        assert load(DEMO / person.card)["data"]["name"] == person.key
        assert person.fallback_line.strip()
    assert {person.card_name for person in content.npcs} == {path.stem for path in CAST}
    assert [note.npc for note in content.notes] == [person.id for person in content.npcs]


def test_lorebooks_named_in_the_world_exist_under_their_names(
    content: DemoContent,
) -> None:
    assert {DEMO / book.file for book in content.lorebooks} == set(BOOKS)
    for book in content.lorebooks:
        assert load(DEMO / book.file)["data"]["name"] == book.name


def test_demo_changes_only_static_components_and_adds_new_ones(content: DemoContent) -> None:
    static = {component.key: component.id for component in STATIC_COMPONENTS}
    for component in content.components:
        assert static.get(component.key, component.id) == component.id
        assert component.key in static or component.id not in static.values()
        assert component.content.strip()
        compile_template(component.content, trust=component.trust)
    ids = {component.key: component.id for component in content.components}
    assert (ids["mood"], ids["house_rules"], ids["system_prompt"]) == (1200, 15, 0)


def test_demo_has_the_expected_scenarios() -> None:
    names = {path.stem for path in SCENARIOS}
    assert names == {*PLAYED, "hostile_card"}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario_names_existing_files(path: Path) -> None:
    scenario = yaml.safe_load(path.read_text(encoding="utf-8"))
    pointed = [scenario["card"], *map(file_of, scenario.get("lorebooks", []))]
    for file in pointed:
        assert isinstance(file, dict) or (path.parent / file).is_file(), file


def file_of(item: str | Mapping[str, str]) -> str:
    return item if isinstance(item, str) else item["book"]


@pytest.mark.parametrize(("name", "npc"), PLAYED.items(), ids=PLAYED)
def test_scenario_has_the_texts_of_the_game(name: str, npc: str, content: DemoContent) -> None:
    path = DEMO / "scenarios" / f"{name}.yaml"
    scenario = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert [(path.parent / file_of(item)).resolve() for item in scenario["lorebooks"]] == [
        (DEMO / book.file).resolve() for book in content.lorebooks if book.scope != "faction"
    ]
    assert scenario["card"] == f"../cards/{npc}.json"
    assert "lore" not in scenario["settings"]
    game = {component.key: component for component in content.components}
    for row in scenario["components"]:
        component = game[row["key"]]
        assert (row["id"], row["content"]) == (component.id, component.content)
    assert scenario["settings"]["system_prompt"] == game["system_prompt"].content
    (note,) = (note for note in content.notes if note.npc == npc)
    assert scenario["notes"] == [
        {"content": note.content, "depth": note.depth, "role": note.role, "every": note.every}
    ]
    assert 6 <= len(longest_history(scenario)) <= 10


def longest_history(scenario: Mapping[str, Any]) -> list[dict[str, str]]:
    history: list[dict[str, str]] = scenario.get("turns", [scenario])[-1]["history"]
    return history


@pytest.mark.parametrize("name", IN_TURNS)
def test_each_turn_of_a_scenario_continues_the_one_before(name: str) -> None:
    path = DEMO / "scenarios" / f"{name}.yaml"
    turns = yaml.safe_load(path.read_text(encoding="utf-8"))["turns"]
    for before, after in pairwise(turns):
        so_far = [*before.get("history", []), {"role": "user", **before["event"]}]
        assert after["history"][:-1] == so_far
        assert after["history"][-1]["role"] == "assistant"


def test_hostile_card_asks_for_a_depth_beyond_any_history() -> None:
    book = all_books()["card bottle"]
    depths = [int(v) for e in entries_of(book) for w, v in decorators(e["content"]) if w == "depth"]
    assert max(depths) == 99999
    assert min(depths) < 0
