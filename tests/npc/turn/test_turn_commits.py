"""What a turn commits before the model is asked, and before anything is said."""

import pytest
from django.db.utils import OperationalError

from evennia_ai.engine.errors import HistoryConflictError, ModelUnavailable, StoreError
from evennia_ai.npc.mind import handler
from evennia_ai.npc.recording.writer import Writer
from evennia_ai.npc.turn import rounds, turn
from evennia_ai.npc.turn.turn import Turn
from evennia_ai.services.llm.chat import sent_sha256
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import conversations, record_rows, turns

PERSON = "evennia.objects.objects.DefaultCharacter"


@pytest.mark.req("S2-01")
def test_facts_of_a_turn_are_committed_before_the_call_and_are_not_history(stage):
    stored = []

    def answer(request):
        (room,) = conversations.conversations_of(stage.npc.ai.ref)
        stored.append([(r.kind.value, r.body) for r in record_rows.records_of(room)])
        return "Aye."

    model = stage.talks_with(answer)
    stage.says(stage.anna, "Oren?")
    stage.says(stage.ben, "Oren?")
    (facts,) = [body for kind, body in stored[0] if kind == "context_block"]
    assert facts in [message.content for message in model.requests[0].messages]
    assert facts not in [message.content for message in model.requests[1].messages]


@pytest.mark.req("S2-01")
def test_everything_sent_is_stored_before_the_model_is_asked(stage):
    checked = []

    def answer(request):
        stored = turns.last_turn(stage.npc.ai.ref)
        assert stored.state == "open"
        records = record_rows.records(stored.manifest.record_ids)
        assert len(request.messages) == len(stored.manifest.messages) == len(records)
        bodies = {record.body for record in records}
        for message in request.messages:
            bare = message.content.removeprefix("Anna: ")
            assert bare in bodies
            checked.append(bare)
        return "Aye."

    stage.talks_with(answer)
    stage.says(stage.anna, "Oren, a word.")
    stage.says(stage.anna, "And another.")
    assert "Oren, a word." in checked
    assert "And another." in checked


@pytest.mark.req("S2-27")
def test_prompt_that_cannot_be_committed_is_not_sent_and_tried_again(stage, logged, monkeypatch):
    def refuse(*args, **kwargs):
        raise StoreError("the disk is full")

    model = stage.talks_with("Aye.")
    with monkeypatch.context() as patch:
        patch.setattr(turns, "begin_turn", refuse)
        stage.says(stage.anna, "Oren?")
    assert model.requests == []
    assert stage.records() == [("user", "Anna", "Oren?")]
    assert "the disk is full" in logged[-1]
    stage.passes(5)
    assert len(model.requests) == 1
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye."'


@pytest.mark.req("S2-27")
@pytest.mark.parametrize("table", ["component", "assignment", "note", "turn", "lorestate"])
def test_turn_is_tried_again_when_its_sources_cannot_be_read(stage, logged, table):
    from django.db import connection

    stage.says(stage.ben, "The tide is out, they say.")
    forget_everything()  # the lore state of a new conversation need not be read
    model = stage.talks_with("Aye.")
    refused = []

    def locked(execute, sql, *args):
        if sql.startswith("SELECT") and f'FROM "evennia_ai_{table}' in sql:
            refused.append(sql)
            raise OperationalError("database is locked")
        return execute(sql, *args)

    with connection.execute_wrapper(locked):
        stage.says(stage.anna, "Oren, hello?")
    assert refused and model.requests == []
    stage.passes(5)
    assert stage.screen_of(stage.ben)[-1] == 'Oren says, "Aye."'
    assert not any("Traceback" in line for line in logged)


