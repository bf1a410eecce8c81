"""Rounds: the prompts of one turn, each committed before its model is asked.

Where the first prompt is nearly full, the older part of the history is summarised, and the prompt
composed again from what is left. There is one round more for each time the model used tools or
another model had to be asked instead. All of them are made from the same inputs, so that each
prompt is the one before it and the tools' messages after it; each is stored as a turn of its own,
with its own manifest. How a round ended is committed with what the call of its model took.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.compose import Composition
from evennia_ai.errors import HistoryConflictError, TurnClosedError
from evennia_ai.game.inputs.facts import candidates
from evennia_ai.game.inputs.gather import Gathered, gathered
from evennia_ai.game.inputs.meanings import Meanings, Near
from evennia_ai.game.inputs.mind import Mind
from evennia_ai.game.inputs.providers import own_paths
from evennia_ai.game.models.calls import CountedCall
from evennia_ai.game.models.endpoints import Access
from evennia_ai.game.recording.heard import CommittedEvent
from evennia_ai.game.recording.writer import Writer
from evennia_ai.game.senses.presence import NPC
from evennia_ai.game.upkeep.compacting import Compactor, Wanted
from evennia_ai.game.upkeep.summarising import Fullness, fullness_of
from evennia_ai.history.records import NewRecord, Record
from evennia_ai.history.turn.sending import Draft, draft_of, storable_messages, tool_list
from evennia_ai.llm.chat import ChatMessage, ChatReply, ChatRequest, Passage, sent_sha256
from evennia_ai.llm.roles import chat_messages
from evennia_ai.llm.tools import reply_from
from evennia_ai.minds.turn_sources import made_of, recorded_inputs
from evennia_ai.minds.view import revisions_of
from evennia_ai.prompt.cache_account import CacheAccount, Sent, account
from evennia_ai.prompt.messages import Message, ToolSpec
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.settings.npc import NPCSettings
from evennia_ai.store import model_calls
from evennia_ai.store.history import turns
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.history.windows import windows
from evennia_ai.store.model_calls import NewCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A prompt and what it was made from, which may be another one by the time it is sent."""

    gathered: Gathered
    """What was gathered of the world and the store; it counts until the turn has ended."""

    composition: Composition

    def after(self, messages: Sequence[Message]) -> "Composed":
        """The prompt that goes on after calls of tools and what came of them.

        BudgetError: there is no room for it.
        """
        return composed(self.gathered.after(messages))


def composed(gathered: Gathered) -> Composed:
    """The prompt of what was gathered. BudgetError: what is required does not fit."""
    return Composed(gathered=gathered, composition=gathered.request.composed())


async def with_room(
    mind: Mind,
    heard: CommittedEvent,
    *,
    settings: NPCSettings,
    tools: Sequence[ToolSpec],
    compactor: Compactor,
    meanings: Meanings | None,
    waited_for: Collection[str] = (),
) -> Composed | None:
    """The prompt that answers `heard`; None: the server stops. `waited_for` are names of books.

    BudgetError: what is required does not fit. ThrashError: a compaction was no use. StoreError:
    something cannot be read.
    """
    near = await _near(meanings, mind.npc, heard) if meanings is not None else ()
    gather = partial(gathered, settings=settings, tools=tools, near=near, waited_for=waited_for)
    first = composed(gather(mind, heard))
    fullness = fullness_of(first.composition.prompt, cut=first.gathered.request.inputs.cut)
    if not compactor.is_due(fullness, "turn"):
        return first
    wanted = _wanted(mind, heard, fullness, npc_name=first.gathered.view.char_name)
    outcome = await compactor.compact(wanted)
    if outcome.stopped:
        return None
    again = composed(gather(mind, heard))
    if outcome.record is not None:  # the prompt after it is looked at like any other
        await compactor.look_again(again.composition.prompt, wanted)
    return again


async def _near(meanings: Meanings, npc: NPC, heard: CommittedEvent) -> Near:
    """How near what the NPC remembers lies to the event."""
    return await meanings.near(heard.event.text, candidates(npc, heard.event))


