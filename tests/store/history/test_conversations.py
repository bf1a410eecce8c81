"""Test conversations: append-only, chained records, and the window in memory."""

from dataclasses import replace

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from evennia_ai import models
from evennia_ai.engine.errors import AppendOnlyError, HistoryConflictError, StoreError
from evennia_ai.engine.history.records import NewRecord, RecordKind, find_broken
from evennia_ai.engine.lorebook.activation.timers import NO_STATE
from evennia_ai.store.core.inserting import Insert
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import conversations, record_rows, verifying
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.windows import (
    GREETING,
    SPARE_MESSAGES,
    WINDOW_MESSAGES,
    lore_states,
    windows,
)


def line(body: str, *, kind=RecordKind.EVENT, role="user", name="Anna", **fields) -> NewRecord:
    return NewRecord(kind=kind, role=role, name=name, body=body, **fields)


def lines(count: int) -> list[NewRecord]:
    return [line(f"Line {number}.") for number in range(count)]


def said(where) -> list[str]:
    return [message.content for message in windows(where.id).history]


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


class TestConversation:
    def test_room_has_one_conversation_for_each_npc(self, quay):
        assert get_or_open_conversation("12", kind="room", place_ref="3") == quay
        assert get_or_open_conversation("12", kind="room", place_ref="4") != quay
        assert get_or_open_conversation("13", kind="room", place_ref="3") != quay

    def test_each_partner_has_a_private_conversation(self, quay):
        anna = get_or_open_conversation("12", kind="private", partner_ref="7")
        tam = get_or_open_conversation("12", kind="private", partner_ref="8")

        assert len({quay.id, anna.id, tam.id}) == 3

    def test_whispers_appear_in_no_other_conversation(self, quay):
        append_records(
            get_or_open_conversation("12", kind="private", partner_ref="7"), [line("A secret.")]
        )

        assert said(quay) == []

    @pytest.mark.req("S0-29")
    def test_origin_is_the_client_of_the_first_speaker(self, quay):
        for client in ("websocket", "telnet"):
            with transaction.atomic():
                conversations.set_origin(quay, client)

        assert conversations.origin_of(quay) == "websocket"
        forget_everything()
        assert conversations.origin_of(quay) == "websocket"

    def test_rolled_back_origin_is_unknown(self, quay):
        with transaction.atomic():
            conversations.set_origin(quay, "websocket")
            transaction.set_rollback(True)

        assert conversations.origin_of(quay) == ""

    @pytest.mark.parametrize(
        "told",
        [
            {"kind": "room"},
            {"kind": "private"},
            {"kind": "room", "partner_ref": "7"},
            {"kind": "private", "partner_ref": "7", "place_ref": "3"},
        ],
    )
    def test_conversation_without_partner_or_room_is_refused(self, told):
        with pytest.raises(StoreError, match=r"needs (place|partner)_ref"):
            get_or_open_conversation("12", **told)

    def test_conversations_of_an_npc_are_listed(self, quay):
        anna = get_or_open_conversation("12", kind="private", partner_ref="7")
        get_or_open_conversation("13", kind="room", place_ref="3")

        assert conversations.conversations_of("12") == (quay, anna)

    def test_cached_conversation_is_read_without_a_query(self, quay, no_queries):
        get_or_open_conversation("12", kind="room", place_ref="3")

        with no_queries():
            assert get_or_open_conversation("12", kind="room", place_ref="3") == quay

    def test_newly_opened_conversation_needs_no_further_reads(self, no_queries):
        with CaptureQueriesContext(connection) as made:
            opened = get_or_open_conversation("12", kind="room", place_ref="3")
        statements = [q["sql"].split()[0] for q in made.captured_queries]
        assert statements == ["SELECT", "SAVEPOINT", "INSERT", "RELEASE"]
        with no_queries():
            assert windows(opened.id).texts == {}
            assert lore_states(opened.id) == NO_STATE

    def test_conversation_opened_by_another_process_is_used(self, monkeypatch):
        row = models.Conversation.objects.create(
            npc_ref="12", kind="room", place_ref="3", origin="theirs", opened_at=1.0
        )
        with monkeypatch.context() as before:
            before.setattr(conversations._conversations, "_load", lambda _: None)
            ours = get_or_open_conversation("12", kind="room", place_ref="3")

        assert (ours.id, ours.origin) == (row.pk, "theirs")
        assert get_or_open_conversation("12", kind="room", place_ref="3") == ours
        assert models.Conversation.objects.count() == 1

    def test_conversation_with_rolled_back_opening_is_unknown(self):
        with transaction.atomic():
            gone = get_or_open_conversation("12", kind="room", place_ref="3")
            append_records(gone, lines(2))
            transaction.set_rollback(True)

        assert said(get_or_open_conversation("12", kind="room", place_ref="3")) == []


