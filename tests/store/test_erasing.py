"""Test that an erasure removes all words and keeps the chain valid."""

import json
from dataclasses import replace

import pytest
from django.db import DatabaseError, connection, transaction

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import HistoryConflictError, ReplayError, StoreError, TurnClosedError
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.turn.manifest import text_in_row, without_block
from evennia_ai.engine.history.turn.replay import replay_messages
from evennia_ai.engine.history.turn.sending import make_draft
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, LoreState, Spell
from evennia_ai.store.core.inserting import Insert
from evennia_ai.store.core.snapshots import forget_everything, one_transaction
from evennia_ai.store.erasing import (
    Erased,
    erase_conversation,
    erase_private,
    forgettable,
    private_partners,
)
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import lore_states, remember_lore, windows
from tests.engine.history.builders import a_prompt
from tests.store.builders import a_line, a_reply, a_turn, give, said, seal_of_turn

SECRET = "The gold is under the mill."


@pytest.fixture
def whispers():
    return get_or_open_conversation("12", kind="private", partner_ref="7")


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


def everything() -> str:
    """Return everything that the database contains of the history, as one text."""
    rows = [
        *models.Record.objects.values_list("name", "body", "meta"),
        *models.Turn.objects.values_list("outcome"),
        *([text_in_row(row)] for row in models.Turn.objects.values_list("manifest", flat=True)),
        *models.LoreState.objects.values_list("state"),
    ]
    return "\n".join(json.dumps(row) for row in rows)


class TestErasing:
    def test_erased_conversation_has_no_words(self, whispers):
        a_turn(whispers, SECRET, reply="Under the mill, you say?", mood="Oren is greedy.")
        assert "mill" in everything()
        erase_private("7", by=trusted("Mira"))

        assert not any(word in everything() for word in ("mill", "Anna", "greedy", "Evening"))
        assert said(whispers) == []

    def test_chain_is_valid_and_complete_after_an_erasure(self, whispers):
        a_turn(whispers, SECRET)
        before = [(r.place, r.kind, r.sha256) for r in record_rows.records_of(whispers)]
        erase_private("7", by=trusted("Mira"))
        after = [(r.place, r.kind, r.sha256) for r in record_rows.records_of(whispers)]

        assert verify(whispers) is None
        assert after[:-1] == before

    def test_erasure_record_names_who_requested_it(self, whispers):
        a_turn(whispers, SECRET)
        records = len(record_rows.records_of(whispers))
        erase_private("7", by=trusted("Mira"))
        told = record_rows.records_of(whispers)[-1]

        assert told.kind == "erasure"
        seals = {"1": seal_of_turn(1)}
        assert told.meta == {"by": "Mira", "records": records, "turns": 1, "seals": seals}

    def test_erasure_returns_its_counts(self, whispers):
        a_turn(whispers, SECRET)
        records = len(record_rows.records_of(whispers))

        assert erase_private("7", by=trusted("Mira")) == Erased(
            conversations=1, records=records, turns=1
        )

    def test_second_erasure_finds_nothing(self, whispers):
        a_turn(whispers, SECRET)
        erase_private("7", by=trusted("Mira"))

        assert erase_private("7", by=trusted("Mira")) == Erased()
        assert verify(whispers) is None

    def test_erased_turns_cannot_be_replayed_and_say_so(self, whispers):
        a_turn(whispers, SECRET)
        erase_private("7", by=trusted("Mira"))
        stored = turns.last_turn("12")

        with pytest.raises(ReplayError, match="erased on request"):
            replay_messages(stored.manifest, record_rows.records(stored.manifest.record_ids))

    def test_costs_and_hash_of_an_erased_turn_stay(self, whispers):
        begun = a_turn(whispers, SECRET)
        erase_private("7", by=trusted("Mira"))
        left = turns.last_turn("12").manifest

        assert (left.sha256, left.tokens) == (begun.manifest.sha256, begun.manifest.tokens)
        assert (left.verdicts, left.inputs, left.by_origin) == ((), {}, {})

    def test_erasure_clears_the_lore_state(self, whispers):
        a_turn(whispers, SECRET)
        with one_transaction("remembering"):
            remember_lore(whispers, LoreState(sticky={"mill#1": Spell(1, 4)}), turn=1)
        erase_private("7", by=trusted("Mira"))

        assert lore_states(whispers.id) == NO_STATE

    def test_erasure_ends_a_running_turn_whose_reply_is_refused(self, whispers):
        begun = a_turn(whispers, SECRET, reply=None)
        erase_private("7", by=trusted("Mira"))

        with pytest.raises(TurnClosedError):
            turns.finish_turn(begun, [a_reply("Under the mill, you say?")])
        assert "mill" not in everything()

    def test_seal_of_a_turn_covers_an_erasure_during_the_turn(self, quay):
        begun = a_turn(quay, reply=None)
        erased = without_block(begun.manifest, key="persona:#7", source="persona")
        models.Turn.objects.filter(pk=begun.id).update(manifest=erased.to_row(), is_erased=True)
        turns.finish_turn(begun, [a_reply()])
        assert verify(quay) is None

    def test_waiting_words_are_not_sent_after_an_erasure(self, whispers):
        (event,) = append_records(whispers, [a_line(SECRET)])
        draft = make_draft(a_prompt([event]), event=event)
        erase_private("7", by=trusted("Mira"))

        with pytest.raises(StoreError, match="erased on request; nothing of it is sent"):
            turns.begin_turn(whispers, draft=draft, event=event)
        assert "mill" not in everything()

    @pytest.mark.parametrize(
        "said_otherwise",
        [{"kind": RecordKind.ERASURE}, {"meta": {"erased": True}}],
        ids=["as the record of an erasure", "as if it was erased already"],
    )
    def test_imported_erasure_lookalike_is_erased_too(self, whispers, said_otherwise):
        append_records(whispers, [a_line(SECRET, **said_otherwise)])
        erase_private("7", by=trusted("Mira"))

        assert "mill" not in everything()


