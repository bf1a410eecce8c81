"""An arrival in a room makes as many queries with two NPCs as with twenty."""

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.senses import labels
from evennia_ai.npc.senses.labels import label_of, store_label
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
    """Return a function that lets a player enter a character, as the game does."""
    from evennia_ai.npc.senses.witness import show_arrival

    guest = stage.who(guest_id)
    hall = guest.location

    def enters() -> None:
        guest.at_post_puppet()
        show_arrival(hall, guest, None)

    return enters


def _cost_of_a_new_guest(stage: Any, query_count: Any, *, npcs: int, is_started: bool) -> int:
    """Return the number of queries of an arrival. With `is_started`, all caches are empty."""
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
def test_arrival_makes_as_many_queries_with_twenty_npcs_as_with_two(stage, query_count, is_started):
    two = _cost_of_a_new_guest(stage, query_count, npcs=2, is_started=is_started)
    twenty = _cost_of_a_new_guest(stage, query_count, npcs=20, is_started=is_started)
    assert twenty == two


def test_arrival_of_a_known_character_makes_no_query(stage, query_count):
    hall = _hall(stage, 5)
    guest_id = stage.make("Carl", PERSON, hall).id
    _enters(stage, guest_id)()
    stage.passes()
    assert query_count(_enters(stage, guest_id)) == 0


def test_line_stores_the_label_of_its_speaker_for_all_npcs_that_see_them(stage, no_queries):
    other = stage.make("Berta", NPC)
    stage.says(stage.anna, "Hello!")
    with no_queries():
        assert label_of(stage.npc, stage.anna) == label_of(other, stage.anna) == "Anna"


def test_label_of_a_newcomer_depends_on_the_names_that_each_npc_knows(stage):
    other = stage.make("Berta", NPC)
    ref = str(stage.ben.id)
    settle_names([NewlyNamed(npc_ref=str(other.id), folded="anna", people=[ref])])
    stage.says(stage.anna, "Hello!")
    anna = str(stage.anna.id)
    assert names_known_by(str(other.id))["anna"] == {ref: 1, anna: 2}
    assert names_known_by(str(stage.npc.id))["anna"] == {anna: 1}
    assert label_of(other, stage.anna) != label_of(stage.npc, stage.anna) == "Anna"


def test_npc_that_cannot_see_a_person_stores_no_label(stage):
    blind = stage.make("Berta", NPC)
    stage.anna.locks.add(f"view:not id({blind.id})")
    store_label(stage.npc, stage.anna)
    assert "anna" in names_known_by(str(stage.npc.id))
    assert names_known_by(str(blind.id)) == {}


def test_all_strangers_in_the_room_are_looked_up_in_one_query(stage, query_count, no_queries):
    people = [stage.make(f"Guest {number}", PERSON) for number in range(6)]
    label_of(stage.npc, stage.anna)
    stage.npc.ai.foreseen_names.clear()
    assert query_count(lambda: label_of(stage.npc, people[0])) == 1
    with no_queries():
        assert [label_of(stage.npc, one) for one in people] == [one.key for one in people]


def test_frequent_name_does_not_use_up_the_look_up_of_other_names(stage):
    for _ in range(45):
        stage.make("Guest", PERSON, None)
    older = stage.make("Carl", PERSON, None)
    guest, carl = stage.make("Guest", PERSON), stage.make("Carl", PERSON)
    assert label_of(stage.npc, guest) != "Guest"
    assert label_of(stage.npc, carl) != "Carl"
    assert str(older.id) in stage.npc.ai.foreseen_names["carl"]


class WaitingWriter:
    """A writer whose jobs wait until `goes_on`, as with a locked database."""

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


def test_label_is_the_same_before_and_after_it_is_stored(stage, writer):
    berta = stage.make("Berta", NPC)
    both, another = (stage.npc, berta), stage.make("Anna", PERSON)
    people = (stage.anna, another)
    called = [store_label(npc, person) for person in people for npc in both]
    assert called == [label_of(npc, person) for person in people for npc in both]
    assert len(set(called)) == 2
    assert len(writer.given) == 2  # one job per person for all NPCs
    writer.goes_on()
    assert called == [store_label(npc, person) for person in people for npc in both]
    assert len(writer.given) == 2
    assert [dict(npc.ai.foreseen_names) for npc in both] == [{}, {}]


def test_label_is_stored_at_the_next_perception_when_storing_failed(stage, writer):
    store_label(stage.npc, stage.anna)
    writer.given.pop()[1].errback(StoreError("the database is away"))
    store_label(stage.npc, stage.anna)
    writer.goes_on()
    assert names_known_by(str(stage.npc.id))["anna"] == {str(stage.anna.id): 1}


def test_number_of_names_looked_up_ahead_is_bounded(stage, monkeypatch):
    monkeypatch.setattr(labels, "MOST_FORESEEN", 3)
    for number in range(9):
        guest = stage.make(f"Guest {number}", PERSON, None)
        assert label_of(stage.npc, guest) == f"Guest {number}"
    foreseen = stage.npc.ai.foreseen_names
    assert "guest8" in foreseen
    assert "guest0" not in foreseen
    assert len(foreseen) <= 3 + 3  # the limit, the person asked for, and the two who are present
