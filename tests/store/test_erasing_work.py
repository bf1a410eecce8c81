"""Test that erasures also reach workers' proposals, those that wait and those that come later."""

from functools import partial

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import StaleError
from evennia_ai.npc.jobs.job import Job
from evennia_ai.npc.jobs.kinds.forms import form_to_json
from evennia_ai.npc.jobs.kinds.observe import OBSERVE, ObserveGiven
from evennia_ai.npc.jobs.wire import text_of
from evennia_ai.store.erasing import erase_conversation, forget_person, forgettable
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.model_requests import (
    Consolidated,
    Observed,
    commit_observation,
    consolidated,
)
from evennia_ai.store.history.record_rows import records_of
from evennia_ai.store.history.segments import head_of
from evennia_ai.store.work import proposals
from evennia_ai.store.work.proposals import Offer
from tests.engine.memory.builders import ANNA, BEN
from tests.store.builders import a_line

SECRET = "The gold is under the mill."
NPC = "12"


@pytest.fixture
def whispers():
    where = get_or_open_conversation(NPC, kind="private", partner_ref=ANNA)
    append_records(where, [a_line(SECRET, meta={"speaker": ANNA})])
    return where


@pytest.fixture
def quay():
    where = get_or_open_conversation(NPC, kind="room", place_ref="3")
    append_records(where, [a_line("I owe you a rope.", meta={"speaker": ANNA})])
    return where


def offer(where, kind="observe", **fields) -> int:
    """Offer a proposal about a conversation, and return its number."""
    head = form_to_json(head_of(where))
    job = Job(kind=kind, idempotency=f"{kind}:{where.id}", given={"head": head, "npc_ref": NPC})
    fields = {"body": f'{{"summary": "{SECRET}"}}', **fields}
    proposals.store_offer(Offer(idempotency=job.idempotency, kind=kind, job=text_of(job), **fields))
    return models.Proposal.objects.get(idempotency=job.idempotency).pk


def row(number: int) -> models.Proposal:
    return models.Proposal.objects.get(pk=number)


FORGETTING = {
    "of a conversation": partial(erase_conversation, by=trusted("Mira")),
    "of a person": lambda _: forget_person(ANNA, by=trusted("Mira")),
    "of a person by one NPC": lambda _: forget_person(ANNA, by=trusted("Mira"), npc_ref=NPC),
}


@pytest.mark.parametrize("forget", FORGETTING.values(), ids=FORGETTING)
@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_proposals_about_an_erased_conversation_are_blank_and_stale(whispers, kind, forget):
    number = offer(whispers, kind)
    forget(whispers)

    found = row(number)
    assert (found.body, found.state, found.handled_at) == ("", "stale", None)
    assert "erased" in found.reason
    assert number in proposals.unhandled_proposals()  # Its model calls still have to be counted.


def test_proposals_about_another_conversation_stay(whispers):
    other = get_or_open_conversation(NPC, kind="private", partner_ref=BEN)
    append_records(other, [a_line("Ben sings.", meta={"speaker": BEN})])
    number = offer(other)
    forget_person(ANNA, by=trusted("Mira"))

    assert (SECRET in row(number).body, row(number).state) == (True, "offered")


@pytest.mark.parametrize("state", ["failed", "poisoned"])
def test_reason_of_a_failed_job_is_erased(whispers, state):
    number = offer(whispers, state=state, reason=f"DataError: Failing row: {SECRET}", body="")
    proposals.mark_handled(number, state, reason=row(number).reason)
    erase_conversation(whispers, by=trusted("Mira"))

    assert (row(number).state, row(number).reason) == (state, "erased on request")


class TestForgettingAPerson:
    """Words said aloud stay in the room's history, but NPCs no longer learn from them."""

    def test_forgetting_makes_a_workers_finding_stale(self, quay):
        number = offer(quay)
        forget_person(ANNA, by=trusted("Mira"))

        assert (row(number).body, row(number).state) == ("", "stale")

    def test_forgetting_makes_a_running_workers_question_stale(self, quay):
        given = ObserveGiven(
            head=head_of(quay), cut=0, npc_ref=NPC, npc_name="Oren", upto=(0, 0), turn=1, most=3
        )
        job = Job(kind="observe", idempotency="observe:1", given=form_to_json(given))
        OBSERVE.refuse_stale(job)
        forget_person(ANNA, by=trusted("Mira"))

        with pytest.raises(StaleError, match="another memory job has read conversation"):
            OBSERVE.refuse_stale(job)

    @pytest.mark.parametrize("npc_ref", [None, NPC])
    def test_room_conversation_counts_as_forgettable_until_npcs_learned_from_it(
        self, quay, npc_ref
    ):
        found = forgettable(ANNA, npc_ref=npc_ref)

        assert (found.unlearnt, found) == (
            1,
            forget_person(ANNA, by=trusted("Mira"), npc_ref=npc_ref),
        )
        assert forgettable(ANNA, npc_ref=npc_ref).unlearnt == 0

    def test_forgetting_marks_the_room_conversation_as_observed(self, quay):
        head = head_of(quay)
        forget_person(ANNA, by=trusted("Mira"))

        assert consolidated(quay.id).upto == (head.segment, head.seq)
        assert records_of(quay)[-1].meta["outcome"] == "a person who spoke was forgotten"
        assert "rope" in records_of(quay)[0].body

    def test_forgetting_changes_no_room_when_their_words_there_were_observed(self, quay):
        inn = get_or_open_conversation(NPC, kind="room", place_ref="4")
        append_records(inn, [a_line("Ben sings.", meta={"speaker": BEN})])
        head = head_of(quay)
        state = Consolidated(upto=(head.segment, head.seq))
        commit_observation(quay, Observed(outcome="1 remembered", state=state), asked=None)
        before = models.Record.objects.count()
        number = offer(inn)
        forget_person(ANNA, by=trusted("Mira"))

        assert models.Record.objects.count() == before
        assert row(number).state == "offered"

    def test_npc_that_keeps_remembering_continues_to_learn(self, quay):
        forget_person(ANNA, by=trusted("Mira"), npc_ref="13")

        assert consolidated(quay.id) == Consolidated()