class TestCountingBefore:
    @pytest.mark.parametrize("npc_ref", [None, "12"])
    def test_count_before_an_erasure_equals_its_counts(self, whispers, quay, npc_ref):
        for where in (
            whispers,
            get_or_open_conversation("13", kind="private", partner_ref="7"),
            quay,
        ):
            a_turn(where, SECRET)
        found = forgettable("7", npc_ref=npc_ref).said

        assert found.records > 1
        assert found == erase_private("7", by=trusted("Mira"), npc_ref=npc_ref)

    def test_erased_conversation_is_not_counted_again(self, whispers):
        a_turn(whispers, SECRET)
        erase_private("7", by=trusted("Mira"))

        assert forgettable("7").said == Erased()

    def test_everybody_who_whispered_is_listed_once(self, whispers, quay):
        get_or_open_conversation("13", kind="private", partner_ref="7")
        get_or_open_conversation("13", kind="private", partner_ref="8")

        assert private_partners() == ("7", "8")


class TestWhatStays:
    def test_words_said_aloud_or_to_others_stay(self, whispers, quay):
        other = get_or_open_conversation("12", kind="private", partner_ref="8")
        for where, body in ((whispers, SECRET), (quay, "Good day."), (other, "Psst.")):
            a_turn(where, body)
        erase_private("7", by=trusted("Mira"))

        assert said(quay) == ["Good day.", "Evening."]
        assert said(other) == ["Psst.", "Evening."]

    def test_whispers_of_a_player_with_every_npc_are_erased(self, whispers):
        other = get_or_open_conversation("13", kind="private", partner_ref="7")
        a_turn(whispers, SECRET)
        a_turn(other, SECRET)
        erase_private("7", by=trusted("Mira"))

        assert "mill" not in everything()

    def test_whispers_with_only_one_npc_can_be_erased(self, whispers):
        other = get_or_open_conversation("13", kind="private", partner_ref="7")
        a_turn(whispers, SECRET)
        a_turn(other, "Psst.")
        erase_private("7", by=trusted("Mira"), npc_ref="12")

        assert (said(whispers), said(other)) == ([], ["Psst.", "Evening."])

    def test_conversation_of_a_room_can_be_erased(self, quay):
        a_turn(quay, SECRET)
        erase_conversation(quay, by=trusted("Mira"))

        assert "mill" not in everything()

    def test_conversation_continues_after_an_erasure(self, whispers):
        a_turn(whispers, SECRET)
        erase_private("7", by=trusted("Mira"))
        a_turn(whispers, "Hello again.")
        forget_everything()

        assert said(whispers) == ["Hello again.", "Evening."]
        assert verify(whispers) is None
        assert turns.last_turn("12").number == 2

    def test_words_said_after_an_erasure_can_be_erased(self, whispers):
        a_turn(whispers, SECRET)
        erase_private("7", by=trusted("Mira"))
        a_turn(whispers, SECRET)
        erase_private("7", by=trusted("Anna"))
        kinds = [r.meta["by"] for r in record_rows.records_of(whispers) if r.kind == "erasure"]

        assert "mill" not in everything()
        assert kinds == ["Mira", "Anna"]
        assert verify(whispers) is None

    def test_failed_erasure_erases_nothing(self, whispers, monkeypatch):
        a_turn(whispers, SECRET)

        def refuse(*_, **__):
            raise DatabaseError("disk full")

        with monkeypatch.context() as broken:
            broken.setattr(Insert, "__call__", refuse)
            with pytest.raises(StoreError, match="disk full"):
                erase_private("7", by=trusted("Mira"))

        assert said(whispers) == [SECRET, "Evening."]
        assert turns.last_turn("12").manifest.erased is False

    @pytest.mark.req("S2-31")
    def test_record_written_meanwhile_by_another_process_is_erased_too(self, whispers, monkeypatch):
        a_turn(whispers, SECRET)
        append_records(whispers, [a_line("And another thing.")])
        known = windows(whispers.id)
        stale = replace(known, end=replace(known.end, seq=known.end.seq - 1))
        with monkeypatch.context() as behind:
            give(windows, stale, patch=behind)
            with pytest.raises(HistoryConflictError):
                erase_private("7", by=trusted("Mira"))

        assert said(whispers) == [SECRET, "Evening.", "And another thing."]
        assert erase_private("7", by=trusted("Mira")).conversations == 1


