"""Recall: decide which memories an NPC remembers in one prompt, with scores and verdicts.

The memories with the highest scores are taken until their share of the prompt is full. A memory
learnt in private is taken only in private with the person who whispered it. A game may set any of
the settings in one dictionary; the others keep their defaults.

Memories are inserted at the component `semantic_memories`. A builder's text for this component
surrounds them and marks their place with `{{memories}}`. Without a text they follow a plain
heading. Text of a memory is never expanded as a template.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import read_fields
from evennia_ai.engine.memory.memories import DIGITS, Memory, importance_score, recency_score
from evennia_ai.engine.memory.relevance import (
    NO_NEARNESS,
    NO_PARTS,
    Nearness,
    RelevanceParts,
    RelevanceWeights,
    score_relevance,
)
from evennia_ai.engine.prompt.blocks import mark_as_data
from evennia_ai.engine.prompt.conditions import Facts
from evennia_ai.engine.prompt.expansion import CompiledComponent, ComponentSet
from evennia_ai.engine.prompt.filling import Filling, MacroStore
from evennia_ai.engine.prompt.fragments import Fragment, make_fragment, without_origin
from evennia_ai.engine.prompt.messages import Part
from evennia_ai.engine.prompt.persistent_texts import AlreadySent
from evennia_ai.engine.prompt.prefix_rules import FILLED_IN, restrict_fragment
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict, not_expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRules(RelevanceWeights):
    """The limits and weights of recall: how many memories a prompt gets, and by which scores."""

    most: Annotated[int, Field(ge=0, le=100)] = 12
    share_percent: Annotated[int, Field(ge=0, le=90)] = 10
    scan_messages: Annotated[int, Field(ge=1, le=50)] = 4
    """How many of the newest messages memories are compared with.

    The event that the NPC answers counts as one of these.
    """
    relevance_percent: Annotated[int, Field(ge=0, le=1000)] = 100
    """The weight of relevance in the score. Recency and importance have the weight 100 each."""


DEFAULT_RECALL: Final = RecallRules()


class Score(NamedTuple):
    """The score of a memory: its recency, its importance and its relevance to what was said."""

    recency: float
    importance: float
    relevance: float
    parts: RelevanceParts = NO_PARTS
    """The parts of the relevance: words, neighbours, scene and meaning."""
    relevance_percent: int = DEFAULT_RECALL.relevance_percent

    @property
    def total(self) -> float:
        """Return the weighted mean of recency, importance and relevance."""
        weight = self.relevance_percent / 100
        summed = self.recency + self.importance + weight * self.relevance
        return round(summed / (2 + weight), DIGITS)

    def __str__(self) -> str:
        return (
            f"score {self.total:.2f}: recency {self.recency:.2f},"
            f" importance {self.importance:.2f}, relevance {self.relevance:.2f}"
            f"{self.parts.render_breakdown(self.relevance)}"
        )


def score_memories(
    memories: Sequence[Memory],
    *,
    hours: float,
    said: frozenset[str],
    rules: RecallRules = DEFAULT_RECALL,
    near: Nearness = NO_NEARNESS,
) -> list[Score]:
    """Return the score of each memory for what was just said.

    Args:
        memories: The candidates. The relevance of each one depends on all of them.
        hours: The current time in hours of the game.
        said: The words of the newest messages, in the form for comparison.
        rules: The weights.
        near: Similarities of meaning by memory id; empty without a sentence model.
    """
    found = score_relevance(memories, said, weights=rules, near=near)
    percent = rules.relevance_percent
    return [
        Score(recency_score(memory, hours=hours), importance_score(memory), total, parts, percent)
        for memory, (total, parts) in zip(memories, found, strict=True)
    ]


# A stored turn has a verdict for each memory in the prompt, and for this many of the best other
# memories. One line summarises the rest.
_NEAR_MISSES: Final = 12
LEFT_OUT: Final = "component semantic_memories was left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The time of a recall, and the partner of a private conversation.

    `hours` is the time in hours of the game. `confidant_ref` is the reference of the partner, or
    "".
    """

    hours: float = 0.0
    confidant_ref: str = ""