@pytest.mark.req("S2-27")
def test_first_turn_reads_the_store_in_the_writers_thread(stage, monkeypatch):
    """A lock, a slow disk or hundreds of messages then delay only the writer's thread."""
    from django.db import connection

    stage.make("Guest", PERSON, None)
    stage.says(stage.ben, "The tide is out, they say.")
    stage.make("Guest", PERSON)
    forget_everything()
    in_turn, in_job, elsewhere, drafted = [], [], [], []

    def noted(execute, sql, *args):
        is_ours = "evennia_ai_" in sql or '"db_key" IN' in sql
        if in_turn and not in_job and is_ours:
            elsewhere.append(sql)
        return execute(sql, *args)

    def taken_on(writer, job, **kwargs):
        in_job.append(job)
        try:
            return real_taken_on(writer, job, **kwargs)
        finally:
            in_job.pop()

    async def first_round(turn):
        in_turn.append(turn)
        try:
            return await real_round(turn)
        finally:
            in_turn.pop()

    def make_draft(*args, **kwargs):
        drafted.append(bool(in_job))
        return real_draft(*args, **kwargs)

    real_taken_on, real_round, real_draft = (
        Writer._taken_on,
        Turn._commit_first_round,
        rounds.make_draft,
    )
    monkeypatch.setattr(Writer, "_taken_on", taken_on)
    monkeypatch.setattr(Turn, "_commit_first_round", first_round)
    monkeypatch.setattr(rounds, "make_draft", make_draft)
    model = stage.talks_with("Aye.")
    with connection.execute_wrapper(noted):
        stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.ben)[-1] == 'Oren says, "Aye."'
    assert any("Guest (another)" in message.content for message in model.requests[0].messages)
    assert drafted == [True]
    assert elsewhere == []


@pytest.mark.req("S2-27")
def test_turn_is_put_off_when_evennia_cannot_read_the_database(stage, logged, monkeypatch):
    def locked(*_):
        raise OperationalError("database is locked")

    model = stage.talks_with("Aye.")
    with monkeypatch.context() as patch:
        patch.setattr(stage.npc.ai, "view", locked)
        stage.says(stage.anna, "Oren?")
    assert model.requests == []
    (line,) = logged
    assert line.endswith("no model is asked: database is locked")
    stage.passes(5)
    assert stage.screen_of(stage.ben)[-1] == 'Oren says, "Aye."'


def test_message_that_cannot_be_perceived_is_logged_and_stops_nothing(stage, logged, monkeypatch):
    def locked(*_):
        raise OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(handler, "event_from_message", locked)
        stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.ben) == ['Anna says, "Oren?"']
    assert "not perceived, because the database cannot be read: database is locked" in logged[-1]
    assert stage.records() == []


def test_turn_is_closed_when_a_reply_cannot_be_examined(stage, logged, monkeypatch):
    """Who is present and what the fallback line is are read from the database, too."""

    def locked(*_):
        raise OperationalError("database is locked")

    stage.talks_with("Aye.", delay_seconds=1)
    stage.says(stage.anna, "Oren?")
    monkeypatch.setattr(turn, "why_gone", locked)
    monkeypatch.setattr(handler.AIHandler, "fallback_line", property(locked))
    stage.passes(1)
    assert turns.last_turn(stage.npc.ai.ref).state == "failed"
    assert not any("Traceback" in line for line in logged)


def test_event_that_cannot_be_committed_is_kept_and_no_model_is_asked(stage, logged, monkeypatch):
    def refuse(*args, **kwargs):
        raise StoreError("the disk is full")

    model = stage.talks_with("Aye.")
    with monkeypatch.context() as patch:
        patch.setattr(conversations, "append_records", refuse)
        patch.setattr(conversations, "append_each", refuse)
        stage.says(stage.anna, "Oren?")
        stage.says(stage.ben, "Fog again.")
    assert model.requests == []
    assert stage.npc.ai.status().unrecorded == 2
    stage.passes(5)
    assert [record[1:] for record in stage.records()][:2] == [
        ("Anna", "Oren?"),
        ("Ben", "Fog again."),
    ]
    assert len(model.requests) == 1


