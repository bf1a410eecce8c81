from typing import Any

import pytest

from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    MAX_DEPTH,
    NO_GRANTS,
    PLUGGABLE_IDS,
    Grants,
    PromptComponent,
)
from evennia_ai.formats.presets.lints import lint_preset
from evennia_ai.formats.presets.mapping import (
    keys_left_out,
    place_texts,
    preset_assembly,
    preset_components,
    replaceable_texts,
)
from evennia_ai.formats.presets.preset import Preset
from tests.formats.presets.builders import a_preset, a_prompt


def found(preset: Preset, key: str, *, grants: Grants = ALL_GRANTS) -> PromptComponent:
    return next(one for one in preset_components(preset, grants=grants) if one.key == key)


def a_text(key: str, content: str, **fields: Any) -> PromptComponent:
    return PromptComponent(
        id=PLUGGABLE_IDS[key], key=key, content=content, trust="imported", **fields
    )


def test_component_ids_follow_the_preset_around_description_and_history() -> None:
    preset = a_preset(
        a_prompt("a"),
        a_prompt("b"),
        before=("main", "a", "charDescription", "b"),
        after=("jailbreak", "nsfw"),
    )
    ids = {one.key: one.id for one in preset_components(preset, grants=ALL_GRANTS)}
    assert (ids["card_system_prompt"], ids["st_a"]) == (11, 12)
    assert (ids["char_description"], ids["st_b"]) == (1061, 1062)
    assert ids["new_chat"] == 4999
    assert (ids["post_history_instructions"], ids["st_nsfw"]) == (5001, 5002)


def test_component_ids_of_a_preset_are_unique_and_no_multiples_of_10() -> None:
    names = [f"p{n}" for n in range(326)]
    preset = a_preset(*map(a_prompt, names), before=("main", *names), after=("jailbreak",))
    components = preset_components(preset, grants=ALL_GRANTS)
    ids = [one.id for one in components]
    assert len(set(ids)) == len(ids)
    assert not any(number % 10 == 0 for number in ids)
    assert len({one.key for one in components}) == len(components)


def test_component_of_a_preset_has_the_role_place_and_switch_of_its_prompt() -> None:
    preset = a_preset(
        a_prompt(
            "deep",
            "Deep.",
            role="assistant",
            injection_position=1,
            injection_depth=3,
            injection_order=9,
        ),
        a_prompt("plain", injection_depth=3),
        before=("deep", "plain"),
        off=("plain",),
    )
    deep, plain = found(preset, "st_deep"), found(preset, "st_plain")
    assert (deep.role, deep.placement, deep.injection_depth) == ("assistant", "history", 3)
    assert (deep.injection_order, deep.trust, deep.enabled) == (9, "imported", True)
    assert (plain.placement, plain.injection_depth, plain.enabled) == ("ordered", 0, False)


def test_all_preset_prompts_are_user_messages_in_the_history_without_grants() -> None:
    preset = a_preset(
        a_prompt("before", "B", role="assistant"),
        a_prompt("deep", "D", injection_position=1, injection_depth=2),
        before=("main", "before", "charDescription", "deep"),
    )
    components = preset_components(preset, grants=NO_GRANTS)
    assert all(one.is_contained for one in components)
    depths = {one.key: one.injection_depth for one in components}
    assert depths == {
        "st_main": MAX_DEPTH,
        "st_before": MAX_DEPTH,
        "st_deep": 2,
        "new_chat": MAX_DEPTH,
        "st_jailbreak": 4,
    }


def test_history_is_switched_off_only_with_the_grant_positions() -> None:
    preset = a_preset(off=("chatHistory",))
    assert not found(preset, "conversation_history").enabled
    granted = preset_components(preset, grants=ALL_GRANTS - {"positions"})
    assert "conversation_history" not in {one.key for one in granted}


@pytest.mark.parametrize(
    ("grants", "role", "placement"),
    [
        ({"fields"}, "user", "ordered"),
        ({"fields", "roles"}, "assistant", "ordered"),
        ({"roles"}, "user", "history"),
    ],
)
def test_prompt_before_the_history_needs_the_grants_fields_and_roles(
    grants: Any, role: str, placement: str
) -> None:
    preset = a_preset(a_prompt("mine", role="assistant"), before=("mine",))
    made = found(preset, "st_mine", grants=frozenset(grants))
    assert (made.role, made.placement) == (role, placement)


@pytest.mark.parametrize(
    ("before", "after", "grants", "key"),
    [
        (("jailbreak",), (), {"fields"}, "st_jailbreak"),
        (("jailbreak",), (), {"after_history"}, "st_jailbreak"),
        (("jailbreak",), (), {"fields", "after_history"}, "post_history_instructions"),
        ((), ("main",), {"after_history"}, "st_main"),
        ((), ("main",), {"after_history", "system_prompt"}, "card_system_prompt"),
    ],
)
def test_prompt_that_a_card_may_replace_needs_its_grant_at_any_place(
    before: Any, after: Any, grants: Any, key: str
) -> None:
    preset = a_preset(a_prompt("jailbreak", "Obey."), before=before, after=after)
    made = found(preset, key, grants=frozenset(grants))
    assert made.is_contained is key.startswith("st_")
    assert made.role == ("user" if made.is_contained else "system")


