"""Who is in a room and whom of them a line names, for all who ask in one turn of the reactor."""

from evennia_ai.npc.floor.company import Companies


def refs(*people):
    return frozenset(str(who.id) for who in people)


def test_who_is_named_is_found_by_name_and_by_alias(stage):
    stage.npc.aliases.add("old ferryman")
    company = Companies(stage.clock).around(stage.npc)

    assert company.named_in("Good evening, OREN.") == refs(stage.npc)
    assert company.named_in("The old ferryman and Anna, of all people!") == refs(
        stage.npc, stage.anna
    )
    assert company.named_in("Annabel sings.") == frozenset()


def test_who_is_one_of_ours_is_told(stage):
    company = Companies(stage.clock).around(stage.npc)

    assert {one.ref: one.is_npc for one in company.people if one.is_npc} == {
        str(stage.npc.id): True
    }


def test_it_is_looked_up_once_in_a_turn_of_the_reactor_and_anew_in_the_next(stage):
    companies = Companies(stage.clock)
    first = companies.around(stage.npc)
    stage.anna.aliases.add("Nan")

    assert companies.around(stage.anna) is first
    stage.clock.advance(0)
    assert companies.around(stage.npc).named_in("Nan?") == refs(stage.anna)


def test_who_is_nowhere_is_in_no_company(stage):
    stage.npc.location = None

    assert Companies(stage.clock).around(stage.npc).people == ()
