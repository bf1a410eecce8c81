"""The result of a scenario: places of lore entries, author's notes, timers and the cache."""

from typing import Any

import pytest

from evennia_ai.formats.scenario import run_scenario
from tests.formats.scenario.builders import a_card, said

POSITIONS = {"before": 0, "after": 1, "note_top": 2, "note_bottom": 3, "depth": 4}
POSITIONS |= {"examples_before": 5, "examples_after": 6, "outlet": 7}


def a_world(*entries: dict[str, Any], name: str = "quay", attach: str = "global") -> dict[str, Any]:
    """Return a listed world file, whose entries are constant if they have no keys."""
    made = {
        str(uid): {"uid": uid, "key": [], "content": f"E{uid}.", **entry}
        for uid, entry in enumerate(entries)
    }
    for entry in made.values():
        entry.setdefault("constant", not entry["key"])
    return {"name": name, "attach": attach, "book": {"entries": made}}


def at(position: str, *, order: int = 100, **fields: Any) -> dict[str, Any]:
    return {"position": POSITIONS[position], "order": order, **fields}


def run(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    more.setdefault("settings", {"layout": "classic"})
    return run_scenario({"lorebooks": [a_world(*entries)], **more})


def test_result_lists_lore_around_a_note_with_the_note() -> None:
    entries = [
        at("note_top", order=2),
        at("note_top", order=1),
        at("note_bottom", order=1),
    ]
    result = run(*entries, notes=[{"content": "N."}, {"content": "Other."}], history=said(2))
    assert result["placed"]["note_top"] == ["quay#1", "quay#0"]
    assert result["placed"]["note_bottom"] == ["quay#2"]
    assert result["notes"] == [
        {"due": True, "content": "E1.\nE0.\nN.\nE2."},
        {"due": True, "content": "Other."},
    ]


def test_lore_around_a_note_is_left_out_if_the_note_is_not_due() -> None:
    result = run(at("note_top"), notes=[{"content": "N.", "every": 0}], history=said(2))
    assert [entry["position"] for entry in result["activated"]] == ["note_top"]
    assert result["placed"]["note_top"] == []
    assert result["notes"] == [{"due": False, "content": ""}]


@pytest.mark.parametrize(("rules", "order"), [("evennia_ai", [0, 1]), ("sillytavern", [1, 0])])
def test_result_lists_lore_around_the_examples_in_prompt_order(
    rules: str, order: list[int]
) -> None:
    entries = [
        at("examples_before", order=1),
        at("examples_before", order=2),
        at("examples_after", order=4),
        at("examples_after", order=3),
    ]
    settings = {"layout": "classic", "lore": {"rules": rules}}
    card = a_card(mes_example="<START>\nTilda: Oil.")
    result = run(*entries, card=card, settings=settings)
    assert result["placed"]["examples_before"] == [f"quay#{uid}" for uid in order]
    assert result["placed"]["examples_after"] == ["quay#3", "quay#2"]
    text = "\n".join(message["content"] for message in result["messages"])
    places = [text.index(f"E{uid}.") for uid in (*order, 3, 2)]
    assert places == sorted(places)


def test_result_lists_entries_with_the_same_depth_and_role_together() -> None:
    entries = [
        at("depth", order=1, depth=2, role=0),
        at("depth", order=2, depth=2, role=1),
        at("depth", order=3, depth=2, role=0),
        at("depth", order=1, depth=1, role=0),
    ]
    assert run(*entries, history=said(3))["placed"]["depth"] == [
        {"depth": 2, "role": "system", "entries": ["quay#0", "quay#2"]},
        {"depth": 2, "role": "user", "entries": ["quay#1"]},
        {"depth": 1, "role": "system", "entries": ["quay#3"]},
    ]


def test_result_lists_the_entries_of_an_outlet() -> None:
    entries = [at("outlet", outletName="tools", order=2), at("outlet", outletName="tools", order=1)]
    rows = [{"content": "At hand: {{outlet::tools}}"}]
    result = run(*entries, components=rows)
    assert result["placed"]["outlets"] == {"tools": ["quay#1", "quay#0"]}
    assert result["messages"][0]["content"] == "At hand: E1.\nE0."


def test_result_names_the_component_next_to_lore() -> None:
    entries = [{"evennia_ai": {"anchor": {"component": "goals", "side": "before"}}}]
    result = run(*entries, components=[{"key": "goals", "content": "Leave."}])
    assert [message["content"] for message in result["messages"]] == ["E0.", "Leave."]
    assert result["placed"]["anchors"] == [
        {"component": "goals", "side": "before", "entries": ["quay#0"]}
    ]


def test_result_has_the_depth_of_lore_at_a_mention() -> None:
    entries = [{"evennia_ai": {"place": "at_mention"}, "key": ["m3"]}]
    result = run(*entries, history=said(5), settings={"lore": {"scan_depth": 9}})
    assert result["placed"]["at_mention"] == [{"depth": 3, "role": "system", "entries": ["quay#0"]}]
    assert (result["placed"]["depth"], result["activated"][0]["position"]) == ([], "at_mention")
    assert result["activated"][0]["depth"] == 3


def test_result_places_every_active_entry_of_the_prompt_once() -> None:
    entries = [at(position) for position in POSITIONS if position != "outlet"]
    card = a_card(mes_example="<START>\nTilda: Oil.")
    placed = run(*entries, card=card, notes=[{"content": "N."}], history=said(5))["placed"]
    depths = [label for here in placed["depth"] for label in here["entries"]]
    listed = [
        label for name in POSITIONS if name not in ("depth", "outlet") for label in placed[name]
    ]
    assert sorted(depths + listed) == [f"quay#{uid}" for uid in range(len(entries))]


def test_every_entry_has_an_activation_verdict() -> None:
    entries = [{"key": ["oil"]}, {"key": ["rope"]}, {"constant": True}, {"disable": True}]
    result = run(*entries, event={"content": "Oil?"})
    told = {v["item"]: v["kept"] for v in result["verdicts"] if v["stage"] == "activate"}
    assert told == {
        "lore:quay#0": True,
        "lore:quay#1": False,
        "lore:quay#2": True,
        "lore:quay#3": False,
    }


def turns_of(*lines: str) -> list[dict[str, Any]]:
    return [{"event": {"content": line}} for line in lines]


def test_result_lists_sticky_and_cooldown_entries_after_each_turn() -> None:
    entries = [
        {"key": ["oil"], "sticky": 2},
        {"key": ["oil"], "cooldown": 2},
    ]
    lines = ("Oil?", "Hm.", "Oil!", "Hm.")
    result = run(*entries, turns=turns_of(*lines))
    active = [[entry["uid"] for entry in turn["activated"]] for turn in result["turns"]]
    assert active == [["0", "1"], ["0"], ["0", "1"], ["0"]]
    timed = [turn["timed"] for turn in result["turns"]]
    assert timed[0] == {"sticky": ["quay#0"], "cooldown": ["quay#1"]}


def test_dry_run_of_a_scenario_starts_no_timers_of_lore_entries() -> None:
    settings = {"lore": {"dry_run": True}}
    entry = {"key": ["oil"], "sticky": 5}
    result = run(entry, turns=turns_of("Oil?", "Hm."), settings=settings)
    assert [len(turn["activated"]) for turn in result["turns"]] == [1, 0]
    assert [turn["timed"] for turn in result["turns"]] == [{"sticky": [], "cooldown": []}] * 2


def test_timers_in_messages_count_the_event_as_a_message() -> None:
    settings = {"lore": {"clock": "messages"}}
    histories = [[], said(2), said(4)]
    turns = [{"history": history, "event": {"content": "Hm."}} for history in histories]
    result = run({"delay": 3}, turns=turns, settings=settings)
    assert [len(turn["activated"]) for turn in result["turns"]] == [0, 1, 1]


def test_entry_with_a_condition_is_active_only_with_the_matching_fact() -> None:
    asks = {"evennia_ai": {"when": [{"fact": "weather", "test": "is_any", "values": ["rain"]}]}}
    for weather, active in (("Rain", 1), ("sun", 0)):
        settings = {"facts": {"weather": weather}}
        assert len(run({**asks, "constant": True}, settings=settings)["activated"]) == active


def test_character_filter_is_compared_with_the_cards_name() -> None:
    for name, active in (("Tilda", 1), ("Oren", 0)):
        entry = {"characterFilter": {"isExclude": False, "names": [name], "tags": []}}
        assert len(run({**entry, "constant": True}, card=a_card())["activated"]) == active


def test_keys_are_found_in_card_and_persona_when_the_entry_scans_these_texts() -> None:
    more = {"card": a_card(), "persona": {"name": "Anna", "description": "Anna draws maps."}}
    for fields, active in (
        ({"key": ["lamps"], "matchCharacterDescription": True}, 1),
        ({"key": ["maps"], "matchPersonaDescription": True}, 1),
        ({"key": ["maps"], "matchCharacterDescription": True}, 0),
        ({"key": ["lamps"]}, 0),
    ):
        assert len(run(fields, **more)["activated"]) == active


def a_conversation(count: int, **settings: Any) -> dict[str, Any]:
    """Return the turns of a conversation, each with other facts."""
    talk = said(2 * count)
    turns = [
        {
            "history": talk[: 2 * number],
            "event": {"content": talk[2 * number]["content"]},
            "dynamic_context": [f"It is {number} o'clock."],
        }
        for number in range(count)
    ]
    rules = {"key": "rules", "id": 1, "content": "Rules."}
    return {"components": [rules], "turns": turns, "settings": settings}


def test_first_turn_has_no_shared_prefix() -> None:
    first = run_scenario(a_conversation(1))["turns"][0]["cache"]
    assert first["breakpoints"] == [0]
    assert (first["shared_tokens"], first["broken_by"], first["reason"]) == (None, None, None)


def test_result_names_the_text_that_broke_the_prefix_and_the_reason() -> None:
    _, second = run_scenario(a_conversation(2))["turns"]
    cache = second["cache"]
    assert (cache["broken_by"], cache["reason"]) == ("block:0", "dynamic")
    assert 0 < cache["shared_tokens"] < cache["stable_tokens"]


def test_persistent_facts_do_not_break_the_prefix() -> None:
    turns = run_scenario(a_conversation(4, blocks="all"))["turns"]
    assert [turn["cache"]["reason"] for turn in turns] == [None, "append", "append", "append"]
    assert turns[3]["cache"]["shared_tokens"] < turns[3]["cache"]["stable_tokens"]
