"""Test that verification names a turn that was changed or removed without the store."""

import json
from dataclasses import replace
from zlib import compress

import pytest
from django.db import DatabaseError, connection, transaction

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.history.turn.manifest import TurnManifest, text_in_row
from evennia_ai.engine.history.turn.sending import Handle, sent_messages
from evennia_ai.engine.prompt.messages import messages_sha256
from evennia_ai.migrations import _append_only
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import erase_conversation
from evennia_ai.store.history import turns
from evennia_ai.store.history.conversations import get_or_open_conversation
from evennia_ai.store.history.past_turns import replay_stored_turn
from evennia_ai.store.history.record_rows import records_of
from evennia_ai.store.history.transcripts import export_lines, import_lines
from evennia_ai.store.history.verifying import verify
from tests.engine.history.builders import recorded
from tests.store.builders import a_turn


@pytest.fixture
def quay():
    """A conversation with three turns, the second of which failed. Another one has one turn."""
    elsewhere = get_or_open_conversation("12", kind="private", partner_ref="7")
    a_turn(elsewhere)
    quay = get_or_open_conversation("12", kind="room", place_ref="3")
    a_turn(quay)
    turns.fail_turn(a_turn(quay, "Are you there?", reply=None), "the endpoint is away")
    a_turn(quay, "Good night.")
    return quay


def tamper(sql: str, *values: object) -> None:
    """Change the database like somebody who removes the triggers."""
    editor = connection.SchemaEditorClass(connection)
    _append_only.unprotect_turns(None, editor)
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
    _append_only.protect_turns(None, editor)
    forget_everything()


def set_column(column: str, value: object, number: int = 3) -> None:
    tamper(f"UPDATE evennia_ai_turn SET {column} = %s WHERE number = %s", value, number)


def manifest_of(number: int) -> TurnManifest:
    return TurnManifest.from_row(models.Turn.objects.get(number=number).manifest)


def changed_manifest(number: int, **values) -> bytes:
    return TurnManifest.from_plain({**manifest_of(number).to_plain(), **values}).to_row()


@pytest.mark.req("S2-08", "S2-16", "S2-26")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("npc_ref", "13"),
        ("number", 9),
        ("event_record_id", None),
        ("state", "done"),
        ("state", "open"),
        ("manifest", compress(b"{}")),
        ("manifest", compress(b"no JSON")),
        ("manifest", compress(b"[]")),
        ("manifest", b"{}"),
        ("is_erased", True),
        ("prompt_sha256", "0" * 64),
        ("tokens", 5),
        ("cut", 5),
        ("model", "other"),
        ("outcome", "said nothing"),
        ("created_at", 1.5),
        ("ended_at", 1.5),
        ("ended_at", None),
    ],
)
def test_verify_names_the_turn_when_a_column_was_changed(quay, column, value):
    assert verify(quay) is None
    set_column(column, value)
    broken = verify(quay)

    assert broken is not None
    assert str(broken).startswith("turn 9: " if column == "number" else "turn 3: ")


def test_verify_names_the_turn_when_it_was_moved_to_another_conversation(quay):
    where = models.Conversation.objects.get(kind="private")
    set_column("conversation_id", where.pk)

    assert str(verify(quay)).startswith("turn 3: a record holds its seal")


def test_verify_names_the_turn_when_it_had_other_tools(quay):
    set_column("manifest", changed_manifest(3, tools_record=records_of(quay)[0].id))

    assert str(verify(quay)).startswith("turn 3: it was changed in the database: record 1.")


def test_verify_names_the_turn_when_its_event_is_another_record(quay):
    first = models.Turn.objects.get(number=2).event_record_id
    set_column("event_record_id", first)

    assert str(verify(quay)).startswith("turn 3: it was changed in the database: record 1.")


@pytest.mark.req("S2-08", "S2-16")
@pytest.mark.parametrize(
    "values",
    [
        {"tokens": 5},
        {"model": "other"},
        {"inputs": {"cut": 1}},
        {"request": {"temperature": 0.5}},
        {"revisions": {}},
        {"verdicts": []},
        {"erased": True},
        {"erased_blocks": ["mood"]},
        {"breakpoints": []},
        {"by_origin": {}},
        {"cut": 1},
        {"segment": 2},
        {"sent_sha256": "0" * 64},
        {"limit_tokens": 5},
    ],
)
def test_verify_names_the_turn_when_a_value_of_its_manifest_was_changed(quay, values):
    set_column("manifest", changed_manifest(3, **values))
    for column in ("tokens", "model", "cut"):
        if column in values:
            set_column(column, values[column])

    assert str(verify(quay)).startswith("turn 3: it was changed in the database: record 1.")


