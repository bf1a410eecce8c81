"""The characters in a room, and which of them a line names. Cached for one reactor turn."""

from evennia_ai.npc.floor.addressing import Companies


def refs(*people):
    return frozenset(str(who.id) for who in people)


def test_named_in_finds_characters_by_name_and_alias(stage):
    stage.npc.aliases.add("old ferryman")
    company = Companies(stage.clock).around(stage.npc)

    assert company.named_in("Good evening, OREN.") == refs(stage.npc)
    assert company.named_in("The old ferryman and Anna, of all people!") == refs(
        stage.npc, stage.anna
    )
    assert company.named_in("Annabel sings.") == frozenset()


def test_company_marks_npcs(stage):
    company = Companies(stage.clock).around(stage.npc)

    assert {one.ref: one.is_npc for one in company.people if one.is_npc} == {
        str(stage.npc.id): True
    }


def test_company_is_read_once_per_reactor_turn(stage):
    companies = Companies(stage.clock)
    first = companies.around(stage.npc)
    stage.anna.aliases.add("Nan")

    assert companies.around(stage.anna) is first
    stage.clock.advance(0)
    assert companies.around(stage.npc).named_in("Nan?") == refs(stage.anna)


def test_company_is_empty_when_npc_has_no_location(stage):
    stage.npc.location = None

    assert Companies(stage.clock).around(stage.npc).people == ()