@pytest.mark.req("S2-27")
def test_prompt_that_can_never_be_committed_is_given_up(stage, logged, monkeypatch):
    def refuse(*args, **kwargs):
        raise StoreError("the disk is full")

    model = stage.talks_with("Aye.")
    monkeypatch.setattr(turns, "begin_turn", refuse)
    stage.says(stage.anna, "Oren?")
    for _ in range(5):
        stage.passes(10)
    assert model.requests == []
    assert "gave up" in logged[-1]


def test_reply_that_cannot_be_committed_is_not_said(stage, logged, monkeypatch):
    def refuse(*args, **kwargs):
        raise StoreError("the disk is full")

    stage.talks_with("Aye.")
    monkeypatch.setattr(turns, "finish_turn", refuse)
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.ben) == ['Anna says, "Oren?"']
    assert "nothing more is said" in logged[-1]


def test_turn_is_closed_later_when_its_end_could_not_be_written(stage, logged, monkeypatch):
    def refuse(*args, **kwargs):
        raise StoreError("the disk is full")

    stage.talks_with("Aye.")
    with monkeypatch.context() as patch:
        patch.setattr(turns, "finish_turn", refuse)
        patch.setattr(turns, "fail_turn", refuse)
        stage.says(stage.anna, "Oren?")
        stage.passes(12)
        assert turns.last_turn(stage.npc.ai.ref).state == "open"
    # no gesture shows that the NPC thinks
    assert stage.screen_of(stage.ben) == ['Anna says, "Oren?"']
    stage.passes(5)
    assert turns.last_turn(stage.npc.ai.ref).state == "failed"
    assert stage.records()[-1][0] == "run_end"
    assert "broke off, nothing more is said: the disk is full" in stage.records()[-1][2]
    assert stage.clock.getDelayedCalls() == []


@pytest.mark.parametrize("end", ["finish_turn", "fail_turn"])
def test_npc_answers_although_another_process_wrote_meanwhile(stage, logged, monkeypatch, end):
    write = getattr(turns, end)
    refused = [HistoryConflictError("the conversation")]

    def conflicting(*args, **kwargs):
        if refused:
            raise refused.pop()
        return write(*args, **kwargs)

    stage.talks_with("Aye." if end == "finish_turn" else ModelUnavailable("stub", "is away"))
    monkeypatch.setattr(turns, end, conflicting)
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.ben)[-1].startswith("Oren says")
    assert sum("another writer changed" in line for line in logged) == 1
    assert turns.last_turn(stage.npc.ai.ref).state in ("done", "failed")


@pytest.mark.req("S2-32")
def test_lines_lost_without_a_database_are_recorded_once(stage, logged, monkeypatch):
    def refuse(*args, **kwargs):
        raise StoreError("the disk is full")

    stage.talks_with(*["Aye."] * 3, queue_limit=3)
    with monkeypatch.context() as patch:
        patch.setattr(conversations, "append_records", refuse)
        patch.setattr(conversations, "append_each", refuse)
        for number in range(10):
            stage.says(stage.anna, f"Ben, {number}")
    stage.passes(5)
    assert [record[2] for record in stage.records()] == [
        "Ben, 0",
        "Ben, 1",
        "Ben, 2",
        "Too much was said at once; some of it will go unanswered.",
    ]
    assert "7 events were not recorded" in logged[-1]


def test_turn_names_its_model_and_its_prompt(stage):
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    stored = turns.last_turn(stage.npc.ai.ref)
    assert stored.manifest.model == "scripted"
    assert stored.manifest.sha256 == stage.npc.ai.last_report().sha256
    (record,) = record_rows.records([stored.event_record])
    assert record.body == "Oren?"


@pytest.mark.req("S2-16")
def test_manifest_has_the_hash_of_the_bytes_that_were_sent(stage):
    model = stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    manifest = turns.last_turn(stage.npc.ai.ref).manifest
    (request,) = model.requests
    assert manifest.sent_sha256 == sent_sha256(request.messages)
    # the label of the speaker was put before the text
    assert manifest.sent_sha256 != manifest.sha256