@pytest.mark.req("S2-08", "S2-16", "S2-26")
def test_verify_and_replay_name_the_turn_when_prompt_and_hashes_were_forged(quay):
    """The forgery leaves out a message and changes the hashes to match."""
    manifest = manifest_of(3)
    _, *kept = manifest.messages
    known = {record.id: record for record in records_of(quay)}
    handles = [
        Handle(record=known[one.record], block=one.block, injected=one.injected) for one in kept
    ]
    sha256 = messages_sha256(sent_messages(handles))
    forged = replace(manifest, messages=recorded(kept), sha256=sha256)
    set_column("manifest", forged.to_row())
    set_column("prompt_sha256", sha256)

    assert str(verify(quay)).startswith("turn 3: it was changed in the database")
    assert "it was changed in the database" in replay_stored_turn(turns.get_turn("12", 3)).problem
    assert replay_stored_turn(turns.get_turn("12", 2)).is_same


@pytest.mark.req("S2-08")
@pytest.mark.parametrize("number", [2, 3, 4])
def test_verify_names_the_turn_when_its_row_was_removed(quay, number):
    tamper("DELETE FROM evennia_ai_turn WHERE number = %s", number)

    assert str(verify(quay)) == f"turn {number}: a record holds its seal, but the turn is missing"


def test_verify_names_a_finished_turn_that_no_record_ended(quay):
    a_turn(quay, "Wake up.", reply=None)
    assert verify(quay) is None
    set_column("state", "done", number=5)

    assert str(verify(quay)) == "turn 5: it has ended, and no record holds its seal"


def test_verify_names_the_turn_when_its_manifest_has_another_spelling(quay):
    text = text_in_row(models.Turn.objects.get(number=3).manifest)
    set_column("manifest", compress(text.encode() + b" "))

    assert str(verify(quay)) == "turn 3: its manifest is not written as a turn writes it"


@pytest.mark.parametrize("cut", [slice(None, -1), slice(0)])
def test_verify_names_the_turn_when_its_manifest_is_cut_short(quay, cut):
    set_column("manifest", models.Turn.objects.get(number=3).manifest[cut])

    assert str(verify(quay)) == "turn 3: its manifest cannot be read"


def test_verify_names_the_turn_when_something_follows_its_manifest(quay):
    set_column("manifest", models.Turn.objects.get(number=3).manifest + b" ")

    assert str(verify(quay)) == "turn 3: its manifest cannot be read"


def test_verify_accepts_a_manifest_that_was_compressed_in_another_way(quay):
    text = text_in_row(models.Turn.objects.get(number=3).manifest)
    set_column("manifest", compress(text.encode(), 0))

    assert verify(quay) is None


def test_verify_names_the_turn_when_its_manifest_names_a_record_of_another_conversation(quay):
    other = models.Record.objects.filter(conversation__kind="private").first()
    columns = manifest_of(3).to_plain()["messages"]
    forged = {**columns, "records": [str(other.pk), *columns["records"][1:]]}
    set_column("manifest", changed_manifest(3, messages=forged))

    problem = f"it names record {other.pk}, which its conversation does not have"
    assert str(verify(quay)) == f"turn 3: {problem}"


class TestErased:
    @pytest.mark.req("S2-08")
    def test_erased_conversation_with_an_open_turn_verifies(self, quay):
        a_turn(quay, "Wake up.", reply=None)
        erase_conversation(quay, by=trusted("Mira"))

        assert verify(quay) is None
        assert models.Turn.objects.get(number=5).state == "failed"

    @pytest.mark.parametrize(
        ("column", "value"),
        [("tokens", 5), ("outcome", "answered"), ("state", "open"), ("created_at", 1.5)],
    )
    def test_verify_names_an_erased_turn_that_was_changed(self, quay, column, value):
        erase_conversation(quay, by=trusted("Mira"))
        set_column(column, value)

        assert str(verify(quay)).startswith("turn 3: ")

    def test_verify_names_a_turn_whose_words_were_removed_without_an_erasure(self, quay):
        set_column("manifest", changed_manifest(3, erased=True))

        assert str(verify(quay)).startswith("turn 3: it was changed in the database")