class ScoredMemory(NamedTuple):
    """A memory with its score and, if the prompt does not get it, the reason."""

    memory: Memory
    score: Score | None
    why_not: str = ""
    tokens: int = 0

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on this memory: whether it was taken for the prompt, and why.

        Many memories share the text of a reason. So the score of a memory that was not taken is
        stored as the cause of the verdict.
        """
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
class RecallResult:
    """The memories that one recall compared, with their scores and reasons, best first.

    `is_shown` is False if the prompt had no place for the memories that were taken.
    """

    judged: tuple[ScoredMemory, ...] = ()
    is_shown: bool = True

    @property
    def kept(self) -> tuple[Memory, ...]:
        """Return the memories that were taken for the prompt, in the order of learning."""
        taken = [judged.memory for judged in self.judged if not judged.why_not]
        return tuple(sorted(taken, key=lambda memory: (memory.created_at, memory.id)))

    @property
    def shown_ids(self) -> tuple[int, ...]:
        """Return the ids of the memories that are in the prompt, so they count as recalled."""
        return tuple(memory.id for memory in self.kept) if self.is_shown else ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return a verdict on every compared memory, ordered by memory id."""
        return tuple(self._verdicts(sorted(self.judged, key=lambda one: one.memory.id)))

    @property
    def touched(self) -> tuple[Verdict, ...]:
        """Return the verdicts that a stored turn keeps: on memories taken, and the next best."""
        missed = [judged for judged in self.judged if judged.why_not]
        near = [*(judged for judged in self.judged if not judged.why_not), *missed[:_NEAR_MISSES]]
        verdicts = [*self._verdicts(sorted(near, key=lambda one: one.memory.id))]
        if rest := missed[_NEAR_MISSES:]:
            reason = f"{len(rest)} more memories were judged and not taken"
            verdicts.append(Verdict(stage="recall", item="memories", kept=False, reason=reason))
        return tuple(verdicts)

    def _verdicts(self, judged: Sequence[ScoredMemory]) -> Iterator[Verdict]:
        for one in judged:
            if self.is_shown or one.why_not:
                yield one.verdict
            else:
                yield one._replace(why_not=LEFT_OUT).verdict


NOTHING_RECALLED: Final = RecallResult()


def recall_memories(
    memories: Sequence[Memory],
    *,
    rules: RecallRules,
    moment: Moment,
    said: frozenset[str],
    limit_tokens: int,
    counter: TokenCounter,
    near: Nearness = NO_NEARNESS,
) -> RecallResult:
    """Score all given memories and take the best ones that fit their share of the prompt.

    Args:
        memories: The candidates of this turn.
        rules: The limits and the weights.
        moment: The hour of the game and the partner of a private conversation.
        said: The words of the newest messages, in the form for comparison.
        limit_tokens: The tokens of the whole prompt.
        counter: Counts the tokens of a memory.
        near: Similarities of meaning by memory id; empty without a sentence model.
    """
    open_ones = [memory for memory in memories if is_open(memory, moment)]
    secret = [memory for memory in memories if not is_open(memory, moment)]
    # Memories that are secret here are not scored. Scores depend on all scored memories, so a
    # secret could otherwise be inferred from the others' scores.
    scores = score_memories(open_ones, hours=moment.hours, said=said, rules=rules, near=near)
    ranked = sorted(
        zip(open_ones, scores, strict=True),
        key=lambda pair: (-pair[1].total, -pair[0].importance, pair[0].id),
    )
    judged: list[ScoredMemory] = []
    share = left = limit_tokens * rules.share_percent // 100
    count = 0
    for memory, score in ranked:
        if count == rules.most:
            judged.append(ScoredMemory(memory, score, f"not among the {rules.most} best"))
            continue
        tokens = counter.recall(memory_line(memory)) + 1
        if tokens > left:  # a shorter memory may still fit, so try the next one
            reason = f"over the share of {share} tokens"
            judged.append(ScoredMemory(memory, score, reason, tokens))
            continue
        left -= tokens
        count += 1
        judged.append(ScoredMemory(memory, score, tokens=tokens))
    judged += [ScoredMemory(memory, None, _IN_PRIVATE) for memory in secret]
    return RecallResult(judged=tuple(judged))


def refuse_memories(memories: Sequence[Memory], reason: str) -> RecallResult:
    """Return a recall in which no memory is taken, for the given reason."""
    return RecallResult(judged=tuple(ScoredMemory(memory, None, reason) for memory in memories))


_IN_PRIVATE: Final = "learnt in private; used only in private with the person who whispered it"


def is_open(memory: Memory, moment: Moment) -> bool:
    """True if a memory is no whisper, or one of the partner of this private conversation."""
    return memory.learnt == "aloud" or (
        memory.about == moment.confidant_ref and bool(moment.confidant_ref)
    )


def memory_line(memory: Memory) -> str:
    """Render a memory as one line of a prompt."""
    return f"- {memory.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """Settings of a game for the memories of its NPCs."""

    enabled: bool = True
    by_meaning: bool = False
    """True if a sentence model also compares memories with the newest messages by meaning."""
    recall: RecallRules = field(default_factory=RecallRules)
    kept: Annotated[int, Field(ge=1, le=2000)] = 500
    """The maximum number of memories of one NPC."""
    after_messages: Annotated[int, Field(ge=0, le=10**6)] = 30
    """The number of new messages after which a model is asked for observations.

    0 means never.
    """
    most_observations: Annotated[int, Field(ge=1, le=20)] = 5
    """The maximum number of observations in one answer."""
    forget_days: Annotated[int, Field(ge=1, le=10**6)] = 30
    """The days of the game without recall after which a memory may be forgotten.

    Memories of builders are never forgotten.
    """
    floor_percent: Annotated[int, Field(ge=0, le=100)] = 20
    """How low a memory's score must be to be forgotten, in percent of the highest score."""


