"""Recalling: which memories an NPC is reminded of in one prompt, with scores and verdicts.

The best by score are taken while there is room in their share of the prompt. What was learnt in
private is never among them, except in private with whoever told it. A game sets single ones of the
settings in one dictionary; what it leaves out is as it is by default.

They stand at the place of the component `semantic_memories`. A builder's text for it frames them,
where it names `{{memories}}`; without a text they stand under a plain heading. They are put in as
they are: nothing in a memory is ever expanded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import read_fields
from evennia_ai.engine.memory.memories import DIGITS, Memory, importance, recency
from evennia_ai.engine.memory.relevance import (
    NO_PARTS,
    NOT_KNOWN,
    Nearness,
    Parts,
    RelevanceWeights,
    relevances,
)
from evennia_ai.engine.prompt.blocks import mark_as_data
from evennia_ai.engine.prompt.expansion import CompiledComponent, ComponentSet
from evennia_ai.engine.prompt.filling import Filling
from evennia_ai.engine.prompt.fragments import Fragment, make_fragment, without_origin
from evennia_ai.engine.prompt.macro_state import MacroStore
from evennia_ai.engine.prompt.messages import Part
from evennia_ai.engine.prompt.persistent_texts import AlreadySent
from evennia_ai.engine.prompt.prefix_rules import FILLED_IN, restrict_fragment
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict, not_expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRules(RelevanceWeights):
    """How much is recalled: at most so many memories, in at most this share of the prompt."""

    most: Annotated[int, Field(ge=0, le=100)] = 12
    share_percent: Annotated[int, Field(ge=0, le=90)] = 10
    scan_messages: Annotated[int, Field(ge=1, le=50)] = 4
    """How many of the newest messages, the event among them, they are judged by."""
    relevance_percent: Annotated[int, Field(ge=0, le=1000)] = 100
    """What relevance counts in the score, recency and importance counting 100 each."""


USUAL: Final = RecallRules()


class Score(NamedTuple):
    """What a memory counts, and the three numbers it is made of."""

    recency: float
    importance: float
    relevance: float
    parts: Parts = NO_PARTS
    """What the relevance is made of."""
    relevance_percent: int = USUAL.relevance_percent

    @property
    def total(self) -> float:
        """The mean of the three, relevance weighted."""
        weight = self.relevance_percent / 100
        summed = self.recency + self.importance + weight * self.relevance
        return round(summed / (2 + weight), DIGITS)

    def __str__(self) -> str:
        return (
            f"score {self.total:.2f}: recency {self.recency:.2f},"
            f" importance {self.importance:.2f}, relevance {self.relevance:.2f}"
            f"{self.parts.told(self.relevance)}"
        )


def scored(
    memories: Sequence[Memory],
    *,
    hours: float,
    said: frozenset[str],
    rules: RecallRules = USUAL,
    near: Nearness = NOT_KNOWN,
) -> list[Score]:
    """The score of each memory at this hour of the game, when these words were just said.

    `near` says how near to it the meanings of memories lie, where that is known.
    """
    found = relevances(memories, said, weights=rules, near=near)
    percent = rules.relevance_percent
    return [
        Score(recency(memory, hours=hours), importance(memory), total, parts, percent)
        for memory, (total, parts) in zip(memories, found, strict=True)
    ]


_NEAR_MISSES: Final = 12
"""How many of those that were not taken are told one by one of a past turn."""
LEFT_OUT: Final = "component semantic_memories was left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When and with whom something is recalled.

    `hours` are hours of the game; `confidant_ref` is who is spoken with in private, "" in a room.
    """

    hours: float = 0.0
    confidant_ref: str = ""


