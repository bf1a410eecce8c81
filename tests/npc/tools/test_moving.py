"""Going through an exit by a tool: as the exit and the game let the NPC, and who follows."""

from typing import Any

from tests.npc.tools.acting import does


def an_exit(stage: Any, key: str = "north", *, locks: str = "") -> Any:
    hall = stage.make("Hall", "evennia.objects.objects.DefaultRoom", place=None)
    made = stage.make(key, "evennia.objects.objects.DefaultExit")
    made.destination = hall
    if locks:
        made.locks.add(locks)
    return made


def test_the_npc_goes_where_the_exit_leads(stage: Any) -> None:
    way = an_exit(stage)
    ran = does(stage, "move", exit="north")
    assert (ran.ok, ran.text) == (True, "You went north and are now in Hall.")
    assert (stage.npc.location, ran.ends_turn) == (way.destination, True)


def test_an_exit_that_is_locked_lets_nobody_pass(stage: Any) -> None:
    an_exit(stage, locks="traverse:false()")
    ran = does(stage, "move", exit="north")
    assert (ran.ok, ran.text, ran.ends_turn) == (False, "You cannot go north.", False)
    assert stage.npc.location == stage.room


def test_an_exit_says_itself_why_it_is_closed(stage: Any) -> None:
    an_exit(stage, locks="traverse:false()").db.err_traverse = "The |rdoor|n is shut."
    assert does(stage, "move", exit="north").text == "The door is shut."


def test_an_exit_that_is_not_seen_is_none(stage: Any) -> None:
    an_exit(stage, locks="view:false()")
    assert does(stage, "move", exit="north").text == "There is no exit 'north' here."


def test_without_any_exit_the_refusal_says_so(stage: Any) -> None:
    assert does(stage, "move", exit="north").text == "There is no exit 'north' here."


def test_a_thing_is_no_exit(stage: Any) -> None:
    assert not does(stage, "move", exit="Anna").ok


def test_a_hook_that_holds_the_npc_is_obeyed(stage: Any) -> None:
    an_exit(stage)
    stage.npc.at_pre_move = lambda *_, **__: False
    assert (does(stage, "move", exit="north").ok, stage.npc.location) == (False, stage.room)


def test_an_exit_that_takes_its_time_is_no_refusal(stage: Any, monkeypatch: Any) -> None:
    from evennia.contrib.grid.slow_exit import slow_exit

    arrivals: list[Any] = []
    monkeypatch.setattr(slow_exit.utils, "delay", lambda _, arrive: arrivals.append(arrive) or 1)
    way = an_exit(stage)
    way.swap_typeclass("evennia.contrib.grid.slow_exit.SlowExit")
    way = type(way).objects.get(id=way.id)
    ran = does(stage, "move", exit="north")
    assert (ran.ok, ran.ends_turn) == (True, True)
    assert ran.text == "You set out to north and will be there in a while."
    assert stage.npc.location == stage.room
    arrivals[0]()
    assert stage.npc.location == way.destination


def test_an_exit_back_to_the_same_place_is_an_exit(stage: Any) -> None:
    an_exit(stage).destination = stage.room
    assert does(stage, "move", exit="north").ok


def test_others_may_follow(stage: Any) -> None:
    way = an_exit(stage)
    stage.room.at_object_leave = lambda moved, target, **_: (
        stage.anna.move_to(target) if moved == stage.npc else None
    )
    assert does(stage, "move", exit="north").ok
    assert (stage.npc.location, stage.anna.location) == (way.destination, way.destination)


def test_the_game_is_told_that_an_exit_was_traversed(stage: Any) -> None:
    from evennia.server.signals import SIGNAL_EXIT_TRAVERSED

    told: list[Any] = []

    def traversed(sender: Any, traverser: Any, **_: Any) -> None:
        told.append((sender, traverser))

    SIGNAL_EXIT_TRAVERSED.connect(traversed)
    try:
        way = an_exit(stage)
        does(stage, "move", exit="north")
    finally:
        SIGNAL_EXIT_TRAVERSED.disconnect(traversed)
    assert told == [(way, stage.npc)]
