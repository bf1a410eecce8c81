"""The tools give, take and drop, which obey the game's locks and hooks."""

from typing import Any

from tests.npc.tools.acting import a_thing, a_toolbox, does


def test_take_moves_a_thing_and_everybody_sees_it(stage: Any) -> None:
    item = a_thing(stage)
    ran = does(stage, "take", item="the lantern")
    assert (ran.ok, ran.text, item.location) == (True, "You have a lantern now.", stage.npc)
    assert stage.screen_of(stage.ben) == ["Oren picks up a lantern."]


def test_take_is_refused_with_the_games_reason_when_the_lock_forbids_it(stage: Any) -> None:
    item = a_thing(stage, locks="get:false()")
    item.db.get_err_msg = "It is |rnailed|n down."
    ran = does(stage, "take", item="lantern")
    assert (ran.ok, ran.text, item.location) == (False, "It is nailed down.", stage.room)
    assert stage.screen_of(stage.ben) == []


def test_take_is_refused_when_a_thing_has_no_lock(stage: Any) -> None:
    item = a_thing(stage)
    item.locks.remove("get")
    assert (does(stage, "take", item="lantern").ok, item.location) == (False, stage.room)


def test_take_is_refused_when_the_lock_is_for_builders(stage: Any) -> None:
    item = a_thing(stage, locks="get:perm(Builder)")
    assert (does(stage, "take", item="lantern").ok, item.location) == (False, stage.room)


def test_take_is_refused_when_a_hook_forbids_it(stage: Any) -> None:
    item = a_thing(stage)
    item.at_pre_get = lambda getter, **_: False
    ran = does(stage, "take", item="lantern")
    assert (ran.text, item.location) == ("You cannot take a lantern.", stage.room)


def test_take_is_refused_when_the_thing_does_not_move(stage: Any) -> None:
    item = a_thing(stage)
    item.at_pre_move = lambda *_, **__: False
    assert not does(stage, "take", item="lantern").ok


def test_take_does_not_find_people(stage: Any) -> None:
    stage.ben.locks.add("get:all()")
    assert not does(stage, "take", item="Ben").ok
    assert stage.ben.location == stage.room


def test_take_does_not_find_things_of_other_people(stage: Any) -> None:
    purse = a_thing(stage, "purse", place=stage.anna)
    assert does(stage, "take", item="purse").text == "There is no 'purse' lying here."
    assert purse.location == stage.anna


def test_give_moves_a_thing_to_the_named_person(stage: Any) -> None:
    item = a_thing(stage, place=stage.npc)
    ran = does(stage, "give", item="lantern", to="Anna")
    assert (ran.ok, ran.text, item.location) == (True, "You gave a lantern to Anna.", stage.anna)
    assert stage.screen_of(stage.anna) == ["Oren gives you a lantern."]
    assert stage.screen_of(stage.ben) == []


def test_give_finds_only_things_that_the_npc_carries(stage: Any) -> None:
    lies, purse = a_thing(stage), a_thing(stage, "purse", place=stage.ben)
    assert does(stage, "give", item="lantern", to="Anna").text == "You do not carry 'lantern'."
    assert does(stage, "give", item="purse", to="Anna").text == "You do not carry 'purse'."
    assert (lies.location, purse.location) == (stage.room, stage.ben)


def test_give_is_refused_when_a_hook_of_the_thing_forbids_it(stage: Any) -> None:
    item = a_thing(stage, place=stage.npc)
    item.at_pre_give = lambda giver, getter, **_: False
    ran = does(stage, "give", item="lantern", to="Anna")
    assert (ran.text, item.location) == ("You cannot give a lantern to Anna.", stage.npc)


def test_give_is_refused_when_the_receiver_accepts_nothing(stage: Any) -> None:
    item = a_thing(stage, place=stage.npc)
    stage.anna.at_pre_object_receive = lambda *_, **__: False
    assert not does(stage, "give", item="lantern", to="Anna").ok
    assert (item.location, stage.screen_of(stage.anna)) == (stage.npc, [])


def test_give_is_refused_when_the_receiver_is_hidden_or_absent(stage: Any) -> None:
    item = a_thing(stage, place=stage.npc)
    stage.anna.locks.add("view:false()")
    tried = [does(stage, "give", item="lantern", to=name).text for name in ("Anna", "Cara")]
    assert tried == ["There is no 'Anna' here.", "There is no 'Cara' here."]
    assert item.location == stage.npc


def test_drop_moves_a_thing_and_everybody_sees_it(stage: Any) -> None:
    item = a_thing(stage, place=stage.npc)
    ran = does(stage, "drop", item="lantern")
    assert (ran.text, item.location) == ("You dropped a lantern.", stage.room)
    assert stage.screen_of(stage.ben) == ["Oren drops a lantern."]


def test_drop_is_refused_when_a_hook_forbids_it(stage: Any) -> None:
    item = a_thing(stage, place=stage.npc, locks="drop:false()")
    assert not does(stage, "drop", item="lantern").ok
    assert item.location == stage.npc


def test_only_one_dangerous_tool_runs_in_a_turn(stage: Any) -> None:
    first, second = a_thing(stage, "lantern"), a_thing(stage, "rope")
    box = a_toolbox(stage, "take", "give", "say")
    does(stage, "take", box=box, item="lantern")
    ran = does(stage, "take", box=box, item="rope")
    assert (ran.ok, first.location, second.location) == (False, stage.npc, stage.room)
    assert ran.text == (
        "Not done: you did take just now; only one such thing at a time, wait until somebody"
        " speaks."
    )
    assert does(stage, "say", box=box, text="Mine.").ok


def test_dangerous_tool_runs_after_another_one_was_refused(stage: Any) -> None:
    a_thing(stage)
    box = a_toolbox(stage, "take")
    assert [does(stage, "take", box=box, item=name).ok for name in ("rope", "lantern")] == [
        False,
        True,
    ]


def test_failed_dangerous_tool_counts_as_done(stage: Any, logged: list[str]) -> None:
    item = a_thing(stage)
    a_thing(stage, "rope")
    item.at_get = lambda getter, **_: 1 / 0
    box = a_toolbox(stage, "take")
    assert [does(stage, "take", box=box, item=name).ok for name in ("lantern", "rope")] == [
        False,
        False,
    ]