class ScoredMemory(NamedTuple):
    """A memory with its score and, where it is not taken, why not."""

    memory: Memory
    score: Score | None
    why_not: str = ""
    tokens: int = 0

    @property
    def verdict(self) -> Verdict:
        """The stage's decision; the reason of many is one text, their scores are the cause."""
        score = "" if self.score is None else str(self.score)
        return Verdict(
            stage="recall",
            item=self.memory.origin,
            kept=not self.why_not,
            reason=self.why_not or score,
            tokens=self.tokens,
            cause=score or None if self.why_not else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What was recalled: every candidate judged, the best first.

    `is_shown` is false where what was taken found no place in the prompt after all.
    """

    judged: tuple[ScoredMemory, ...] = ()
    is_shown: bool = True

    @property
    def kept(self) -> tuple[Memory, ...]:
        """The memories that are taken, in the order in which they were learnt."""
        taken = (judged.memory for judged in self.judged if not judged.why_not)
        return tuple(sorted(taken, key=lambda memory: (memory.created_at, memory.id)))

    @property
    def shown_ids(self) -> tuple[int, ...]:
        """The ids of the memories that stand in the prompt: those that were recalled by it."""
        return tuple(memory.id for memory in self.kept) if self.is_shown else ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict on every candidate, in their own order."""
        return tuple(self._verdicts(sorted(self.judged, key=lambda one: one.memory.id)))

    @property
    def touched(self) -> tuple[Verdict, ...]:
        """The verdicts that are kept of a past turn: what was taken or nearly was."""
        missed = [judged for judged in self.judged if judged.why_not]
        told = [*(judged for judged in self.judged if not judged.why_not), *missed[:_NEAR_MISSES]]
        bulk = self._others(missed[_NEAR_MISSES:])
        return (*self._verdicts(sorted(told, key=lambda one: one.memory.id)), *bulk)

    def _verdicts(self, judged: Sequence[ScoredMemory]) -> Iterator[Verdict]:
        for one in judged:
            if self.is_shown or one.why_not:
                yield one.verdict
            else:
                yield one._replace(why_not=LEFT_OUT).verdict

    def _others(self, others: Sequence[ScoredMemory]) -> Iterator[Verdict]:
        if others:
            reason = f"{len(others)} more memories were judged and not taken"
            yield Verdict(stage="recall", item="memories", kept=False, reason=reason)


NOTHING: Final = Recalled()


def recall_memories(
    memories: Sequence[Memory],
    *,
    rules: RecallRules,
    moment: Moment,
    said: frozenset[str],
    limit_tokens: int,
    counter: TokenCounter,
    near: Nearness = NOT_KNOWN,
) -> Recalled:
    """Return verdicts on the memories, with the best ones that fit their share of the limit."""
    open_ones = [memory for memory in memories if is_open(memory, moment)]
    secret = [memory for memory in memories if not is_open(memory, moment)]
    # Secret ones are compared with nothing: not by what they share, not as neighbours of others.
    scores = scored(open_ones, hours=moment.hours, said=said, rules=rules, near=near)
    ranked = sorted(zip(open_ones, scores, strict=True), key=_rank)
    taken = _taken(ranked, rules=rules, limit_tokens=limit_tokens, counter=counter)
    return Recalled(
        judged=(*taken, *(ScoredMemory(memory, None, _IN_PRIVATE) for memory in secret))
    )


def refuse_memories(memories: Sequence[Memory], reason: str) -> Recalled:
    """Return the memories, all left out for one reason."""
    return Recalled(judged=tuple(ScoredMemory(memory, None, reason) for memory in memories))


_IN_PRIVATE: Final = "learnt in private; shown only in private to who told it"


def is_open(memory: Memory, moment: Moment) -> bool:
    """Whether the memory may show in this conversation at all."""
    return memory.learnt == "aloud" or (
        memory.about == moment.confidant_ref and bool(moment.confidant_ref)
    )


def line_of(memory: Memory) -> str:
    """The memory as it stands in a prompt."""
    return f"- {memory.text}"


def _rank(pair: tuple[Memory, Score]) -> tuple[float, int, int]:
    memory, score = pair
    return -score.total, -memory.importance, memory.id


def _taken(
    ranked: Sequence[tuple[Memory, Score]],
    *,
    rules: RecallRules,
    limit_tokens: int,
    counter: TokenCounter,
) -> Iterator[ScoredMemory]:
    """Each in its rank; one that does not fit is passed over for the next."""
    share = left = limit_tokens * rules.share_percent // 100
    count = 0
    for memory, score in ranked:
        if count == rules.most:
            yield ScoredMemory(memory, score, f"the {rules.most} best are taken")
            continue
        tokens = counter.recall(line_of(memory)) + 1
        if tokens > left:
            yield ScoredMemory(memory, score, f"over the share of {share} tokens", tokens)
            continue
        left -= tokens
        count += 1
        yield ScoredMemory(memory, score, tokens=tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """How NPCs of a game remember."""

    enabled: bool = True
    by_meaning: bool = False
    """Whether a model for sentences compares memories with what is said, too."""
    recall: RecallRules = field(default_factory=RecallRules)
    kept: Annotated[int, Field(ge=1, le=2000)] = 500
    """How many memories an NPC has at most."""
    after_messages: Annotated[int, Field(ge=0, le=10**6)] = 30
    """After so many new messages of a conversation a model is asked in idle time; 0: never."""
    most_observations: Annotated[int, Field(ge=1, le=20)] = 5
    """What it is asked for at most."""
    forget_days: Annotated[int, Field(ge=1, le=10**6)] = 30
    """Days of the game after which a memory may fade that was not recalled; none of a builder."""
    floor_percent: Annotated[int, Field(ge=0, le=100)] = 20
    """It fades where it counts less than this of what it could by recency and importance."""


def read_memory(given: Any, *, where: str) -> MemorySettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    if isinstance(given, Mapping) and "languages" in given:
        what = "is not set here; EVENNIA_AI_KNOWLEDGE_LANGUAGES counts for memories, too"
        raise FormatError("setting", f"{where}.languages: {what}")
    return read_fields(MemorySettings, given, where=where)


MEMORIES_KEY: Final = "semantic_memories"
_ORIGIN: Final = f"component:{MEMORIES_KEY}"
MEMORIES_NAME: Final = "memories"
"""The value that a builder's text names."""

HEADING: Final = "What you remember:"


def why_no_place(components: ComponentSet) -> str:
    """Return why memories have no place among these components, "" if they have one."""
    if not components.is_on(MEMORIES_KEY):
        return f"component {MEMORIES_KEY} is disabled"
    place = components.place_of(MEMORIES_KEY)
    if place.template is None:
        return f"component {MEMORIES_KEY} has a template error"
    if _is_framed(place) and MEMORIES_NAME not in place.template.names:
        return f"component {MEMORIES_KEY} has a text that does not name {{{{{MEMORIES_NAME}}}}}"
    return ""


def add_memories(
    made: Sequence[Fragment | Verdict],
    memories: Sequence[Memory],
    *,
    components: ComponentSet,
    filling: Filling,
    store: MacroStore,
) -> list[Fragment | Verdict]:
    """Return the fragments and verdicts, with these memories in their component."""
    if not memories and not components.needs(MEMORIES_KEY, MEMORIES_NAME):
        return [*made]
    place = components.place_of(MEMORIES_KEY)
    claim = place.claim(filling.layout)
    text = "\n".join(map(line_of, memories))
    data = mark_as_data(text, claim)
    if not memories:
        fragment: Fragment | Verdict = not_expanded(_ORIGIN, "nothing is remembered here")
    elif _is_framed(place):
        fragment = place.expand_into(filling.with_values({MEMORIES_NAME: data}), store)
    else:
        fragment = make_fragment(f"{HEADING}\n{data}", claim, counter=filling.counter)
    if isinstance(fragment, Fragment):
        fragment = restrict_fragment(
            fragment, FILLED_IN, layout=filling.layout, counter=filling.counter
        )
    if isinstance(fragment, Fragment):
        fragment = _set_apart(fragment, memories, text)
    return [*without_origin(made, _ORIGIN), fragment]


def mark_shown(
    recalled: Recalled, fragments: Iterable[Fragment], already_sent: Iterable[AlreadySent]
) -> Recalled:
    """Return the recalled memories, marked if their text is in the prompt."""
    if recalled is NOTHING:
        return NOTHING
    placed = chain(fragments, *(one.fragments for one in already_sent))
    return replace(recalled, is_shown=any(fragment.claim.origin == _ORIGIN for fragment in placed))


def _is_framed(place: CompiledComponent) -> bool:
    return bool(place.component.content.strip())


def _set_apart(fragment: Fragment, memories: Sequence[Memory], text: str) -> Fragment:
    """The fragment with a part for each memory, where its text has them as they are."""
    content = fragment.message.content
    at = content.find(text)
    if at < 0:
        return fragment
    revision = fragment.claim.revision
    parts = [
        Part(origin=_ORIGIN, start=0, end=at, revision=revision),
        *_parts_of(memories, at),
        Part(origin=_ORIGIN, start=at + len(text), end=len(content), revision=revision),
    ]
    filled = tuple(part for part in parts if part.start < part.end)
    return fragment._replace(message=replace(fragment.message, joined=filled))


def _parts_of(memories: Sequence[Memory], at: int) -> Iterator[Part]:
    for memory in memories:
        end = at + len(line_of(memory))
        yield Part(origin=memory.origin, start=at, end=end, revision=memory.revision)
        at = end + 1
