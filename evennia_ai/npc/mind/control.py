"""What builders do to a conversation: reset, undo, retry, correct, or continue it in a branch.

Commands and pages call these functions in the reactor's thread. Each change commits one record more
and erases nothing (`store/history/control.py`). It is written in the recorder's thread, after
everything that NPCs perceived before.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.history.corrections import original_place
from evennia_ai.engine.history.records import Record
from evennia_ai.engine.knowledge.meta_prompt import TOOL as KNOWLEDGE_TOOL
from evennia_ai.npc.inputs.gather import opening_greeting
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.recording import heard
from evennia_ai.npc.recording.heard import ConversationKey
from evennia_ai.npc.recording.unanswered import heard_again
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.events import ARRIVE, Event
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.presence import NPC, known_ref, room_ref_of, why_gone
from evennia_ai.npc.tools.speaking import speaking_tools
from evennia_ai.npc.turn.rehearsal import Rehearsed, rehearse_again
from evennia_ai.store.history import branches, control, model_requests, record_rows
from evennia_ai.store.history.branches import Branch
from evennia_ai.store.history.control import Exchange
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.turns import StoredTurn

MOST_UNDONE: Final = 50
MOST_TEXT: Final = 8000
MOST_HINT: Final = 1000
_TEXTUAL: Final = frozenset(
    {"say", "whisper", "pose", "look", "recall", "errand_result", "end_conversation"}
    | {KNOWLEDGE_TOOL}
)
"""Tools that only speak or look. What other tools did in the world cannot be undone."""


class ControlError(EvenniaAIError):
    """A conversation cannot be changed this way now. Nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """An answer that was taken back, so that the NPC gives another one."""

    exchange: Exchange
    """The exchange with the event and the old answer."""
    event: Record
    """The event that is answered again."""
    is_answering: bool
    """False if the speaker left meanwhile, so that the NPC does not answer again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """Words of an NPC that were replaced."""

    old: Record
    new: Record
    may_be_learnt: bool
    """True if the NPC may have formed memories from the old words."""


def commit_reset(npc: NPC, where: ConversationRef, *, by: Actor) -> "Deferred[Record]":
    """Let the NPC start a conversation over. Fires with the record of the reset."""
    refuse_busy(npc, where.npc_ref)
    npc.ai.attention.drop_waiting("a builder reset the conversation")
    return _write_later(partial(control.reset_conversation, where, by=by))


def commit_undo(
    npc: NPC, where: ConversationRef, count: int, *, by: Actor
) -> "Deferred[Sequence[Exchange]]":
    """Take back the newest exchanges. Fires with them, newest first."""
    if count > MOST_UNDONE:
        raise ControlError(
            f"At most {MOST_UNDONE} exchanges can be taken back at once; ai/reset {npc.key}"
            " starts the conversation over. Nothing was changed."
        )
    refuse_busy(npc, where.npc_ref)
    waiting = npc.ai.waiting_records()
    return _write_later(partial(control.undo_exchanges, where, count, by=by, waiting=waiting))


def commit_retry(
    npc: NPC, where: ConversationRef, hint: str = "", *, by: Actor
) -> "Deferred[Retried]":
    """Take back the newest answer, and let the NPC answer the same event again.

    Args:
        hint: A wish for the new answer.
    """
    newest, event = _newest_answer(npc, where, hint, waiting=npc.ai.waiting_records())
    _refuse_silent(npc)
    _refuse_gone(npc, where, event)

    def answered(_: Record) -> Retried:
        again = heard_again(npc, where, event, hint=hint, joined=newest.joined)
        if again is not None:
            npc.ai.attention.answer_again(again, why="a builder has it answer again")
        return Retried(exchange=newest, event=event, is_answering=again is not None)

    write = partial(control.take_back_answer, where, newest, by=by, hint=hint)
    return _write_later(write).addCallback(answered)


def retry_in_branch(
    npc: NPC, branch: Branch, hint: str = "", *, typist: Any, by: Actor
) -> "Deferred[Rehearsed]":
    """Take back the newest answer in a branch, and let the NPC answer the same line again there.

    Raises:
        BranchError: The NPC is stopped, or a limit is reached. Nothing was changed.
    """
    newest, _ = _newest_answer(npc, branch.conversation, hint)
    _refuse_offline(npc)
    return rehearse_again(npc, branch, newest, hint=hint, typist=typist, by=by)


def _newest_answer(
    npc: NPC, where: ConversationRef, hint: str, *, waiting: Collection[str] = ()
) -> tuple[Exchange, Record]:
    """Return the newest exchange that can be answered again, and its event."""
    if len(hint) > MOST_HINT:
        raise ControlError(
            f"The hint has {len(hint)} characters; at most {MOST_HINT} are allowed. Nothing"
            " was changed."
        )
    refuse_busy(npc, where.npc_ref)
    newest = next(control.list_exchanges(where, waiting=waiting), None)
    if newest is None or newest.event is None:
        raise ControlError(
            f"{npc.key} has given no answer in this conversation that still counts. Nothing was"
            " changed."
        )
    return newest, newest.event


def commit_correction(
    looker: Any,
    npc: NPC,
    record_id: str,
    text: str,
    *,
    mind_ref: str = "",
    which: int | None = None,
    by: Actor,
) -> "Deferred[Corrected]":
    """Replace what the NPC said in one record.

    Args:
        looker: The object or account who must be allowed to see the record.
        mind_ref: The reference of the branch that has the record, "" for the NPC itself.
        which: The number of the utterance in the record, from 1. Needed if it has several.
    """
    if len(text) > MOST_TEXT:
        raise ControlError(
            f"The text has {len(text)} characters; at most {MOST_TEXT} are allowed. Nothing was"
            " changed."
        )
    where, record = _record_of(npc, mind_ref or npc.ai.ref, record_id)
    if seer_for(looker, where.npc_ref).hides_some([record]):
        raise ControlError(f"#{record.id} is not yours to see. Nothing was changed.")
    refuse_busy(npc, where.npc_ref)
    may_be_learnt = _is_consolidated(where, record)

    def corrected(new: Record) -> Corrected:
        return Corrected(old=record, new=new, may_be_learnt=may_be_learnt)

    write = partial(control.correct_utterance, where, record, text, by=by, which=which)
    return _write_later(partial(write, tools=speaking_tools(npc))).addCallback(corrected)


def open_visible_branch(looker: Any, npc: NPC, turn: StoredTurn, *, by: Actor) -> Branch:
    """Open a branch of `looker` from a turn.

    Raises:
        ControlError: Something that the branch would copy is hidden from `looker`.
        BranchError: There can be no branch from this turn.
    """
    if seer_for(looker, npc.ai.ref).hides_some(branches.records_to_copy(turn)):
        raise ControlError(
            f"Some of what {npc.key} was told before turn {turn.number} is hidden from you by a"
            " lock, and in a branch the NPC could tell it. Nothing was opened."
        )
    return branches.open_branch(turn, by_ref=str(looker.id), by=by)


def open_fresh_branch(looker: Any, npc: NPC, *, by: Actor) -> Branch:
    """Open a branch in which `looker` meets the NPC for the first time.

    The NPC says its greeting first, if it has one.
    """
    event = Event(
        kind=ARRIVE,
        speaker_ref=str(looker.id),
        known_ref=known_ref(npc, looker),
        speaker_name=label_of(npc, looker),
        text="",
        room_ref=room_ref_of(npc) or "nowhere",
    )
    greeting = opening_greeting(npc, npc.ai.view(), heard.key_of(event), event)
    return branches.open_branch_without_past(
        npc.ai.ref,
        room_ref=event.room_ref,
        by_ref=str(looker.id),
        greeting=greeting,
        by=by,
    )


def conversation_here(npc: NPC) -> ConversationRef | None:
    """Return the conversation in the NPC's room, None if it has none."""
    room = ConversationKey(kind="room", place_ref=room_ref_of(npc) or "nowhere")
    return heard.find_conversation(npc.ai.ref, room)