def read_memory_settings(given: Any, *, where: str) -> MemorySettings:
    """Read a game's settings for memories from a dictionary.

    Args:
        given: The dictionary that the game wrote.
        where: The name of the setting, for messages.

    Raises:
        FormatError: A field is unknown or has a wrong value. The message names the first one.
    """
    if isinstance(given, Mapping) and "languages" in given:
        what = "cannot be set here; set EVENNIA_AI_KNOWLEDGE_LANGUAGES, which memories use too"
        raise FormatError("setting", f"{where}.languages: {what}")
    return read_fields(MemorySettings, given, where=where)


MEMORIES_KEY: Final = "semantic_memories"
_ORIGIN: Final = f"component:{MEMORIES_KEY}"
MEMORIES_NAME: Final = "memories"
"""The name of the template value with all memories, for a builder's text."""

HEADING: Final = "What you remember:"


def why_no_place(components: ComponentSet, facts: Facts) -> str:
    """Return why the components have no place for memories; "" if they have one."""
    if not components.is_on(MEMORIES_KEY):
        return f"component {MEMORIES_KEY} is disabled"
    place = components.place_of(MEMORIES_KEY)
    if why := place.why_off(facts):
        return f"component {MEMORIES_KEY} is {why}"
    if place.template is None:
        return f"component {MEMORIES_KEY} has a template error"
    if _is_framed(place) and MEMORIES_NAME not in place.template.names:
        return f"component {MEMORIES_KEY} has a text that does not name {{{{{MEMORIES_NAME}}}}}"
    return ""


def insert_memories(
    made: Sequence[Fragment | Verdict],
    recalled: RecallResult,
    *,
    components: ComponentSet,
    filling: Filling,
    store: MacroStore,
) -> Sequence[Fragment | Verdict]:
    """Return the fragments of all components, with memories inserted at their component."""
    memories = recalled.kept if recalled.judged else ()
    if not memories and not components.needs(MEMORIES_KEY, MEMORIES_NAME):
        return made
    place = components.place_of(MEMORIES_KEY)
    if place.why_off(filling.facts):  # expanding the component has given its verdict
        return made
    claim = place.claim(filling.layout)
    text = "\n".join(map(memory_line, memories))
    data = mark_as_data(text, claim)
    if not memories:
        fragment: Fragment | Verdict = not_expanded(_ORIGIN, "no memory was recalled")
    elif _is_framed(place):
        fragment = place.expand_into(filling.with_values({MEMORIES_NAME: data}), store)
    else:
        fragment = make_fragment(f"{HEADING}\n{data}", claim, counter=filling.counter)
    if isinstance(fragment, Fragment):
        fragment = restrict_fragment(
            fragment, FILLED_IN, layout=filling.layout, counter=filling.counter
        )
    if isinstance(fragment, Fragment):
        fragment = _mark_parts(fragment, memories, text)
    return [*without_origin(made, _ORIGIN), fragment]


def mark_shown(
    recalled: RecallResult, fragments: Iterable[Fragment], already_sent: Iterable[AlreadySent]
) -> RecallResult:
    """Return the recall with `is_shown` set: True if its memories are in the prompt."""
    if recalled is NOTHING_RECALLED:
        return NOTHING_RECALLED
    placed = chain(fragments, *(one.fragments for one in already_sent))
    return replace(recalled, is_shown=any(fragment.claim.origin == _ORIGIN for fragment in placed))


def _is_framed(place: CompiledComponent) -> bool:
    return bool(place.component.content.strip())


def _mark_parts(fragment: Fragment, memories: Sequence[Memory], text: str) -> Fragment:
    """Return the fragment with one message part for each memory, so that the trace names them.

    If a builder's template has changed the text of the memories, no part is marked.
    """
    content = fragment.message.content
    at = content.find(text)
    if at < 0:
        return fragment
    revision = fragment.claim.revision
    parts = [Part(origin=_ORIGIN, start=0, end=at, revision=revision)]
    for memory in memories:
        end = at + len(memory_line(memory))
        parts.append(Part(origin=memory.origin, start=at, end=end, revision=memory.revision))
        at = end + 1
    # No line feed follows the last memory, so the part after it begins one character earlier.
    parts.append(Part(origin=_ORIGIN, start=at - 1, end=len(content), revision=revision))
    filled = tuple(part for part in parts if part.start < part.end)
    return fragment._replace(message=replace(fragment.message, joined=filled))
