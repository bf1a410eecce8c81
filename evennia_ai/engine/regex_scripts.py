"""Regex scripts: they change words of a conversation in prompts and on screens, never in records.

A script replaces what its regular expression finds, as SillyTavern 1.19's extension "regex" does.
The scripts of the game run first, then those of the preset, then those of the card. A script that
SillyTavern would apply to the stored chat runs in prompts and on screens, before all others, and
its depth bounds have no effect, as there.

The author's macros in a script are expanded before anything is searched. What a message
contributes to a replacement is inserted afterwards, so it is never expanded. Names of people in a
regular expression are matched literally.

The work has a limit: a script is skipped in a text that needs more steps than are left. Steps are
counted from the newest message to the oldest, and a cached result counts like a new one, so equal
inputs give equal bytes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, NamedTuple, get_args

from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.candidate import ActiveEntry
from evennia_ai.engine.lorebook.scan.regex.pattern import TEXT_STEPS, Refused
from evennia_ai.engine.lorebook.scan.regex.replacing import (
    GroupOf,
    NotReplaced,
    Replaced,
    ReplacePattern,
    read_replace_pattern,
)
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Memo, Slot, typed_frozen
from evennia_ai.engine.prompt.messages import Message, without_time_line
from evennia_ai.engine.prompt.templates.template import compile_template, fill_each
from evennia_ai.engine.prompt.templates.work import SCANNED_WORK, Meter
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict

Placement = Literal["user_input", "ai_output", "slash_command", "world_info", "reasoning"]
"""The kinds of texts in which a script runs. Only three of them exist in a game."""
Surface = Literal["prompt", "display"]

SCRIPT_STEPS: Final = 1 << 21
"""How many steps all regex scripts may take in one turn."""
DISPLAY_STEPS: Final = 1 << 19
"""How many steps all scripts may take in one text that is shown to players."""
ORIGIN: Final = "regex:"
_NO_STEPS: Final = "the steps that all scripts of a turn may take were used up"

_FLAGS: Final = re.compile(r"(?!.*(.).*\1)[gmixXsuUAJ]+")
# SillyTavern reads a pattern like this; its `.` matches no end of a line.
_WRITTEN: Final = re.compile(r"(/?)([^\n\r\u2028\u2029]+)\1([a-zA-Z]*)")
_REFERENCE: Final = re.compile(r"\{\{match\}\}|\$([0-9]{1,9})|\$<([^>]+)>", re.IGNORECASE)
_SPECIAL: Final = re.compile(r"[\n\r\t\v\f\0.^$*+?{}\[\]\\/|()]")
_ESCAPES: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\f": r"\f", "\0": r"\0"}


@typed_frozen
class RegexScript:
    """A script that replaces what a regular expression finds."""

    origin: str
    """The name of the script in reports, such as `regex:preset nemo/cut thoughts`."""
    find: str
    """The regular expression, as `/body/flags` or as its body only."""
    replacement: str = ""
    """The new text. `$1`, `$<name>` and `{{match}}` stand for what was found."""
    trim: tuple[str, ...] = ()
    """Texts that are removed from what was found before it is inserted."""
    placements: tuple[Placement, ...] = ()
    prompt_only: bool = False
    display_only: bool = False
    fills_find: bool = False
    """True if the macros in the regular expression are expanded."""
    min_depth: int | None = None
    max_depth: int | None = None

    @property
    def is_permanent(self) -> bool:
        """True if SillyTavern would apply the script to the stored chat."""
        return not self.prompt_only and not self.display_only

    @property
    def has_bounds(self) -> bool:
        """True if the script changes a message at some depths and not at others."""
        return not self.is_permanent and (self.min_depth, self.max_depth) != (None, None)

    def runs_on(self, surface: Surface) -> bool:
        """True if the script changes what models read, or what players see."""
        only = self.prompt_only if surface == "prompt" else self.display_only
        return only or self.is_permanent

    def runs_at(self, depth: int | None) -> bool:
        """True if the script runs in a text with this depth; a text without a depth has None."""
        if depth is None or self.is_permanent:
            return True
        is_deep = self.min_depth is None or depth >= self.min_depth
        return is_deep and (self.max_depth is None or depth <= self.max_depth)


def split_find(written: str) -> tuple[str, str] | None:
    """Split a script's regular expression into body and flags, as SillyTavern does.

    Flags that SillyTavern does not know make the whole text the body. None if there is no body.
    """
    found = _WRITTEN.search(written)
    if found is None:
        return None
    if found[3] and not _FLAGS.fullmatch(found[3]):
        return written, ""
    return found[2], found[3]


def pattern_of(script: RegexScript) -> ReplacePattern | Refused:
    """Return the compiled regular expression of a script whose macros are not expanded yet."""
    return _compiled(script.find, groups_used(script.replacement))


@lru_cache(maxsize=512)
def _compiled(find: str, groups: frozenset[int | str]) -> ReplacePattern | Refused:
    split = split_find(find)
    if split is None:
        return Refused(reason="is not a regular expression: it is empty", is_broken=True)
    return read_replace_pattern(*split, groups)


def groups_used(replacement: str) -> frozenset[int | str]:
    """Return the numbers and names of the groups that a replacement inserts."""
    found = _REFERENCE.finditer(replacement)
    return frozenset(one[2] or int(one[1]) for one in found if one[1] or one[2])


class _Bound:
    """A script of a turn, with its macros expanded. Equal scripts are the same object."""

    __slots__ = ("_pieces", "_trim", "pattern", "script")

    def __init__(
        self,
        script: RegexScript,
        pattern: ReplacePattern | Refused,
        pieces: tuple[str | int | tuple[str], ...],
        trim: tuple[str, ...],
    ) -> None:
        self.script = script
        self.pattern = pattern
        # The parts of the replacement: texts, numbers of groups, and names of groups in a tuple
        self._pieces = pieces
        self._trim = trim

    def replacement(self, group_of: GroupOf) -> str:
        """Return the new text for a match."""
        made: list[str] = []
        for piece in self._pieces:
            if isinstance(piece, str):
                made.append(piece)
                continue
            found = group_of(piece if isinstance(piece, int) else piece[0])
            for trimmed in self._trim:
                found = found.replace(trimmed, "")
            made.append(found)
        return "".join(made)


_known_bound: Final = lru_cache(maxsize=512)(_Bound)


def _bind(script: RegexScript, values: Mapping[str, str], dice: Dice) -> _Bound:
    """Expand the macros of a script. Random macros give the same result in a whole conversation."""
    dice = Dice(turn=dice.conversation, conversation=dice.conversation)
    meter = Meter(SCANNED_WORK)

    def filled(texts: Iterable[str], known: Mapping[str, str]) -> tuple[str, ...]:
        compiled = {at: compile_template(text, trust="imported") for at, text in enumerate(texts)}
        return tuple(fill_each(compiled, known, dice, meter).values())

    find = script.find
    if script.fills_find:
        (find,) = filled((find,), {name: _escape(value) for name, value in values.items()})
    pieces: list[str | int | tuple[str]] = []
    at = 0
    for found in _REFERENCE.finditer(script.replacement):
        pieces.append(script.replacement[at : found.start()])
        pieces.append((found[2],) if found[2] else int(found[1] or 0))
        at = found.end()
    pieces.append(script.replacement[at:])
    texts = iter(filled((one for one in pieces if isinstance(one, str)), values))
    made = tuple(next(texts) if isinstance(one, str) else one for one in pieces)
    trim = tuple(text for text in filled(script.trim, values) if text)
    return _known_bound(script, _compiled(find, groups_used(script.replacement)), made, trim)


def _escape(value: str) -> str:
    """Return a text so that a regular expression matches it literally."""
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0], "\\" + found[0]), value)


class _Change(NamedTuple):
    """What a script changed in one text."""

    where: str
    places: int
    characters: int
    """How many characters longer the text became."""

    def __str__(self) -> str:
        places = "1 place" if self.places == 1 else f"{self.places} places"
        return f"{self.where} ({places}, {self.characters:+d} characters)"


@dataclass(slots=True)
class _Tally:
    """What one script did in a turn."""

    changed: list[_Change] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """The texts that were left as they are, each with the reason."""
    searched: int = 0
    gave_up: str = ""
    """The text that needed too many steps. Older texts are not searched any more."""
    passed_over: int = 0
    """How many texts were not searched after the script gave up."""

    def reason(self) -> str:
        """Return what the script did, in words."""
        told = []
        if self.changed:
            told.append(f"changed {', '.join(map(str, self.changed))}")
        elif self.searched:
            told.append(f"found nothing to replace in {self.searched} texts")
        told += (f"left {one}" for one in self.skipped)
        if self.passed_over:
            told.append(f"then not searched: {self.passed_over} older texts")
        return "; ".join(told) or "no text of its placements and depths"


_Outcome = Replaced | NotReplaced
_OUTCOMES: Final = Slot[dict[tuple[_Bound, str], _Outcome]]("regex scripts: outcomes")
_MOST_OUTCOMES: Final = 24
_CHANGED: Final = Slot[Message]("regex scripts: changed message")
_CHANGED_HISTORY: Final = Slot[History]("regex scripts: changed history")


class ScriptRun:
    """One run of regex scripts over the texts of a turn. It counts steps and notes changes."""

    def __init__(
        self,
        scripts: Sequence[RegexScript],
        surface: Surface,
        *,
        values: Mapping[str, str],
        dice: Dice,
    ) -> None:
        bound = [_bind(one, values, dice) for one in scripts if one.runs_on(surface)]
        # SillyTavern applies permanent scripts when a message arrives, so before all others.
        bound.sort(key=lambda one: not one.script.is_permanent)
        self._of: dict[Placement, list[_Bound]] = {
            placement: [one for one in bound if placement in one.script.placements]
            for placement in get_args(Placement)
        }
        # SillyTavern never stores lore, so permanent scripts do not run in it.
        self._of["world_info"] = [
            one for one in self._of["world_info"] if not one.script.is_permanent
        ]
        self._tallies = {one: _Tally() for one in bound}
        self._left = SCRIPT_STEPS if surface == "prompt" else DISPLAY_STEPS

    def text(
        self, text: str, placement: Placement, *, depth: int | None, where: str, memo: Memo
    ) -> str:
        """Return a text after all scripts that run in it.

        Args:
            text: The text.
            placement: The kind of the text.
            depth: The number of messages after the text; None if it has no depth.
            where: The name of the text in the trace.
            memo: The cache of the text, in which the result is kept.
        """
        for bound in self._of[placement]:
            if text and bound.script.runs_at(depth):
                text = self._run(bound, text, where, memo)
        return text

    def _run(self, bound: _Bound, text: str, where: str, memo: Memo) -> str:
        tally, pattern = self._tallies[bound], bound.pattern
        if isinstance(pattern, Refused):
            tally.skipped = [f"all texts: its regular expression {pattern.reason}"]
            return text
        if tally.gave_up:
            tally.passed_over += 1
            return text
        tally.searched += 1
        if pattern.literal not in text.lower():
            return text
        if not self._left:
            tally.skipped.append(f"{where}: {_NO_STEPS}")
            tally.gave_up = where
            return text
        known = memo.setdefault(_OUTCOMES, {})
        if (outcome := known.get((bound, text))) is None:
            if len(known) >= _MOST_OUTCOMES:
                known.clear()
            outcome = known[bound, text] = pattern.replace(text, bound.replacement)
        allowed = min(TEXT_STEPS, self._left)
        self._left -= min(allowed, outcome.steps)
        if outcome.steps > allowed:
            outcome = NotReplaced(_NO_STEPS, allowed)
        if isinstance(outcome, NotReplaced):
            tally.skipped.append(f"{where}: {outcome.reason}")
            # A slow script must not use up the steps of the others, message by message.
            tally.gave_up = where if outcome.steps else ""
            return text
        if outcome.text != text:
            more = len(outcome.text) - len(text)
            tally.changed.append(_Change(where, outcome.places, more))
        return outcome.text

    def verdicts(self) -> Iterator[Verdict]:
        """Yield a verdict on each script: what it changed, and in which texts it was skipped."""
        for bound, tally in self._tallies.items():
            yield Verdict(
                stage="expand",
                item=bound.script.origin,
                kept=bool(tally.changed),
                reason=tally.reason(),
            )

    def conversation(
        self, history: History, event: Message | None, *, first: int, counter: TokenCounter
    ) -> tuple[History, Message | None]:
        """Return history and event as prompts show them, newest first in the count of steps.

        The event has depth 0. Messages that injection depths do not count, and calls and results
        of tools, stay as they are. A message whose text becomes empty costs no tokens, and
        `without_emptied` leaves it out.

        Args:
            history: The history.
            event: The message that the NPC answers.
            first: The index of the oldest message that the prompt may show.
            counter: The counter of the prompt.
        """
        depth = 0
        if event is not None:
            event, depth = self._message(event, 0, counter), 1
        messages = [*history]
        for at in range(len(messages) - 1, max(first - history.earlier, 0) - 1, -1):
            if messages[at].counted:
                messages[at] = self._message(messages[at], depth, counter)
                depth += 1
        known = history.memo.get(_CHANGED_HISTORY)
        if known is not None and len(known) <= len(messages):
            older = len(known)
            if all(a is b for a, b in zip(known, messages, strict=False)):
                changed = known.appended(*messages[older:]) if older < len(messages) else known
                history.memo[_CHANGED_HISTORY] = changed
                return changed, event
        changed = History(
            messages,
            earlier=history.earlier,
            earlier_users=history.earlier_users,
            earlier_replies=history.earlier_replies,
            segment=history.segment,
        )
        history.memo[_CHANGED_HISTORY] = changed
        return changed, event

    def _message(self, message: Message, depth: int, counter: TokenCounter) -> Message:
        placement: Placement = "ai_output" if message.is_reply else "user_input"
        if message.role != "user" and not message.is_reply:
            return message
        said = without_time_line(message.content)
        where = f"#{message.record}" if message.record else message.block
        text = self.text(said, placement, depth=depth, where=where, memo=message.memo)
        if text == said:
            return message
        content = text and text + message.content[len(said) :]
        known = message.memo.get(_CHANGED)
        if known is not None and known.content == content and known.block == message.block:
            return known
        origin = f"history:{message.record}" if message.record else message.origin
        memo = Memo() if content else Memo({counter.slot: 0})
        changed = replace(message, content=content, origin=origin, record=None, memo=memo)
        message.memo[_CHANGED] = changed
        return changed

    def lore(self, lore: Activation) -> Activation:
        """Return active lore with the texts as prompts show them, without emptied entries."""
        entries: list[ActiveEntry] = []
        for entry in lore.entries:
            text = self.text(
                entry.text, "world_info", depth=entry.depth, where=entry.origin, memo=entry.memo
            )
            if text:
                entries.append(entry if text == entry.text else replace(entry, text=text))
        is_same = [*map(id, entries)] == [*map(id, lore.entries)]
        return lore if is_same else lore.with_entries(tuple(entries))


def without_emptied(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without those whose text a script made empty."""
    return tuple(one for one in messages if not one.is_emptied)


def display_text(
    text: str, scripts: Sequence[RegexScript], *, values: Mapping[str, str], dice: Dice
) -> str:
    """Return words of an NPC as players see them.

    A game shows a line once, when it is the newest, so its depth is 0.
    """
    run = ScriptRun(scripts, "display", values=values, dice=dice)
    return run.text(text, "ai_output", depth=0, where="the reply", memo=Memo())
