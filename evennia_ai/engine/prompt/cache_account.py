"""The cache account: where a provider may cache, what of the last prompt's cache is lost, and why.

Caches are strict prefixes: the first message that differs loses everything after it. At most four
breakpoints are used, as many as providers take, never on a message that moves at the next turn.
Every break has a reason from a closed list: something that moves by its nature, a step that was
taken to make room, an edit. What has none of them is `undeclared`, which is a fault of the engine
or of whoever made the history.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Final, Literal, NamedTuple, get_args

from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import CompiledComponent, ComponentSet
from evennia_ai.engine.prompt.messages import OF_LORE, Message, Part, message_tokens, part_of
from evennia_ai.engine.prompt.placement import Anchors
from evennia_ai.engine.prompt.templates.value_names import OUTLET
from evennia_ai.engine.prompt.tokens import TokenCounter

Reason = Literal[
    "append",
    "dynamic",
    "moving",
    "step_trim",
    "re_anchored",
    "compaction",
    "control",
    "revision",
    "lore",
    "values",
    "dice",
    "variables",
    "settings",
    "order",
    "undeclared",
]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
# What each reason says about the fragment that broke the prefix.
MEANINGS: Final[Mapping[Reason, str]] = {
    "append": "the whole prompt before is a prefix",
    "dynamic": "the facts of that turn were for that turn alone",
    "moving": "it stands at a depth or behind the history, and moves with every message",
    "step_trim": "room was made: the history was cut, or what no longer fits was left out",
    "re_anchored": "an anchored note was put somewhere else",
    "compaction": "the history was summarised",
    "control": "a builder began the history anew, took back some of it or corrected it",
    "revision": "it was edited, switched on or off",
    "lore": "it woke or fell silent",
    "values": "a value that its text names is another one",
    "dice": "its text rolls dice",
    "variables": "it sets a variable, or reads one, that is another one",
    "settings": "the layout, the limit or another setting is another one",
    "order": "messages came into the history in another order than they were answered in",
    "undeclared": "nothing declared this break",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A prompt as the account of the next one asks for it.

    `controlled_from` is the segment that a builder's control began last, as far as it is known.
    `settings` is what all prompts have in common until somebody sets it otherwise; `tight` says
    that not everything fitted; `revisions` are those of what has no part of its own in a message
    (a card, a book), by origin.
    """

    messages: Sequence[Message]
    cut: int = 0
    segment: int = 0
    controlled_from: int = 0
    anchors: Anchors = field(default_factory=dict)
    settings: tuple[str | int, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    dice: Dice | None = None
    tight: bool = False
    revisions: Mapping[str, str] = field(default_factory=dict)


class Break(NamedTuple):
    """Why the prefix ends where it does, and the origin of the fragment that ended it."""

    reason: Reason
    origin: str | None


class _Pair(NamedTuple):
    """Two prompts that differ, first in the message `at`, and the components of the newer one."""

    older: Sent
    newer: Sent
    at: int
    components: ComponentSet

    @property
    def old(self) -> Message | None:
        return self.older.messages[self.at] if self.at < len(self.older.messages) else None

    @property
    def new(self) -> Message | None:
        return self.newer.messages[self.at] if self.at < len(self.newer.messages) else None


def first_break(older: Sent, newer: Sent, *, at: int, components: ComponentSet) -> Break:
    """Why `newer` shares no more than its first `at` messages with `older`.

    `components` are those of the newer prompt: their templates say what a text depends on.
    """
    if at == len(older.messages):
        return Break("append", None)
    pair = _Pair(older, newer, at, components)
    origin = _first_origin(pair)
    if older.settings != newer.settings:
        return Break("settings", origin)
    if older.segment != newer.segment:
        is_control = newer.controlled_from > older.segment
        return Break("control" if is_control else "compaction", "history")
    if _is_trimmed(pair):
        return Break("step_trim", "history")
    return _of_what_moves(pair) or _of_the_history(pair) or _of_a_text(pair, origin)


def _is_trimmed(pair: _Pair) -> bool:
    """Whether the cut moved, and what differs first is in the history: other messages begin it."""
    if pair.older.cut == pair.newer.cut:
        return False
    begins = next((i for i, m in enumerate(pair.older.messages) if m.block == "history"), None)
    return begins is not None and begins <= pair.at


def _of_what_moves(pair: _Pair) -> Break | None:
    """Facts of one turn, anchors, injections by depth, and what stands behind the history."""
    for message in (pair.old, pair.new):
        if message is None or message.stays or _holds(pair, message):
            continue
        first = message.parts[0].origin
        if message.block == "dynamic":
            return Break("dynamic", first)
        if message.injected:
            return _of_an_injection(pair, message)
        if message.block == "ordered" and any(
            _stands_behind(sent, first) for sent in (pair.older, pair.newer)
        ):
            return Break("moving", first)
    return None


def _of_an_injection(pair: _Pair, message: Message) -> Break:
    if moved := next(_moved_anchors(pair, message.origins), None):
        return Break("re_anchored", moved)
    origin = message.parts[0].origin
    is_in_both = all(part_of(sent.messages, origin) for sent in (pair.older, pair.newer))
    return Break("moving" if is_in_both or not origin.startswith(OF_LORE) else "lore", origin)


def _holds(pair: _Pair, message: Message) -> bool:
    """Whether it is an anchored note that stands where it stood: something else came before it."""
    origins = message.origins
    is_anchored = any(origin in pair.newer.anchors for origin in origins)
    return is_anchored and next(_moved_anchors(pair, origins), None) is None


def _moved_anchors(pair: _Pair, origins: Iterable[str]) -> Iterator[str]:
    """Those of these origins that are anchored notes which now stand elsewhere, or no longer."""
    before, now = pair.older.anchors, pair.newer.anchors
    return (origin for origin in origins if before.get(origin) != now.get(origin))


_NOT_AHEAD: Final = frozenset({"history", "dynamic"})


def _stands_behind(sent: Sent, origin: str) -> bool:
    """Whether this fragment stands behind the history; in front of none it cannot be told."""
    messages = sent.messages
    begins = next((at for at, one in enumerate(messages) if one.block in _NOT_AHEAD), len(messages))
    # What somebody said has a record and no parts; no fragment is of its origin.
    behind = [one for one in messages[begins + 1 :] if one.joined or one.record is None]
    return any(origin in message.origins for message in behind)


def _of_the_history(pair: _Pair) -> Break | None:
    """What was said: messages come between others, and none of them ever goes or changes."""
    old, new = pair.old, pair.new
    assert old is not None  # the older prompt goes on where they differ
    if old.block == "ordered" or (new is not None and new.block == "ordered"):
        return None
    if not pair.components.is_on("conversation_history"):
        return Break("revision", "component:conversation_history")
    # A note that says what stands next to it does not differ where it stood.
    if moved := next(_moved_anchors(pair, [*pair.older.anchors, *pair.newer.anchors]), None):
        return Break("re_anchored", moved)
    origin = (new or old).parts[0].origin
    if old.block in ("event", "tool") or (old.stays and old.block != "history"):
        return Break("order", origin)
    later = pair.newer.messages[pair.at :]
    is_there = _stands_before(pair, old) or any(_is_same(old, message) for message in later)
    return Break("order" if is_there else "undeclared", origin)


def _stands_before(pair: _Pair, old: Message) -> bool:
    """Whether it stands ahead now, where another text stood that reads the same."""
    ahead = zip(pair.older.messages, pair.newer.messages, strict=False)
    shared = islice(ahead, pair.at)
    return bool(old.of) and any(now.of == old.of != was.of for was, now in shared)


def _is_same(one: Message, other: Message) -> bool:
    if one.record is not None and other.record is not None:
        return one.record == other.record
    return one.wire() == other.wire()


def _of_a_text(pair: _Pair, origin: str | None) -> Break:
    """A text that stands before the history and is another one, or there no longer."""
    assert origin is not None
    before = part_of(pair.older.messages, origin)
    now = part_of(pair.newer.messages, origin)
    if pair.older.revisions != pair.newer.revisions or _is_edited(before, now):
        return Break("revision", origin)
    kind, _, key = origin.partition(":")
    if kind == "memory":
        return Break("dynamic", origin)
    if origin.startswith(OF_LORE):
        return Break(_lore_reason(pair, before, now), origin)
    component = pair.components.find(key) if kind == "component" else None
    if component is None or not component.component.enabled:
        return Break("revision" if now is None else "undeclared", origin)
    reason = _component_reason(pair, component, before, now)
    return Break(reason, _setter(pair, component) if reason == "variables" else origin)


def _setter(pair: _Pair, reader: CompiledComponent) -> str:
    """Which text before it sets a variable that this one reads; itself where none is known."""
    uses = reader.template.uses if reader.template is not None else None
    setter = reader.origin
    for member in pair.components.compiled.members:
        if member is reader or uses is None:
            break
        if member.has_variables and member.template and member.template.uses.sets & uses.reads:
            setter = member.origin
    return setter


def _is_edited(before: Part | None, now: Part | None) -> bool:
    return before is not None and now is not None and before.revision != now.revision


def _lore_reason(pair: _Pair, before: Part | None, now: Part | None) -> Reason:
    if before is None or now is None:
        return "lore"
    if pair.older.values != pair.newer.values:
        return "values"
    return "dice" if pair.older.dice != pair.newer.dice else "undeclared"


def _component_reason(
    pair: _Pair, compiled: CompiledComponent, before: Part | None, now: Part | None
) -> Reason:
    """Why a component's text is another one than in the prompt before."""
    if compiled.component.volatile:
        return "dynamic"
    if pair.older.tight or pair.newer.tight:
        return "step_trim"
    template = compiled.template
    for name in template.names if template is not None else ():
        if name.startswith(OUTLET):
            return "lore"
        if pair.older.values.get(name) != pair.newer.values.get(name):
            return "values"
    if template is not None and template.rolls and pair.older.dice != pair.newer.dice:
        return "dice"
    is_new = before is None and now is not None
    reads = template is not None and (template.uses.reads or template.uses.computes_names)
    return "variables" if reads else "revision" if is_new else "undeclared"


def _first_origin(pair: _Pair) -> str | None:
    """The origin of the first stretch that differs: of one that went, came, or changed."""
    old, new = pair.old, pair.new
    at_their_ids = [m for m in (old, new) if m is not None and m.block == "ordered"]
    if len(at_their_ids) == 1:  # the head of one prompt is longer
        return at_their_ids[0].parts[0].origin
    one, other = (message.stretches if message else [] for message in (old, new))
    for before, now in zip_longest(one, other):
        if before == now:
            continue
        if before is not None and part_of(pair.newer.messages, before[0]) is None:
            return before[0]
        return (now or before)[0]
    message = new or old  # their role or their name differs
    return message.parts[0].origin if message is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAccount:
    """What two prompts of one conversation share.

    `broken_by` is the origin of the first fragment that differs, None where the older prompt is
    wholly a prefix of the newer one; `reason` is why, None where that is not known.
    """

    shared_messages: int
    shared_tokens: int
    broken_by: str | None
    reason: Reason | None = None


def breakpoints(
    messages: Sequence[Message],
    *,
    anchored: Collection[str] = (),
    behind: Collection[str] = (),
) -> tuple[int, ...]:
    """Indexes of messages after which a provider may cache, in order.

    The end of what stands before the history; the message before the first anchored note, for the
    day it moves; the message before the deepest injection that floats, because that moves with
    every turn, or else the last history message, and the newest text that stays right after it.
    `anchored` are the origins of notes that do not float, `behind` those of what stands at an ID
    behind the history.
    """
    history = [i for i, message in enumerate(messages) if message.block == "history"]
    head = history[0] if history else _end_of_head(messages, behind)
    fixed = [i for i in history if _is_of(messages[i], anchored)] if anchored else []
    spots = [head - 1]
    moving = next((i for i in history if i not in fixed and _floats(messages[i])), None)
    if fixed and (moving is None or fixed[0] < moving):
        spots.append(fixed[0] - 1)
    if moving is not None:
        spots.append(moving - 1)
    elif history:
        spots += [history[-1], _last_staying(messages, history[-1])]
    else:
        spots.append(_last_staying(messages, head - 1))
    return tuple(sorted({spot for spot in spots if spot >= 0}))


def account(
    older: Sent | Sequence[Message],
    newer: Sent,
    *,
    counter: TokenCounter,
    components: ComponentSet,
) -> CacheAccount:
    """How much of the older prompt's prefix the newer one still has, and what broke it.

    Of bare messages nobody can tell why they differ.
    """
    sent = older if isinstance(older, Sent) else Sent(messages=older)
    shared = 0
    for before, now in zip(sent.messages, newer.messages, strict=False):
        if before is not now and before.wire() != now.wire():
            break
        shared += 1
    found = first_break(sent, newer, at=shared, components=components)
    return CacheAccount(
        shared_messages=shared,
        shared_tokens=sum(message_tokens(newer.messages[:shared], counter)),
        broken_by=found.origin,
        reason=found.reason if sent is older or found.reason == "append" else None,
    )


def _is_of(message: Message, origins: Collection[str]) -> bool:
    return message.injected and any(part.origin in origins for part in message.parts)


def _floats(message: Message) -> bool:
    return message.injected and not message.stays


def _last_staying(messages: Sequence[Message], at: int) -> int:
    """Index of the last of the texts that stay right after the message `at`, or `at` itself."""
    while at + 1 < len(messages) and messages[at + 1].stays:
        at += 1
    return at


def _end_of_head(messages: Sequence[Message], behind: Collection[str]) -> int:
    """Index of the first message that would stand behind a history, where there is none."""
    for index, message in enumerate(messages):
        if message.block != "ordered" or message.parts[0].origin in behind:
            return index
    return len(messages)
