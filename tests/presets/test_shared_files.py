"""Files in the shapes that people share come out as they went in, but for what was edited."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from evennia_ai.presets.export import exported
from evennia_ai.presets.mapping import off_in, preset_assembly, preset_components, with_texts
from evennia_ai.presets.preset import Preset
from evennia_ai.presets.reading import read_preset
from evennia_ai.presets.switches import switch_lines, switched
from evennia_ai.prompt.components import ALL_GRANTS, HISTORY_ID, NO_GRANTS
from tests.presets.shared_files import FILES


def read(name: str) -> Preset:
    return read_preset(json.dumps(FILES[name], ensure_ascii=False).encode(), name=name)


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for name, value in before.items():
            yield from differences(value, after[name], f"{path}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif type(before) is not type(after) or before != after:
        yield path


def test_there_are_forty_files() -> None:
    assert len(FILES) >= 40
    assert max(len(json.dumps(file, ensure_ascii=False).encode()) for file in FILES.values()) > 2e6
    assert max(len(file.get("prompts", ())) for file in FILES.values()) > 326


@pytest.mark.parametrize("name", FILES)
def test_an_untouched_file_comes_out_as_it_went_in(name: str) -> None:
    before = copy.deepcopy(FILES[name])
    text = exported(read(name))
    assert json.loads(text) == before
    assert json.dumps(json.loads(text)) == json.dumps(before), "the order of members stays"


@pytest.mark.parametrize("name", FILES)
def test_one_switch_is_one_value_of_the_file(name: str) -> None:
    """A file without an order of its own gets one; nothing else of it changes."""
    preset = read(name)
    for item in preset.order[:3]:
        turned = switched(preset, item.identifier, not item.enabled)
        made = json.loads(exported(turned))
        assert len(list(differences(FILES[name], made))) == 1
        again = read_preset(made, name=name)
        assert again.switches == {**preset.switches, item.identifier: not item.enabled}
        back = switched(turned, item.identifier, item.enabled)
        assert json.loads(exported(back)) == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_one_text_that_changed_is_one_value_of_the_file(name: str) -> None:
    preset = read(name)
    for index, prompt in enumerate(preset.prompts):
        if not prompt.is_in_file or prompt.is_marker:
            continue
        edited = prompt.changed(content="Another text.")
        prompts = (*preset.prompts[:index], edited, *preset.prompts[index + 1 :])
        made = json.loads(exported(preset.changed(prompts=prompts)))
        [where] = differences(FILES[name], made)
        assert where.endswith(f"prompts[{index}].content")
        return


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_gives_has_places_and_keys_of_its_own(name: str) -> None:
    made = with_texts(read(name), (), grants=ALL_GRANTS)
    ids = [one.id for one in made]
    assert len(set(ids)) == len(ids)
    assert len({one.key for one in made}) == len(made)
    assert all(one.id % 10 for one in made if one.id != HISTORY_ID)
    assert all(one.trust == "imported" for one in made if one.id != HISTORY_ID)


@pytest.mark.parametrize("name", FILES)
def test_without_a_grant_all_text_stays_a_users_inside_the_history(name: str) -> None:
    preset = read(name)
    assert all(one.is_contained for one in preset_components(preset, grants=NO_GRANTS))


@pytest.mark.parametrize("name", FILES)
def test_every_file_has_rules_triggers_and_a_list_to_look_at(name: str) -> None:
    preset = read(name)
    assert preset_assembly(preset).ties == "role"
    keys = {prompt.key for prompt in preset.prompts} | {"st_main", "st_jailbreak"}
    assert off_in(preset, "normal") <= keys
    assert len(switch_lines(preset)) == len(preset.order)
