"""Texts that change from turn to turn: some are refused before the history, others warn."""

import pytest

from evennia_ai.store.authored.components import registry
from tests.commands.stage import component, one_line

TOLD = "Its text changes from turn to turn and is placed before the history"
REFUSED = "is placed before the history, which must begin alike in every turn"


@pytest.mark.req("S0-03", "S0-28")
@pytest.mark.parametrize(
    "text",
    [
        "{{speaker}} is here.",
        "{% if speaker == 'Pim' %}Pim!{% endif %}",
        "It is {{time}}, {{date}}.",
    ],
)
@pytest.mark.parametrize("named", ["sky = 1301", "sky = 0999"])
def test_a_text_about_the_request_before_the_history_is_refused(stage, text, named):
    told = one_line(stage.builds(f"component/create {named}: {text}"))
    assert REFUSED in told
    assert "volatile first" in told
    assert not any(one.key == "sky" for one in registry())


@pytest.mark.req("S0-03", "S0-28")
def test_the_games_own_rules_may_not_name_who_speaks(stage):
    told = stage.builds("component/edit system_prompt", "Answer {{speaker}}.", ":w", ":q!")
    assert REFUSED in " ".join(told.split())
    assert "{{speaker}}" not in component("system_prompt").content


@pytest.mark.req("S0-28")
def test_move_and_volatile_refuse_request_texts_before_the_history(stage):
    stage.builds("component/create sky = 5200: {{speaker}} is here.")
    assert REFUSED in one_line(stage.builds("component/move sky = 1301"))
    stage.builds("component/off sky", "component/move sky = 1301")
    assert REFUSED in one_line(stage.builds("component/on sky"))
    stage.builds("component/volatile sky = yes", "component/on sky")
    assert REFUSED in one_line(stage.builds("component/volatile sky = no"))
    assert (component("sky").id, component("sky").volatile) == (1301, True)


@pytest.mark.req("S0-28")
@pytest.mark.parametrize("text", ["{{random:fog,rain}}", "{{roll:6}}"])
def test_random_text_before_the_history_warns(stage, text):
    told = stage.builds(f"component/create sky = 1301: {text}")
    assert f"{TOLD}, so a provider can cache nothing after it. component/volatile sky = yes" in told


@pytest.mark.req("S0-28")
@pytest.mark.parametrize(
    "typed",
    [
        "component/create sky = 5200: {{speaker}} is here.",
        "component/create sky = 1301: {{char}} and {{user}}.",
        "component/create sky = 1301: {{pick:fog,rain}}",
    ],
)
def test_constant_or_later_text_does_not_warn(stage, typed):
    assert TOLD not in stage.builds(typed)


def test_moving_random_text_before_the_history_warns(stage):
    stage.builds("component/create sky = 5200: {{roll:6}}")
    assert TOLD in stage.builds("component/move sky = 1301")
    assert TOLD not in stage.builds("component/volatile sky = yes")


@pytest.mark.req("S0-28")
def test_a_volatile_text_leaves_the_system_texts_for_the_facts(stage):
    stage.builds(
        "component/create sky = 5200: {{speaker}} is here.",
        "component/volatile sky = yes",
        "component/move sky = 1301",
    )
    messages = stage.npc.ai.preview("Oren?", stage.player).messages
    (facts,) = [m for m in messages if m.block == "dynamic"]
    assert "Pim is here." in facts.content
    assert not any("Pim is here." in m.content for m in messages if m.role == "system")


def test_volatile_shows_sets_and_clears(stage, mood):
    assert one_line(stage.builds("component/volatile mood")) == "mood is not volatile."
    stage.builds("component/volatile mood = YES")
    assert component("mood").volatile
    assert one_line(stage.builds("component/volatile mood")) == "mood is volatile."
    stage.builds("component/volatile mood = no")
    assert not component("mood").volatile


def test_volatile_says_what_it_changed(stage, mood):
    assert one_line(stage.builds("component/volatile mood = yes")) == (
        "mood (1200, system, on) is placed at ID 1200, in the layout cache after the history,"
        " among the facts of the moment. Volatile before: no; now: yes. Revision 2."
    )
    assert one_line(stage.builds("component/volatile mood = no")) == (
        "mood (1200, system, on) is placed at ID 1200. Volatile before: yes; now: no. Revision 3."
    )


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("component/order mood = 5", "Order before: 100; now: 5."),
        ("component/role mood = user", "Role before: system; now: user."),
        ("component/off mood", "State before: on; now: off."),
    ],
)
def test_change_shows_old_and_new_value(stage, mood, typed, told):
    assert told in one_line(stage.builds(typed))


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("component/depth mood = 99999999999", "Depth 99999999999 is not allowed: it must be a"),
        ("component/order mood = 99999999999", "Order 99999999999 is not allowed: it must be a"),
        ("component/move mood = 12000", "ID 12000 is not allowed: it must be a whole number from"),
        ("component/create fog = 1200: x", "ID 1200 is already taken by component 'mood'"),
    ],
)
def test_errors_name_fields_by_their_switches(stage, mood, typed, told):
    said = one_line(stage.builds(typed))
    assert said.startswith(told)
    assert "injection" not in said


def test_component_command_says_that_a_very_deep_component_is_at_the_top_of_the_history(
    stage, mood
):
    told = stage.builds("component/depth mood = 1000000000")
    assert "is placed at the top of the history, order 100." in told


def test_anything_but_yes_and_no_changes_nothing(stage, mood):
    told = one_line(stage.builds("component/volatile mood = perhaps"))
    assert told == "Type 'yes' or 'no'; 'perhaps' is neither. Nothing was changed."
    assert component("mood").revision == 1


def test_volatile_text_in_a_static_component_is_allowed(stage):
    stage.builds("component/volatile goals = yes")
    assert component("goals").volatile


def test_component_is_left_out_while_its_conditions_are_not_met_and_reverts(stage):
    stage.builds("component/create sky = 1301: It is dark.")
    told = one_line(stage.builds("component/when sky = time.hour >= 24"))
    assert "When before: always; now: time.hour >= 24." in told
    assert "in the layout cache after the history" in told
    assert "used only when time.hour >= 24" in stage.builds("component sky")
    assert "off now: time.hour must be at least 24" in stage.builds("ai/why oren = sky")
    assert "It is dark." not in stage.builds("component/preview/full oren")
    assert "it must be <fact> <test>" in one_line(stage.builds("component/when sky = dark"))
    told = one_line(stage.builds("component/when conversation_history = time.hour >= 1"))
    assert "a place for other texts" in told
    stage.builds("component/when sky = off")
    assert "It is dark." in stage.builds("component/preview/full oren")
    stage.builds("component/revert sky = 2", "yes")
    assert component("sky").when == "time.hour >= 24"
