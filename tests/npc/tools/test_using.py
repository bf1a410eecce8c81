"""Using a thing by a tool: what the thing's own hook does, where its lock lets the NPC."""

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


def test_the_things_hook_says_what_happens(stage: Any) -> None:
    bell = a_bell(stage)
    ran = does(stage, "use", item="bell")
    assert (ran.ok, ran.text, bell.used) == (True, "It rings.", [(stage.npc, None)])


def test_it_is_used_on_whom_the_model_names(stage: Any) -> None:
    bell = a_bell(stage)
    does(stage, "use", item="bell", on="Anna")
    assert bell.used == [(stage.npc, stage.anna)]


def test_an_unknown_target_is_told_and_nothing_is_used(stage: Any) -> None:
    bell = a_bell(stage)
    assert does(stage, "use", item="bell", on="Cara").text == "There is no 'Cara' here."
    assert bell.used == []


def test_a_thing_without_the_hook_cannot_be_used(stage: Any) -> None:
    a_thing(stage)
    ran = does(stage, "use", item="lantern")
    assert (ran.ok, ran.text) == (False, "Nothing can be done with a lantern.")


def test_a_hook_that_tells_nothing_has_done_its_work(stage: Any) -> None:
    a_bell(stage, told=None)
    assert does(stage, "use", item="bell").text == "You used a bell."


def test_a_hook_that_gives_false_did_not_work(stage: Any) -> None:
    a_bell(stage, told=False)
    assert not does(stage, "use", item="bell").ok


def test_the_lock_use_decides(stage: Any) -> None:
    bell = a_bell(stage, place=stage.npc, locks="use:false()")
    assert (does(stage, "use", item="bell").ok, bell.used) == (False, [])


def test_what_may_not_be_picked_up_is_not_used_without_a_lock_that_says_so(stage: Any) -> None:
    bell = a_bell(stage, locks="get:false()")
    assert not does(stage, "use", item="bell").ok
    bell.locks.add("use:all()")
    assert does(stage, "use", item="bell").ok


def test_what_somebody_else_carries_is_not_used(stage: Any) -> None:
    bell = a_bell(stage, place=stage.anna)
    assert (does(stage, "use", item="bell").ok, bell.used) == (False, [])


def pulls(user: Any, item: Any, target: Any) -> str:
    return f"{user.key} pulls {item.key}, {target and target.key}."


def test_what_has_no_hook_is_used_by_the_function_of_the_game(stage: Any) -> None:
    from django.test import override_settings

    a_thing(stage)
    with override_settings(EVENNIA_AI_USE_ITEM="tests.npc.tools.test_using.pulls"):
        assert does(stage, "use", item="lantern", on="Ben").text == "Oren pulls lantern, Ben."


def test_a_function_that_cannot_be_had_is_told_once(stage: Any, logged: list[str]) -> None:
    from django.test import override_settings

    a_thing(stage)
    with override_settings(EVENNIA_AI_USE_ITEM="tests.npc.tools.nowhere.pulls"):
        used = [does(stage, "use", item="lantern").ok for _ in range(2)]
    assert (used, len(logged)) == ([False, False], 1)
