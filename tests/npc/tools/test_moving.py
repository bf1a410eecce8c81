"""The tool move, which obeys exits and hooks, and who follows the NPC."""

from typing import Any

from tests.npc.tools.acting import does


def an_exit(stage: Any, key: str = "north", *, locks: str = "") -> Any:
    hall = stage.make("Hall", "evennia.objects.objects.DefaultRoom", place=None)
    made = stage.make(key, "evennia.objects.objects.DefaultExit")
    made.destination = hall
    if locks:
        made.locks.add(locks)
    return made


def test_move_takes_the_npc_through_the_exit(stage: Any) -> None:
    way = an_exit(stage)
    ran = does(stage, "move", exit="north")
    assert (ran.ok, ran.text) == (True, "You went north and are now in Hall.")
    assert (stage.npc.location, ran.ends_turn) == (way.destination, True)


def test_move_is_refused_when_the_exit_is_locked(stage: Any) -> None:
    an_exit(stage, locks="traverse:false()")
    ran = does(stage, "move", exit="north")
    assert (ran.ok, ran.text, ran.ends_turn) == (False, "You cannot go north.", False)
    assert stage.npc.location == stage.room


def test_move_is_refused_with_the_exits_own_reason(stage: Any) -> None:
    an_exit(stage, locks="traverse:false()").db.err_traverse = "The |rdoor|n is shut."
    assert does(stage, "move", exit="north").text == "The door is shut."


def test_move_does_not_find_a_hidden_exit(stage: Any) -> None:
    an_exit(stage, locks="view:false()")
    assert does(stage, "move", exit="north").text == "There is no exit 'north' here."


def test_move_refusal_says_that_there_is_no_exit(stage: Any) -> None:
    assert does(stage, "move", exit="north").text == "There is no exit 'north' here."


def test_move_does_not_accept_a_thing_as_an_exit(stage: Any) -> None:
    assert not does(stage, "move", exit="Anna").ok


def test_move_is_refused_when_a_hook_holds_the_npc(stage: Any) -> None:
    an_exit(stage)
    stage.npc.at_pre_move = lambda *_, **__: False
    assert (does(stage, "move", exit="north").ok, stage.npc.location) == (False, stage.room)


def test_move_through_a_slow_exit_is_not_refused(stage: Any, monkeypatch: Any) -> None:
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


def test_move_through_an_exit_to_the_same_room_is_not_refused(stage: Any) -> None:
    an_exit(stage).destination = stage.room
    assert does(stage, "move", exit="north").ok


def test_followers_follow_the_npc_through_an_exit(stage: Any) -> None:
    way = an_exit(stage)
    stage.room.at_object_leave = lambda moved, target, **_: (
        stage.anna.move_to(target) if moved == stage.npc else None
    )
    assert does(stage, "move", exit="north").ok
    assert (stage.npc.location, stage.anna.location) == (way.destination, way.destination)


def test_move_sends_evennias_signal_for_a_traversed_exit(stage: Any) -> None:
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
