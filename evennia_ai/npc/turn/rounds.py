"""The rounds of a turn: each is a prompt that is committed before a model is asked.

If the first prompt is nearly full, the older part of the history is summarised, and the prompt is
composed again. Another round follows if the model used tools, if it refused the prompt as too long,
or if another model is asked. All rounds use the same inputs. So the prompt after tools is the one
before it, followed by the messages of the tools.

Each round is stored as a turn of its own, with its own manifest. Its end is committed together with
the row of its model call.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia.utils import logger

from evennia_ai.engine.compose import Composition
from evennia_ai.engine.history.turn.sending import (
    Draft,
    make_draft,
    storable_messages,
    tool_list_record,
)
from evennia_ai.engine.prompt.cache_account import CacheAccount, Sent, account_for_prefix
from evennia_ai.engine.prompt.messages import Message, ToolSpec
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.npc.inputs.facts import candidates
from evennia_ai.npc.inputs.gather import Gathered, gather_turn
from evennia_ai.npc.inputs.meanings import Meanings, Near
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.inputs.providers import own_paths
from evennia_ai.npc.recording.heard import CommittedEvent
from evennia_ai.npc.recording.writer import Writer
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.turn.quotable import with_quotable
from evennia_ai.npc.upkeep.compacting import Compactor, Fullness, Wanted, fullness_of
from evennia_ai.npc.views.turn_sources import recorded_turn
from evennia_ai.npc.views.view import revisions_of
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.chat import (
    NO_THOUGHTS,
    ChatMessage,
    ChatReply,
    ChatRequest,
    Thoughts,
    sent_sha256,
)
from evennia_ai.services.llm.reasoning import LateEnd
from evennia_ai.services.llm.roles import chat_messages
from evennia_ai.services.llm.tools import reply_from
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store.history import turns
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.history.windows import Window, windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A prompt together with its sources."""

    gathered: Gathered
    """What was gathered from the world and the store. All rounds of the turn use it."""

    composition: Composition

    def after(self, messages: Sequence[Message]) -> "Composed":
        """Compose the next prompt, with calls of tools and their results at its end.

        Raises:
            BudgetError: They do not fit.
        """
        return composed(self.gathered.after(messages))

    def reminded(self, reminder: str) -> "Composed":
        """Compose the prompt again with a reminder of how to answer.

        Raises:
            BudgetError: The required texts do not fit.
        """
        return composed(self.gathered.reminded(reminder))

    def within(self, limit_tokens: int) -> "Composed":
        """Compose the prompt again within this number of tokens.

        Raises:
            BudgetError: The required texts do not fit.
        """
        return composed(self.gathered.within(limit_tokens))


def composed(gathered: Gathered) -> Composed:
    """Compose a prompt from what was gathered.

    Raises:
        BudgetError: The required texts do not fit.
    """
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
    limit_tokens: int | None = None,
) -> Composed | None:
    """Compose the prompt that answers `heard`. If it is nearly full, compact the history first.

    Args:
        waited_for: The names of the books for which the turn waited.
        limit_tokens: The limit of the prompt; None: the limit of the NPC's model.

    Returns:
        The prompt, or None if the server stops.

    Raises:
        BudgetError: The required texts do not fit.
        ThrashError: A compaction did not make enough room.
        StoreError: The store cannot be read.
    """
    near = await _nearness_in_meaning(meanings, mind.npc, heard) if meanings is not None else ()

    def gather() -> Gathered:
        made = gather_turn(
            mind, heard, settings=settings, tools=tools, near=near, waited_for=waited_for
        )
        return made if limit_tokens is None else made.within(limit_tokens)

    first = composed(gather())
    fullness = fullness_of(first.composition.prompt, cut=first.gathered.request.inputs.cut)
    if not compactor.is_due(fullness, "turn"):
        return first
    wanted = _compaction_request(mind, heard, fullness, npc_name=first.gathered.view.char_name)
    outcome = await compactor.compact(wanted)
    if outcome.stopped:
        return None
    again = composed(gather())
    if outcome.record is not None:  # check that the compaction made enough room
        await compactor.look_again(again.composition.prompt, wanted)
    return again


async def _nearness_in_meaning(meanings: Meanings, npc: NPC, heard: CommittedEvent) -> Near:
    """Return how close the NPC's memories are to the event in meaning."""
    return await meanings.near(heard.words, candidates(npc, heard.event))


