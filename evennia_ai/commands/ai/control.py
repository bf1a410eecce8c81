"""`ai/reset`, `ai/undo`, `ai/retry` and `ai/correct`: decide what in a conversation counts.

Each switch commits one record more and erases nothing (`store/history/control.py`). It applies to
the conversation in the NPC's room, unless the builder names another one by its number.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.base import CommandError, StrictCommand, in_words
from evennia_ai.commands.naming import counted_number, npc_and_number, npc_named
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.history.corrections import original_place
from evennia_ai.engine.history.records import Record, RecordKind
from evennia_ai.engine.knowledge.meta_prompt import TOOL as KNOWLEDGE_TOOL
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.recording import heard
from evennia_ai.npc.recording.heard import ConversationKey
from evennia_ai.npc.recording.unanswered import heard_again
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.presence import NPC, room_ref_of, why_gone
from evennia_ai.npc.tools.speaking import speaking_tools
from evennia_ai.store.history import control, model_requests, record_rows
from evennia_ai.store.history.control import Exchange
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import ConversationRef

MOST_UNDONE: Final = 50
MOST_TEXT: Final = 8000
MOST_HINT: Final = 1000
_TEXTUAL: Final = frozenset(
    {"say", "whisper", "pose", "look", "recall", "errand_result", "end_conversation"}
    | {KNOWLEDGE_TOOL}
)
"""Tools that only speak or look. What other tools did in the world cannot be undone."""
_BUSY: Final = "{npc} is answering just now; try again in a moment. Nothing was changed."
_RECORD: Final = re.compile(r"(.+)/\s*#([0-9]{1,18})(?:\.([0-9]{1,4}))?\s*")


def commit_reset(npc: NPC, number: int | None, *, by: Actor) -> "Deferred[str]":
    """Let the NPC start its conversation over. Fires with a line that says what stays."""
    where = _conversation_to_change(npc, number)
    npc.ai.attention.drop_waiting("a builder reset the conversation")

    def told(_: Record) -> str:
        return (
            f"{npc.key} starts over in {in_words(where)}. What was said there before no longer"
            f" counts; ai/history {npc.key} still shows it. What {npc.key} learnt stays (ai/memory"
            f" {npc.key}), and so do notes; lore that was active no longer is."
        )

    return _write_later(partial(control.reset_conversation, where, by=by)).addCallback(told)


def commit_undo(npc: NPC, number: int | None, count: int, *, by: Actor) -> "Deferred[str]":
    """Take back the newest exchanges.

    Fires with a line that says which, and what cannot be undone.
    """
    where = _conversation_to_change(npc, number)
    waiting = npc.ai.waiting_records()

    def told(taken: Sequence[Exchange]) -> str:
        records = sorted((r for one in taken for r in one.records), key=lambda r: int(r.id))
        first, last = records[0], records[-1]
        which = f"#{first.id}" if first is last else f"#{first.id} to #{last.id}"
        fewer = f" There were no more than {len(taken)}." if len(taken) < count else ""
        return (
            f"{_exchanges(len(taken))} no longer count{'s' if len(taken) == 1 else ''}:"
            f" {len(records)} records, {which}, in {in_words(where)}.{fewer} ai/history {npc.key}"
            f" still shows them.{_lasting_effects(taken)}"
        )

    write = partial(control.undo_exchanges, where, count, by=by, waiting=waiting)
    return _write_later(write).addCallback(told)


def commit_retry(npc: NPC, number: int | None, hint: str, *, by: Actor) -> "Deferred[str]":
    """Let the NPC answer its last event again. Fires with a line that says what happens."""
    where = _conversation_to_change(npc, number)
    newest = next(control.list_exchanges(where, waiting=npc.ai.waiting_records()), None)
    if newest is None or newest.event is None:
        raise CommandError(
            f"{npc.key} has given no answer in {in_words(where)} that still counts. Nothing was"
            " changed."
        )
    event = newest.event
    _refuse_silent(npc)
    _refuse_gone(npc, where, event)

    def told(_: Record) -> str:
        again = heard_again(npc, where, event, hint=hint, joined=newest.joined)
        if again is None:
            return (
                f"The speaker of #{event.id} is gone, so {npc.key} does not answer again. Its old"
                " answer no longer counts."
            )
        npc.ai.attention.answer_again(again, why="a builder has it answer again")
        old = ", ".join(f"#{record.id}" for record in newest.answer)
        gone = f"; {old} no longer count{'' if ',' in old else 's'}" if old else ""
        return f"{npc.key} answers #{event.id} again{gone}.{_lasting_effects([newest])}"

    write = partial(control.take_back_answer, where, newest, by=by, hint=hint)
    return _write_later(write).addCallback(told)


def commit_correction(caller: Any, wanted: str, text: str, *, by: Actor) -> "Deferred[str]":
    """Replace what the NPC said in one record. Fires with a line that shows the new words."""
    found = _RECORD.fullmatch(wanted)
    if found is None:
        raise CommandError(
            "Usage: ai/correct <npc>/#<number> = <text>; ai/history <npc> shows the numbers."
            " Nothing was changed."
        )
    if len(text) > MOST_TEXT:
        raise CommandError(
            f"The text has {len(text)} characters; at most {MOST_TEXT} are allowed. Nothing was"
            " changed."
        )
    npc = npc_named(caller, found[1].strip())
    where, record = _record_of(npc, found[2])
    if seer_for(caller, npc.ai.ref).hides_some([record]):
        raise CommandError(f"#{record.id} is not yours to see. Nothing was changed.")
    _refuse_busy(npc)
    old = _memories_hint(npc, where, record)

    def told(new: Record) -> str:
        is_summary = new.kind is RecordKind.SUMMARY
        now = f"summary #{record.id} says" if is_summary else f"{npc.key} said in #{record.id}"
        return (
            f"From now on {now}: {escape_controls(text)} (#{new.id}). What was said stays"
            " readable in"
            f" ai/history {npc.key}.{old}"
        )

    which = None if found[3] is None else int(found[3])
    write = partial(control.correct_utterance, where, record, text, by=by, which=which)
    return _write_later(partial(write, tools=speaking_tools(npc))).addCallback(told)


def _conversation_to_change(npc: NPC, number: int | None) -> ConversationRef:
    """Return the conversation that a switch applies to.

    Raises:
        CommandError: There is no such conversation, or the NPC is answering at the moment.
    """
    known = conversations_of(npc.ai.ref)
    if not known:
        raise CommandError(f"Nothing is recorded of {npc.key} yet. Nothing was changed.")
    _refuse_busy(npc)
    if number is None:
        room = ConversationKey(kind="room", place_ref=room_ref_of(npc) or "nowhere")
        where = heard.find_conversation(npc.ai.ref, room)
        problem = "has no conversation in its room"
    else:
        where = next((one for one in known if one.id == number), None)
        problem = f"has no conversation {number}"
    if where is None:
        shown = "; ".join(in_words(one) for one in known[:6])
        raise CommandError(
            f"{npc.key} {problem}. Name another by its number, as in {npc.key}/{known[0].id}:"
            f" {shown}. Nothing was changed."
        )
    return where


def _refuse_busy(npc: NPC) -> None:
    if runtime().scheduler.in_flight(npc.ai.ref):
        raise CommandError(_BUSY.format(npc=npc.key))


def _refuse_silent(npc: NPC) -> None:
    """Raise CommandError if the NPC would not answer now, or would only repeat its answer."""
    if npc.ai.is_busy:
        raise CommandError(_BUSY.format(npc=npc.key))
    unable = npc.ai.attention.why_unable()
    if unable:
        raise CommandError(f"{npc.key} does not answer now: {unable}. Nothing was changed.")
    if runtime().models.of_role("speaker", settings=npc.ai.settings)[0].model.offline:
        raise CommandError(
            f"{npc.key} answers without a model, so a new answer would hardly differ. ai/profile"
            f" lists the models; ai/profile {npc.key} = <profile> chooses one. Nothing was"
            " changed."
        )


def _refuse_gone(npc: NPC, where: ConversationRef, event: Record) -> None:
    again = heard_again(npc, where, event)
    gone = "its speaker is gone" if again is None else why_gone(npc, again.event)
    if gone:
        raise CommandError(
            f"{npc.key} cannot answer #{event.id} again: {gone}. Nothing was changed."
        )


def _record_of(npc: NPC, record_id: str) -> tuple[ConversationRef, Record]:
    known = {one.id: one for one in conversations_of(npc.ai.ref)}
    for record in record_rows.records([record_id]):
        if record.conversation in known:
            return known[record.conversation], record
    raise CommandError(
        f"{npc.key} has no record #{record_id}; ai/history {npc.key} shows the numbers. Nothing"
        " was changed."
    )


def _memories_hint(npc: NPC, where: ConversationRef, record: Record) -> str:
    """Return a sentence if the NPC may have formed memories from the old words, else ""."""
    segment, _, seq = original_place(record).partition(".")
    if model_requests.consolidated(where.id).upto < (int(segment), int(seq)):
        return ""
    return (
        f" {npc.key} may have learnt from the old words: ai/memory {npc.key} shows what it learnt,"
        " and lets you change it."
    )


def _lasting_effects(taken: Sequence[Exchange]) -> str:
    """Return a sentence that names the tools whose effects in the world stay, or "" if none."""
    tools = dict.fromkeys(tool for one in taken for tool in one.tools if tool not in _TEXTUAL)
    if not tools:
        return ""
    return (
        f" What its tools did in the world is not commit_undo: {escape_controls(', '.join(tools))}."
    )


def _exchanges(count: int) -> str:
    return "1 exchange" if count == 1 else f"{count} exchanges"


def _write_later(write: Callable[[], Any]) -> "Deferred[Any]":
    """Write in the recorder's thread, after everything that NPCs perceived before this."""
    return runtime().writer.write(write)


