"""Measure the processor time that each stage of a turn takes in the reactor.

    python -m benchmarks.turn [--turns 300] [--npcs 6] [--first NPCS] [--profile STAGE]

Six NPCs (or as many as you ask for) and three players are in one room of a real game, in a SQLite
file with Evennia's own options. The NPCs have a card, lore in three books, notes, facts and tools,
and the room's history has 240 messages. A player says something to one NPC. All NPCs record it, and
the one answers with the reply of a scripted model.

Each stage is measured in the processor time of its thread, so other programs do not change it.
`queries` is how many statements it sends to the database. An indented stage is a part of the stage
above it. `--profile` prints which functions take the time of one stage. At the end, the benchmark
prints how large the manifest of a turn is.
"""

import argparse
import cProfile
import functools
import importlib
import json
import os
import pstats
import re
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from evennia_ai.engine.actors import THE_GAME, trusted

MESSAGES: Final = 240
NPCS: Final = 6
OF_A_HALL: Final = 10
FEW_MESSAGES: Final = 40
ENTRIES: Final = 200
CONTEXT_TOKENS: Final = 8_000
TOOLS: Final = ("say", "whisper", "pose", "look", "remember", "recall")

READ: Final = "  read at first"
WRITTEN: Final = "  written"
REACTOR: Final = "  of it the reactor's in a server"

STAGES: Final = (
    ("say", "a line is said, until all have taken it", ""),
    ("perceive", "what one NPC perceives", "evennia_ai.npc.mind.handler:AIHandler.receive"),
    ("record", "a slice", "evennia_ai.npc.recording.event_recorder:commit_events"),
    ("  rows", "", "evennia_ai.store.history.conversations:append_each"),
    ("consider", "an NPC takes what was said", "evennia_ai.npc.mind.attention:Attention.consider"),
    ("start", "the start of a turn", "evennia_ai.npc.turn.turn:Turn._commit_first_round"),
    (READ, "", "evennia_ai.npc.inputs.first_reading:_Reading.done"),
    ("  gather", "", "evennia_ai.npc.turn.rounds:gather_turn"),
    ("  compose", "", "evennia_ai.engine.execution_request:ExecutionRequest.composed"),
    (
        WRITTEN,
        "by the writer's thread in a server",
        "evennia_ai.npc.turn.rounds:_Beginning.committed",
    ),
    ("  asked", "", "evennia_ai.npc.turn.rounds:Rounds._asked"),
    ("    draft", "", "evennia_ai.npc.turn.rounds:_Beginning._draft"),
    ("    begin", "", "evennia_ai.store.history.turns:begin_turn"),
    ("ask", "the model is asked", "evennia_ai.npc.model_calls.calls:CountedCall.ask"),
    ("end", "the reply is committed", "evennia_ai.store.history.turns:finish_turn"),
)