def _compaction_request(
    mind: Mind, heard: CommittedEvent, fullness: Fullness, *, npc_name: str
) -> Wanted:
    """Return the request for a compaction that must end before the turn goes on."""
    return Wanted(
        conversation=heard.conversation,
        npc_name=npc_name,
        asked_by=f"turn {turns.next_number(mind.ref)}",
        is_pressing=True,
        fullness=fullness,
        unanswered={*mind.waiting_records(), *(one.id for one in heard.lines)},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A committed prompt, and the request that a model gets for it (`asked`)."""

    composed: Composed
    access: Access
    stored: StoredTurn
    asked: ChatRequest

    @property
    def prompt(self) -> Prompt:
        return self.composed.composition.prompt

    def read(self, reply: ChatReply, *, late_end: LateEnd) -> ChatReply:
        """Return the reply with the tool calls in its text parsed, in the format of the model.

        Raises:
            ModelRubbish: The reply is incomplete.
        """
        by = self.access.roles.tools
        tools = self.composed.gathered.request.tools if by != "none" else ()
        as_schema = by == "schema" and bool(tools)
        read, dropped = reply_from(
            reply, tools, request=self.asked, as_schema=as_schema, late_end=late_end
        )
        if dropped:
            named = ", ".join(map(repr, dropped))
            logger.log_warn(
                f"evennia_ai: {self.access.name} called tools that it was not offered, or whose"
                f" arguments cannot be parsed; these calls are neither said nor run: {named}"
            )
        return read


class Rounds:
    """Starts the rounds of the turn of `mind` that answers `heard`."""

    def __init__(self, mind: Mind, heard: CommittedEvent, writer: Writer) -> None:
        self._mind: Final = mind
        self._heard: Final = heard
        self._writer: Final = writer
        self._thoughts: dict[str, Thoughts] = {}
        """Thoughts to send back with this turn's calls, by the id of each message's first call."""

    async def first(self, composed: Composed, *, access: Access) -> Round:
        """Commit the first prompt and the new state of lore entries, before the model is asked.

        Raises:
            StoreError: Nothing was committed.
        """
        return await self._begin_round(composed, access, is_first=True)

    async def instead(self, composed: Composed, *, access: Access) -> Round:
        """Commit another prompt after a failure, for the same model or another one."""
        return await self._begin_round(composed, access, is_first=False)

    async def after(self, acted: Round, tools: Sequence[Message]) -> Round:
        """Commit the prompt of the next round, with the results of the tools that were called.

        Raises:
            BudgetError: They do not fit.
        """
        return await self._begin_round(acted.composed.after(tools), acted.access, is_first=False)

    def keep_thoughts(self, tools: Sequence[Message], thoughts: Thoughts | None) -> None:
        """Keep what the model thought for these calls, to send it back with them in this turn."""
        called = next(one for one in tools if one.tool_calls)
        self._thoughts[called.tool_calls[0].id] = thoughts or NO_THOUGHTS

    def is_sent_otherwise(self, failed: Round) -> bool:
        """True if the model would now get other messages for the same prompt.

        That is so if it has meanwhile learned which roles the server accepts.
        """
        said = chat_messages(storable_messages(failed.prompt.messages))
        now = self._asked(failed.composed, failed.access, said)
        return now.messages != failed.asked.messages

    def forget_thoughts(self) -> bool:
        """Forget the thoughts of the previous model. Return True if there were any."""
        had_any = bool(self._thoughts)
        self._thoughts = {}
        return had_any

    async def _begin_round(self, composed: Composed, access: Access, *, is_first: bool) -> Round:
        conversation = self._heard.conversation
        # Everything that may fail comes before the commit. The commit opens the turn in the
        # database, and an error between the two would leave the turn open.
        said = chat_messages(storable_messages(composed.composition.prompt.messages))
        job = _Beginning(
            composed=composed,
            access=access,
            heard=self._heard,
            said=said,
            own_calls=frozenset(self._thoughts),
            asked=self._asked(composed, access, said),
            now=windows(conversation.id),
            is_first=is_first,
        )
        begun = await self._writer.write(job.committed)
        self._mind.prompted(begun.stored)
        return begun

    def _asked(
        self, composed: Composed, access: Access, said: Sequence[ChatMessage]
    ) -> ChatRequest:
        prompt, gathered = composed.composition.prompt, composed.gathered
        request = access.request(
            said,
            max_tokens=access.profile.reply_tokens,
            tools=gathered.request.tools,
            cache_key=f"npc-{gathered.request.npc_ref}",
            thoughts=self._thoughts,
        )
        made, event = composed.composition, self._heard.event
        request = replace(
            request,
            breakpoints=prompt.breakpoints,
            speaker=gathered.view.char_name,
            question=self._heard.words,
            may_be_empty=bool(gathered.request.inputs.tools),
        )
        if not access.model.offline:
            return request
        card = gathered.view.sources.card
        return with_quotable(
            request, made, gathered.request, card=card, npc=self._mind.npc, event=event
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning:
    """The values with which the writer's thread commits the prompt of a round."""

    composed: Composed
    access: Access
    heard: CommittedEvent
    said: Sequence[ChatMessage]
    """The messages of the prompt, before they are adapted to a model."""
    own_calls: frozenset[str]
    """The ids of this turn's calls, which are sent as calls even if older calls are sent as text.
    """
    asked: ChatRequest
    now: Window
    """The state of the conversation when the prompt was composed."""
    is_first: bool

    def committed(self) -> Round:
        """Commit the prompt and return its round.

        Raises:
            StoreError: Nothing was committed.
        """
        made, gathered = self.composed.composition, self.composed.gathered
        draft = self._draft()
        begun = turns.begin_turn(
            self.heard.conversation,
            draft=draft,
            sent=self.sent,
            event=self.heard.record,
            lore=made.lore.after if self.is_first else None,
            recalled=made.recalled.shown_ids if self.is_first else (),
            at_hours=gathered.request.inputs.moment.hours,
            client=self.heard.event.client,
            composed_in=gathered.request.inputs.history.segment,
        )
        # Only messages made from the records are sent. If they are equal, keep the request.
        differing = chat_messages(begun.messages[index] for index in draft.lines)
        stored = dict(zip(draft.lines, differing, strict=True))
        asked = self.asked
        if any(self.said[index] != message for index, message in stored.items()):
            fitted = self.access.fitted(
                chat_messages(begun.messages),
                tools=gathered.request.tools,
                own_calls=self.own_calls,
            )
            asked = replace(asked, messages=fitted)
        return Round(composed=self.composed, access=self.access, stored=begun.turn, asked=asked)

    @property
    def sent(self) -> Sent:
        """Return what the cache account of the next prompt needs to know about this prompt."""
        made, view = self.composed.composition, self.composed.gathered.view
        controlled_from = self.now.controlled_from
        return replace(made.prompt.sent, revisions=view.revisions, controlled_from=controlled_from)

    def _draft(self) -> Draft:
        made, gathered, access = self.composed.composition, self.composed.gathered, self.access
        tools = gathered.request.tools if access.roles.tools != "none" else ()
        return make_draft(
            made.prompt,
            event=self.heard.record,
            account=self._cache_account(made.prompt),
            model=access.model_id or access.name,
            revisions=revisions_of(gathered.view, gathered.request.inputs.books),
            sent_sha256=sent_sha256(self.asked.messages, tools=self.asked.tools),
            silent=made.lore.silent,
            inputs=self._recorded_sources(gathered),
            tools=tool_list_record(tools) if tools else None,
            request=access.recorded(self.asked, keys=gathered.view.sources.conf.api_keys.values()),
            before=self.now.settled,
        )

    def _cache_account(self, prompt: Prompt) -> CacheAccount | None:
        """Return what the prompt shares with the previous one, None if that is unknown."""
        before = self.now.sent
        if before is None:
            return None
        return account_for_prefix(
            before, self.sent, counter=prompt.counter, components=prompt.components
        )

    def _recorded_sources(self, gathered: Gathered) -> dict[str, Any]:
        """Return the sources of the prompt, for its manifest."""
        return recorded_turn(
            gathered.view,
            gathered.request.inputs,
            event=self.heard.record,
            joined=self.heard.joined,
            now=self.now.history,
            newest_record=self.now.end.seq,
            reply_tokens=self.access.profile.reply_tokens,
            context=gathered.context,
            providers=own_paths(gathered.view.sources.conf.context_providers),
        )