class TestAppend:
    def test_records_are_read_as_they_were_appended(self, quay):
        wanted = line("Good evening.", meta={"hops": 1})
        (record,) = append_records(quay, [wanted])
        forget_everything()

        assert record_rows.records([record.id]) == (record,)
        assert (record.kind, record.name, record.body) == ("event", "Anna", "Good evening.")
        assert (record.meta, record.seq, record.segment) == ({"hops": 1}, 1, 1)

    def test_records_are_numbered_and_chained(self, quay):
        append_records(quay, lines(2))
        append_records(quay, lines(3))
        forget_everything()
        append_records(quay, lines(1))
        records = record_rows.records_of(quay)

        assert [record.seq for record in records] == [1, 2, 3, 4, 5, 6]
        assert find_broken(records) is None

    def test_each_conversation_has_its_own_counts(self, quay):
        append_records(quay, lines(2))
        (first,) = append_records(
            get_or_open_conversation("13", kind="room", place_ref="3"), lines(1)
        )

        assert first.seq == 1

    def test_appending_nothing_makes_no_query(self, quay, no_queries):
        with no_queries():
            assert append_records(quay, []) == ()

    def test_all_records_are_written_or_none(self, quay):
        bad = replace(line("x"), kind=RecordKind.USER, meta={"bad": float("nan")})
        with pytest.raises(ValueError, match="not JSON compliant"):
            append_records(quay, [line("fine"), bad])

        assert record_rows.records_of(quay) == ()
        assert said(quay) == []

    def test_hostile_characters_are_stored_harmlessly(self, quay):
        append_records(quay, [line("null \x00 half \ud800 end")])
        forget_everything()

        assert said(quay) == ["null \ufffd half \ufffd end"]

    @pytest.mark.req("S2-31")
    def test_second_of_two_writers_gets_a_conflict_and_writes_nothing(self, quay):
        append_records(quay, lines(1))
        another_process_appends(quay, seq=2)

        with pytest.raises(HistoryConflictError, match="at the same time"):
            append_records(quay, [line("mine"), line("mine too")])
        assert [r.body for r in record_rows.records_of(quay)] == ["Line 0.", "theirs"]

    @pytest.mark.req("S2-31")
    def test_writer_continues_after_a_conflict(self, quay):
        append_records(quay, lines(1))
        another_process_appends(quay, seq=2)
        with pytest.raises(HistoryConflictError):
            append_records(quay, [line("mine")])

        append_records(quay, [line("mine")])
        assert said(quay) == ["Line 0.", "theirs", "mine"]

    @pytest.mark.req("S2-31")
    def test_database_gives_each_number_once(self, quay):
        append_records(quay, lines(1))

        with pytest.raises(IntegrityError), transaction.atomic():
            another_process_appends(quay, seq=1)

    def test_refused_append_is_one_clear_error_and_keeps_the_window(self, quay, monkeypatch):
        append_records(quay, lines(1))

        def refuse(*_, **__):
            raise DatabaseError("disk full")

        with monkeypatch.context() as broken:
            broken.setattr(Insert, "__call__", refuse)
            with pytest.raises(StoreError, match="nothing was written: disk full"):
                append_records(quay, [line("lost")])
        assert said(quay) == ["Line 0."]