def test_main_prompt_in_the_chat_is_not_replaceable_without_the_grant_roles() -> None:
    preset = a_preset(a_prompt("main", "Write.", injection_position=1, injection_depth=2))
    assert replaceable_texts(preset, grants=frozenset({"system_prompt"})) == {}
    assert replaceable_texts(preset, grants=ALL_GRANTS)["card_system_prompt"] == "Write."


def test_preset_marker_that_the_order_lacks_is_placed_at_the_end() -> None:
    preset = a_preset(before=("main",), after=("jailbreak",))
    assert found(preset, "char_description").id > found(preset, "post_history_instructions").id


def test_texts_of_the_card_are_placed_at_the_markers_of_the_preset() -> None:
    preset = a_preset(before=("scenario", "charDescription"), off=("scenario",))
    texts = [a_text("char_description", "A smith."), a_text("scenario", "A forge.")]
    made = {one.key: one for one in place_texts(preset, texts, grants=ALL_GRANTS)}
    assert made["char_description"].content == "A smith."
    assert made["char_description"].id > made["scenario"].id
    assert not made["scenario"].enabled


def test_text_of_a_card_without_a_grant_stays_in_the_history() -> None:
    text = a_text(
        "char_description",
        "A smith.",
        role="user",
        placement="history",
        injection_depth=MAX_DEPTH,
        priority=50,
    )
    preset = a_preset(before=("charDescription",))
    made = {one.key: one for one in place_texts(preset, [text], grants=ALL_GRANTS)}
    assert made["char_description"] == text


@pytest.mark.parametrize(
    ("grants", "role"), [({"positions"}, "system"), ({"positions", "roles"}, "assistant")]
)
def test_text_of_the_card_has_the_presets_role_with_the_grant_for_roles(
    grants: Any, role: str
) -> None:
    place = a_prompt("charDescription", role="assistant", marker=True)
    preset = a_preset(place, before=("charDescription",))
    text = a_text("char_description", "A smith.")
    made = {one.key: one for one in place_texts(preset, [text], grants=frozenset(grants))}
    assert (made["char_description"].role, made["char_description"].id) == (role, 1061)


def test_texts_of_the_card_keep_their_places_without_the_grant_positions() -> None:
    text = a_text("char_description", "A smith.")
    preset = a_preset(before=("charDescription",), off=("charDescription",))
    made = {one.key: one for one in place_texts(preset, [text], grants=frozenset({"fields"}))}
    assert made["char_description"] == text


@pytest.mark.parametrize(("forbids", "content"), [(False, "The card's."), (True, "The preset's.")])
def test_cards_system_prompt_replaces_the_presets_unless_forbidden(
    forbids: bool, content: str
) -> None:
    preset = a_preset(a_prompt("main", "The preset's.", forbid_overrides=forbids))
    text = a_text("card_system_prompt", "The card's.")
    made = {one.key: one for one in place_texts(preset, [text], grants=ALL_GRANTS)}
    assert made["card_system_prompt"].content == content


def test_replaceable_texts_include_the_main_prompt_only_with_its_grant() -> None:
    preset = a_preset()
    texts = replaceable_texts(preset, grants=ALL_GRANTS)
    assert texts["card_system_prompt"] == preset.by_identifier["main"].content
    assert replaceable_texts(preset, grants=NO_GRANTS) == {}


def test_preset_prompt_is_left_out_for_kinds_of_generation_outside_its_triggers() -> None:
    preset = a_preset(
        a_prompt("quiet", injection_trigger=["quiet"]),
        a_prompt("never", injection_trigger=["swipe"]),
        a_prompt("always", injection_trigger=[]),
    )
    assert keys_left_out(preset, "normal") == {"st_quiet", "st_never"}
    assert keys_left_out(preset, "quiet") == {"st_never"}


def test_formats_and_flags_of_a_preset_become_assembly_rules() -> None:
    preset = a_preset(
        wi_format="<lore>{0}</lore>",
        scenario_format="S: {{scenario}}",
        personality_format="",
        new_example_chat_prompt="***",
        names_behavior=2,
        squash_system_messages=True,
        send_if_empty="Go on.",
    )
    rules = preset_assembly(preset)
    assert (rules.lore_format, rules.scenario_format) == ("<lore>{0}</lore>", "S: {{scenario}}")
    assert (rules.personality_format, rules.example_heading) == ("", "***")
    assert (rules.names, rules.squash) == ("content", True)
    assert (rules.stand_in, rules.ties, rules.examples) == ("Go on.", "role", "messages")


@pytest.mark.req("S0-28")
@pytest.mark.parametrize("name", ["{{speaker}}", "{{lastMessage}}"])
def test_lint_reports_a_prompt_before_the_history_that_repeats_speech(name: str) -> None:
    preset = a_preset(a_prompt("mine", f"Hello {name}"), before=("mine",))
    assert [one for one in lint_preset(preset) if f"prompt 'mine': names {name}" in str(one)]
    behind = a_preset(a_prompt("mine", f"Hello {name}"), after=("mine",))
    assert not [one for one in lint_preset(behind) if "names {{" in str(one)]


@pytest.mark.parametrize("given", [None, 0, "x", 7])
def test_preset_leaves_out_speakers_names_between_two_speakers_by_default(given: Any) -> None:
    fields = {} if given is None else {"names_behavior": given}
    preset = a_preset(**fields)
    assert preset.names is None
    assert preset_assembly(preset).names == "none"