class TestImported:
    @pytest.mark.req("S2-08", "S2-14")
    def test_imported_conversation_verifies_and_names_a_changed_turn(self, quay):
        a_turn(get_or_open_conversation("99", kind="private", partner_ref="7"))
        a_turn(quay, "Wake up.", reply=None)
        made = import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))
        assert verify(made) is None
        a_turn(made, "And now?")
        assert verify(made) is None

        for column, value in (("outcome", "x"), ("number", 77)):
            set_column(column, value, number=4)
            assert str(verify(made)).startswith("turn ")
            set_column("outcome", "answered", number=4)

    def test_verified_conversation_can_be_exported_imported_and_erased(self, quay):
        made = import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))
        a_turn(made, "And now?")
        again = import_lines(export_lines(made), npc_ref="100", by=trusted("Ada"))

        assert verify(again) is None
        erase_conversation(again, by=trusted("Mira"))
        assert verify(again) is None
        assert verify(import_lines(export_lines(again), npc_ref="101", by=trusted("Ada"))) is None

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"outcome": "said nothing"}, "turn 3: it was changed"),
            ({"created_at": 5.0}, "turn 3: it was changed"),
            ({"state": "open"}, r"turn 3: record 1\.\d+ ended it, and it is open"),
            ({"turn": 9}, "turn 9: it has ended, and no record holds its seal"),
        ],
    )
    def test_transcript_with_a_changed_turn_is_refused(self, quay, change, problem):
        lines = [
            json.dumps({**told, **change}) if told.get("turn") == 3 else line
            for line in export_lines(quay)
            for told in [json.loads(line)]
        ]
        with pytest.raises(FormatError, match=problem):
            import_lines(lines, npc_ref="99", by=trusted("Ada"))

    def test_transcript_without_the_line_of_a_turn_is_refused(self, quay):
        told = [json.loads(line) for line in export_lines(quay)]
        told[-1]["turns"] -= 1
        lines = [json.dumps(one) for one in told if one.get("turn") != 3]

        with pytest.raises(
            FormatError, match="holds the seal of turn 3, but the line of that turn is"
        ):
            import_lines(lines, npc_ref="99", by=trusted("Ada"))

    def test_turn_that_ends_during_an_export_is_written_as_running(self, quay):
        begun = a_turn(quay, "Wake up.", reply=None)
        lines = export_lines(quay)
        read = [next(lines) for _ in range(1 + len(records_of(quay)))]
        turns.finish_turn(begun, [])
        a_turn(quay, "Too late for the file.")
        told = [json.loads(line) for line in (*read, *lines)]

        assert [one["state"] for one in told if "turn" in one] == ["done", "failed", "done", "open"]
        assert verify(import_lines(map(json.dumps, told), npc_ref="99", by=trusted("Ada"))) is None


class TestTriggers:
    @pytest.mark.req("S2-08")
    @pytest.mark.parametrize(
        "sql",
        [
            *(
                f"UPDATE evennia_ai_turn SET {change} WHERE number = 3"
                for change in (
                    "npc_ref = '13'",
                    "number = 9",
                    "conversation_id = 1",
                    "event_record_id = NULL",
                    "state = 'open'",
                    "manifest = '{}'",
                    "prompt_sha256 = 'x'",
                    "tokens = 5",
                    "cut = 5",
                    "model = 'x'",
                    "outcome = 'x'",
                    "created_at = 1",
                    "ended_at = NULL",
                    "is_erased = true, manifest = '{}', tokens = 5",
                    "is_erased = true, manifest = '{}', state = 'open'",
                )
            ),
            "UPDATE evennia_ai_turn SET manifest = '{}' WHERE number = 5",
            "UPDATE evennia_ai_turn SET state = 'done', tokens = 5 WHERE number = 5",
            "UPDATE evennia_ai_turn SET state = 'done', is_erased = true, cut = 5 WHERE number = 5",
            "DELETE FROM evennia_ai_turn WHERE number = 3",
            "DELETE FROM evennia_ai_turn WHERE number = 5",
        ],
    )
    def test_database_refuses_a_change_of_a_turn(self, quay, sql):
        a_turn(quay, "Wake up.", reply=None)  # Turn 5 is open.
        with (
            pytest.raises(DatabaseError, match="turns are append-only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)

    def test_sqlite_refuses_to_replace_a_turn(self, quay):
        if connection.vendor != "sqlite":
            pytest.skip("only SQLite has INSERT OR REPLACE")
        with (
            pytest.raises(DatabaseError, match="turns are append-only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(
                "INSERT OR REPLACE INTO evennia_ai_turn SELECT * FROM evennia_ai_turn LIMIT 1"
            )
