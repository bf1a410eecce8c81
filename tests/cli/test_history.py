"""`evennia-ai history`: check, export and import of records, and the bar of comparisons."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from evennia_ai import models
from evennia_ai.cli.game import history
from tests.cli.test_card_in_game import Game
from tests.formats.chats.builders import HEADER, a_file, a_line, a_user_line

TALK = ["Good evening.", "Evening.", "When does she sail?", "At dusk."]


@pytest.fixture
def harbour(db, monkeypatch):
    """Use the test's database as that of a game in which Ned spoke in a room and in private."""
    from evennia.objects.objects import DefaultRoom
    from evennia.utils.create import create_object

    from evennia_ai.store.history.conversations import get_or_open_conversation
    from evennia_ai.typeclasses import AINPC
    from tests.store.builders import a_turn

    monkeypatch.setattr("evennia_ai.cli.record_commands.opened_game", lambda folder: None)
    create_object(DefaultRoom, key="Harbour")
    create_object(AINPC, key="Tilda", nohome=True)
    ned = create_object(AINPC, key="Ned", nohome=True)
    room = get_or_open_conversation(str(ned.id), kind="room", place_ref="3")
    whispers = get_or_open_conversation(str(ned.id), kind="private", partner_ref="7")
    for said, reply in (TALK[:2], TALK[2:]):
        a_turn(room, said, reply=reply)
    a_turn(whispers, "Psst.")
    return {"npc": f"#{ned.id}", "room": str(room.id)}


def export(call, harbour, name: str, *words: str):
    return call(
        *("history", "export", "--npc", "Ned", "--conversation", harbour["room"], name), *words
    )


def test_verify_confirms_each_conversation(call, harbour) -> None:
    told = call("history", "verify")
    assert told.status == 0
    first, second = told.out.splitlines()
    assert first.startswith(f"NPC {harbour['npc']}: {harbour['room']}, in room #3: ")
    assert first.endswith(" records, the chain holds")
    assert ", in private with #7: " in second


def test_verify_names_a_changed_record_with_status_1(call, harbour) -> None:
    from django.db import connection

    (victim,) = models.Record.objects.filter(body="At dusk.")
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER evennia_ai_record_no_update")
        cursor.execute("UPDATE evennia_ai_record SET name = 'N' WHERE id = %s", [victim.pk])
    told = call("history", "verify", "--npc", "ned", "--json")
    assert told.status == 1
    broken, whole = told.json["conversations"]
    assert (broken["kind"], broken["broken"]["id"]) == ("room", str(victim.pk))
    assert whole["broken"] is None


def test_exported_conversation_can_be_imported_into_another_npc(call, harbour) -> None:
    assert export(call, harbour, "talk.jsonl").status == 0
    told = call("history", "import", "--npc", "Tilda", "talk.jsonl")
    assert told.status == 0, told.err
    (made,) = call("history", "verify", "--npc", "Tilda", "--json").json["conversations"]
    assert f"talk.jsonl: {made['records']} records, conversation " in told.out
    kinds = ("event", "assistant")
    said = models.Record.objects.filter(conversation_id=made["conversation"], kind__in=kinds)
    assert list(said.order_by("seq").values_list("body", flat=True)) == TALK


def test_conversation_is_not_imported_twice(call, harbour) -> None:
    export(call, harbour, "talk.jsonl")
    told = call("history", "import", "--npc", "Ned", "talk.jsonl")
    assert told.status == 2
    assert "already has a room conversation with 3" in told.err


def test_existing_file_is_overwritten_only_with_force(call, harbour, write, tmp_path) -> None:
    write("talk.jsonl", "old")
    told = export(call, harbour, "talk.jsonl")
    assert (told.status, "exists already" in told.err) == (2, True)
    assert (tmp_path / "talk.jsonl").read_text() == "old"
    assert export(call, harbour, "talk.jsonl", "--force").status == 0
    assert (tmp_path / "talk.jsonl").read_text() != "old"


def test_export_asks_for_a_number_if_there_are_several_conversations(
    call, harbour, tmp_path
) -> None:
    told = call("history", "export", "--npc", "Ned", "none.jsonl")
    assert told.status == 2
    assert "Ned has several conversations; name one with --conversation: " in told.err
    assert not (tmp_path / "none.jsonl").exists()


