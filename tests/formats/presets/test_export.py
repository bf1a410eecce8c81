import json
from typing import Any

from evennia_ai.engine.prompt.components import ALL_GRANTS, NO_GRANTS, Grants, PromptComponent
from evennia_ai.formats.presets.changes import list_unwritable
from evennia_ai.formats.presets.export import dump_preset
from evennia_ai.formats.presets.mapping import preset_components
from evennia_ai.formats.presets.preset import Preset
from evennia_ai.formats.presets.reading import read_preset
from evennia_ai.formats.presets.switches import switch_prompt
from tests.formats.presets.builders import a_file, a_prompt
from tests.formats.presets.differing import differences


def a_full_file() -> dict[str, Any]:
    """Return a preset file with values that SillyTavern's own export would lose."""
    file = a_file(
        a_prompt("mine", "Mine.", enabled=False, colour="red"),
        a_prompt("mine", "Again."),
        a_prompt("loose", "Nobody names it."),
        before=("main", "mine", "gone", "charDescription"),
        temperature=1.0,
        top_p=1,
        extensions={"regex_scripts": [{"findRegex": "/x/"}]},
    )
    file["prompt_order"].insert(0, {"character_id": 100000, "order": []})
    return file


def read(file: dict[str, Any]) -> Preset:
    return read_preset(json.dumps(file), name="Test")


def component(preset: Preset, key: str, *, grants: Grants = ALL_GRANTS) -> PromptComponent:
    return next(one for one in preset_components(preset, grants=grants) if one.key == key)


def test_preset_without_edits_is_exported_with_equal_values() -> None:
    file = a_full_file()
    text = dump_preset(read(file))
    assert json.dumps(json.loads(text)) == json.dumps(file)


def test_switching_a_prompt_changes_one_value_of_the_exported_order() -> None:
    file = a_full_file()
    made = json.loads(dump_preset(switch_prompt(read(file), "mine", False)))
    assert differences(file, made) == [".prompt_order[1].order[1].enabled"]


def test_edited_prompt_text_changes_one_value_of_the_export() -> None:
    file = a_full_file()
    preset = read(file)
    edited = component(preset, "st_mine").changed(content="Other.")
    made = json.loads(dump_preset(preset, [edited]))
    at = next(n for n, one in enumerate(file["prompts"]) if one["identifier"] == "mine")
    assert differences(file, made) == [f".prompts[{at}].content"]


def test_prompt_without_its_grant_is_exported_at_its_original_place() -> None:
    file = a_full_file()
    preset = read(file)
    edited = component(preset, "st_main", grants=NO_GRANTS).changed(content="Other.")
    made = json.loads(dump_preset(preset, [edited], grants=NO_GRANTS))
    at = next(n for n, one in enumerate(file["prompts"]) if one["identifier"] == "main")
    assert differences(file, made) == [f".prompts[{at}].content"]


def test_component_moved_into_the_chat_changes_position_depth_and_order() -> None:
    file = a_full_file()
    preset = read(file)
    edited = component(preset, "st_mine").changed(injection_depth=2, injection_order=50)
    made = json.loads(dump_preset(preset, [edited]))
    [prompt] = [one for one in made["prompts"] if one.get("colour")]
    assert (prompt["injection_position"], prompt["injection_depth"]) == (1, 2)
    assert prompt["injection_order"] == 50


def test_editing_the_new_chat_line_changes_only_the_member_of_that_line() -> None:
    file = a_full_file() | {"new_chat_prompt": "[Start]"}
    preset = read(file)
    edited = component(preset, "new_chat").changed(content="[Begin]")
    assert differences(file, json.loads(dump_preset(preset, [edited]))) == [".new_chat_prompt"]


def test_moved_component_moves_in_the_order_and_unknown_lines_follow() -> None:
    preset = read(a_full_file())
    moved = component(preset, "card_system_prompt").changed(id=1099)
    made = json.loads(dump_preset(preset, [moved]))
    order = [one["identifier"] for one in made["prompt_order"][1]["order"]]
    assert order == ["mine", "gone", "charDescription", "main", "chatHistory", "jailbreak"]


def test_new_component_becomes_a_prompt_at_its_place() -> None:
    preset = read(a_full_file())
    new = PromptComponent(id=12, key="weather", name="Weather", content="It rains.", role="user")
    text = dump_preset(preset, [new])
    assert text == dump_preset(preset, [new])
    made = json.loads(text)
    prompt = made["prompts"][-1]
    assert (prompt["name"], prompt["content"], prompt["role"]) == ("Weather", "It rains.", "user")
    assert (prompt["system_prompt"], prompt["marker"]) == (False, False)
    order = [one["identifier"] for one in made["prompt_order"][1]["order"]]
    assert order.index(prompt["identifier"]) < order.index("charDescription")


def test_prompt_of_a_removed_component_is_deleted_or_switched_off_if_sillytaverns_own() -> None:
    preset = read(a_full_file())
    made = json.loads(dump_preset(preset, removed=["st_mine", "post_history_instructions"]))
    order = {one["identifier"]: one["enabled"] for one in made["prompt_order"][1]["order"]}
    assert "mine" not in order
    assert order["jailbreak"] is False
    assert "jailbreak" in {one["identifier"] for one in made["prompts"]}


def test_edited_prompt_text_is_written_to_the_outdated_member() -> None:
    file = {"main_prompt": "M", "prompts": []}
    preset = read(file)
    edited = component(preset, "card_system_prompt").changed(content="N")
    assert differences(file, json.loads(dump_preset(preset, [edited]))) == [".main_prompt"]


def test_preset_file_without_an_order_is_exported_with_an_order() -> None:
    made = json.loads(dump_preset(switch_prompt(read({"prompts": []}), "nsfw", False)))
    [written] = made["prompt_order"]
    assert written["character_id"] == 100001
    assert {"identifier": "nsfw", "enabled": False} in written["order"]


def test_prompt_manager_export_keeps_its_format() -> None:
    data = {
        "prompts": [a_prompt("mine", "Mine.")],
        "prompt_order": [{"identifier": "mine", "enabled": True}],
    }
    file = {"version": 1, "type": "full", "data": data}
    made = json.loads(dump_preset(switch_prompt(read(file), "mine", False)))
    assert differences(file, made) == [".data.prompt_order[0].enabled"]


def test_preset_is_exported_without_its_secrets() -> None:
    text = dump_preset(read(a_file(proxy_password="hunter2", temperature=0.5)))
    assert "hunter2" not in text
    assert json.loads(text) == a_file(temperature=0.5)


def test_changes_that_a_preset_cannot_hold_are_listed() -> None:
    edited = component(read(a_full_file()), "st_mine")
    assert list_unwritable([edited]) == ()
    assert list_unwritable([edited.changed(volatile=True, priority=5)]) == (
        "'st_mine': volatile, priority cannot be written in a preset and are left out",
    )
