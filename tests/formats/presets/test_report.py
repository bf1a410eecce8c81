from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.formats.presets.report import PresetReport, PromptPart, preset_report, report_lines
from tests.formats.presets.builders import a_preset, a_prompt

PRESET = a_preset(
    a_prompt("main", "Write well."),
    a_prompt("mine", "On {{summary}}.", role="assistant", injection_trigger=["quiet"]),
    a_prompt("deep", "Deep.", injection_position=1, injection_depth=3, injection_order=5),
    a_prompt("loose", "Nobody names it.", name="Loose one"),
    before=("main", "charDescription", "mine", "deep"),
    off=("mine",),
    temperature=0.9,
    openai_max_context=32000,
    openai_model="gpt-4",
    proxy_password="hunter2",
    extensions={"regex_scripts": [{}, {}], "other": 1},
    impersonation_prompt="Speak for {{user}}.",
    squash_system_messages=True,
    strange=1,
)


def part(report: PresetReport, identifier: str) -> PromptPart:
    return next(one for one in report.parts if one.identifier == identifier)


def test_preset_report_has_place_and_missing_grants_of_a_prompt() -> None:
    report = preset_report(PRESET)
    main, deep = part(report, "main"), part(report, "deep")
    assert (main.key, main.place) == ("st_main", "top of the history, role user")
    assert (main.granted, main.grants) == ("ID 11, role system", ("system_prompt",))
    assert (deep.place, deep.grants) == ("depth 3 in the history, role user", ("roles",))
    assert (deep.depth, deep.injection_order) == (3, 5)


def test_marker_has_no_place_without_the_grant_positions() -> None:
    described = part(preset_report(PRESET), "charDescription")
    assert (described.place, described.granted) == ("", "ID 1061, role system")
    assert described.grants == ("positions",)


def test_preset_report_has_no_missing_grant_when_all_are_given() -> None:
    report = preset_report(PRESET, grants=ALL_GRANTS)
    assert not any(one.granted or one.grants for one in report.parts)
    assert part(report, "main").key == "card_system_prompt"


def test_preset_report_lists_disabled_unknown_secret_and_unused_data() -> None:
    report = preset_report(PRESET)
    assert [one.identifier for one in report.parts if not one.enabled] == ["mine"]
    assert "Loose one" in report.unnamed
    assert [(one.macro, one.texts) for one in report.unknown_macros] == [("{{summary}}", 1)]
    assert report.secrets == ("proxy_password",)
    assert report.rules["squash"] is True
    assert report.kept == (
        (
            "model settings, which come from the NPC's profile instead: openai_max_context 32000,"
            " temperature 0.9"
        ),
        "models and connections, never applied: openai_model",
        "texts for situations that a game does not have: impersonation_prompt",
        "data of other extensions: other",
        "other members: strange",
    )


def test_preset_report_lists_only_useful_grants() -> None:
    uses = {one.grant: one for one in preset_report(PRESET, grants=frozenset({"fields"})).uses}
    placing = {"system_prompt", "fields", "after_history", "positions", "roles"}
    assert set(uses) == {*placing, "regex"}
    assert "(2 regex scripts)" in uses["regex"].gives
    assert uses["fields"].given
    assert uses["fields"].gives == "its prompts are before the history (1)"


def test_preset_report_describes_each_prompt_in_three_lines() -> None:
    lines = report_lines(preset_report(PRESET))
    at = lines.index("  [ ] mine (4 tokens)")
    assert lines[at + 1] == "      top of the history, role user"
    assert lines[at + 2] == (
        "      component st_mine; with fields and roles: ID 1062, role assistant;"
    )
    assert "  proxy_password was removed from the file" in lines