def test_failed_export_leaves_no_file(call, harbour, tmp_path) -> None:
    from evennia_ai.cli.output import write_pieces

    def pieces():
        yield b"one line\n"
        raise RuntimeError("the database cannot be reached")

    with pytest.raises(RuntimeError):
        write_pieces(tmp_path / "half.jsonl", pieces(), kind="transcript", force=False)
    assert not (tmp_path / "half.jsonl").exists()


def test_a_transcript_that_was_changed_is_refused_with_its_line(call, harbour, tmp_path) -> None:
    export(call, harbour, "talk.jsonl")
    file = tmp_path / "talk.jsonl"
    head, first, *more = file.read_text().splitlines()
    first = json.dumps({**json.loads(first), "body": "Something else."})
    file.write_text("\n".join([head, first, *more]))
    told = call("history", "import", "--npc", "Tilda", "talk.jsonl")
    assert told.status == 2
    assert "line 2: record 1.1 was changed" in told.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["export", "--npc", "Tom", "x.jsonl"], "no NPC called 'Tom' had a conversation"),
        (["verify", "--npc", "#999999"], "is no NPC that had a conversation"),
        (["verify", "--npc", "Tilda"], "no NPC called 'Tilda' had a conversation"),
        (["import", "--npc", "Tom", "talk.jsonl"], "no NPC called 'Tom' has a mind"),
        (["import", "--npc", "Harbour", "talk.jsonl"], "has a mind"),
        (["import", "--npc", "Tilda", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
        (["import", "--npc", "Tilda", "talk.jsonl"], "line 1: this is not JSON"),
    ],
)
def test_bad_input_is_one_line(call, harbour, write, words: list[str], told: str) -> None:
    write("talk.jsonl", "")
    called = call("history", *words)
    assert called.status == 2
    assert told in called.err
    assert called.err.count("\n") == 1


@pytest.mark.long
def test_history_opens_the_game_of_the_folder(tmp_path) -> None:
    game = Game(tmp_path)
    game.migrate()
    told = game.run("-m", "evennia_ai.cli", "history", "verify", "--game", "game", cwd=tmp_path)
    assert (told.status, told.out) == (0, "")


@pytest.fixture
def told(monkeypatch):
    """Record what a progress bar was told, and that it was closed."""
    calls = []

    @contextmanager
    def shown():
        yield lambda *call: calls.append(call)
        calls.append("closed")

    monkeypatch.setattr(history, "shown_progress", shown)
    return calls


def test_progress_bar_follows_the_turns(told):
    stream = [SimpleNamespace(number=number) for number in (6, 7)]
    assert [one.number for one in history._with_progress(stream, 2)] == [6, 7]
    assert told == [("turns", 1, 2), ("turns", 2, 2), "closed"]


def test_progress_bar_ends_at_once_without_turns(told):
    assert list(history._with_progress([], 0)) == []
    assert told == ["closed"]


def test_chat_is_imported_with_or_without_a_player(call, harbour, write) -> None:
    from evennia.objects.objects import DefaultCharacter
    from evennia.utils.create import create_object

    create_object(DefaultCharacter, key="Pim", nohome=True)
    lines = (HEADER, a_line("Oren", "Evening."), a_user_line())
    write("two.jsonl", a_file(*lines, a_line("Mira")).decode())
    write("chat.jsonl", a_file(*lines).decode())
    write("one.jsonl", a_file(*lines[1:], a_line("Oren")).decode())
    words = ("history", "import", "--npc", "Tilda", "chat.jsonl")

    refused = call(*words[:-1], "two.jsonl")
    assert "'Tilda' says nothing in this chat; there are 'Oren', 'Mira'" in refused.err
    alone = call(*words[:-1], "one.jsonl")
    assert "notice: Oren is the NPC in it" in alone.out
    assert "'Nobody' is no player's character" in call(*words, "--player", "Nobody").err
    told = call(*words, "--as", "Oren", "--player", "pim")
    assert told.out.startswith("chat.jsonl: 3 records, conversation ")
    assert "in private with #" in told.out
    assert "notice: its author's note stays in the file: He has a cold." in told.out
    assert "nothing was imported" in call(*words, "--as", "Oren").err


def test_transcript_refuses_player_and_as(call, harbour) -> None:
    export(call, harbour, "talk.jsonl")
    told = call("history", "import", "--npc", "Tilda", "talk.jsonl", "--player", "Pim")
    assert "leave out --player and --as" in told.err
