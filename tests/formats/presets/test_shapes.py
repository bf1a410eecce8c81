"""Preset files of every shape are read, reported, composed and written without loss."""

import json

import pytest

from evennia_ai.engine.prompt.components import ALL_GRANTS, NO_GRANTS, Grants
from evennia_ai.engine.text.columns import WIDTH, count_columns
from evennia_ai.formats.presets.export import dump_preset
from evennia_ai.formats.presets.mapping import preset_components
from evennia_ai.formats.presets.preset import Preset
from evennia_ai.formats.presets.reading import read_preset
from evennia_ai.formats.presets.report import preset_report, report_lines, report_object
from evennia_ai.formats.presets.secrets import drop_secrets
from evennia_ai.formats.presets.switches import switch_prompt
from evennia_ai.formats.scenario import run_scenario
from tests.effort import little_work
from tests.formats.presets.differing import differences
from tests.formats.presets.shapes import shapes

SHAPES = shapes()
EACH = pytest.mark.parametrize("name", SHAPES)


def read(name: str) -> Preset:
    return read_preset(json.dumps(SHAPES[name]).encode(), name=name)


def test_at_least_40_preset_shapes_are_tested() -> None:
    assert len(SHAPES) >= 40
    assert len(json.dumps(SHAPES["2 MB"])) > 1_900_000


@EACH
def test_untouched_preset_of_each_shape_is_written_unchanged(name: str) -> None:
    made = json.loads(dump_preset(read(name)))
    assert json.dumps(made) == json.dumps(drop_secrets(SHAPES[name])[0])


@EACH
def test_exported_preset_is_read_back(name: str) -> None:
    preset = read(name)
    again = read_preset(dump_preset(preset), name=name)
    assert (again.prompts, again.order) == (preset.prompts, preset.order)


@EACH
def test_switching_a_prompt_changes_one_value_of_the_preset_file(name: str) -> None:
    preset, file = read(name), drop_secrets(SHAPES[name])[0]
    first = preset.order[0]
    made = json.loads(dump_preset(switch_prompt(preset, first.identifier, not first.enabled)))
    paths = differences(file, made)
    assert len(paths) == 1
    assert "prompt_order" in paths[0]


@pytest.mark.parametrize("grants", [ALL_GRANTS, NO_GRANTS], ids=["granted", "not granted"])
@EACH
def test_changing_a_prompt_text_changes_one_value_of_the_preset_file(
    name: str, grants: Grants
) -> None:
    preset, file = read(name), drop_secrets(SHAPES[name])[0]
    texts = {one.key for one in preset.by_identifier.values() if not one.is_marker}
    texts |= {"st_main", "st_jailbreak"}
    component = next(one for one in preset_components(preset, grants=grants) if one.key in texts)
    edited = component.changed(content="Something else.")
    paths = differences(file, json.loads(dump_preset(preset, [edited], grants=grants)))
    assert len(paths) == 1
    assert paths[0].endswith((".content", "_prompt", ".prompts"))


@EACH
def test_components_keep_the_order_of_the_preset(name: str) -> None:
    preset = read(name)
    ids = {one.key: one.id for one in preset_components(preset, grants=ALL_GRANTS)}
    by_list = [preset.by_identifier[item.identifier].key for item in preset.order]
    listed = [ids[key] for key in by_list if key in ids and key != "conversation_history"]
    assert listed == sorted(listed)
    assert all(number % 10 for number in listed)


@EACH
def test_every_preset_prompt_stays_in_the_history_without_grants(name: str) -> None:
    assert all(one.is_contained for one in preset_components(read(name), grants=NO_GRANTS))


@EACH
def test_preset_report_names_every_prompt_of_the_order(name: str) -> None:
    report = preset_report(read(name))
    listed = {item.identifier for item in read(name).order} - {"chatHistory"}
    assert listed <= {part.identifier for part in report.parts}
    json.dumps(report_object(report), allow_nan=False)
    assert all(count_columns(line) <= WIDTH for line in report_lines(report))
    assert "hunter2" not in json.dumps(report_object(report))


@EACH
def test_prompt_is_composed_with_a_preset_of_each_shape(name: str) -> None:
    scenario = {
        "preset": SHAPES[name],
        "history": [{"role": "user", "content": "Hello there."}],
        "settings": {"context_tokens": 10_000_000},
    }
    messages = run_scenario(scenario)["messages"]
    off = name == "history off"
    assert any(one["content"] == "Hello there." for one in messages) is not off


def test_variable_set_by_one_prompt_is_read_by_another() -> None:
    result = run_scenario({"preset": SHAPES["variables"]})
    [text] = [one["content"] for one in result["messages"] if "- " in one["content"]]
    assert "harbour" in text
    assert "dawn" not in text  # the prompt that sets the text "dawn" is switched off
    assert "{{" not in text


def test_large_preset_file_is_read_and_reported_with_little_work() -> None:
    data = json.dumps(SHAPES["2 MB"]).encode()
    with little_work(1):
        read_preset(data, name="Large")
