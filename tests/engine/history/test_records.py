"""Records: their chain of hashes, and characters that the database cannot store."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.history.records import (
    SHARED_CHARACTERS,
    SHARED_TEXTS,
    NewRecord,
    RecordKind,
    chain_sha256,
    content_sha256,
    find_broken,
    make_storable,
    share_text,
)
from tests.engine.history.builders import a_conversation, a_new_record, stored


def test_record_hash_depends_on_the_record_before():
    record = a_new_record("Good evening.")

    assert chain_sha256("", record) != chain_sha256("0" * 64, record)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": RecordKind.USER},
        {"role": "system"},
        {"name": "Anna"},
        {"body": "Good morning."},
        {"meta": {"turn": 1}},
    ],
)
def test_record_hash_covers_all_content(change):
    record = a_new_record("Good evening.")

    assert chain_sha256("", replace(record, **change)) != chain_sha256("", record)


def test_record_hash_does_not_depend_on_meta_order():
    one = a_new_record("x", meta={"a": 1, "b": 2})
    other = a_new_record("x", meta={"b": 2, "a": 1})

    assert chain_sha256("", one) == chain_sha256("", other)


def test_untouched_history_has_no_broken_record():
    assert find_broken(a_conversation(6)) is None


@pytest.mark.parametrize("touched", range(4))
def test_find_broken_finds_a_changed_record(touched):
    records = a_conversation(4)
    records[touched] = replace(records[touched], body="Something else.")

    assert find_broken(records) == records[touched]


def test_find_broken_finds_the_record_after_a_removed_one():
    records = a_conversation(4)

    assert find_broken([*records[:1], *records[2:]]) == records[2]


def test_part_of_a_history_is_checked_with_the_hash_of_the_record_before_it():
    records = a_conversation(4)

    assert find_broken(records[2:], previous=records[1].sha256) is None


def test_record_text_has_unstorable_characters_replaced():
    record = NewRecord(kind=RecordKind.USER, role="user", name="A\x00", body="half \ud83d pair")

    assert (record.name, record.body) == ("A\ufffd", "half \ufffd pair")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_record_stores_ordinary_text_unchanged(text):
    assert make_storable(text) == text


@given(st.text(min_size=1))
def test_any_record_text_can_be_encoded_and_hashed(text):
    (record,) = stored([a_new_record(text)])

    assert record.body.encode()
    assert len(record.sha256) == 64


def test_content_hash_of_a_record_covers_name_body_and_meta():
    said = NewRecord(
        kind=RecordKind.USER,
        role="user",
        name='An"na',
        body="Fog \N{SNOWMAN}\n",
        meta={"to": ["7", None], "event": "say", "hops": 0.5},
    )
    whole = json.dumps([said.name, said.body, said.meta], sort_keys=True, separators=(",", ":"))
    assert content_sha256(said) == sha256(whole.encode()).hexdigest()
    assert content_sha256(replace(said, body="Fog.")) != content_sha256(said)


def _made(*parts: str) -> str:
    return "".join(parts)


def test_equal_short_record_texts_are_the_same_python_object():
    assert share_text(_made("Good ", "evening.")) is share_text(_made("Good evening", "."))
    long = "x" * SHARED_CHARACTERS
    assert share_text(_made(long, "y")) is not share_text(_made(long, "y"))


def test_number_of_record_texts_shared_in_memory_is_limited():
    first = share_text(_made("known ", "once"))
    for number in range(SHARED_TEXTS):
        share_text(f"another {number}")

    assert share_text(_made("known ", "once")) is not first