def _wanted(mind: Mind, heard: CommittedEvent, fullness: Fullness, *, npc_name: str) -> Wanted:
    """The compaction without which the turn would have too little room."""
    return Wanted(
        conversation=heard.conversation,
        npc_name=npc_name,
        asked_by=f"turn {turns.next_number(mind.ref)}",
        is_pressing=True,
        fullness=fullness,
        unanswered={*mind.waiting_records(), heard.record.id},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A prompt that is committed, and how its model is asked; `asked` is what it is asked."""

    composed: Composed
    access: Access
    stored: StoredTurn
    asked: ChatRequest

    @property
    def prompt(self) -> Prompt:
        return self.composed.composition.prompt

    def read(self, reply: ChatReply) -> ChatReply:
        """The reply with the calls of tools that its text makes, where the server knows none.

        ModelRubbish: it is half an answer.
        """
        tools = self.composed.gathered.request.tools
        if self.access.roles.tools != "schema" or not tools:
            return reply
        return reply_from(reply, tools, request=self.asked)


class Rounds:
    """Begins the rounds of the turn of `mind` that answers `heard`."""

    def __init__(self, mind: Mind, heard: CommittedEvent, writer: Writer) -> None:
        self._mind: Final = mind
        self._heard: Final = heard
        self._writer: Final = writer

    async def first(self, composed: Composed, *, access: Access) -> Round:
        """Commit the prompt: after this, and only after this, the model may be asked.

        What lore remembers is committed with it. StoreError: nothing was committed.
        """
        return await self._begun(composed, access, is_first=True)

    async def instead(self, failed: Round, *, access: Access) -> Round:
        """The same prompt for another model, the one of `failed` having given no reply."""
        return await self._begun(failed.composed, access, is_first=False)

    async def after(self, acted: Round, tools: Sequence[Message]) -> Round:
        """The prompt with what came of the tools that the reply to `acted` called.

        BudgetError: there is no room for it.
        """
        return await self._begun(acted.composed.after(tools), acted.access, is_first=False)

    async def _begun(self, composed: Composed, access: Access, *, is_first: bool) -> Round:
        heard, made, gathered = self._heard, composed.composition, composed.gathered
        # All that may fail comes before: what is begun would stay open.
        said = chat_messages(storable_messages(made.prompt.messages))
        asked = self._asked(composed, access, said)
        sent = replace(made.prompt.sent, revisions=gathered.view.revisions)
        begin = partial(
            turns.begin,
            heard.conversation,
            draft=self._draft(composed, access, asked, sent),
            event=heard.record,
            lore=made.lore.after if is_first else None,
            recalled=made.recalled.shown_ids if is_first else (),
            at_hours=gathered.request.inputs.moment.hours,
            client=heard.event.client,
        )
        begun = await self._writer.write(begin)
        self._mind.prompted(begun.turn, sent)
        # What is sent is made of the records alone; equal messages are fitted alike.
        stored = chat_messages(begun.messages)
        if stored != said:
            fitted = access.fitted(stored, tools=gathered.request.tools)
            asked = replace(asked, messages=fitted)
        return Round(composed=composed, access=access, stored=begun.turn, asked=asked)

    def _draft(self, composed: Composed, access: Access, asked: ChatRequest, sent: Sent) -> Draft:
        made, gathered = composed.composition, composed.gathered
        tools = gathered.request.tools if access.roles.tools != "none" else ()
        return draft_of(
            made.prompt,
            event=self._heard.record,
            account=self._account(made.prompt, sent),
            model=access.model_id or access.name,
            revisions=revisions_of(gathered.view, gathered.request.inputs.books),
            sent_sha256=sent_sha256(asked.messages, tools=asked.tools),
            silent=made.lore.silent,
            inputs=self._recorded(gathered, access),
            tools=tool_list(tools) if tools else None,
        )

    def _account(self, prompt: Prompt, newer: Sent) -> CacheAccount | None:
        """What the prompt shares with the one before it, None where that is not known."""
        older = self._mind.sent_before(self._heard.conversation)
        if older is None:
            return None
        return account(older, newer, counter=prompt.counter, components=prompt.components)

    def _recorded(self, gathered: Gathered, access: Access) -> dict[str, Any]:
        """What the prompt is made from, for its manifest."""
        where, inputs = self._heard.conversation, gathered.request.inputs
        window = windows(where.id)
        values = recorded_inputs(
            inputs,
            event=self._heard.record,
            now=window.history,
            reply_tokens=access.profile.reply_tokens,
        )
        sources = made_of(
            gathered.view,
            inputs,
            context=gathered.context,
            newest_record=window.end.seq,
            providers=own_paths(gathered.view.sources.conf.context_providers),
        )
        return {**values, "made_of": sources}

    def _asked(
        self, composed: Composed, access: Access, said: Sequence[ChatMessage]
    ) -> ChatRequest:
        prompt, gathered = composed.composition.prompt, composed.gathered
        request = access.request(
            said,
            max_tokens=access.profile.reply_tokens,
            tools=gathered.request.tools,
            cache_key=f"npc-{gathered.request.npc_ref}",
        )
        return replace(
            request,
            breakpoints=prompt.breakpoints,
            passages=_passages(composed.composition),
            speaker=gathered.view.char_name,
            question=self._heard.event.text,
        )


def _passages(made: Composition) -> tuple[Passage, ...]:
    """The lore that was kept, for a responder that quotes."""
    kept = {piece.claim.origin for piece in made.prompt.pieces}
    return tuple(
        Passage(
            label=entry.origin,
            text=entry.text,
            score=float(entry.priority),
            constant=entry.constant,
        )
        for entry in made.lore.entries
        if entry.origin in kept
    )


T = TypeVar("T")


class Commits:
    """What one turn of an NPC commits; `call` is the newest call of a model, until it is."""

    def __init__(self, npc_ref: str, writer: Writer) -> None:
        self.call: CountedCall | None = None
        self._npc_ref: Final = npc_ref
        self._writer: Final = writer

    async def again(self, begin: Callable[[], Awaitable[T]]) -> T:
        """Begin a round, and once more after what another process wrote while the model thought."""
        try:
            return await begin()
        except HistoryConflictError as error:
            logger.log_err(f"evennia_ai: NPC {self._npc_ref}: it is written again: {error}")
            return await begin()

    async def written(self, write: Callable[[], T]) -> T:
        """Write, and once more after what another process wrote."""
        return await self.again(partial(self._writer.write, write))

    async def add(self, stored: StoredTurn, new: NewRecord) -> Record:
        """Commit what happens in a turn that goes on after it; the record."""
        (record,) = await self.written(partial(turns.add, stored, [new]))
        return record

    def spoke(self, stored: StoredTurn, text: str) -> "Deferred[None]":
        """Commit that the start of a reply is said now."""
        return self._writer.write(partial(turns.spoke, stored, text))

    async def finish(
        self, stored: StoredTurn, new: Sequence[NewRecord] = (), *, outcome: str
    ) -> None:
        """Commit that a round has ended, with these records."""
        await self.written(partial(turns.finish, stored, new, outcome=outcome, call=self._row))
        self.call = None

    async def fail(self, stored: StoredTurn, why: str, *, new: Sequence[NewRecord] = ()) -> None:
        """Commit that a round failed, with what was said instead of a reply."""
        await self.written(partial(turns.fail, stored, why, new=new, call=self._row))
        self.call = None

    async def interrupt(self, stored: StoredTurn, why: str) -> None:
        """Commit that the server stops before the turn has ended."""
        await self.written(partial(turns.interrupt, stored, why, call=self._row))
        self.call = None

    def close(self, stored: StoredTurn, why: str) -> "Deferred[None]":
        """Commit that a turn broke off, as soon as that can be written; fires then.

        Before that its history has calls without results, and no other prompt may be made of it.
        """
        doing = f"NPC {self._npc_ref}: turn {stored.number} is not closed"
        return self._writer.until_written(partial(_closed, stored, why, self._row), doing)

    @property
    def _row(self) -> NewCall | None:
        return self.call.row if self.call is not None else None


def _closed(stored: StoredTurn, why: str, call: NewCall | None) -> None:
    """The end, or where the turn has ended already only what its call took."""
    try:
        turns.fail(stored, why, call=call)
    except TurnClosedError:
        if call is not None:
            model_calls.add_alone(call)