def refuse_busy(npc: NPC, mind_ref: str) -> None:
    """Refuse to change a conversation of an NPC, or of a branch of it, while a turn of it runs.

    Raises:
        ControlError: A turn runs.
    """
    if runtime().scheduler.in_flight(mind_ref):
        raise ControlError(_busy(npc))


def lasting_effects(taken: Sequence[Exchange]) -> tuple[str, ...]:
    """Return the names of the tools whose effects in the world stay."""
    used = (tool for one in taken for tool in one.tools if tool not in _TEXTUAL)
    return tuple(dict.fromkeys(used))


def _busy(npc: NPC) -> str:
    return f"{npc.key} is answering just now; try again in a moment. Nothing was changed."


def _refuse_silent(npc: NPC) -> None:
    """Raise ControlError if the NPC would not answer now, or would only repeat its answer."""
    if npc.ai.is_busy:
        raise ControlError(_busy(npc))
    unable = npc.ai.attention.why_unable()
    if unable:
        raise ControlError(f"{npc.key} does not answer now: {unable}. Nothing was changed.")
    _refuse_offline(npc)


def _refuse_offline(npc: NPC) -> None:
    """Raise ControlError if the NPC answers without a model, so it would repeat its answer."""
    if runtime().models.of_role("speaker", settings=npc.ai.settings)[0].model.offline:
        raise ControlError(
            f"{npc.key} answers without a model, so a new answer would hardly differ. ai/profile"
            f" lists the models; ai/profile {npc.key} = <profile> chooses one. Nothing was"
            " changed."
        )


def _refuse_gone(npc: NPC, where: ConversationRef, event: Record) -> None:
    again = heard_again(npc, where, event)
    gone = "its speaker is gone" if again is None else why_gone(npc, again.event)
    if gone:
        raise ControlError(
            f"{npc.key} cannot answer #{event.id} again: {gone}. Nothing was changed."
        )


def _record_of(npc: NPC, mind_ref: str, record_id: str) -> tuple[ConversationRef, Record]:
    known = {one.id: one for one in conversations_of(mind_ref)}
    for record in record_rows.records([record_id]):
        if record.conversation in known:
            return known[record.conversation], record
    raise ControlError(
        f"{npc.key} has no record #{record_id}; ai/history {npc.key} shows the numbers. Nothing"
        " was changed."
    )


def _is_consolidated(where: ConversationRef, record: Record) -> bool:
    """True if memories were already formed from this part of the conversation."""
    segment, _, seq = original_place(record).partition(".")
    return model_requests.consolidated(where.id).upto >= (int(segment), int(seq))


def _write_later(write: Callable[[], Any]) -> "Deferred[Any]":
    return runtime().writer.write(write)
