"""Transcripts are read as they were written, and errors name the wrong line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.transcripts import (
    Header,
    TranscriptReader,
    header_line,
    last_line,
    record_line,
    turn_line,
)
from evennia_ai.engine.history.turn.manifest import with_record_names
from evennia_ai.engine.history.turn.seals import PortableTurn
from tests.engine.history.builders import a_conversation, a_new_record, a_prompt, sent, stored

HEADER = Header(
    npc_ref="12", kind="room", partner_ref="", place_ref="3", origin="telnet", opened_at=9.5
)


def a_reader(*lines: str) -> TranscriptReader:
    """Return a reader that has read a header and the records in these lines."""
    reader = TranscriptReader()
    reader.header(header_line(HEADER))
    for line in lines:
        reader.record(reader.line(line))
    return reader


def changed(line: str, **values) -> str:
    return json.dumps({**json.loads(line), **values})


def refusal(reader: TranscriptReader, line: str) -> str:
    """Return the message of the error with which the reader refuses the line of a record."""
    with pytest.raises(FormatError) as told:
        reader.record(reader.line(line))
    return str(told.value)


def test_transcript_header_is_read_back():
    assert TranscriptReader().header(header_line(HEADER)) == HEADER


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"transcript": 1}, "not a transcript of format 2"),
        ({"kind": "hall"}, "kind must be one of room, private"),
        ({"partner_ref": "7"}, "a room needs only place_ref"),
        ({"place_ref": ""}, "a room needs only place_ref"),
        ({"npc_ref": 12}, "npc_ref must be a text"),
        ({"origin": "x" * 256}, "at most 255 characters"),
        ({"opened_at": "today"}, "opened_at must be a time"),
        ({"opened_at": True}, "opened_at must be a time"),
    ],
)
def test_transcript_header_with_a_missing_or_invalid_value_is_refused(values, problem):
    with pytest.raises(FormatError, match=f"line 1: .*{problem}"):
        TranscriptReader().header(changed(header_line(HEADER), **values))


@pytest.mark.parametrize("line", ["", "[]", "{", "null", '{"a": NaN}', "[" * 100_000])
def test_transcript_line_that_is_not_a_json_object_is_refused(line):
    with pytest.raises(FormatError, match="line 1: "):
        TranscriptReader().header(line)


@given(
    said=st.lists(
        st.builds(
            a_new_record,
            st.text(),
            name=st.text(max_size=50),
            meta=st.dictionaries(st.text(max_size=5), st.integers() | st.text(), max_size=3),
        ),
        max_size=5,
    )
)
def test_transcript_records_are_read_back(said):
    records = stored(said)
    reader = a_reader()
    again = [reader.record(reader.line(record_line(record))) for record in records]

    assert [(r.place, r.kind, r.role, r.name, r.body, r.meta, r.sha256) for r in again] == [
        (r.place, r.kind, r.role, r.name, r.body, r.meta, r.sha256) for r in records
    ]


class TestRefusedRecords:
    @pytest.fixture
    def lines(self):
        return [record_line(record) for record in a_conversation(3)]

    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            ({"body": "Something else."}, "record 1.2 was changed"),
            ({"name": "Tam"}, "record 1.2 was changed"),
            ({"meta": {"a": 1}}, "record 1.2 was changed"),
            ({"kind": "user"}, "record 1.2 was changed"),
            ({"role": "system"}, "record 1.2 was changed"),
            ({"sha256": "0" * 64}, "record 1.2 was changed"),
            ({"content_sha256": "0" * 64}, "record 1.2 was changed"),
            ({"place": "1.3"}, "record 1.2 must come here, not '1.3'"),
            ({"place": "3.1"}, "record 1.2 must come here"),
            ({"place": 2}, "record 1.2 must come here"),
            ({"kind": "thought"}, "kind must be one of"),
            ({"role": "god"}, "role must be one of"),
            ({"meta": []}, "meta must be a JSON object"),
            ({"body": None}, "body must be a text"),
            ({"body": "a\x00b"}, "without null characters"),
            ({"name": "x" * 201}, "at most 200 characters"),
            ({"created_at": None}, "created_at must be a time"),
        ],
    )
    def test_transcript_record_with_an_invalid_value_is_refused_with_its_line(
        self, lines, values, problem
    ):
        told = refusal(a_reader(lines[0]), changed(lines[1], **values))

        assert told.startswith("line 3: ")
        assert problem in told
        assert told.endswith("nothing was imported")

    def test_transcript_is_refused_when_a_record_is_missing(self, lines):
        assert "record 1.2 must come here" in refusal(a_reader(lines[0]), lines[2])

    @pytest.mark.parametrize(
        ("kind", "meta", "problem"),
        [
            (RecordKind.CONTEXT_BLOCK, {"stays": True, "before": "1.9"}, "there is no record 1.9"),
            (RecordKind.CONTEXT_BLOCK, {"stays": True, "before": 4}, "'4' is not the place"),
            (RecordKind.SUMMARY, {"tail": ["1.7"]}, "there is no record 1.7"),
            (RecordKind.SUMMARY, {"tail": "1.1"}, "meta.tail must be a list"),
            (
                RecordKind.EVENT,
                {"tail": ["1.1"]},
                "meta.tail must be a list, and only a summary or control record may have it",
            ),
            (RecordKind.CONTROL, {"what": "undo"}, "the first record of a later segment"),
            (
                RecordKind.ASSISTANT,
                {"tool_calls": [{"a": 1}]},
                "the meta of record 1.4 is not that of a message",
            ),
            (
                RecordKind.CONTEXT_BLOCK,
                {"parts": [1]},
                "the meta of record 1.4 is not that of a message",
            ),
        ],
    )
    def test_transcript_record_that_names_a_missing_record_is_refused(
        self, lines, kind, meta, problem
    ):
        (bad,) = stored([a_new_record("x", kind=kind, meta=meta)], after=a_conversation(3))

        assert problem in refusal(a_reader(*lines), record_line(bad))


class TestTurns:
    @pytest.fixture
    def turn(self):
        said = a_conversation(3)
        manifest, _, records = sent(a_prompt(said), said)
        places = {record.id: record.place for record in records}
        return records, PortableTurn(
            number=4,
            state="open",
            event="1.3",
            manifest=with_record_names(manifest, places.__getitem__),
            outcome="",
            created_at=1.0,
            ended_at=None,
        )

    def read(self, records, line) -> PortableTurn:
        reader = a_reader(*map(record_line, records))
        return reader.turn(reader.line(line))

    def test_transcript_turn_is_read_back(self, turn):
        records, told = turn

        assert self.read(records, turn_line(told)) == told

    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            ({"turn": 0}, "turn must be a whole number of 1 or more"),
            ({"turn": True}, "turn must be a whole number"),
            ({"state": "over"}, "state must be one of"),
            ({"event": "1.77"}, "there is no record 1.77"),
            ({"manifest": {}}, "manifest does not have the fields of a turn's manifest"),
            (
                {"manifest": {"format": 5, "messages": 7}},
                "manifest does not have the fields of a turn's manifest",
            ),
            ({"outcome": 3}, "outcome must be a text"),
            ({"ended_at": "later"}, "ended_at must be a time"),
        ],
    )
    def test_transcript_turn_with_an_invalid_value_is_refused(self, turn, values, problem):
        records, told = turn
        with pytest.raises(FormatError, match=problem):
            self.read(records, changed(turn_line(told), **values))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("anchors", {"note:0": [4, "0f"]}),
            ("shared_tokens", None),
            ("break_reason", "append"),
            ("silent", [["harbour", "no key", "0-4"]]),
            ("verdicts", [["activate", "lore:harbour#1", False, "no key", 0, None]]),
            ("verdicts", [["activate", "lore:harbour#1", False, "no \ud800", 0, None]]),
            ("inputs", {"blocks": [["key", "\ud800 \0"]], "numbers": [1.5, 10**30, True, None]}),
        ],
    )
    def test_transcript_turn_accepts_every_value_that_turns_write(self, turn, name, value):
        records, told = turn
        manifest = {**told.manifest.to_plain(), name: value}
        read = self.read(records, changed(turn_line(told), manifest=manifest))

        assert json.loads(json.dumps(read.manifest.to_plain())) == json.loads(json.dumps(manifest))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("tokens", 10**30),
            ("tokens", "many"),
            ("tokens", True),
            ("cut", -1),
            ("cut", []),
            ("limit_tokens", None),
            ("segment", "1"),
            ("sha256", 5),
            ("model", {"name": "tiny"}),
            ("model", "x" * 201),
            ("layout", "odd"),
            ("layout", []),
            ("break_reason", "no reason"),
            ("broken_by", 3),
            ("shared_tokens", "all"),
            ("erased", 1),
            ("breakpoints", ["x"]),
            ("by_origin", {"event": "x"}),
            ("by_origin", []),
            ("revisions", {"card:oren": 4}),
            ("anchors", {"note:0": ["x", "y"]}),
            ("verdicts", [[1, 2, 3, 4, 5, 6]]),
            ("verdicts", [["activate", "lore:harbour#1", 0, "no key", 0, None]]),
            ("verdicts", [["activate", "lore:harbour#1", False, "no key", -1, None]]),
            ("silent", [[1, 2, 3]]),
            ("request", []),
            ("erased_blocks", [1]),
        ],
    )
    def test_transcript_turn_is_refused_with_an_invalid_manifest_value(self, turn, name, value):
        records, told = turn
        manifest = {**told.manifest.to_plain(), name: value}

        with pytest.raises(FormatError, match=rf"line \d+: manifest\.{name} has a value"):
            self.read(records, changed(turn_line(told), manifest=manifest))

    def test_transcript_turn_that_names_a_missing_record_is_refused(self, turn):
        records, told = turn
        with pytest.raises(FormatError, match=r"there is no record 1\.6"):
            self.read(records[:5], turn_line(told))


def test_transcript_is_refused_when_lines_are_missing():
    reader = a_reader(*map(record_line, a_conversation(2)))
    with pytest.raises(FormatError, match="must count 2 records and 0 turns; lines are missing"):
        reader.end(reader.line(last_line(records=3, turns=0)), records=2, turns=0)
