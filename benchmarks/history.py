"""Measure how much more a long conversation costs than a short one.

    python -m benchmarks.history [--records 100000] [--turns 40] [--check] [--memory]

Two conversations have the same lines, one with 1,000 records and one with 100,000. They are in the
real store, in a SQLite file that does not wait for the disk. In turn, each NPC hears something,
composes the next prompt of 8,000 tokens, commits it, and commits a reply; no model is called.
Compare the ratios, not the milliseconds. `--check` ends with status 1 if composing, or the whole
turn, costs more than twice as much in the long conversation. `--memory` measures the memory of a
conversation's window instead (`benchmarks/window_memory.py`).
"""

import argparse
import os
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

from benchmarks import window_memory
from evennia_ai.engine.actors import trusted

SHORT, LONG = 1_000, 100_000
LIMIT_TOKENS = 8_000
CHUNK = 5_000
AT_MOST = 2.0
CHECKED = ("composing", "a warm turn")


def started(folder):
    """Set up Django with a database file in `folder`, which has our tables."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "server.conf.test_settings")
    from django.conf import settings

    settings.DATABASES["default"]["NAME"] = str(Path(folder) / "history.sqlite3")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)
    from django.db import connection

    # Waiting for the disk would hide the time that our code takes.
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous = OFF")


def filled(npc_ref, count):
    """Fill a conversation with this many records: what is said, and the facts of each turn."""
    from evennia_ai.engine.history.records import NewRecord, RecordKind
    from evennia_ai.store.core.snapshots import forget_everything
    from evennia_ai.store.history.conversations import get_or_open_conversation
    from evennia_ai.store.history.record_rows import End, end_of, insert_records, rows_after

    where, end = get_or_open_conversation(npc_ref, kind="private", partner_ref="7"), End()
    facts = NewRecord(kind=RecordKind.CONTEXT_BLOCK, role="user", body="The quay, at dusk. " * 10)
    for first in range(0, count, CHUNK):
        new = []
        for number in range(first, min(first + CHUNK, count), 3):
            new += [line(number), facts, reply(number)]
        rows = rows_after(end, where.id, new)
        insert_records(rows)
        end = end_of(rows[-1])
    forget_everything()
    return where


def line(number):
    from evennia_ai.engine.history.records import NewRecord, RecordKind

    body = f"Line {number}: is the ferry late on day {number}, and who is on board of her?"
    return NewRecord(kind=RecordKind.USER, role="user", name="Anna", body=body)


def reply(number):
    from evennia_ai.engine.history.records import NewRecord, RecordKind

    body = f"Answer {number}: she sails at the slack, with salt and two sheep, as always."
    return NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body=body)


class Talk:
    """One conversation whose turns are measured. `times` has the seconds of each step."""

    def __init__(self, npc_ref, records):
        self.where = filled(npc_ref, records)
        self.npc_ref = npc_ref
        self.times = defaultdict(list)
        self.number = records
        self.components = components()

    @contextmanager
    def timed(self, what):
        start = time.perf_counter()
        yield
        self.times[what].append(time.perf_counter() - start)

    def turn(self, what):
        """Measure one turn: hear something, compose, commit, and reply."""
        from evennia_ai.engine.compose import compose
        from evennia_ai.engine.history.turn.sending import make_draft
        from evennia_ai.store.history import conversations, turns
        from evennia_ai.store.history.windows import windows

        self.number += 1
        with self.timed(what):
            before = windows(self.where.id).history
            (heard,) = conversations.append_records(self.where, [line(self.number)])
            with self.timed(f"{what}: composing"):
                prompt = compose(self.inputs(before, heard))
            with self.timed(f"{what}: committing"):
                draft = make_draft(prompt, event=heard)
                begun = turns.begin_turn(self.where, draft=draft, event=heard)
                turns.finish_turn(begun.turn, [reply(self.number)])
        return len(prompt.messages)

    def inputs(self, before, heard):
        from evennia_ai.engine.inputs import ComposeRules, Inputs
        from evennia_ai.engine.prompt.blocks import DynamicBlock
        from evennia_ai.engine.prompt.budget import BudgetRules
        from evennia_ai.engine.prompt.messages import event_message
        from evennia_ai.store.history.windows import windows

        return Inputs(
            components=self.components,
            rules=ComposeRules(budget=BudgetRules(limit_tokens=LIMIT_TOKENS)),
            history=before,
            event=event_message(heard.body, name=heard.name, record=heard.id),
            blocks=(DynamicBlock(key="place", text=f"It is day {self.number}."),),
            cut=windows(self.where.id).cut,
            anchors=windows(self.where.id).anchors,
        )

    def opened_cold(self):
        """Measure the first turn of a process that has nothing in memory yet."""
        from evennia_ai.store.core.snapshots import forget_everything

        forget_everything()
        self.turn("the first turn")

    def erased(self):
        from evennia_ai.store.erasing import erase_conversation

        with self.timed("erasing"):
            erase_conversation(self.where, by=trusted("Mira"))


def components():
    from evennia_ai.engine.prompt.components import PromptComponent
    from evennia_ai.engine.prompt.expansion import ComponentSet

    rules = "Stay in character, and be brief. " * 40
    return ComponentSet(
        [
            PromptComponent(id=0, key="system_prompt", content=rules, revision=1),
            PromptComponent(
                id=1200, key="mood", content="Oren is tired.", injection_depth=4, revision=1
            ),
        ]
    )


def measured(options):
    """Measure all turns of both conversations. Return them, and how many messages a prompt had."""
    talks = Talk("12", SHORT), Talk("13", options.records)
    for talk in talks:
        for _ in range(3):
            talk.turn("warming up")
    messages = 0
    for _ in range(options.turns):
        for talk in talks:
            messages = talk.turn("a warm turn")
    for _ in range(max(3, options.turns // 8)):
        for talk in talks:
            talk.opened_cold()
    for talk in talks:
        talk.erased()
    return talks, messages


STEPS = {
    "composing": "a warm turn: composing",
    "committing": "a warm turn: committing",
    "a warm turn": "a warm turn",
    "the first turn": "the first turn",
    "erasing": "erasing",
}


def report(short, long, *, records):
    """Print the table. Return True if all limits are met."""
    print(f"{'milliseconds (median)':24} {SHORT:>10,} {records:>10,} {'ratio':>8}")
    is_met = True
    for title, step in STEPS.items():
        one, other = (1000 * statistics.median(talk.times[step]) for talk in (short, long))
        missed = title in CHECKED and other > AT_MOST * one
        is_met &= not missed
        asked = f"  asked at most {AT_MOST:g}" if title in CHECKED else ""
        print(
            f"{title:24} {one:10.2f} {other:10.2f} {other / one:8.2f}{asked}"
            f"{': MISSED' if missed else ''}"
        )
    return is_met


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=LONG)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument(
        "--check", action="store_true", help="end with status 1 if a ratio is too high"
    )
    parser.add_argument("--memory", action="store_true", help="count bytes instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        started(folder)
        if options.memory:
            window_memory.report()
            return
        (short, long), messages = measured(options)
    print(f"{messages} messages a prompt, {options.turns} warm turns each")
    is_met = report(short, long, records=options.records)
    if options.check and not is_met:
        raise SystemExit("a long conversation costs too much more than a short one")


if __name__ == "__main__":
    main()
