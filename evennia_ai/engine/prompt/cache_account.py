"""The cache account: what a provider may reuse of the previous prompt, and what ended that.

A provider caches the beginning of a prompt (a prefix). Nothing after the first message that
differs can be reused. Breakpoints are the messages after which a provider may cache. A prompt has
at most four, which is the limit of providers. No breakpoint is after a message that moves in the
next turn.

Each end of a common prefix has a reason from a closed list, such as a text that moves in every
turn, a cut of the history, or an edit. If none applies, the reason is `undeclared`: a fault of the
engine, or of the code that made the history.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Final, Literal, NamedTuple

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
    "condition",
    "dice",
    "variables",
    "settings",
    "scripts",
    "order",
    "undeclared",
]
# The explanation of each reason for reports. "The text" is the text at which the common prefix
# ends.
MEANINGS: Final[Mapping[Reason, str]] = {
    "append": "the previous prompt is a prefix",
    "dynamic": "the facts of the previous turn were only for that turn",
    "moving": "the text is placed by depth or after the history, so it moves with every message",
    "step_trim": "the history was cut, or texts that no longer fit were left out",
    "re_anchored": "an anchored note moved",
    "compaction": "the history was summarised",
    "control": "a builder restarted the history, removed a part of it or corrected it",
    "revision": "the text was edited, switched on or switched off",
    "lore": "the entry became active or inactive",
    "values": "a value in the text changed",
    "condition": "a condition of the text was met in one of the two prompts only",
    "dice": "the text rolls dice",
    "variables": "a variable that the text sets or reads changed",
    "settings": "the layout, the limit or another setting changed",
    "scripts": "a regex script changed a message of the conversation, or no longer changes it",
    "order": "messages were recorded in another order than they were answered",
    "undeclared": "the engine does not know the reason",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What the cache account of the next prompt needs to know about a sent prompt."""

    messages: Sequence[Message]
    cut: int = 0
    segment: int = 0
    controlled_from: int = 0
    """The last segment of the history that a builder began by taking control, as far as known."""
    anchors: Anchors = field(default_factory=dict)
    settings: tuple[str | int, ...] = ()
    """The settings of the prompt, such as its layout, which only a builder's edit changes."""
    values: Mapping[str, str] = field(default_factory=dict)
    dice: Dice | None = None
    tight: bool = False
    """True if some texts did not fit into the prompt."""
    revisions: Mapping[str, str] = field(default_factory=dict)
    """The revision of each source that has no text of its own in the prompt, such as a card."""


class Break(NamedTuple):
    """The reason why the common prefix of two prompts ends, and the origin of the text there."""

    reason: Reason
    origin: str | None


class _Pair(NamedTuple):
    """Two prompts that have the first `at` messages in common, and their components."""

    older: Sent
    newer: Sent
    at: int
    components: ComponentSet
    """The components of the newer prompt."""

    @property
    def old(self) -> Message | None:
        return self.older.messages[self.at] if self.at < len(self.older.messages) else None

    @property
    def new(self) -> Message | None:
        return self.newer.messages[self.at] if self.at < len(self.newer.messages) else None


