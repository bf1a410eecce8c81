"""Test transcripts: exported from one database, imported into another, with the same history."""

import json

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import FormatError, StoreError
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.turn.replay import replay_messages
from evennia_ai.engine.lorebook.activation.timers import LoreState, Spell
from evennia_ai.store.core.snapshots import forget_everything, one_transaction
from evennia_ai.store.erasing import erase_conversation
from evennia_ai.store.history import conversations, record_rows, turns
from evennia_ai.store.history.conversations import (
    append_records,
    begin_segment,
    get_or_open_conversation,
)
from evennia_ai.store.history.transcripts import export_lines, import_lines
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import lore_states, remember_lore, windows
from tests.store.builders import a_line, a_staying_text, a_turn, seal_of_turn, talked

SUMMARY = a_line("They spoke of the tide.", kind=RecordKind.SUMMARY, role="system", name="")


@pytest.fixture
def quay():
    """A conversation in which everything possible has happened."""
    quay = get_or_open_conversation("12", kind="room", place_ref="3")
    talked(quay, 3)
    a_turn(quay)
    (event,) = append_records(quay, [a_line("The fog is in.")])
    append_records(quay, [a_staying_text("Fog.", before=event.place, of="lore:fog")])
    now = windows(quay.id).history
    begin_segment(quay, SUMMARY, summarised=now, first_kept=now.stop - 3)
    a_turn(quay, "And now?", reply=None)
    with one_transaction("remembering"):
        remember_lore(quay, LoreState(sticky={"fog#1": Spell(1, 4)}), turn=2)
    return quay


def projection(where) -> tuple[object, ...]:
    window = windows(where.id).history
    return (
        [message.wire() for message in window],
        (window.earlier, window.earlier_users, window.earlier_replies, window.segment),
    )


def records_in(lines) -> list[str]:
    """Return the lines that contain records."""
    return [line for line in lines if "place" in json.loads(line)]


@pytest.mark.req("S2-14")
def test_imported_history_equals_the_exported_one_byte_for_byte(quay):
    made = import_lines(list(export_lines(quay)), npc_ref="99", by=trusted("Ada"))

    assert projection(made) == projection(quay)
    forget_everything()
    assert projection(made) == projection(quay)


def test_reexported_transcript_has_one_more_record_with_the_turn_numbers(quay):
    made = import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))
    *records, last = records_in(export_lines(made))

    assert records == records_in(export_lines(quay))
    meta = {"of": "transcript", "first_turn": 1, "turns": [1, 2]}
    assert json.loads(last)["meta"] == {**meta, "seals": {"2": seal_of_turn(2, "99")}}


def test_transcript_lines_may_be_bytes(quay):
    lines = [f"{line}\n".encode() for line in export_lines(quay)]

    assert projection(import_lines(lines, npc_ref="99", by=trusted("Ada"))) == projection(quay)


def test_transcript_line_with_invalid_utf_8_is_named_and_nothing_imported(quay):
    lines = [line.encode() for line in export_lines(quay)]
    lines[2] = lines[2].replace(b'"body":"', b'"body":"\xff', 1)

    with pytest.raises(FormatError, match="line 3: this is not UTF-8 text"):
        import_lines(lines, npc_ref="99", by=trusted("Ada"))
    assert conversations.conversations_of("99") == ()


def test_chain_is_valid_after_an_import(quay):
    assert verify(import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))) is None


def test_past_turns_can_be_replayed_after_an_import(quay):
    import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))
    ours, theirs = turns.get_turn("12", 1), turns.get_turn("99", 1)
    shown = record_rows.records(theirs.manifest.record_ids)

    assert theirs.manifest.sha256 == ours.manifest.sha256
    assert len(replay_messages(theirs.manifest, shown)) == len(ours.manifest.messages)


def test_running_turn_is_interrupted_by_an_import(quay):
    import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))

    assert [turns.get_turn("99", number).state for number in (1, 2)] == ["done", "interrupted"]


def test_imported_turns_are_numbered_after_those_of_the_npc(quay):
    a_turn(get_or_open_conversation("99", kind="room", place_ref="8"))
    import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))

    assert turns.next_number("99") == 4


def test_lore_state_is_imported(quay):
    made = import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))

    assert lore_states(made.id) == lore_states(quay.id) != LoreState()


def test_imported_conversation_can_be_continued(quay):
    made = import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))
    append_records(made, [a_line("Here we are.")])

    assert [m.content for m in windows(made.id).history][-1] == "Here we are."
    assert verify(made) is None


def test_erased_conversation_can_be_moved(quay):
    erase_conversation(quay, by=trusted("Mira"))
    made = import_lines(export_lines(quay), npc_ref="99", by=trusted("Ada"))

    assert verify(made) is None
    assert projection(made) == projection(quay)


def test_empty_conversation_can_be_moved(db):
    empty = get_or_open_conversation("12", kind="private", partner_ref="7")
    made = import_lines(export_lines(empty), npc_ref="99", by=trusted("Ada"))

    assert (made.kind, made.partner_ref, len(windows(made.id).history)) == ("private", "7", 0)


class TestRefused:
    def nothing_came(self, quay) -> bool:
        forget_everything()
        return conversations.conversations_of("99") == () and turns.last_turn("99") is None

    @pytest.mark.parametrize("number", [1, 4, 12])
    def test_changed_record_is_named_by_its_line_and_nothing_imported(self, quay, number):
        lines = list(export_lines(quay))
        lines[number] = json.dumps({**json.loads(lines[number]), "body": "Something else."})

        with pytest.raises(FormatError, match=f"line {number + 1}: record .* was changed"):
            import_lines(lines, npc_ref="99", by=trusted("Ada"))
        assert self.nothing_came(quay)

    def test_shortened_transcript_is_refused(self, quay):
        with pytest.raises(FormatError, match="incomplete"):
            import_lines(list(export_lines(quay))[:-1], npc_ref="99", by=trusted("Ada"))
        assert self.nothing_came(quay)

    def test_transcript_without_one_turn_is_refused(self, quay):
        lines = [line for line in export_lines(quay) if json.loads(line).get("turn") != 1]
        with pytest.raises(FormatError, match="lines are missing"):
            import_lines(lines, npc_ref="99", by=trusted("Ada"))
        assert self.nothing_came(quay)

    def test_transcript_with_lines_after_its_end_is_refused(self, quay):
        lines = list(export_lines(quay))
        with pytest.raises(FormatError, match="nothing may come after"):
            import_lines([*lines, lines[-1]], npc_ref="99", by=trusted("Ada"))
        assert self.nothing_came(quay)

    def test_transcript_without_lines_is_refused(self, db):
        with pytest.raises(FormatError, match="line 1"):
            import_lines([], npc_ref="99", by=trusted("Ada"))

    def test_transcript_of_an_existing_conversation_is_refused(self, quay):
        with pytest.raises(StoreError, match="already has a room conversation with 3"):
            import_lines(export_lines(quay), npc_ref="12", by=trusted("Ada"))
        assert len(conversations.conversations_of("12")) == 1
