"""`ai/verify`, `ai/export`, `ai/import` and `ai/forget`: whole conversations of an NPC."""

import json

import pytest
from django.db import connection
from evennia.utils.create import create_object

from evennia_ai import models
from evennia_ai.commands.ai import history as records
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.store import memories
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.model_requests import consolidated
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import windows
from evennia_ai.typeclasses import AINPC
from tests.commands.stage import one_line
from tests.engine.memory.builders import a_memory
from tests.modes import is_open_to_others

SECRET = "The tunnel is open."


@pytest.fixture
def talked(stage):
    """Let Oren answer Pim in the room and in a whisper."""
    with stage.model("Aye.", "I know.", "Psst.") as scripted:
        stage.player.at_say("Oren, are you there?")
        stage.waited()
        stage.player.at_say(SECRET, receivers=[stage.npc], whisper=True)
        stage.waited()
        yield scripted


@pytest.fixture
def admin(stage):
    """Make the builder an Admin."""
    stage.builder.permissions.add("Admin")


@pytest.fixture
def other(stage):
    """Return a second NPC, to which nobody has spoken."""
    return create_object(AINPC, key="Tilda", location=stage.room, home=stage.room)


def room_and_whispers(npc):
    room, whispers = conversations_of(npc.ai.ref)
    assert (room.kind, whispers.kind) == ("room", "private")
    return room, whispers


def bodies(where) -> list[str]:
    return [message.content for message in windows(where.id).history]


class TestVerify:
    def test_verify_confirms_each_conversation(self, stage, talked):
        told = " ".join(stage.builds("ai/verify oren").split())
        for where in conversations_of(stage.npc.ai.ref):
            count = len(record_rows.records_of(where))
            assert f"conversation {where.id}: " in told
            assert f"{count} records, the chain holds" in told

    def test_verify_names_a_changed_record(self, stage, talked):
        (victim,) = models.Record.objects.filter(body="Aye.")
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER evennia_ai_record_no_update")
            cursor.execute("UPDATE evennia_ai_record SET body = 'No.' WHERE id = %s", [victim.pk])
        told = " ".join(stage.builds("ai/verify oren").split())

        assert f"BROKEN at record {victim.pk} (number 1." in told
        assert told.count("the chain holds") == 1

    def test_verify_says_if_nothing_is_recorded(self, stage):
        assert "Nothing is recorded of Oren" in one_line(stage.builds("ai/verify oren"))

    def test_verify_refuses_a_history_that_is_too_long(self, stage, talked, monkeypatch):
        monkeypatch.setattr(records, "MOST_RECORDS", 3)

        assert "evennia-ai history verify" in one_line(stage.builds("ai/verify oren"))


class TestTranscripts:
    def test_exported_conversation_can_be_imported_into_another_npc(
        self, stage, talked, admin, other, card_folder
    ):
        room, _ = room_and_whispers(stage.npc)
        told = one_line(stage.builds(f"ai/export oren/{room.id}"))
        (file,) = card_folder.glob("*.jsonl")
        assert file.name in told
        stage.builds(f"ai/import tilda = {file.name}")
        (made,) = conversations_of(other.ai.ref)

        assert bodies(made) == bodies(room) == ["Oren, are you there?", "Aye."]
        assert verify(made) is None

    def test_export_without_number_takes_the_only_conversation(self, stage, card_folder):
        with stage.model("Aye."):
            stage.player.at_say("Oren, are you there?")
            stage.waited()
        stage.builds("ai/export oren")

        assert len(list(card_folder.glob("*.jsonl"))) == 1

    def test_export_asks_for_a_number_if_there_are_several_conversations(
        self, stage, talked, card_folder
    ):
        told = stage.builds("ai/export oren")

        assert "Oren has several; name one, as in ai/export Oren/" in told
        assert "WHISPERED, with Pim" in told
        assert not list(card_folder.glob("*.jsonl"))

    def test_export_overwrites_no_file(self, stage, talked, card_folder):
        room, _ = room_and_whispers(stage.npc)
        stage.builds(f"ai/export oren/{room.id}", f"ai/export oren/{room.id}")

        assert len(list(card_folder.glob("*.jsonl"))) == 2

    def test_exported_file_is_readable_only_by_its_owner(self, stage, talked, card_folder):
        room, _ = room_and_whispers(stage.npc)
        stage.builds(f"ai/export oren/{room.id}")

        (written,) = card_folder.glob("*.jsonl")
        assert not is_open_to_others(written)

    def test_import_without_file_lists_the_files(self, stage, talked, admin, card_folder):
        (card_folder / "old.jsonl").write_text("")
        told = stage.builds("ai/import oren")

        assert "old.jsonl" in told
        assert "oren.json" not in told.replace("old.jsonl", "")

    def test_import_of_a_broken_file_names_its_line_and_changes_nothing(
        self, stage, talked, admin, other, card_folder
    ):
        room, _ = room_and_whispers(stage.npc)
        stage.builds(f"ai/export oren/{room.id}")
        (file,) = card_folder.glob("*.jsonl")
        file.write_text(file.read_text().replace("Aye.", "Nay."))
        told = one_line(stage.builds(f"ai/import tilda = {file.stem}"))

        assert "Line " in told and "nothing was imported" in told
        assert conversations_of(other.ai.ref) == ()

    def test_import_is_for_admins(self, stage, other, card_folder):
        (card_folder / "old.jsonl").write_text("")

        assert "for Admins" in one_line(stage.builds("ai/import tilda = old.jsonl"))

    def test_import_refuses_a_file_that_is_too_long(self, stage, admin, card_folder, monkeypatch):
        (card_folder / "old.jsonl").write_text("x" * 20)
        monkeypatch.setattr(records, "MOST_BYTES", 19)

        assert "evennia-ai history import" in one_line(stage.builds("ai/import oren = old"))

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("../secret.json", "no card file"),
            ("none.jsonl", "no card file"),
            ("oren.json", "only files that end in .jsonl"),
        ],
    )
    def test_import_reads_no_other_file(self, stage, admin, card_folder, name, problem):
        assert problem in one_line(stage.builds(f"ai/import oren = {name}"))