class TestTheDatabaseItself:
    """The trigger allows words to be blanked, and nothing else."""

    @pytest.fixture
    def record(self, quay):
        append_records(quay, [a_line("One."), a_line("Two.")])
        return models.Record.objects.order_by("pk").first()

    ERASES = "name = '', body = '', meta = '{\"erased\":true}'"

    def run(self, sql) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)

    def test_database_allows_blanking_words(self, record):
        self.run(f"UPDATE evennia_ai_record SET {self.ERASES} WHERE id = {record.pk}")
        record.refresh_from_db()

        assert (record.name, record.body, record.meta) == ("", "", '{"erased":true}')

    @pytest.mark.req("S2-08")
    @pytest.mark.parametrize(
        "change",
        [
            "name = '', body = ''",
            "name = '', body = 'x', meta = '{\"erased\":true}'",
            "name = 'x', body = '', meta = '{\"erased\":true}'",
            "name = '', body = '', meta = '{\"erased\": true}'",
            f"{ERASES}, role = 'system'",
            f"{ERASES}, kind = 'event_x'",
            f"{ERASES}, seq = seq + 10",
            f"{ERASES}, segment = 7",
            f"{ERASES}, sha256 = 'x'",
            f"{ERASES}, content_sha256 = 'x'",
            f"{ERASES}, created_at = 1",
            f"{ERASES}, messages = 99",
            f"{ERASES}, id = id + 100",
        ],
    )
    def test_database_refuses_other_changes_while_blanking(self, record, change):
        with pytest.raises(DatabaseError, match="append-only"):
            self.run(f"UPDATE evennia_ai_record SET {change} WHERE id = {record.pk}")

    @pytest.mark.req("S2-08")
    @pytest.mark.parametrize("taken", ["id", "place"])
    def test_record_cannot_be_replaced_by_another(self, record, taken):
        if connection.vendor != "sqlite":
            pytest.skip("only SQLite replaces rows on insertion")
        fields = "conversation_id, segment, seq, kind, role, name, body, meta, content_sha256"
        rest = "sha256, messages, users, replies, created_at"
        number, seq = (record.pk, 99) if taken == "id" else ("NULL", record.seq)
        values = f"{number}, {record.conversation_id}, 1, {seq}, 'event', 'user', '', 'x', '{{}}'"
        with pytest.raises(DatabaseError, match="append-only"):
            self.run(
                f"INSERT OR REPLACE INTO evennia_ai_record (id, {fields}, {rest})"
                f" VALUES ({values}, '', '', 0, 0, 0, 1)"
            )


class TestWhatIsRemembered:
    def test_npc_remembers_nothing_from_before_an_erasure(self, whispers):
        a_turn(whispers, SECRET)
        assert windows(whispers.id).remembered_from == 1
        erase_private("7", by=trusted("Mira"))
        a_turn(whispers, "Hello again.")

        assert windows(whispers.id).remembered_from == 2
        forget_everything()
        assert windows(whispers.id).remembered_from == 2
