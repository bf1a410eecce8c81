"""The key `preset` of a scenario."""

import json
from pathlib import Path
from typing import Any

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.scenario import run_scenario
from evennia_ai.formats.scenario.reading import read_scenario
from tests.formats.presets.builders import a_file, a_prompt


def contents(scenario: dict[str, Any]) -> list[str]:
    return [one["content"] for one in run_scenario(scenario)["messages"]]


def test_preset_prompts_are_placed_around_the_history() -> None:
    scenario = {
        "preset": a_file(
            a_prompt("main", "First."),
            a_prompt("mine", "Second.", role="user"),
            before=("main", "mine"),
        ),
        "history": [{"role": "user", "content": "Hello."}],
    }
    assert contents(scenario) == ["First.", "Second.", "[Start a new Chat]", "Hello."]


def test_preset_is_read_from_a_file_next_to_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "Dusk.json").write_text(json.dumps(a_file()), encoding="utf-8")
    assert read_scenario({"preset": "Dusk.json"}, folder=tmp_path).preset is not None
    (tmp_path / "Dawn.json").write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match=r"Dawn: preset: is not valid JSON"):
        read_scenario({"preset": "Dawn.json"}, folder=tmp_path)


@pytest.mark.parametrize("given", [5, ["a"], True])
def test_preset_of_a_scenario_must_be_a_path_or_an_object(given: Any) -> None:
    with pytest.raises(FormatError, match="must be a path or a preset's object"):
        read_scenario({"preset": given})


def test_assembly_settings_override_the_preset() -> None:
    file = a_file(squash_system_messages=True, send_if_empty="Go on.")
    scenario = read_scenario({"preset": file, "settings": {"assembly": {"squash": False}}})
    assert (scenario.assembly.squash, scenario.assembly.stand_in) == (False, "Go on.")
    own = read_scenario({"preset": file, "settings": {"assembly": {"rules": "evennia_ai"}}})
    assert (own.assembly.ties, own.assembly.squash) == ("id", True)


def test_listed_component_replaces_the_presets_with_the_same_key() -> None:
    scenario = {
        "preset": a_file(
            a_prompt("main", "First."), a_prompt("mine", "Second."), before=("main", "mine")
        ),
        "components": [{"key": "st_mine", "content": "Other."}],
    }
    assert contents(scenario) == ["First.", "Other.", "[Start a new Chat]"]


def test_listed_component_gets_an_id_that_the_preset_does_not_use() -> None:
    names = [f"p{n}" for n in range(300)]
    scenario = {
        "preset": a_file(*map(a_prompt, names), before=("charDescription", *names)),
        "components": [{"content": "Mine."}],
    }
    assert contents(scenario) == ["Mine.", "[Start a new Chat]"]


def test_preset_prompt_for_other_kinds_of_generation_is_left_out() -> None:
    scenario = {
        "preset": a_file(
            a_prompt("main", "First."),
            a_prompt("hush", "In the background.", injection_trigger=["quiet"]),
            a_prompt("say", "When asked.", injection_trigger=["normal"]),
            before=("main", "hush", "say"),
        )
    }
    assert contents(scenario) == ["First.", "When asked.", "[Start a new Chat]"]


def test_cards_system_prompt_replaces_the_main_prompt_which_original_names() -> None:
    card = {
        "spec": "chara_card_v2",
        "spec_version": "2.0",
        "data": {"name": "Aria", "system_prompt": "{{original}} As Aria."},
    }
    scenario = {"preset": a_file(a_prompt("main", "Write.")), "card": card}
    assert contents(scenario)[0] == "Write. As Aria."


def test_scenario_reports_the_notices_of_its_preset() -> None:
    scenario = read_scenario({"preset": a_file(before=("gone",), proxy_password="x")})
    assert [one for one in scenario.notices if one.startswith("preset: ")] == [
        "preset: secrets were removed from the preset: proxy_password",
        "preset: prompt_order: there is no prompt 'gone'",
    ]
