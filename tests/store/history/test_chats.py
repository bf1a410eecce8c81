"""Test imported and exported chats."""

import io
import json
from hashlib import sha256

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.formats.chats.chat import read_chat
from evennia_ai.formats.chats.chat_records import ChatSource
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import erase_conversation, erase_private
from evennia_ai.store.history import chats, control, conversations, record_rows
from evennia_ai.store.history.conversations import (
    append_records,
    conversations_of,
    get_or_open_conversation,
)
from evennia_ai.store.history.verifying import verify
from tests.formats.chats.builders import HEADER, a_file, a_line, a_user_line
from tests.store.builders import a_line as heard
from tests.store.builders import a_reply, said

LINES = (
    HEADER,
    a_line(swipes=["Evening.", "Hm?"], swipe_id=0, swipe_info=[{"x": 1}, {}]),
    a_user_line("When does she\nleave?"),
    a_line(mes="At the slack.", is_system=True),
    a_line("System", "Night falls.", extra={"type": "narrator"}),
)


def taken(*lines, npc="12", **source):
    """Return the conversation that was made from these lines."""
    content = a_file(*lines)
    chat = read_chat(io.BytesIO(content).readline, where="a.jsonl")
    told = {"file": "a.jsonl", "sha256": sha256(content).hexdigest(), "played": "Oren", **source}
    return chats.import_chat(chat, ChatSource(**told, by=trusted("Ada")), npc_ref=npc)


def given(where) -> list[dict]:
    pieces = chats.exported_chat(where, npc_name="Oren", partner_name="Anna")
    return [json.loads(line) for line in b"".join(pieces).split(b"\n")]


def test_imported_chat_shows_the_messages_that_the_app_shows():
    where = taken(*LINES)

    assert verify(where) is None
    assert said(where) == ["Evening.", "When does she leave?", "Night falls."]
    forget_everything()
    assert said(where) == ["Evening.", "When does she leave?", "Night falls."]


def test_exported_chat_has_every_value_of_the_imported_one():
    assert given(taken(*LINES)) == list(LINES)


def test_first_record_of_an_imported_chat_names_its_source():
    first, *_ = record_rows.records_of(taken(*LINES))
    assert (first.kind, first.meta["file"]) == (RecordKind.SNAPSHOT, "a.jsonl")


def test_chat_with_a_mere_name_is_separate_from_the_games_history():
    quay = get_or_open_conversation("12", kind="room", place_ref="3")
    append_records(quay, [heard("Ahoy.")])
    where = taken(*LINES)

    assert said(quay) == ["Ahoy."]
    assert chats.is_of_name_alone(where)
    assert not chats.is_of_name_alone(quay)


def test_chat_with_a_player_is_continued_in_the_game():
    where = taken(*LINES, speaker_ref="7")

    assert where == get_or_open_conversation("12", kind="private", partner_ref="7")
    append_records(where, [heard("And now?")])
    assert said(where)[-2:] == ["Night falls.", "And now?"]


def test_chat_is_not_mixed_with_whispers_of_the_game():
    whispers = get_or_open_conversation("12", kind="private", partner_ref="7")
    append_records(whispers, [heard("Psst.")])

    with pytest.raises(StoreError, match="has messages of the game"):
        taken(*LINES, speaker_ref="7")
    assert said(whispers) == ["Psst."]


def test_chat_imported_after_a_reset_begins_a_segment():
    whispers = get_or_open_conversation("12", kind="private", partner_ref="7")
    append_records(whispers, [heard("Psst."), a_reply()])
    control.reset_conversation(whispers, by=trusted("Bo"))
    taken(*LINES, speaker_ref="7")

    first = next(r for r in record_rows.records_of(whispers) if r.kind is RecordKind.SNAPSHOT)
    assert (first.segment, first.seq) == (3, 1)
    assert (verify(whispers), said(whispers)[0]) == (None, "Evening.")


def test_same_chat_file_is_imported_once():
    taken(*LINES)

    with pytest.raises(StoreError, match=r"a\.jsonl was imported already"):
        taken(*LINES, speaker_ref="7")
    assert len(conversations_of("12")) == 1


def test_another_npc_may_import_the_same_chat():
    taken(*LINES)
    assert said(taken(*LINES, npc="13", played="Mira"))[0] == "Evening."


def test_failed_chat_import_leaves_nothing(monkeypatch):
    real = conversations.write_records
    monkeypatch.setattr(chats, "_CHUNK", 2)
    calls = []

    def failing(where, end, new):
        calls.append(new)
        if len(calls) == 2:
            raise StoreError("the disk is full")
        return real(where, end, new)

    monkeypatch.setattr(conversations, "write_records", failing)
    with pytest.raises(StoreError, match="full"):
        taken(*LINES)
    assert conversations_of("12") == ()
    monkeypatch.undo()
    assert given(taken(*LINES)) == list(LINES)


def test_long_chat_is_written_in_chained_parts(monkeypatch):
    monkeypatch.setattr(chats, "_CHUNK", 2)
    where = taken(*LINES)
    assert (verify(where), record_rows.count_records(where)) == (None, 5)


def test_erased_chat_has_no_words_and_may_be_imported_again():
    where = taken(*LINES)
    erase_conversation(where, by=trusted("Bo"))
    assert given(where)[1:] == []

    assert said(taken(*LINES))[0] == "Evening."


def test_forgetting_a_player_erases_their_imported_chats():
    where = taken(*LINES, speaker_ref="7")
    erase_private("7", by=trusted("Bo"))
    assert (said(where), verify(where)) == ([], None)


def test_conversation_of_the_game_is_exported_as_a_chat():
    whispers = get_or_open_conversation("12", kind="private", partner_ref="7")
    append_records(whispers, [heard("Psst.", kind=RecordKind.USER), a_reply("Hm?")])
    header, *lines = given(whispers)

    assert (header["user_name"], header["character_name"]) == ("Anna", "Oren")
    assert [(one["name"], one["is_user"], one["mes"]) for one in lines] == [
        ("Anna", True, "Psst."),
        ("Oren", False, "Hm?"),
    ]
