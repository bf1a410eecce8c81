"""A program in which an offer and an erasure meet, on two connections.

It prints two offers as JSON. The first comes before an erasure is committed. The second is not
committed yet when its conversation is erased.
"""

import json
import threading

import django

from evennia_ai.engine.actors import trusted

MOMENT_SECONDS = 0.5
"""How long the first transaction stays open, so that the second has to wait for it."""


def found_out():
    from django.db import connection, transaction

    from evennia_ai import models
    from evennia_ai.engine.history.records import NewRecord, RecordKind
    from evennia_ai.npc.jobs.job import Job
    from evennia_ai.npc.jobs.kinds.forms import form_to_json
    from evennia_ai.npc.jobs.wire import text_of
    from evennia_ai.store.erasing import erase_conversation
    from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
    from evennia_ai.store.history.segments import head_of, refuse_gone
    from evennia_ai.store.work import proposals

    def whispers(name):
        where = get_or_open_conversation("12", kind="private", partner_ref=name)
        append_records(
            where, [NewRecord(kind=RecordKind.USER, role="user", body="Under the mill.")]
        )
        return where

    def offer(where, head, meanwhile=lambda: None):
        job = Job(kind="compact", idempotency=str(where.id), given={"head": form_to_json(head)})
        new = proposals.Offer(
            idempotency=job.idempotency,
            kind=job.kind,
            job=text_of(job),
            body='{"summary": "Under the mill."}',
        )

        def refuse():
            refuse_gone(head)
            meanwhile()

        proposals.store_offer(new, refuse_stale=refuse)

    def begun(do):
        """Call `do` in a new thread with its own connection. Return the thread."""

        def run():
            do()
            connection.close()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def row(where):
        known = models.Proposal.objects.get(idempotency=str(where.id))
        return {"state": known.state, "body": known.body, "reason": known.reason}

    first, second, is_in = whispers("7"), whispers("8"), threading.Event()

    def erase_slowly():
        with transaction.atomic():
            erase_conversation(first, by=trusted("Mira"))
            is_in.set()
            threading.Event().wait(MOMENT_SECONDS)

    head = head_of(first)
    erasing = begun(erase_slowly)
    is_in.wait()
    offer(first, head)
    erasing.join()

    is_in.clear()

    def stay():
        is_in.set()
        threading.Event().wait(MOMENT_SECONDS)

    offering = begun(lambda: offer(second, head_of(second), stay))
    is_in.wait()
    erase_conversation(second, by=trusted("Mira"))
    offering.join()
    return {"erased first": row(first), "offered first": row(second)}


if __name__ == "__main__":
    django.setup()
    print(json.dumps(found_out()))
