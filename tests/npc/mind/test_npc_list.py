"""The list of NPCs is read page by page: five thousand NPCs need no more queries than fifty."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from evennia.objects.models import ObjectDB

from evennia_ai.npc.mind import npc_list
from evennia_ai.npc.mind.npc_list import NPCList, npc_names, npcs_called
from evennia_ai.npc.senses.presence import paths_with_mind

AINPC = "evennia_ai.typeclasses.AINPC"
SIZE = 20


def npcs(count: int, stage: Any, *, name: str = "Guard {:04}") -> None:
    """Create so many NPCs in the database without loading an object."""
    ObjectDB.objects.bulk_create(
        ObjectDB(db_key=name.format(at), db_typeclass_path=AINPC, db_location=stage.room)
        for at in range(count)
    )


def names(found: NPCList, number: int = 1) -> list[str]:
    return [one.name for one in found.page(number, size=SIZE)]


@pytest.mark.long
def test_page_of_thousands_needs_no_more_queries_than_fifty_and_loads_no_object(
    stage: Any,
) -> None:
    def queries(busy: list[str]) -> int:
        with CaptureQueriesContext(connection) as asked:
            found = NPCList(first_refs=busy)
            assert len(found.page(2, size=SIZE)) == SIZE
            assert found.count
        return len(asked)

    npcs(50, stage)
    few = [queries([]), queries([stage.npc.ai.ref])]
    npcs(4950, stage, name="Sailor {:04}")
    assert [queries([]), queries([stage.npc.ai.ref])] == few == [3, 4]
    assert (
        ObjectDB.get_cached_instance(ObjectDB.objects.values_list("pk", flat=True).last()) is None
    )


def test_every_npc_is_on_exactly_one_page_with_first_refs_first(stage: Any) -> None:
    npcs(47, stage)
    last = str(ObjectDB.objects.get(db_key="Guard 0046").pk)
    found = NPCList(first_refs=[last, "no number", stage.npc.ai.ref])
    told = [one for number in (1, 2, 3) for one in names(found, number)]
    assert told == ["Guard 0046", "Oren", *(f"Guard {at:04}" for at in range(46))]
    assert names(found, 4) == []


def test_list_says_that_there_are_more_and_does_not_sort_when_over_the_limit(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npc_list, "MOST_LISTED", 30)
    npcs(29, stage)
    found = NPCList()
    assert (found.count, found.are_more) == (30, False)
    assert names(found)[0] == "Guard 0000"
    npcs(1, stage, name="Aldo")
    found = NPCList()
    assert (found.count, found.are_more) == (30, True)
    assert names(found)[0] == "Oren"
    assert len(names(found, 2)) == 10
    assert names(NPCList("aldo")) == ["Aldo"]


def test_name_is_found_in_any_case(stage: Any) -> None:
    npcs(1, stage, name="Äthel")
    assert names(NPCList("äTHEL")) == names(NPCList("ÄTH")) == ["Äthel"]


def test_npc_is_found_by_name_without_colours_or_by_number(stage: Any) -> None:
    npcs(1, stage, name="|rMarek|n")
    npcs(2, stage, name="Twin")
    marek = str(ObjectDB.objects.get(db_key="|rMarek|n").pk)
    assert npcs_called("marek") == npcs_called(f"#{marek}") == npcs_called(marek) == (marek,)
    assert len(npcs_called("twin")) == 2
    assert (
        npcs_called("mare") == npcs_called("") == npcs_called("#x") == npcs_called("9" * 40) == ()
    )


def test_npc_names_returns_only_the_names_of_requested_npcs(stage: Any) -> None:
    ref = stage.npc.ai.ref
    with CaptureQueriesContext(connection) as asked:
        assert npc_names([ref, str(stage.anna.id), "0", "x"]) == {ref: "Oren"}
    assert len(asked) == 2


def test_paths_with_mind_returns_typeclasses_that_have_objects(stage: Any) -> None:
    assert paths_with_mind() == [stage.npc.typeclass_path]


def test_list_without_turn_has_only_npcs_that_never_had_a_turn(stage: Any) -> None:
    npcs(1, stage)
    stage.talks_with(lambda _: "Aye.")
    stage.says(stage.anna, "Oren, are you there?")
    assert names(NPCList(without_turn=True)) == ["Guard 0000"]
    assert names(NPCList(among=[stage.npc.ai.ref])) == ["Oren"]
    assert names(NPCList(among=[])) == []