class Meter:
    """A meter of the processor seconds and queries of each stage.

    It counts after it is switched on.
    """

    def __init__(self, profiled: str = "") -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.queries: defaultdict[str, list[int]] = defaultdict(list)
        self.statements: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.is_on = False
        self.profile = cProfile.Profile(time.thread_time) if profiled else None
        self._profiled = profiled
        self._asked: list[str] = []

    def counted(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Count a statement of the database and send it."""
        self._asked.append(" ".join(re.sub(r'"s\d+_x\d+"', "", sql).split()[:5]))
        return execute(sql, params, many, context)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure what happens in a `with` block."""
        if not self.is_on:
            yield
            return
        asked = len(self._asked)
        profile = self.profile if name == self._profiled else None
        start = time.thread_time()
        if profile:
            profile.enable()
        try:
            yield
        finally:
            if profile:
                profile.disable()
            self.seconds[name].append(time.thread_time() - start)
            self.queries[name].append(len(self._asked) - asked)
            self.statements[name].update(self._asked[asked:])

    def watch(self, name: str, path: str) -> None:
        """Measure every call of the function with this path."""
        where, _, attributes = path.partition(":")
        holder: Any = importlib.import_module(where)
        *owners, last = attributes.split(".")
        for owner in owners:
            holder = getattr(holder, owner)
        setattr(holder, last, self._measured(name, getattr(holder, last)))

    def _measured(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        # For a coroutine, the stage does not include waiting.
        if function.__code__.co_flags & 0x80:

            @functools.wraps(function)
            async def measured_async(*args: Any, **kwargs: Any) -> Any:
                with self.stage(name):
                    return await function(*args, **kwargs)

            return measured_async

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                return function(*args, **kwargs)

        return measured


def started(folder: str) -> None:
    """Set up Evennia with a database file in `folder` that has all tables."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "server.conf.test_settings"
    from tests.conftest import ENVIRONMENT

    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from django.conf import settings

    settings.DATABASES["default"]["NAME"] = str(Path(folder) / "turn.sqlite3")
    import django

    django.setup()
    import evennia

    evennia._init()
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)


def furnished(stage: Any) -> None:
    """Give an NPC a card, lorebooks, notes and components, and its room a long history."""
    from evennia_ai.engine.prompt.components import GAME
    from evennia_ai.npc.npc_settings import change_settings
    from tests.npc.scripted_games import a_book, an_entry, furnish

    furnish(stage)
    entries = [
        an_entry(f"word{number}", f"Entry {number} tells of a thing. " * 4)
        for number in range(ENTRIES)
    ]
    a_book("region", entries, GAME)
    change_settings(stage.npc, tools=TOOLS, by=THE_GAME)


def talked(npcs: Iterable[Any], speaker: Any, messages: int) -> None:
    """Let a speaker say a number of messages, which all NPCs in the room record."""
    from evennia_ai.engine.history.records import reply_record
    from evennia_ai.npc.recording.heard import event_record, key_of, open_conversation
    from evennia_ai.npc.senses.events import Event
    from evennia_ai.store.history import conversations

    for number in range(messages // 2):
        event = Event(
            kind="say",
            speaker_ref=str(speaker.id),
            speaker_name=speaker.key,
            speaker_rank="Player",
            text=f"Line {number}: is the ferry late on day {number}, and who is on board of her?",
            room_ref=str(speaker.location.id),
        )
        for npc in npcs:
            where = open_conversation(str(npc.id), key_of(event))
            reply = reply_record(f"Answer {number}: she sails at the slack, with salt and sheep.")
            conversations.append_records(where, [event_record(event), reply])


def play(stage: Any, meter: Meter, turns: int) -> None:
    """Let players ask one NPC after the other something, turn after turn."""
    for number in range(turns):
        speaker = (stage.anna, stage.ben, stage.cara)[number % 3]
        with meter.stage("say"):
            speaker.at_say(
                f"Oren, and on day {number}: what of word{number % 7}, the tide and the bell?",
                msg_self=True,
            )
        stage.passes()


def staged(cast: tuple[int, ...], *, npcs: int) -> Any:
    """Make the room and the people in it, with a model that always answers."""
    from twisted.internet.task import Clock

    from evennia_ai.services.settings.game import CompactionSettings
    from tests.npc.conftest import Stage

    stage = Stage(Clock(), cast)
    others = [
        stage.make(f"Npc{number}", "evennia_ai.typeclasses.AINPC") for number in range(npcs - 1)
    ]
    stage.npcs = (stage.npc, *others)
    stage.cara = stage.player("Cara")
    furnished(stage)
    stage.talks_with(
        lambda _: "Aye, and the tide is with us until the bell rings, they say.",
        # Compaction is off, because it belongs to no single turn. The history is cut in steps
        # instead.
        compaction=CompactionSettings(enabled=False),
        context_tokens=CONTEXT_TOKENS,
    )
    talked(stage.npcs, stage.anna, MESSAGES)
    return stage


def a_crowd(many: int) -> list[tuple[int, int]]:
    """Make many NPCs, ten to a hall with one player. Return the NPCs' ids, each with its player.

    Each NPC has its own card and an earlier conversation, of which the process has nothing in
    memory.
    """
    from evennia.objects.objects import DefaultCharacter, DefaultRoom
    from evennia.utils.create import create_object

    from evennia_ai.engine.prompt.components import of_npc
    from evennia_ai.store.authored import cards
    from evennia_ai.typeclasses import AINPC
    from tests.npc.scripted_games import CARD

    crowd: list[tuple[int, int]] = []
    for number in range(many):
        if number % OF_A_HALL == 0:
            hall = create_object(DefaultRoom, key=f"Hall {number // OF_A_HALL}", nohome=True)
            guest = create_object(DefaultCharacter, f"Guest {number}", hall, nohome=True)
        npc = create_object(AINPC, f"Guard{number}", hall, nohome=True)
        told = {**CARD, "nickname": f"Guard{number}", "description": f"{{{{char}}}} is {number}th."}
        data = {"spec": "chara_card_v3", "spec_version": "3.0", "data": told}
        cards.save_card(f"guard-{number}", json.dumps(data), by=trusted("builder"))
        cards.CARDS.assign(f"guard-{number}", of_npc(npc.ai.ref), by=trusted("builder"))
        talked([npc], guest, FEW_MESSAGES)
        crowd.append((npc.id, guest.id))
    return crowd


def forget_all() -> None:
    """Empty all caches of the process, as after a start."""
    from evennia.utils.idmapper.models import flush_cache

    from evennia_ai.store.core.snapshots import forget_everything

    flush_cache()
    forget_everything()


def play_first(stage: Any, meter: Meter, crowd: list[tuple[int, int]]) -> None:
    """Ask each NPC of a crowd something for the first time."""
    from evennia_ai.npc.senses.presence import object_of

    for npc_id, guest_id in crowd:
        npc, guest = object_of(str(npc_id)), stage.who(guest_id)
        with meter.stage("say"):
            guest.at_say(f"{npc.key}, what of word3, the tide and the bell?", msg_self=True)
        stage.passes()


def stored_manifests(newest: int) -> tuple[list[bytes], list[str]]:
    """Return the manifests of the newest turns, as their rows store them and as JSON."""
    from evennia_ai.engine.history.turn.manifest import text_in_row
    from evennia_ai.models import Turn

    rows = [*Turn.objects.order_by("-pk").values_list("manifest", flat=True)[:newest]]
    return rows, [text_in_row(row) for row in rows]


def report(meter: Meter) -> None:
    """Print a line for each stage."""
    in_thread = zip_longest(meter.seconds[WRITTEN], meter.seconds[READ], fillvalue=0.0)
    both = zip(meter.seconds["start"], in_thread, strict=True)
    meter.seconds[REACTOR] = [whole - sum(told) for whole, told in both]
    meter.queries[REACTOR] = [0]
    print(f"{'milliseconds of processor time':32} {'p50':>7} {'p99':>7} {'most':>7} {'queries':>8}")
    names = [name for name, _, _ in STAGES]
    names.insert(names.index("start") + 1, REACTOR)
    for name in names:
        values = sorted(meter.seconds[name])
        if not values:
            print(f"{name:32} (not entered)")
            continue
        p99 = values[min(len(values) - 1, len(values) * 99 // 100)]
        told = (1000 * one for one in (statistics.median(values), p99, values[-1]))
        queries = statistics.median(meter.queries[name])
        print(f"{name:32} {' '.join(f'{one:7.2f}' for one in told)} {queries:8g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument(
        "--profile", default="", help="the stage to profile, by its name without spaces"
    )
    parser.add_argument("--statements", action="store_true", help="list the statements of a stage")
    parser.add_argument("--npcs", type=int, default=NPCS, help="how many NPCs are in the room")
    parser.add_argument("--first", type=int, default=0, metavar="NPCS")
    options = parser.parse_args()
    by_name = {name.strip(): name for name, _, _ in STAGES}
    with tempfile.TemporaryDirectory() as folder:
        started(folder)
        from django.db import connection

        from evennia_ai.npc.service import Garbage
        from tests.npc.conftest import a_cast

        crowd, cast = a_crowd(options.first), a_cast()
        forget_all()
        stage = staged(cast, npcs=options.npcs)
        meter = Meter(by_name.get(options.profile, ""))
        for name, _, path in STAGES:
            if path:
                meter.watch(name, path)
        play(stage, meter, 30)
        Garbage().begin(held=int, is_quiet=bool)  # This is set as in a running game.
        meter.is_on = True
        with connection.execute_wrapper(meter.counted):
            if crowd:
                play_first(stage, meter, crowd)
            else:
                play(stage, meter, options.turns)
        manifests = stored_manifests(options.turns)
    report(meter)
    stored, written = (statistics.mean(map(len, one)) for one in manifests)
    print(f"bytes of a turn's manifest: {stored:.0f} in its row, {written:.0f} as JSON")
    if options.statements:
        for name, counted in meter.statements.items():
            for sql, count in counted.most_common():
                print(f"{name.strip():10} {count / options.turns:6.2f}  {sql}")
    if meter.profile:
        pstats.Stats(meter.profile).sort_stats("cumulative").print_stats(70)
        pstats.Stats(meter.profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
