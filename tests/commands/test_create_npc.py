"""Evennia's own `create`: a new NPC has no history."""

import pytest

from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import records_of


@pytest.fixture
def makes(stage):
    """Return the NPC that the builder creates with a command of Evennia."""
    from evennia import default_cmds
    from evennia.utils.search import search_object

    stage.builder.cmdset.add(default_cmds.CharacterCmdSet)

    def made(*lines):
        stage.builds(*lines)
        (npc,) = search_object("Hanna", exact=True)
        assert npc.location == stage.room
        return npc

    return made


def recorded_of(npc):
    return [
        record.body
        for where in conversations_of(npc.ai.ref)
        for record in records_of(where)
        if record.kind in ("user", "event", "assistant")
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["create/drop Hanna:evennia_ai.typeclasses.AINPC"],
        ["create Hanna:evennia_ai.typeclasses.AINPC", "drop Hanna"],
        ["create/drop Hanna;keeper:evennia_ai.typeclasses.AINPC", "get Hanna", "drop Hanna"],
    ],
    ids=["create/drop", "create, drop", "picked up again"],
)
def test_new_npc_remembers_nothing(makes, lines):
    assert recorded_of(makes(*lines)) == []


def test_the_first_words_to_a_new_npc_are_its_first_memory(stage, makes, mood):
    with stage.model("Good evening."):
        npc = makes("create/drop Hanna:evennia_ai.typeclasses.AINPC")
        stage.player.at_say("Hanna, good evening.")
        stage.waited()
    assert recorded_of(npc) == ["Hanna, good evening.", "Good evening."]