class TestAppendEach:
    """A line that many NPCs hear, committed for all of them together."""

    @pytest.fixture
    def hearers(self):
        found = [
            get_or_open_conversation(str(npc), kind="room", place_ref="3") for npc in range(12, 18)
        ]
        append_records(found[0], lines(2))
        return found

    def test_six_npcs_hear_a_line_in_one_statement(self, hearers):
        heard = line("Fog again.")
        for known in hearers:
            windows(known.id)
        with CaptureQueriesContext(connection) as made:
            conversations.append_each([(known, heard) for known in hearers])
        statements = [q["sql"].split()[0] for q in made.captured_queries]

        assert statements == ["SAVEPOINT", "INSERT", "RELEASE"]

    def test_line_heard_by_many_is_appended_to_each_history(self, hearers):
        told = conversations.append_each([(known, line("Fog again.")) for known in hearers])

        assert said(hearers[0]) == ["Line 0.", "Line 1.", "Fog again."]
        assert [said(known) for known in hearers[1:]] == [["Fog again."]] * 5
        assert [len(before) for before, _ in told] == [2, 0, 0, 0, 0, 0]
        for known, (_, record) in zip(hearers, told, strict=True):
            assert record_rows.records([record.id]) == (record,)
            assert verifying.verify(known) is None

    @pytest.mark.req("S2-31")
    def test_line_is_appended_to_no_conversation_when_one_of_them_has_a_conflict(self, hearers):
        windows(hearers[3].id)
        another_process_appends(hearers[3], seq=1)
        with pytest.raises(HistoryConflictError, match="6 conversations"):
            conversations.append_each([(known, line("Fog again.")) for known in hearers])

        assert [said(known) for known in hearers] == [
            ["Line 0.", "Line 1."],
            [],
            [],
            ["theirs"],
            [],
            [],
        ]


class TestAppendOnly:
    @pytest.fixture
    def record(self, quay):
        append_records(quay, lines(2))
        return models.Record.objects.order_by("pk").first()

    @pytest.mark.req("S2-08")
    def test_record_row_cannot_be_saved_again(self, record):
        record.body = "Something else."
        with pytest.raises(AppendOnlyError):
            record.save()

    @pytest.mark.req("S2-08")
    def test_record_row_cannot_be_deleted(self, record):
        with pytest.raises(AppendOnlyError):
            record.delete()

    @pytest.mark.req("S2-08")
    @pytest.mark.parametrize("change", ["update", "delete", "bulk_update"])
    def test_record_rows_cannot_be_changed_in_bulk(self, record, change):
        rows = models.Record.objects.all()
        with pytest.raises(AppendOnlyError):
            {
                "update": lambda: rows.update(body="x"),
                "delete": rows.delete,
                "bulk_update": lambda: rows.bulk_update([record], ["body"]),
            }[change]()

    @pytest.mark.req("S2-08")
    @pytest.mark.parametrize(
        "sql", ["UPDATE evennia_ai_record SET body = 'x'", "DELETE FROM evennia_ai_record"]
    )
    def test_database_itself_refuses_changed_records(self, record, quay, sql):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(sql)

        assert [r.body for r in record_rows.records_of(quay)] == ["Line 0.", "Line 1."]


