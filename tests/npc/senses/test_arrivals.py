"""Somebody comes into a room: two NPCs ask the database as much about it as twenty."""

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.senses import labels
from evennia_ai.npc.senses.labels import label_of, settled_label
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.memories import NewlyNamed, names_known_by, settle_names
from tests.conftest import forget_objects

NPC = "evennia_ai.typeclasses.AINPC"
ROOM = "evennia.objects.objects.DefaultRoom"
PERSON = "evennia.objects.objects.DefaultCharacter"


def _hall(stage: Any, npcs: int) -> Any:
    hall = stage.make(f"Hall of {npcs}", ROOM, None)
    for number in range(npcs):
        stage.make(f"Guard {npcs}-{number}", NPC, hall)
    return hall


def _enters(stage: Any, guest_id: int) -> Callable[[], None]:
    """What happens at once where a player's character is entered."""
    from evennia_ai.npc.senses.witness import show_arrival

    guest = stage.who(guest_id)
    hall = guest.location

    def enters() -> None:
        guest.at_post_puppet()
        show_arrival(hall, guest, None)

    return enters


def _cost_of_a_new_guest(stage: Any, query_count: Any, *, npcs: int, is_started: bool) -> int:
    """Queries of an arrival; where the server was just started nobody knows anything yet."""
    hall = _hall(stage, npcs)
    guest_id = stage.make(f"Carl {npcs}", PERSON, hall).id
    stage.passes()
    if is_started:
        del hall
        forget_objects()
        forget_everything()
    return query_count(_enters(stage, guest_id))


@pytest.mark.long
@pytest.mark.parametrize("is_started", [False, True])
def test_an_arrival_asks_no_more_of_twenty_npcs_than_of_two(stage, query_count, is_started):
    two = _cost_of_a_new_guest(stage, query_count, npcs=2, is_started=is_started)
    twenty = _cost_of_a_new_guest(stage, query_count, npcs=20, is_started=is_started)
    assert twenty == two


def test_one_who_is_known_to_all_arrives_without_a_query_of_ours(stage, query_count):
    hall = _hall(stage, 5)
    guest_id = stage.make("Carl", PERSON, hall).id
    _enters(stage, guest_id)()
    stage.passes()
    assert query_count(_enters(stage, guest_id)) == 0


def test_a_line_settles_what_all_who_see_the_speaker_call_them(stage, no_queries):
    other = stage.make("Berta", NPC)
    stage.says(stage.anna, "Hello!")
    with no_queries():
        assert label_of(stage.npc, stage.anna) == label_of(other, stage.anna) == "Anna"


def test_a_name_is_settled_for_each_as_it_knows_those_before(stage):
    other = stage.make("Berta", NPC)
    ref = str(stage.ben.id)
    settle_names([NewlyNamed(npc_ref=str(other.id), folded="anna", people=[ref])])
    stage.says(stage.anna, "Hello!")
    anna = str(stage.anna.id)
    assert names_known_by(str(other.id))["anna"] == {ref: 1, anna: 2}
    assert names_known_by(str(stage.npc.id))["anna"] == {anna: 1}
    assert label_of(other, stage.anna) != label_of(stage.npc, stage.anna) == "Anna"


def test_who_cannot_see_somebody_settles_nothing(stage):
    blind = stage.make("Berta", NPC)
    stage.anna.locks.add(f"view:not id({blind.id})")
    settled_label(stage.npc, stage.anna)
    assert "anna" in names_known_by(str(stage.npc.id))
    assert names_known_by(str(blind.id)) == {}


def test_all_who_are_here_and_new_are_looked_up_at_once(stage, query_count, no_queries):
    people = [stage.make(f"Guest {number}", PERSON) for number in range(6)]
    label_of(stage.npc, stage.anna)
    stage.npc.ai.foreseen_names.clear()
    assert query_count(lambda: label_of(stage.npc, people[0])) == 1
    with no_queries():
        assert [label_of(stage.npc, one) for one in people] == [one.key for one in people]


def test_a_name_of_which_there_are_many_leaves_room_for_the_others(stage):
    for _ in range(45):
        stage.make("Guest", PERSON, None)
    older = stage.make("Carl", PERSON, None)
    guest, carl = stage.make("Guest", PERSON), stage.make("Carl", PERSON)
    assert label_of(stage.npc, guest) != "Guest"
    assert label_of(stage.npc, carl) != "Carl"
    assert str(older.id) in stage.npc.ai.foreseen_names["carl"]


class WaitingWriter:
    """Stands for a writer whose database is locked: what it is given waits."""

    def __init__(self):
        self.given = []

    def write(self, job):
        waiting = Deferred()
        self.given.append((job, waiting))
        return waiting

    def goes_on(self):
        for job, waiting in self.given:
            waiting.callback(job())


@pytest.fixture
def writer(stage, monkeypatch):
    made = WaitingWriter()
    monkeypatch.setattr(stage.running.runtime().writer, "write", made.write)
    return made


def test_what_somebody_is_called_holds_before_it_is_written(stage, writer):
    berta = stage.make("Berta", NPC)
    both, another = (stage.npc, berta), stage.make("Anna", PERSON)
    people = (stage.anna, another)
    called = [settled_label(npc, person) for person in people for npc in both]
    assert called == [label_of(npc, person) for person in people for npc in both]
    assert len(set(called)) == 2
    assert len(writer.given) == 2  # once for all who see them
    writer.goes_on()
    assert called == [settled_label(npc, person) for person in people for npc in both]
    assert len(writer.given) == 2
    assert [dict(npc.ai.foreseen_names) for npc in both] == [{}, {}]


def test_what_could_not_be_written_is_written_when_they_are_perceived_again(stage, writer):
    settled_label(stage.npc, stage.anna)
    writer.given.pop()[1].errback(StoreError("the database is away"))
    settled_label(stage.npc, stage.anna)
    writer.goes_on()
    assert names_known_by(str(stage.npc.id))["anna"] == {str(stage.anna.id): 1}


def test_what_is_foreseen_is_bounded(stage, monkeypatch):
    monkeypatch.setattr(labels, "MOST_FORESEEN", 3)
    for number in range(9):
        guest = stage.make(f"Guest {number}", PERSON, None)
        assert label_of(stage.npc, guest) == f"Guest {number}"
    foreseen = stage.npc.ai.foreseen_names
    assert "guest8" in foreseen
    assert "guest0" not in foreseen
    assert len(foreseen) <= 3 + 3  # one is asked for, and two are here
