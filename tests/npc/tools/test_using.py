"""The tool use, which calls a thing's own hook if the lock allows it."""

from typing import Any

from tests.npc.tools.acting import a_thing, does


def a_bell(stage: Any, *, told: Any = "It |rrings|n.", **options: Any) -> Any:
    made = a_thing(stage, "bell", **options)
    made.used = []

    def at_use(user: Any, target: Any) -> Any:
        made.used.append((user, target))
        return told

    made.at_use = at_use
    return made


def test_use_returns_what_the_things_hook_returns(stage: Any) -> None:
    bell = a_bell(stage)
    ran = does(stage, "use", item="bell")
    assert (ran.ok, ran.text, bell.used) == (True, "It rings.", [(stage.npc, None)])


def test_use_passes_the_named_target_to_the_hook(stage: Any) -> None:
    bell = a_bell(stage)
    does(stage, "use", item="bell", on="Anna")
    assert bell.used == [(stage.npc, stage.anna)]


def test_use_is_refused_when_the_target_is_unknown(stage: Any) -> None:
    bell = a_bell(stage)
    assert does(stage, "use", item="bell", on="Cara").text == "There is no 'Cara' here."
    assert bell.used == []


def test_use_is_refused_when_the_thing_has_no_hook(stage: Any) -> None:
    a_thing(stage)
    ran = does(stage, "use", item="lantern")
    assert (ran.ok, ran.text) == (False, "Nothing can be done with a lantern.")


def test_tool_use_succeeds_when_the_hook_of_the_thing_returns_none(stage: Any) -> None:
    a_bell(stage, told=None)
    assert does(stage, "use", item="bell").text == "You used a bell."


def test_use_fails_when_the_hook_returns_false(stage: Any) -> None:
    a_bell(stage, told=False)
    assert not does(stage, "use", item="bell").ok


def test_use_depends_on_the_lock_use(stage: Any) -> None:
    bell = a_bell(stage, place=stage.npc, locks="use:false()")
    assert (does(stage, "use", item="bell").ok, bell.used) == (False, [])


def test_use_without_a_lock_is_refused_when_the_thing_cannot_be_taken(stage: Any) -> None:
    bell = a_bell(stage, locks="get:false()")
    assert not does(stage, "use", item="bell").ok
    bell.locks.add("use:all()")
    assert does(stage, "use", item="bell").ok


def test_use_does_not_find_things_of_other_people(stage: Any) -> None:
    bell = a_bell(stage, place=stage.anna)
    assert (does(stage, "use", item="bell").ok, bell.used) == (False, [])


def pulls(user: Any, item: Any, target: Any) -> str:
    return f"{user.key} pulls {item.key}, {target and target.key}."


def test_use_calls_the_games_function_when_the_thing_has_no_hook(stage: Any) -> None:
    from django.test import override_settings

    a_thing(stage)
    with override_settings(EVENNIA_AI_USE_ITEM="tests.npc.tools.test_using.pulls"):
        assert does(stage, "use", item="lantern", on="Ben").text == "Oren pulls lantern, Ben."


def test_unusable_game_function_is_logged_once(stage: Any, logged: list[str]) -> None:
    from django.test import override_settings

    a_thing(stage)
    with override_settings(EVENNIA_AI_USE_ITEM="tests.npc.tools.nowhere.pulls"):
        used = [does(stage, "use", item="lantern").ok for _ in range(2)]
    assert (used, len(logged)) == ([False, False], 1)
