import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.presets.switches import (
    list_switches,
    switch_lines,
    switch_prompt,
)
from tests.formats.presets.builders import a_preset, a_prompt


def test_prompt_is_switched_by_identifier_name_or_key() -> None:
    preset = a_preset(a_prompt("id-1", name="No Poetry"), before=("id-1",))
    for called in ("id-1", "no poetry", "st_id_1"):
        off = switch_prompt(preset, called, False)
        assert not off.is_on("id-1")
        assert switch_prompt(off, called, True) == preset


def test_prompt_outside_the_order_is_added_at_the_end_when_switched_on() -> None:
    preset = a_preset(a_prompt("loose"))
    assert switch_prompt(preset, "loose", False) is preset
    assert switch_prompt(preset, "loose", True).order[-1] == ("loose", True)


def test_ambiguous_prompt_name_is_refused_with_the_identifiers() -> None:
    preset = a_preset(a_prompt("a", name="Same"), a_prompt("b", name="Same"))
    with pytest.raises(FormatError, match=r"2 prompts are called 'same'.*: a, b"):
        switch_prompt(preset, "same", True)


def test_unknown_prompt_name_is_refused_with_similar_names() -> None:
    with pytest.raises(FormatError, match="did you mean Main Prompt"):
        switch_prompt(a_preset(), "Main Promt", True)


def test_switch_lines_follow_the_preset_order_with_check_boxes() -> None:
    preset = a_preset(
        a_prompt("deep", "Some words here.", injection_position=1, injection_depth=0),
        before=("main", "charDescription", "deep"),
        off=("deep",),
    )
    assert [one.identifier for one in list_switches(preset)] == [
        *("main", "charDescription", "deep", "chatHistory", "jailbreak")
    ]
    lines = switch_lines(preset)
    assert lines[1] == "   2 [x] Char Description (system, a place)"
    assert lines[2].startswith("   3 [ ] deep (system @0, ")
    assert lines[3] == "   4 [x] Chat History (the conversation)"
