"""Test the lore state of a conversation, and which turns write it."""

import pytest
from django.db import DatabaseError, transaction

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import HistoryConflictError, StoreError
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.sending import make_draft
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, LoreState, Spell
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import lore_states, reset_lore
from tests.engine.history.builders import a_prompt

FERRY = LoreState(
    sticky={"harbour#7": Spell(1, 4)},
    cooldown={"harbour#9": Spell(2, 5.5, True)},
    groups={"tide": Spell(1, 2)},
    matched=frozenset({"harbour#7", "harbour#1"}),
)
BELL = LoreState(sticky={"harbour#8": Spell(1, 4)})


@pytest.fixture
def quay() -> ConversationRef:
    return get_or_open_conversation("12", kind="room", place_ref="3")


def begun(where, lore):
    """Begin a turn of the conversation whose prompt leaves the state `lore`."""
    append_records(
        where, [NewRecord(kind=RecordKind.USER, role="user", name="Anna", body="The ferry?")]
    )
    said = [r for r in record_rows.records_of(where) if r.kind in ("user", "assistant")]
    draft = make_draft(a_prompt(said), event=said[-1], model="tiny")
    return turns.begin_turn(where, draft=draft, event=said[-1], lore=lore).turn


def written() -> list[int]:
    """Return the numbers of the turns that wrote a state."""
    return list(models.LoreState.objects.order_by("pk").values_list("turn", flat=True))


def test_new_conversation_has_no_lore_state(quay):
    assert lore_states(quay.id) == NO_STATE
    assert written() == []


def test_lore_state_is_complete_after_a_reload(quay):
    begun(quay, FERRY)
    forget_everything()

    assert lore_states(quay.id) == FERRY


def test_cached_lore_state_is_read_without_a_query(quay, no_queries):
    begun(quay, FERRY)

    with no_queries():
        assert lore_states(quay.id) == FERRY


def test_lore_state_is_that_of_the_newest_turn(quay):
    begun(quay, FERRY)
    begun(quay, BELL)
    forget_everything()

    assert lore_states(quay.id) == BELL
    assert written() == [2]


@pytest.mark.parametrize("lore", [None, LoreState(sticky={"harbour#8": Spell(1, 4)})])
def test_unchanged_lore_state_is_not_written(quay, lore):
    begun(quay, BELL)
    begun(quay, lore)

    assert lore_states(quay.id) == BELL
    assert written() == [1]


def test_empty_lore_state_is_not_written(quay):
    begun(quay, NO_STATE)

    assert written() == []


def test_expired_lore_state_is_written(quay):
    begun(quay, BELL)
    begun(quay, NO_STATE)
    forget_everything()

    assert lore_states(quay.id) == NO_STATE
    assert written() == [2]


def test_each_conversation_has_its_own_lore_state(quay):
    private = get_or_open_conversation("12", kind="private", partner_ref="7")
    begun(quay, FERRY)
    begun(private, BELL)
    forget_everything()

    assert (lore_states(quay.id), lore_states(private.id)) == (FERRY, BELL)


def test_turn_that_could_not_begin_changes_no_lore_state(quay, monkeypatch):
    begun(quay, BELL)

    def refuse(*_, **__):
        raise DatabaseError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(models.LoreState.objects, "update_or_create", refuse)
        with pytest.raises(StoreError, match="disk full"):
            begun(quay, FERRY)

    assert lore_states(quay.id) == BELL
    assert turns.last_turn("12").number == 1


def test_failed_turn_keeps_the_lore_state_of_its_prompt(quay):
    turns.fail_turn(begun(quay, FERRY), "the model is away")
    forget_everything()

    assert lore_states(quay.id) == FERRY


def test_rolled_back_turn_changes_no_lore_state(quay):
    begun(quay, BELL)
    with pytest.raises(RuntimeError), transaction.atomic():
        begun(quay, FERRY)
        assert lore_states(quay.id) == FERRY
        raise RuntimeError

    assert lore_states(quay.id) == BELL


def test_lore_state_of_another_writer_is_read_after_a_conflict(quay):
    lore_states(quay.id)
    append_records(quay, [NewRecord(kind=RecordKind.USER, role="user", body="The bell?")])
    turns.next_number("12")
    other = models.Turn.objects.create(
        npc_ref="12",
        number=1,
        conversation_id=quay.id,
        manifest=b"",
        prompt_sha256="",
        tokens=0,
        created_at=1.0,
    )
    models.LoreState.objects.create(
        conversation_id=quay.id,
        state='{"sticky":{"harbour#8":[1,4,false]}}',
        turn=other.number,
        updated_at=1.0,
    )
    with pytest.raises(HistoryConflictError):
        begun(quay, FERRY)

    assert lore_states(quay.id) == BELL


def test_reset_clears_the_lore_state_of_a_conversation(quay):
    private = get_or_open_conversation("12", kind="private", partner_ref="7")
    begun(quay, FERRY)
    begun(private, BELL)

    assert reset_lore(quay, by=trusted("Mira"))
    assert lore_states(quay.id) == NO_STATE
    assert lore_states(private.id) == BELL
    assert not reset_lore(quay, by=trusted("Mira"))


@pytest.mark.parametrize("text", ["[]", "no JSON", '{"sticky": {"a": 7}}'])
def test_foreign_lore_state_is_an_error_and_can_be_reset(quay, text):
    models.LoreState.objects.create(conversation_id=quay.id, state=text, turn=1, updated_at=1.0)
    lore_states.drop(quay.id)
    with pytest.raises(
        StoreError, match=f"the lore state of conversation {quay.id} cannot be read"
    ):
        lore_states(quay.id)

    reset_lore(quay, by=trusted("Mira"))
    assert lore_states(quay.id) == NO_STATE