class TestHistory:
    def test_cached_history_is_read_without_a_query(self, quay, no_queries):
        append_records(quay, lines(3))

        with no_queries():
            assert said(quay) == ["Line 0.", "Line 1.", "Line 2."]

    def test_history_grows_with_each_commit(self, quay):
        append_records(quay, lines(1))
        first = windows(quay.id).history
        append_records(quay, [line("Another.")])

        assert said(quay) == ["Line 0.", "Another."]
        assert len(first) == 1
        assert windows(quay.id).history[0] is first[0]

    def test_new_process_reads_the_same_history(self, quay):
        append_records(quay, lines(5))
        warm = [message.wire() for message in windows(quay.id).history]
        forget_everything()

        assert [message.wire() for message in windows(quay.id).history] == warm

    def test_rolled_back_words_are_not_in_the_history(self, quay):
        append_records(quay, lines(1))
        with transaction.atomic():
            append_records(quay, [line("unsaid")])
            transaction.set_rollback(True)

        assert said(quay) == ["Line 0."]
        (record,) = append_records(quay, [line("said")])
        assert (record.seq, said(quay)) == (2, ["Line 0.", "said"])

    def test_silent_records_have_numbers_and_no_place_in_the_history(self, quay):
        append_records(
            quay, [line("one"), line("", kind=RecordKind.USAGE, role="system"), line("two")]
        )
        forget_everything()

        assert said(quay) == ["one", "two"]
        assert append_records(quay, [line("three")])[0].seq == 4

    def test_long_history_is_read_as_a_window(self, quay):
        append_records(quay, lines(WINDOW_MESSAGES + 50))
        forget_everything()
        window = windows(quay.id).history

        assert (window.earlier, window.stop) == (50, WINDOW_MESSAGES + 50)
        assert window[50].content == "Line 50."
        assert window.user_messages == WINDOW_MESSAGES + 50

    def test_window_counts_the_replies_before_it(self, quay):
        reply = line("Evening.", kind=RecordKind.ASSISTANT, role="assistant", name="Oren")
        append_records(quay, [reply] * 3 + lines(WINDOW_MESSAGES))
        forget_everything()

        assert (windows(quay.id).history.earlier, windows(quay.id).history.replies) == (3, 3)

    def test_setting_limits_the_messages_in_all_windows(self, query_count):
        rooms = [get_or_open_conversation("9", kind="room", place_ref=place) for place in "123"]
        for room in rooms:
            append_records(room, lines(WINDOW_MESSAGES))
        connection.run_on_commit.clear()  # As if it were committed.
        forget_everything()

        with override_settings(EVENNIA_AI_MESSAGES_IN_MEMORY=1000):
            assert all(query_count(lambda ref=one.id: windows(ref)) for one in rooms)
            assert query_count(lambda: [windows(one.id) for one in rooms[1:]]) == 0
            assert query_count(lambda: windows(rooms[0].id)) > 0
            assert len(windows(rooms[0].id).history) == WINDOW_MESSAGES

    def test_history_that_is_never_reread_stays_a_window(self, quay):
        for start in range(0, 3 * WINDOW_MESSAGES, 50):
            append_records(quay, [line(f"Line {start + number}.") for number in range(50)])
        window = windows(quay.id).history

        assert WINDOW_MESSAGES <= len(window) <= WINDOW_MESSAGES + SPARE_MESSAGES
        assert window.stop == 3 * WINDOW_MESSAGES == window.user_messages
        assert window[window.stop - 1].content == f"Line {3 * WINDOW_MESSAGES - 1}."

    def test_history_has_all_messages_before_the_first_turn_of_a_conversation(self, quay):
        append_records(quay, lines(3))

        assert windows(quay.id).cut == 0

    def test_empty_conversation_has_an_empty_history(self, quay):
        forget_everything()

        assert len(windows(quay.id).history) == 0


class TestFirstReply:
    """The first words of the NPC in a conversation, which may be its greeting."""

    def greeted(self, quay, index=2):
        meta = {GREETING: index}
        append_records(quay, [line("Hm?", kind=RecordKind.ASSISTANT, role="assistant", meta=meta)])

    def test_npc_that_only_listened_has_no_first_reply(self, quay):
        append_records(quay, lines(2))
        assert windows(quay.id).first_reply is None
        assert windows(quay.id).greeting is None

    def test_first_reply_without_greeting_is_known(self, quay):
        append_records(quay, [line("Aye.", kind=RecordKind.ASSISTANT, role="assistant")])
        self.greeted(quay)
        assert windows(quay.id).first_reply is not None
        assert windows(quay.id).greeting is None

    def test_greeting_is_known_without_a_query(self, quay, no_queries):
        append_records(quay, lines(1))
        self.greeted(quay)
        append_records(quay, lines(1))
        with no_queries():
            assert windows(quay.id).greeting == 2

    def test_new_process_knows_an_old_greeting(self, quay):
        self.greeted(quay)
        append_records(quay, lines(WINDOW_MESSAGES + 50))
        forget_everything()
        assert windows(quay.id).first_reply is not None
        assert windows(quay.id).greeting == 2

    def test_rolled_back_greeting_is_unknown(self, quay):
        with pytest.raises(KeyError), transaction.atomic():
            self.greeted(quay)
            raise KeyError
        assert windows(quay.id).first_reply is None


class TestRecords:
    def test_records_have_the_order_of_writing(self, quay):
        written = append_records(quay, lines(3))

        assert record_rows.records(r.id for r in reversed(written)) == written

    def test_newest_records_are_listed_oldest_first(self, quay):
        append_records(quay, lines(5))
        newest = record_rows.records_of(quay, limit_records=2)

        assert [r.body for r in newest] == ["Line 3.", "Line 4."]


def another_process_appends(where, *, seq: int) -> None:
    models.Record.objects.create(
        conversation_id=where.id,
        seq=seq,
        kind="event",
        role="user",
        body="theirs",
        sha256="0" * 64,
        messages=seq,
        users=seq,
        created_at=1.0,
    )
