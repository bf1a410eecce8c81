import json
from typing import Any

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.presets.preset import OWN
from evennia_ai.formats.presets.reading import PresetLimits, read_preset
from tests.formats.presets.builders import a_file, a_preset, a_prompt


def test_preset_without_prompts_gets_sillytaverns_own_prompts_in_default_order() -> None:
    preset = read_preset({"prompts": []}, name="Bare")
    assert [item.identifier for item in preset.order] == list(OWN)
    assert preset.is_on("main")
    assert not preset.is_on("enhanceDefinitions")
    assert "{{char}}" in preset.by_identifier["main"].content
    assert not preset.by_identifier["main"].is_in_file


def test_sillytaverns_own_prompt_without_text_has_the_default_text() -> None:
    preset = read_preset({"prompts": [{"identifier": "main", "role": "user"}]}, name="Bare")
    main = preset.by_identifier["main"]
    assert (main.content, main.name) == (OWN["main"].content, "Main Prompt")
    assert (main.role, main.is_in_file) == ("user", True)


def test_prompt_order_with_the_id_100001_is_used() -> None:
    file = a_file(a_prompt("mine", "Mine."), before=("mine", "main"))
    file["prompt_order"].insert(0, {"character_id": 100000, "order": []})
    preset = read_preset(file, name="Test")
    assert [item.identifier for item in preset.order][:2] == ["mine", "main"]


def test_switch_of_a_prompt_is_read_from_the_order_not_from_the_prompt() -> None:
    preset = a_preset(a_prompt("mine", enabled=True), before=("mine",), off=("mine",))
    assert not preset.is_on("mine")


def test_all_fields_of_a_preset_prompt_are_read() -> None:
    preset = a_preset(
        a_prompt(
            "mine",
            "Mine.",
            name="My own",
            role="assistant",
            injection_position=1,
            injection_depth=2,
            injection_order=7,
            injection_trigger=["quiet"],
            forbid_overrides=True,
        )
    )
    prompt = preset.by_identifier["mine"]
    assert (prompt.key, prompt.name, prompt.content) == ("st_mine", "My own", "Mine.")
    assert (prompt.role, prompt.position, prompt.depth) == ("assistant", "in_chat", 2)
    assert (prompt.injection_order, prompt.triggers) == (7, ("quiet",))
    assert prompt.forbids_overrides


def test_first_of_several_prompts_with_the_same_identifier_is_used() -> None:
    preset = a_preset(a_prompt("mine", "first"), a_prompt("mine", "second"), before=("mine",))
    assert preset.by_identifier["mine"].content == "first"
    assert [one.key for one in preset.prompts if one.identifier == "mine"] == [
        "st_mine",
        "st_mine_2",
    ]
    assert "2 prompts are called 'mine'; the first counts" in preset.notices


def test_equal_component_keys_of_prompts_are_numbered() -> None:
    preset = a_preset(a_prompt("A-b"), a_prompt("a b"), a_prompt("ночь"), a_prompt("main2"))
    keys = [one.key for one in preset.prompts[-4:]]
    assert keys == ["st_a_b", "st_a_b_2", "st_prompt", "st_main2"]


def test_order_items_without_a_prompt_are_skipped_with_a_notice() -> None:
    preset = a_preset(before=("gone", "main", "main"))
    assert [item.identifier for item in preset.order] == ["main", "chatHistory", "jailbreak"]
    assert "prompt_order: there is no prompt 'gone'" in preset.notices
    assert "prompt_order: 'main' occurs twice; the first one is used" in preset.notices


def test_prompt_manager_export_is_read() -> None:
    data = {
        "prompts": [a_prompt("mine", "Mine.")],
        "prompt_order": [{"identifier": name, "enabled": True} for name in ("main", "mine")],
    }
    preset = read_preset({"version": 1, "type": "full", "data": data}, name="Export")
    assert [item.identifier for item in preset.order] == ["main", "mine"]
    assert preset.by_identifier["mine"].content == "Mine."


def test_sillytaverns_own_prompts_take_their_text_from_outdated_members() -> None:
    file = {
        "main_prompt": "M",
        "nsfw_prompt": "N",
        "jailbreak_prompt": "J",
        "names_in_completion": True,
    }
    preset = read_preset(file, name="Old")
    contents = [preset.by_identifier[name].content for name in ("main", "nsfw", "jailbreak")]
    assert contents == ["M", "N", "J"]
    assert preset.names == "field"


def test_secrets_are_removed_and_only_their_names_reported() -> None:
    preset = a_preset(proxy_password="hunter2", reverse_proxy="http://x", custom_url="")
    assert set(preset.secrets) == {"reverse_proxy", "proxy_password"}
    assert "hunter2" not in json.dumps(dict(preset.source))
    assert any(
        "reverse_proxy" in notice and "proxy_password" in notice for notice in preset.notices
    )
    assert not any("hunter2" in notice for notice in preset.notices)


@pytest.mark.parametrize(
    ("field", "given", "attribute", "taken"),
    [
        ("role", "narrator", "role", "system"),
        ("content", 5, "content", ""),
        ("injection_depth", 10**12, "depth", 10**9),
        ("injection_depth", -1, "depth", 0),
        ("injection_depth", "x", "depth", 4),
        ("injection_position", 7, "position", "relative"),
        ("injection_order", None, "injection_order", 100),
        ("injection_trigger", "quiet", "triggers", ()),
        ("forbid_overrides", 1, "forbids_overrides", False),
    ],
)
def test_invalid_prompt_field_gets_its_default_and_a_notice(
    field: str, given: Any, attribute: str, taken: object
) -> None:
    preset = a_preset(a_prompt("mine", **{field: given}))
    assert getattr(preset.by_identifier["mine"], attribute) == taken
    assert any(f".{field}: cannot be" in notice for notice in preset.notices) == (given is not None)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\xff", "not UTF-8"),
        ("{", "is not valid JSON"),
        ("[]", "must be a JSON object"),
        ('{"temp": 1}', "text completion"),
        ('{"prompts": {}}', "must be a list"),
        ('{"prompts": ' + "[" * 90 + "]" * 90 + "}", "nested more than"),
        ('{"prompts": [], "seed": NaN}', "is not valid JSON"),
    ],
)
def test_data_that_is_no_preset_is_refused(data: bytes | str, told: str) -> None:
    with pytest.raises(FormatError, match=told) as error:
        read_preset(data, name="Bad")
    assert error.value.kind == "preset"


def test_preset_over_a_limit_is_refused() -> None:
    limits = PresetLimits(file_bytes=2_000, prompts=13, content_characters=10)
    with pytest.raises(FormatError, match="more than 2000; make it smaller"):
        read_preset(json.dumps(a_file(a_prompt("m", "x" * 2_000))), name="Large", limits=limits)
    with pytest.raises(FormatError, match="there are 14, more than 13"):
        read_preset(a_file(a_prompt("a"), a_prompt("b")), name="Many", limits=limits)
    with pytest.raises(FormatError, match=r"prompts\[0\].content: has 11 characters"):
        read_preset({"prompts": [a_prompt("a", "x" * 11)]}, name="Long", limits=limits)


def test_too_many_prompts_after_the_history_are_refused() -> None:
    many = [f"p{n}" for n in range(441)]
    with pytest.raises(FormatError, match="441 prompts come after chatHistory"):
        a_preset(*map(a_prompt, many), after=many)
    in_chat = [a_prompt(name, injection_position=1) for name in many]
    assert len(a_preset(*in_chat, after=many).order) == 443
