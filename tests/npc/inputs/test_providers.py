"""Providers of facts: their order, their errors, and their blocks in prompts."""

from dataclasses import replace

import pytest
from django.test import override_settings

from evennia_ai.checks import check_context_providers, check_settings
from evennia_ai.npc.inputs.providers import SHIPPED, blocks_of, providers_of
from evennia_ai.npc.senses.events import Event
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.game import SETTINGS

HERE = "tests.npc.inputs.test_providers"
SAID = Event(kind="say", speaker_ref="7", speaker_name="Anna", text="The tide?", room_ref="3")


def weather(npc, event, conversation):
    return f"It rains on {npc}."


def heard(npc, event, conversation):
    return f"Heard: {event.text}, {conversation}."


def nothing(npc, event, conversation):
    return " \n"


def broken(npc, event, conversation):
    raise KeyError("tide")


def a_number(npc, event, conversation):
    return 7


no_function = 7


@pytest.fixture(autouse=True)
def _imported_anew():
    providers_of.cache_clear()
    yield
    providers_of.cache_clear()


def blocks_from(*names):
    paths = tuple(f"{HERE}.{name}" for name in names)
    settings = replace(conf(), context_providers=paths)
    return [(one.key, one.text) for one in blocks_of("Oren", SAID, None, conf=settings)]


@pytest.mark.req("S0-27", "S1-07")
def test_each_provider_makes_one_block_in_the_order_of_the_setting() -> None:
    rain, said = ("weather", "It rains on Oren."), ("heard", "Heard: The tide?, None.")
    assert blocks_from("weather", "heard") == [rain, said]
    assert blocks_from("heard", "weather") == [said, rain]


@pytest.mark.req("S0-49", "S1-09")
def test_provider_with_empty_text_makes_no_block() -> None:
    assert blocks_from("nothing") == []


@pytest.mark.req("S0-27")
def test_failing_provider_is_skipped_and_logged_once(logged) -> None:
    for _ in range(3):
        assert blocks_from("broken", "weather") == [("weather", "It rains on Oren.")]
    (line,) = logged
    assert f"{HERE}.broken raised KeyError: 'tide'; its facts are left out" in line


def test_provider_that_returns_no_text_is_skipped_and_logged_once(logged) -> None:
    assert blocks_from("a_number") == blocks_from("a_number") == []
    (line,) = logged
    assert f"{HERE}.a_number returned int instead of a text" in line


def test_provider_named_twice_makes_one_block() -> None:
    assert len(blocks_from("weather", "weather")) == 1


def test_second_provider_of_the_same_name_has_its_path_as_key() -> None:
    paths = (f"{HERE}.weather", "tests.npc.inputs.other_providers.weather")
    keys = [one.key for one in providers_of(paths).members]
    assert keys == ["weather", "tests.npc.inputs.other_providers.weather"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (f"{HERE}.missing", "it cannot be imported"),
        ("world.nowhere.tide", "it cannot be imported"),
        (f"{HERE}.no_function", "it is not a function"),
        ("speeker", "unknown name; use one of kb_meta_prompt, speaker"),
    ],
)
def test_invalid_provider_is_reported_by_the_check_and_left_out(path, problem, logged) -> None:
    with override_settings(EVENNIA_AI_CONTEXT_PROVIDERS=["speaker", path]):
        (error,) = check_context_providers()
    assert error.id == "evennia_ai.E063"
    assert error.msg.startswith(f"EVENNIA_AI_CONTEXT_PROVIDERS: {path}: {problem}")
    assert [one.key for one in providers_of(("speaker", path)).members] == ["speaker"]


def test_setting_that_is_not_a_list_is_reported_once() -> None:
    with override_settings(EVENNIA_AI_CONTEXT_PROVIDERS="speaker"):
        assert check_context_providers() == []
        assert [error.id for error in check_settings()] == ["evennia_ai.E063"]


def test_every_shipped_provider_can_be_imported() -> None:
    found = providers_of(SHIPPED)
    assert (found.problems, [one.key for one in found.members]) == ((), list(SHIPPED))


def test_default_setting_names_all_shipped_providers_except_game_time() -> None:
    default = SETTINGS["context_providers"].default
    assert set(SHIPPED) - set(default) == {"game_time"}
    assert set(default) <= set(SHIPPED)


def test_facts_message_follows_the_order_of_the_setting(stage) -> None:
    paths = ("place", f"{HERE}.weather", "speaker")
    model = stage.talks_with("Aye.", context_providers=paths)
    stage.says(stage.anna, "Oren?")
    facts = next(m.content for m in model.requests[0].messages if "It rains" in m.content)
    assert facts == (
        "Who speaks: Anna (Player).\n\nPlace: Ferry Landing. Present: Anna, Ben.\n\n"
        "It rains on Oren."
    )


@pytest.mark.req("S0-49", "S1-09")
def test_prompt_has_no_facts_message_without_providers(stage) -> None:
    model = stage.talks_with("Aye.", context_providers=())
    stage.says(stage.anna, "Oren?")
    assert [m.content for m in model.requests[0].messages if m.role == "user"] == ["Anna: Oren?"]


def test_npc_answers_when_a_provider_fails(stage, logged) -> None:
    stage.talks_with("Aye.", context_providers=(f"{HERE}.broken", "speaker"))
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye."'
    assert any("KeyError" in line for line in logged)
