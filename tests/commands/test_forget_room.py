"""`ai/forget here`: all NPCs forget what was said in a room, after a question."""

import pytest
from evennia.utils.create import create_object

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.turn.manifest import text_in_row
from evennia_ai.engine.memory.memories import OF_NPC, Memory
from evennia_ai.store import memories
from evennia_ai.store.history import verifying
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.typeclasses import AINPC
from tests.commands.stage import one_line


@pytest.fixture
def two(stage):
    """Let Oren and Mira hear Pim in the harbour and learn from it; Pim also whispers to Oren."""
    stage.builder.permissions.add("Admin")
    mira = create_object(AINPC, key="Mira", location=stage.room, home=stage.room)
    with stage.model("Aye.", "Well met.", "I know."):
        for line in ("Oren, are you there?", "Mira, good day!"):
            stage.player.at_say(line)
            stage.waited()
        stage.player.at_say("The tunnel is open.", receivers=[stage.npc], whisper=True)
        stage.waited()
        room = str(stage.room.id)
        for npc, text, told in (
            (stage.npc, "Pim came by boat.", {"author": OF_NPC}),
            (mira, "Pim greets people.", {"author": OF_NPC}),
            (stage.npc, "Pim has a key.", {"author": OF_NPC, "learnt": "private"}),
            (stage.npc, "Oren owes Pim a rope.", {"author": "Mara"}),
        ):
            new = Memory(
                id=memories.NEW, text=text, about=str(stage.player.id), place_ref=room, **told
            )
            memories.add_memory(npc.ai.ref, new, by=trusted("Mara"), most=40)
        yield mira


def texts(npc):
    return [memory.text for memory in memories.held_by(npc.ai.ref).memories]


def test_forget_here_erases_the_room_from_all_its_npcs(stage, two):
    stage.builds("ai/branch oren/1")
    told = " ".join(stage.builds("ai/forget here", "yes").split())
    assert "Erase what was said in Harbour (#" in told and "? This cannot be undone." in told
    assert "2 NPCs (Oren (#" in told and "3 conversations," in told and ", 2 memories?" in told
    assert "Erased what was said in Harbour" in told
    left = models.Record.objects.exclude(body="").values_list("body", flat=True)
    assert not [body for body in left if "good day" in body or "are you there" in body]
    assert any("tunnel" in body for body in left), "what was whispered stays"
    assert texts(two) == []
    assert texts(stage.npc) == ["Pim has a key.", "Oren owes Pim a rope."]
    assert not models.MemoryRevision.objects.filter(value__contains="by boat").exists()
    for npc in (stage.npc, two):
        assert all(verifying.verify(one) is None for one in conversations_of(npc.ai.ref))
    assert "You have no branch" in stage.builds("ai/branch"), "copies of it are erased with it"


def test_forget_here_erases_as_much_as_it_asked_about(stage, two):
    told = " ".join(stage.builds("ai/forget room:harbour", "y").split())
    asked, _, done = told.partition("? This cannot be undone.")
    assert asked.rpartition("), ")[2] in done


def test_forget_here_erases_nothing_without_a_yes(stage, two):
    before = list(models.Record.objects.order_by("pk").values_list("body", flat=True))
    assert "Nothing was erased." in stage.builds("ai/forget here", "no")
    assert list(models.Record.objects.order_by("pk").values_list("body", flat=True)) == before
    assert len(texts(stage.npc)) == 3


def test_forget_here_finds_nothing_the_second_time(stage, two):
    stage.builds("ai/forget here", "yes")
    assert "There is nothing to erase" in one_line(stage.builds("ai/forget here"))


def test_npc_answers_again_after_its_room_was_forgotten(stage, two):
    stage.builds("ai/forget here", "yes")
    with stage.model("Who are you?") as model:
        stage.player.at_say("Oren, do you know me?")
        stage.waited()
    said = str(model.requests[0].messages)
    assert "are you there" not in said and "by boat" not in said
    assert "Who are you?" in stage.builds("ai/history oren")


def test_forget_here_keeps_other_rooms(stage, two):
    from evennia.objects.objects import DefaultRoom

    inn = create_object(DefaultRoom, key="Inn")
    for one in (stage.player, stage.npc):
        one.move_to(inn, quiet=True)
    stage.player.at_say("Oren, how is it here?")
    stage.waited()
    stage.builds("ai/forget here", "yes")
    assert "how is it here?" in stage.builds("ai/history oren")
    assert "are you there" not in stage.builds("ai/history oren")


def test_forget_here_erases_the_room_from_prompts_of_other_rooms(stage, two):
    from evennia.objects.objects import DefaultRoom

    inn = create_object(DefaultRoom, key="Inn")
    for one in (stage.player, stage.npc):
        one.move_to(inn, quiet=True)
    with stage.model("Cosy.", "Very.") as model:
        for line in ("Oren, how is it here?", "Oren, and the fire?"):
            stage.player.at_say(line)
            stage.waited()
    assert "are you there" in str(model.requests[0].messages)
    stage.builds("ai/forget room:harbour", "yes")

    told = [*models.Record.objects.values_list("body", flat=True)]
    told += map(text_in_row, models.Turn.objects.values_list("manifest", flat=True))
    assert not [one for one in told if "are you there" in one]
    assert all(verifying.verify(one) is None for one in conversations_of(stage.npc.ai.ref))
    records = models.Record.objects.count()
    stage.builds("ai/forget room:harbour", "yes")
    assert models.Record.objects.count() == records, "what was erased is not erased again"


def test_forget_here_silences_a_turn_under_way(stage, two):
    from twisted.internet.defer import Deferred

    late = Deferred()
    with stage.model() as model:
        model._line = lambda request: late
        stage.player.at_say("Oren, still there?")
        stage.waited()
        stage.builds("ai/forget here", "yes")
        late.callback("Too late.")
        stage.waited()
    assert not models.Record.objects.filter(body="Too late.").exists()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("ai/forget oren", "Usage: ai/forget [<npc>] = <player>, or ai/forget here"),
        ("ai/forget", "Usage: ai/forget"),
        ("ai/forget room:nowhere", "nowhere"),
    ],
)
def test_forget_with_an_unknown_room_is_one_line(stage, two, typed, told):
    assert told in one_line(stage.builds(typed))


def test_forget_here_is_for_admins(stage, two):
    other = stage.person("Lena", permission="Builder")
    assert "ai/forget is for Admins" in stage.sent(other, "ai/forget here")
