"""Rehearsals: turns in a branch, which nobody in the game hears and which change nothing there.

A rehearsal has the same steps as any turn, in a conversation of its own. There are four
differences: its voice says nothing aloud, its tools do nothing, nothing is summarised or learnt
afterwards, and its calls count against the limits of the builder. The prompt shows the world as it
is now. Only memories that are newer than the start of the branch are left out.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.history.records import Record, RecordKind, speaker_known_in
from evennia_ai.engine.prompt.names import wearer_of
from evennia_ai.npc.inputs.facts import candidates
from evennia_ai.npc.inputs.gather import gather_turn
from evennia_ai.npc.model_calls.limits import CallKey, why_halted
from evennia_ai.npc.recording.heard import CommittedEvent, event_record, minute_of
from evennia_ai.npc.recording.unanswered import heard_again
from evennia_ai.npc.runtime import Runtime, runtime
from evennia_ai.npc.senses.events import HEARD, SPOKEN, Event, Line
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.perception import heard_text
from evennia_ai.npc.senses.presence import NPC, known_ref, object_of, rank_of, room_ref_of
from evennia_ai.npc.speech.voice import Voice
from evennia_ai.npc.tools.registry import toolbox_of
from evennia_ai.npc.tools.tool import Use
from evennia_ai.npc.tools.toolbox import Found, Ran, Toolbox
from evennia_ai.npc.turn.rounds import Composed, Round, composed
from evennia_ai.npc.turn.turn import Turn
from evennia_ai.store.history import branches, control, conversations
from evennia_ai.store.history.branches import Branch, BranchError
from evennia_ai.store.history.control import Exchange
from evennia_ai.store.history.windows import windows

NOT_DONE: Final = "This is a rehearsal: nothing was done. Go on as if it had been."
ROLE: Final = "branch"
"""The role of a rehearsal's calls in limits and logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """The result of a builder's line in a branch."""

    records: tuple[Record, ...]
    """The line, the answer, and how the turns ended."""
    problems: tuple[str, ...]
    """Why there is no answer, or why it needed several attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The person as whom a builder speaks in a branch."""

    ref: str
    known_ref: str
    """The reference by which the NPC knows the person, who may be disguised."""
    name: str
    rank: str
    kind: str
    """The way in which the person speaks: one of `SPOKEN`."""


def part_in(npc: NPC, branch: Branch, *, typist: Any) -> Part:
    """Return the person as whom `typist` speaks in the branch.

    That is the person whom the branch's first turn answered. If there is none, it is the partner of
    a private conversation, and otherwise the typist.
    """
    said, private = branch.event, branch.conversation.kind == "private"
    if said is not None and said.kind is RecordKind.USER and not said.meta.get("hops"):
        kind, ref = str(said.meta.get("event")), str(said.meta.get("speaker") or "")
        spoken = kind if kind in SPOKEN else "say"
        if kind in HEARD:
            known, rank = speaker_known_in(said), _rank(object_of(ref))
            return Part(ref=ref, known_ref=known, name=said.name, rank=rank, kind=spoken)
    other = object_of(wearer_of(branch.conversation.partner_ref)) if private else typist
    other = typist if other is None else other
    kind = "whisper" if private else "say"
    known = branch.conversation.partner_ref if private else known_ref(npc, other)
    name, rank = label_of(npc, other), rank_of(other)
    return Part(ref=str(other.id), known_ref=known, name=name, rank=rank, kind=kind)


def _rank(speaker: Any) -> str:
    return "Player" if speaker is None else rank_of(speaker)


def rehearse(npc: NPC, branch: Branch, text: str, *, typist: Any) -> "Deferred[Rehearsed]":
    """Say `text` in the branch. The Deferred fires with the result when the turn has ended.

    Raises:
        BranchError: The NPC is stopped, a limit is reached, or too many lines wait in the branch.
    """
    live, by_ref = runtime(), str(typist.id)
    part = part_in(npc, branch, typist=typist)
    event = Event(
        kind=part.kind,
        speaker_ref=part.ref,
        known_ref=part.known_ref,
        speaker_name=part.name,
        speaker_rank=part.rank,
        text=heard_text(text),
        room_ref=branch.conversation.place_ref or room_ref_of(npc) or "nowhere",
        private=branch.conversation.kind == "private",
        line=Line(player_ref=by_ref),
    )

    async def heard() -> CommittedEvent:
        where = branch.conversation
        new = event_record(event, minute=minute_of(live.conf.time_suffix))
        (said,) = await live.writer.write(partial(conversations.append_each, [(where, new)]))
        before, record = said
        return CommittedEvent(event=event, conversation=where, record=record, before=before)

    return _schedule(npc, branch, heard, live=live, by_ref=by_ref)


def rehearse_again(
    npc: NPC, branch: Branch, newest: Exchange, *, hint: str, typist: Any, by: Actor
) -> "Deferred[Rehearsed]":
    """Take back the newest answer in the branch, and let the NPC answer the same line again.

    Args:
        newest: The newest exchange of the branch, which has an event.
        hint: A wish for the new answer.

    Raises:
        BranchError: The NPC is stopped, a limit is reached, or too many lines wait in the branch.
    """
    live, by_ref, where, event = runtime(), str(typist.id), branch.conversation, newest.event
    if event is None:
        raise BranchError("the line that was answered no longer counts; nothing was changed")

    async def heard() -> CommittedEvent:
        await live.writer.write(partial(control.take_back_answer, where, newest, by=by, hint=hint))
        again = heard_again(npc, where, event, hint=hint, joined=newest.joined)
        if again is None:
            raise BranchError("its speaker is gone, so nobody can be answered")
        return replace(again, event=replace(again.event, line=Line(player_ref=by_ref)))

    return _schedule(npc, branch, heard, live=live, by_ref=by_ref)


def _schedule(
    npc: NPC,
    branch: Branch,
    heard: Callable[[], Awaitable[CommittedEvent]],
    *,
    live: Runtime,
    by_ref: str,
) -> "Deferred[Rehearsed]":
    """Run a turn in the branch when it is its time. Fires with the result.

    Args:
        heard: Commits what the turn answers, and returns it.
    """
    _check_allowed(npc, live, by_ref)
    done: Deferred[Rehearsed] = Deferred()
    play = partial(_play_turn, npc, branch, heard, live=live, by_ref=by_ref)

    def ended(outcome: Rehearsed | Failure) -> Failure | None:
        done.callback(outcome)
        expected = isinstance(outcome, Rehearsed) or outcome.check(EvenniaAIError)
        return None if expected else outcome  # the scheduler logs only unexpected errors

    def run() -> "Deferred[Any]":
        return Deferred.fromCoroutine(play()).addBoth(ended)

    key = branch.conversation.npc_ref
    place = live.place_of(npc.ai.settings)
    if not live.scheduler.offer(key, run, place=place, owner=by_ref, cooldown_seconds=0.0):
        raise BranchError(
            "too many lines wait in this branch already; nothing was said. Try again later"
        )
    return done


def _check_allowed(npc: NPC, live: Runtime, by_ref: str) -> None:
    """Check that a model may be asked now. The offline responder may always be asked.

    Raises:
        BranchError: The NPC is stopped, or a limit is reached.
    """
    settings = npc.ai.settings
    if why := why_halted(npc.ai.ref):
        raise BranchError(f"{npc.key} was {why}; nothing was said")
    if live.models.of_role("speaker", settings=settings)[0].model.offline:
        return
    refusal = live.limits.refusal(npc_ref=npc.ai.ref, player_ref=by_ref, npc_limits=settings.limits)
    if refusal is not None:
        raise BranchError(f"{refusal.told}; nothing was said")


async def _play_turn(
    npc: NPC,
    branch: Branch,
    hear: Callable[[], Awaitable[CommittedEvent]],
    *,
    live: Runtime,
    by_ref: str,
) -> Rehearsed:
    """Commit the line, run the turn that answers it, and read the result."""
    where = branch.conversation
    if windows(where.id).remembered_from > branch.begins.segment:
        raise BranchError("the branch was deleted meanwhile, so nothing was said")
    heard = await hear()
    turn = Rehearsal(npc, heard, live, branch=branch, by_ref=by_ref)
    await turn.run()
    since = (
        one for one in branches.records_in_branch(branch) if int(one.id) >= int(heard.record.id)
    )
    return Rehearsed(records=tuple(since), problems=tuple(turn.problems))


class Rehearsal(Turn):
    """A turn in a branch of `npc`, for the builder `by_ref`."""

    def __init__(
        self, npc: NPC, heard: CommittedEvent, live: Runtime, *, branch: Branch, by_ref: str
    ) -> None:
        super().__init__(npc.ai, heard, live)
        self.problems: Final[list[str]] = []
        """What went wrong, for the builder."""

        self._npc: Final = npc
        self._branch: Final = branch
        self._by_ref: Final = by_ref

    async def _compose_prompt(self, *, limit_tokens: int | None = None) -> Composed:
        """Return the prompt of this moment, without memories newer than the branch's start."""
        heard, live, npc = self.heard, self._live, self._npc
        meant = live.meanings and await live.meanings.near(
            heard.event.text, candidates(npc, heard.event)
        )
        made = gather_turn(
            self._mind,
            heard,
            settings=self.settings,
            tools=self._toolbox.specs,
            near=meant or (),
            waited_for=await live.book_builds.waited_for(npc, heard.event),
        )
        inputs = made.request.inputs
        known = tuple(one for one in inputs.memories if one.turn <= self._branch.turn)
        ids = {one.id for one in known}
        near = tuple(one for one in inputs.near if one[0] in ids)
        request = replace(made.request, inputs=replace(inputs, memories=known, near=near))
        known_then = replace(made, request=request)
        return composed(known_then if limit_tokens is None else known_then.within(limit_tokens))

    def _make_toolbox(self) -> Toolbox:
        npc, event = self._npc, self.heard.event
        return toolbox_of(npc, self.settings.tools, event=event, kind=_InertToolbox)

    def _voice_of(self, *names: str) -> Voice:
        return _SilentVoice(self._npc, self.heard.event, own_names=(*names, *self._mind.own_names))

    def _call_key(self, this: Round) -> CallKey:
        """Return the key of a call, which counts for the NPC and for the builder."""
        key = super()._call_key(this)
        return replace(key, npc_ref=self._mind.ref, player_ref=self._by_ref, role=ROLE, turn=None)

    def _note_answered(self) -> None:
        self._outcome = "answered"

    def _schedule_upkeep(self, last: Round) -> None:
        """Do nothing: a rehearsal is not summarised, and the NPC learns nothing from it."""

    def _schedule_again(self, error: Exception) -> None:
        self._log(f"the prompt cannot be composed or committed, so no model is asked: {error}")

    def _is_stale(self) -> str:
        """Return why the turn is given up. The speaker may be absent and the NPC switched off."""
        return self._cancelled or ("the NPC is gone" if self._npc.pk is None else "")

    def _log(self, problem: str) -> None:
        self.problems.append(problem)
        super()._log(problem)


class _InertToolbox(Toolbox):
    """A toolbox whose tools do nothing, although they are offered and called as usual."""

    def run(self, found: Found, use: Use) -> Ran:
        tool = found.tool
        return Ran(text=NOT_DONE, ok=True, ends_turn=tool.ends_turn, spoke=tool.speaks)


class _SilentVoice(Voice):
    """A voice that nobody hears. What it would say is only recorded."""

    def say(
        self, text: str, *, after: int = 0, by_rote: bool = False, is_games: bool = False
    ) -> None:
        """Say nothing."""