class TestForget:
    def test_forget_erases_whispers_after_a_yes_and_records_who_did_it(self, stage, talked, admin):
        room, whispers = room_and_whispers(stage.npc)
        told = stage.builds("ai/forget oren = pim", "yes")
        last = record_rows.records_of(whispers)[-1]

        assert bodies(whispers) == []
        assert bodies(room) == ["Oren, are you there?", "Aye."]
        assert (last.kind, last.meta["by"]) == (RecordKind.ERASURE, "Mara")
        assert verify(whispers) is None
        assert "What was said aloud in rooms stays" in " ".join(told.split())

    def test_forget_asks_first_and_counts_what_it_erases(self, stage, talked, admin):
        _, whispers = room_and_whispers(stage.npc)
        count = len(record_rows.records_of(whispers))
        told = " ".join(stage.builds("ai/forget oren = pim", "no").split())

        aloud = "what NPCs had still to learn from their words aloud"
        assert f"1 conversation, {count} records, 1 turn, {aloud}? This cannot be undone." in told
        assert "Nothing was erased." in told
        assert bodies(whispers) == [SECRET, "I know."]

    def test_forget_without_npc_erases_whispers_with_all(self, stage, talked, admin, other):
        stage.player.at_say(SECRET, receivers=[other], whisper=True)
        stage.waited()
        stage.builds("ai/forget = pim", "y")
        stored = json.dumps(list(models.Record.objects.values_list("body", "meta")))

        assert "tunnel" not in stored
        assert "are you there" in stored

    def test_forget_erases_memories_of_the_player(self, stage, talked, admin):
        new = a_memory("Pim owes a rope.", id=memories.NEW, about=str(stage.player.id))
        memories.add_memory(stage.npc.ai.ref, new, by=trusted("npc"), most=9)
        told = " ".join(stage.builds("ai/forget oren = pim", "yes").split())

        assert "and the memories of Pim" in told
        assert "1 turn, 1 memory, what NPCs had still to learn" in told
        assert memories.held_by(stage.npc.ai.ref).memories == ()

    def test_forget_erases_memories_if_there_is_nothing_else(self, stage, admin):
        new = a_memory("Pim owes a rope.", id=memories.NEW, about=str(stage.player.id))
        memories.add_memory(stage.npc.ai.ref, new, by=trusted("npc"), most=9)

        told = " ".join(stage.builds("ai/forget oren = pim", "yes").split())
        assert ": 1 memory. What was said aloud" in told

    def test_forget_stops_learning_from_words_said_aloud(self, stage, admin):
        with stage.model("Aye."):
            stage.player.at_say("Oren, I owe you a rope.")
            stage.waited()
        told = " ".join(stage.builds("ai/forget oren = pim", "yes").split())
        (room,) = conversations_of(stage.npc.ai.ref)

        assert ": what NPCs had still to learn from their words aloud. What was said" in told
        assert consolidated(room.id).upto[1] > 0
        assert "I owe you a rope." in "".join(bodies(room))
        assert "nothing to erase" in one_line(stage.builds("ai/forget oren = pim"))

    def test_forget_names_a_deleted_player_by_number(self, stage, talked, admin):
        _, whispers = room_and_whispers(stage.npc)
        ref = stage.player.id
        stage.player.delete()
        stage.builds(f"ai/forget = #{ref}", "yes")

        assert bodies(whispers) == []

    def test_forget_says_if_there_is_nothing_to_erase(self, stage, admin):
        told = one_line(stage.builds("ai/forget oren = pim"))

        assert told.startswith("There is nothing to erase of the private conversations of Pim")

    def test_forget_is_refused_to_builders(self, stage, talked):
        _, whispers = room_and_whispers(stage.npc)
        told = one_line(stage.builds("ai/forget oren = pim"))

        assert told == "ai/forget is for Admins. Nothing was changed."
        assert bodies(whispers) == [SECRET, "I know."]

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("ai/forget oren", "Usage: ai/forget [<npc>] = <player>"),
            ("ai/forget oren = nobody", "no player called 'nobody'"),
            ("ai/forget nobody = pim", "no NPC called 'nobody'"),
        ],
    )
    def test_bad_input_gets_one_clear_line(self, stage, admin, line, problem):
        assert problem in one_line(stage.builds(line))
