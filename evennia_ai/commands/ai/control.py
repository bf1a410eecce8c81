"""`ai/reset`, `ai/undo`, `ai/retry` and `ai/correct`: decide what in a conversation counts.

A switch applies to the conversation in the NPC's room, unless the builder names another one by its
number. `evennia_ai.npc.mind.control` does the work.
"""

import re
from collections.abc import Sequence
from typing import Final

from evennia_ai.commands.base import CommandError, StrictCommand, in_words
from evennia_ai.commands.naming import counted_number, npc_and_number, npc_named
from evennia_ai.engine.history.records import Record, RecordKind
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.npc.mind.control import (
    Corrected,
    Retried,
    commit_correction,
    commit_reset,
    commit_retry,
    commit_undo,
    conversation_here,
    lasting_effects,
    refuse_busy,
)
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.store.history.control import Exchange
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import ConversationRef

_RECORD: Final = re.compile(r"(.+)/\s*#([0-9]{1,18})(?:\.([0-9]{1,4}))?\s*")


class ControlSwitches(StrictCommand):
    """The switches of `ai` that decide what in a conversation counts."""

    def reset(self) -> None:
        npc, where = self._conversation("ai/reset <npc>[/<conversation>]")

        def report(_: Record) -> None:
            self.say(
                f"{npc.key} starts over in {in_words(where)}. What was said there before no longer"
                f" counts; ai/history {npc.key} still shows it. What {npc.key} learnt stays"
                f" (ai/memory {npc.key}), and so do notes; lore that was active no longer is."
            )

        self.tell_of(commit_reset(npc, where, by=self.actor), by=report)

    def undo(self) -> None:
        usage = "ai/undo <npc>[/<conversation>] [= <how many exchanges>]"
        npc, where = self._conversation(usage)
        count = 1 if self.rhs is None else counted_number(self.rhs, what="number of exchanges")

        def report(taken: Sequence[Exchange]) -> None:
            self.say(_undone(npc, where, taken, asked=count))

        self.tell_of(commit_undo(npc, where, count, by=self.actor), by=report)

    def retry(self) -> None:
        npc, where = self._conversation("ai/retry <npc>[/<conversation>] [= <hint>]")
        done = commit_retry(npc, where, self.rhs or "", by=self.actor)
        self.tell_of(done, by=lambda retried: self.say(_retried(npc, retried)))

    def correct(self) -> None:
        wanted, text = self.both("ai/correct <npc>/#<number> = <text>")
        found = _RECORD.fullmatch(wanted)
        if found is None:
            raise CommandError(
                "Usage: ai/correct <npc>/#<number> = <text>; ai/history <npc> shows the numbers."
                " Nothing was changed."
            )
        npc = npc_named(self.caller, found[1].strip())
        which = None if found[3] is None else int(found[3])
        done = commit_correction(self.caller, npc, found[2], text, which=which, by=self.actor)
        self.tell_of(done, by=lambda corrected: self.say(_corrected(npc, text, corrected)))

    def _conversation(self, usage: str) -> tuple[NPC, ConversationRef]:
        """Return the NPC and the conversation that a switch applies to.

        Raises:
            CommandError: There is no such conversation.
            ControlError: The NPC is answering at the moment.
        """
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="conversation")
        known = conversations_of(npc.ai.ref)
        if not known:
            raise CommandError(f"Nothing is recorded of {npc.key} yet. Nothing was changed.")
        refuse_busy(npc, npc.ai.ref)
        if number is None:
            where, problem = conversation_here(npc), "has no conversation in its room"
        else:
            where = next((one for one in known if one.id == number), None)
            problem = f"has no conversation {number}"
        if where is None:
            shown = "; ".join(in_words(one) for one in known[:6])
            raise CommandError(
                f"{npc.key} {problem}. Nothing was changed. Type the number of a conversation after"
                f" the name, for example {npc.key}/{known[0].id}. There are: {shown}."
            )
        return npc, where


def _undone(npc: NPC, where: ConversationRef, taken: Sequence[Exchange], *, asked: int) -> str:
    records = sorted((r for one in taken for r in one.records), key=lambda r: int(r.id))
    first, last = records[0], records[-1]
    which = f"#{first.id}" if first is last else f"#{first.id} to #{last.id}"
    fewer = f" There were no more than {len(taken)}." if len(taken) < asked else ""
    counted = "1 exchange no longer counts" if len(taken) == 1 else ""
    return (
        f"{counted or f'{len(taken)} exchanges no longer count'}:"
        f" {len(records)} records, {which}, in {in_words(where)}.{fewer} ai/history {npc.key}"
        f" still shows them.{_effects(taken)}"
    )


def _retried(npc: NPC, done: Retried) -> str:
    if not done.is_answering:
        return (
            f"The speaker of #{done.event.id} is gone, so {npc.key} does not answer again. Its old"
            " answer no longer counts."
        )
    old = ", ".join(f"#{record.id}" for record in done.exchange.answer)
    gone = f"; {old} no longer count{'' if ',' in old else 's'}" if old else ""
    return f"{npc.key} answers #{done.event.id} again{gone}.{_effects([done.exchange])}"


def _corrected(npc: NPC, text: str, done: Corrected) -> str:
    is_summary = done.new.kind is RecordKind.SUMMARY
    now = f"summary #{done.old.id} says" if is_summary else f"{npc.key} said in #{done.old.id}"
    learnt = (
        f" {npc.key} may have learnt from the old words: ai/memory {npc.key} shows what it learnt,"
        " and lets you change it."
        if done.may_be_learnt
        else ""
    )
    return (
        f"From now on {now}: {escape_controls(text)} (#{done.new.id}). What was said stays"
        f" readable in ai/history {npc.key}.{learnt}"
    )


def _effects(taken: Sequence[Exchange]) -> str:
    """Return a sentence that names the tools whose effects in the world stay, or "" if none."""
    tools = lasting_effects(taken)
    if not tools:
        return ""
    return f" What its tools did in the world is not undone: {escape_controls(', '.join(tools))}."