class ControlSwitches(StrictCommand):
    """The switches of `ai` that decide what in a conversation counts."""

    def reset(self) -> None:
        usage = "ai/reset <npc>[/<conversation>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="conversation")
        self.tell_of(commit_reset(npc, number, by=self.actor), by=self.say)

    def undo(self) -> None:
        usage = "ai/undo <npc>[/<conversation>] [= <how many exchanges>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="conversation")
        count = 1 if self.rhs is None else counted_number(self.rhs, what="number of exchanges")
        if count > MOST_UNDONE:
            raise CommandError(
                f"At most {MOST_UNDONE} exchanges can be taken back at once; ai/reset {npc.key}"
                " starts the conversation over. Nothing was changed."
            )
        self.tell_of(commit_undo(npc, number, count, by=self.actor), by=self.say)

    def retry(self) -> None:
        usage = "ai/retry <npc>[/<conversation>] [= <hint>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="conversation")
        hint = self.rhs or ""
        if len(hint) > MOST_HINT:
            raise CommandError(
                f"The hint has {len(hint)} characters; at most {MOST_HINT} are allowed. Nothing"
                " was changed."
            )
        self.tell_of(commit_retry(npc, number, hint, by=self.actor), by=self.say)

    def correct(self) -> None:
        wanted, text = self.both("ai/correct <npc>/#<number> = <text>")
        self.tell_of(commit_correction(self.caller, wanted, text, by=self.actor), by=self.say)