def first_break(older: Sent, newer: Sent, *, at: int, components: ComponentSet) -> Break:
    """Return why a prompt has only its first messages in common with an older prompt.

    Args:
        older: The older prompt.
        newer: The newer prompt.
        at: The number of messages that both prompts share.
        components: The components of the newer prompt. Their templates show what a text depends on.
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
    return _break_by_moving(pair) or _break_in_history(pair) or _break_by_text(pair, origin)


def _is_trimmed(pair: _Pair) -> bool:
    """True if the newer prompt dropped old history messages, and this is the first difference."""
    if pair.older.cut == pair.newer.cut:
        return False
    begins = next((i for i, m in enumerate(pair.older.messages) if m.block == "history"), None)
    return begins is not None and begins <= pair.at


def _break_by_moving(pair: _Pair) -> Break | None:
    """Return why the common prefix ends at a text that is expected to move or change.

    Such texts are the facts of one turn, anchored notes, texts injected by depth, and texts after
    the history. Returns None for any other text.
    """
    for message in (pair.old, pair.new):
        if message is None or message.stays or _kept_its_place(pair, message):
            continue
        first = message.parts[0].origin
        if message.block == "dynamic":
            return Break("dynamic", first)
        if message.injected:
            return _break_by_injection(pair, message)
        if message.block == "ordered" and any(
            _is_after_history(sent, first) for sent in (pair.older, pair.newer)
        ):
            return Break("moving", first)
    return None


def _break_by_injection(pair: _Pair, message: Message) -> Break:
    if moved := next(_moved_anchors(pair, message.origins), None):
        return Break("re_anchored", moved)
    origin = message.parts[0].origin
    is_in_both = all(part_of(sent.messages, origin) for sent in (pair.older, pair.newer))
    return Break("moving" if is_in_both or not origin.startswith(OF_LORE) else "lore", origin)


def _kept_its_place(pair: _Pair, message: Message) -> bool:
    """True if a message is an anchored note at the same place as in the older prompt.

    Then the common prefix ends because another text came before the note.
    """
    origins = message.origins
    is_anchored = any(origin in pair.newer.anchors for origin in origins)
    return is_anchored and next(_moved_anchors(pair, origins), None) is None


def _moved_anchors(pair: _Pair, origins: Iterable[str]) -> Iterator[str]:
    """Yield the origins of the anchored notes that have moved or are gone."""
    before, now = pair.older.anchors, pair.newer.anchors
    return (origin for origin in origins if before.get(origin) != now.get(origin))


_NOT_AHEAD: Final = frozenset({"history", "dynamic"})


def _is_after_history(sent: Sent, origin: str) -> bool:
    """True if a text is placed after the history; False if the prompt has no history."""
    messages = sent.messages
    begins = next((at for at, one in enumerate(messages) if one.block in _NOT_AHEAD), len(messages))
    # A message of the conversation has a record and no parts. Skip these messages, so that only
    # texts of components are compared.
    behind = [one for one in messages[begins + 1 :] if one.joined or one.record is None]
    return any(origin in message.origins for message in behind)


def _break_in_history(pair: _Pair) -> Break | None:
    """Return why the common prefix ends inside the history; None if it does not.

    Messages of the conversation never change. So another message must have been inserted, moved or
    dropped.
    """
    old, new = pair.old, pair.new
    assert old is not None  # `old` is only None if the older prompt is a prefix of the newer one
    if old.block == "ordered" or (new is not None and new.block == "ordered"):
        return None
    if not pair.components.is_on("conversation_history"):
        return Break("revision", "component:conversation_history")
    # Neither message at this index is a note, but an anchored note may have moved away from here.
    if moved := next(_moved_anchors(pair, [*pair.older.anchors, *pair.newer.anchors]), None):
        return Break("re_anchored", moved)
    if new is not None and (said := _said_in(old)) and said == _said_in(new):
        is_edited = pair.older.revisions != pair.newer.revisions
        return Break("revision" if is_edited else "scripts", f"history:{said}")
    origin = (new or old).parts[0].origin
    if old.block in ("event", "tool") or (old.stays and old.block != "history"):
        return Break("order", origin)
    later = pair.newer.messages[pair.at :]
    is_there = _moved_ahead(pair, old) or any(_is_same(old, message) for message in later)
    return Break("order" if is_there else "undeclared", origin)


def _said_in(message: Message) -> str:
    """Return the record of the words in a message, also if a regex script changed them; or ""."""
    if message.record is not None and not message.joined:
        return message.record
    origin = message.parts[0].origin
    return origin.removeprefix("history:") if origin.startswith("history:") else ""


def _moved_ahead(pair: _Pair, old: Message) -> bool:
    """True if a persistent text moved forward, to where another text had the same content."""
    ahead = zip(pair.older.messages, pair.newer.messages, strict=False)
    shared = islice(ahead, pair.at)
    return bool(old.of) and any(now.of == old.of != was.of for was, now in shared)


def _is_same(one: Message, other: Message) -> bool:
    if one.record is not None and other.record is not None:
        return one.record == other.record
    return one.wire() == other.wire()


def _break_by_text(pair: _Pair, origin: str | None) -> Break:
    """Return why the common prefix ends, if it ends at a text before the history."""
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
    """Return the component that set a variable for `reader`, or `reader` itself if none did."""
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
    """Return why the text of a component differs from that in the previous prompt."""
    if compiled.component.volatile or pair.older.tight or pair.newer.tight:
        return "dynamic" if compiled.component.volatile else "step_trim"
    if compiled.conditions and (before is None) is not (now is None):
        return "condition"
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
    """Return the origin of the first text that was removed, added or changed, or None."""
    old, new = pair.old, pair.new
    at_their_ids = [m for m in (old, new) if m is not None and m.block == "ordered"]
    if len(at_their_ids) == 1:  # one prompt has no further messages before the history
        return at_their_ids[0].parts[0].origin
    one, other = (message.stretches if message else [] for message in (old, new))
    for before, now in zip_longest(one, other):
        if before == now:
            continue
        if before is not None and part_of(pair.newer.messages, before[0]) is None:
            return before[0]
        return (now or before)[0]
    message = new or old  # all texts are equal, so the messages differ in role or name
    return message.parts[0].origin if message is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAccount:
    """How much of a prompt a provider can reuse from the previous prompt, and why not more."""

    shared_messages: int
    shared_tokens: int
    broken_by: str | None
    """The origin of the first text that differs; None if the older prompt is a prefix of the newer
    one."""
    reason: Reason | None = None
    """The reason why the prefix ends; None if it is not known."""


def cache_breakpoints(
    messages: Sequence[Message],
    *,
    anchored: Collection[str] = (),
    behind: Collection[str] = (),
) -> tuple[int, ...]:
    """Return the indexes of messages after which a provider may cache a prompt, in order.

    One breakpoint is after the last message before the history. One is before the first anchored
    note, so that the part before it stays cached when the note moves. The last one is before the
    deepest text that is injected by depth, because that text moves in every turn. Without such a
    text, the last breakpoints are at the last history message and at the newest persistent text
    right after it.

    Args:
        messages: The messages of the prompt.
        anchored: The origins of anchored notes.
        behind: The origins of texts whose ID is after the history.
    """
    history = [i for i, message in enumerate(messages) if message.block == "history"]
    head = history[0] if history else _end_of_head(messages, behind)
    fixed = [i for i in history if _has_origin(messages[i], anchored)] if anchored else []
    spots = [head - 1]
    moving = next((i for i in history if i not in fixed and _floats(messages[i])), None)
    if fixed and (moving is None or fixed[0] < moving):
        spots.append(fixed[0] - 1)
    if moving is not None:
        # In the next turn, an entry next to the message with its key may precede an anchored note
        # at the same place.
        spots.append(next(i for i in range(moving - 1, -2, -1) if i not in fixed))
    elif history:
        spots += [history[-1], _last_staying(messages, history[-1])]
    else:
        spots.append(_last_staying(messages, head - 1))
    return tuple(sorted({spot for spot in spots if spot >= 0}))


def account_for_prefix(
    older: Sent | Sequence[Message],
    newer: Sent,
    *,
    counter: TokenCounter,
    components: ComponentSet,
) -> CacheAccount:
    """Return how many messages and tokens two prompts have in common, and why not more.

    If `older` is only a list of messages, the reason is not known.
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


def _has_origin(message: Message, origins: Collection[str]) -> bool:
    return message.injected and any(part.origin in origins for part in message.parts)


def _floats(message: Message) -> bool:
    return message.injected and not message.stays


def _last_staying(messages: Sequence[Message], at: int) -> int:
    """Return the index of the last persistent text right after the message `at`, or `at`."""
    while at + 1 < len(messages) and messages[at + 1].stays:
        at += 1
    return at


def _end_of_head(messages: Sequence[Message], behind: Collection[str]) -> int:
    """Return the index of the first message that belongs to the history or comes after the history.

    `behind` are the origins of texts after the history. Without a history, the result is the index
    of the first of those texts.
    """
    for index, message in enumerate(messages):
        if message.block != "ordered" or message.parts[0].origin in behind:
            return index
    return len(messages)
