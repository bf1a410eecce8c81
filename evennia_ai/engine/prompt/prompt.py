"""The composed prompt: the messages for the model, and where each text comes from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from evennia_ai.engine.foreign.fields import Count
from evennia_ai.engine.prompt.assembly.merging import squashed_members
from evennia_ai.engine.prompt.assembly.rules import PLAIN, AssemblyRules
from evennia_ai.engine.prompt.budget import Fitted
from evennia_ai.engine.prompt.cache_account import (
    CacheAccount,
    Reason,
    Sent,
    account_for_prefix,
    cache_breakpoints,
)
from evennia_ai.engine.prompt.components import HISTORY_ID, MAX_DEPTH
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.fragments import Claim, Fragment, Layout
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Memo, Slot, typed_frozen
from evennia_ai.engine.prompt.messages import Message, message_tokens, messages_sha256
from evennia_ai.engine.prompt.persistent_texts import AlreadySent, BlocksMode
from evennia_ai.engine.prompt.placement import Anchors, slot_of
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import ManyVerdicts, NamingVerdicts, Verdict

_SHA256: Final = Slot[str]("sha256")
_NUMBERS: Final = Slot[dict[int, int]]("numbers of messages")
_BREAKPOINTS: Final = Slot[tuple[int, ...]]("breakpoints")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFigures:
    """The figures of a prompt: its tokens, and what it has in common with the previous prompt."""

    tokens: Count
    limit_tokens: Count
    by_origin: Mapping[str, Count]
    """The tokens of the texts of each origin, such as `component:mood`."""
    breakpoints: tuple[Count, ...]
    """The indexes of messages after which a provider may cache the prompt."""
    stable_tokens: Count
    """The tokens up to the last of the messages in `breakpoints`."""
    sha256: str
    layout: Layout
    counter: str
    """The name of the token counter."""
    shared_tokens: Count | None = None
    """The tokens of the common prefix with the previous prompt; None without a previous prompt."""
    broken_by: str | None = None
    """The origin of the text where the common prefix ends; None if it does not end."""
    break_reason: Reason | None = None
    """The reason why the common prefix ends there; None if it is not known."""

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of the prompt, by name."""
        return {one.name: getattr(self, one.name) for one in fields(PromptFigures)}


@typed_frozen
class Prompt:
    """A composed prompt, with everything that explains it.

    Hash, verdicts and accounts are computed on demand from the fields.
    """

    messages: tuple[Message, ...]
    components: ComponentSet
    values: Mapping[str, str]
    dice: Dice
    limit_tokens: int
    layout: Layout
    blocks: BlocksMode
    counter: TokenCounter
    history: History
    """The history in the format in which the prompt shows it."""
    fitted: Fitted
    """The fragments and the part of the history that the budget kept."""
    fixed: Sequence[tuple[str, int]]
    """The event and the tools' messages that the budget always keeps: origin and tokens."""
    lore: NamingVerdicts
    """The verdicts on lore entries, with the numbers of messages filled in on demand."""
    memories: ManyVerdicts
    """The verdicts on memories."""
    earlier: tuple[Sequence[Verdict], ...]
    """The verdicts from before the budget was applied, without those on lore and memories."""
    assembly: AssemblyRules = PLAIN
    anchors: Anchors = field(default_factory=dict)
    """The places of anchored notes, for the inputs of the next turn."""
    already_sent: Sequence[AlreadySent] = ()
    """The fragments that are not sent again, because the history already has them."""
    _memo: Memo = field(default_factory=Memo, repr=False, compare=False)

    @property
    def tokens(self) -> int:
        """The tokens of the prompt that count against `limit_tokens`."""
        return self.fitted.tokens

    @property
    def cut(self) -> int:
        """The absolute index of the oldest history message in this prompt.

        The next prompt shows no older messages.
        """
        return self.fitted.first

    @property
    def fragments(self) -> Sequence[Fragment]:
        """The fragments that the budget kept."""
        return self.fitted.fragments

    @property
    def sha256(self) -> str:
        """The hash of the messages as a model sees them, one canonical JSON line each."""
        known = self._memo.get(_SHA256)
        if known is None:
            known = self._memo[_SHA256] = messages_sha256(self.messages)
        return known

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of every stage of composing, in the order of the stages."""
        return self._verdicts(self._lore.verdicts, self.memories.verdicts)

    @property
    def touched(self) -> tuple[Verdict, ...]:
        """The verdicts, without those on lore and memories that had nothing to do with this turn.

        These verdicts are stored with a past turn.
        """
        return self._verdicts(self._lore.touched, self.memories.touched)

    @property
    def _lore(self) -> ManyVerdicts:
        """The verdicts on lore entries, with the numbers that messages have in this prompt.

        The prompt does not cache them: they refer to the prompt, so both would form a reference
        cycle, which only the garbage collector could free.
        """
        return self.lore.calling(self.called)

    def called(self, index: int) -> str:
        """Return the name by which verdicts call the history message with this absolute index."""
        numbers = self._memo.get(_NUMBERS)
        if numbers is None:
            numbers = self._memo[_NUMBERS] = self._number_messages()
        number = numbers.get(index)
        return "a message that is cut away" if number is None else f"message {number}"

    def _verdicts(self, *many: Sequence[Verdict]) -> tuple[Verdict, ...]:
        before = [verdict for stage in (*many, *self.earlier) for verdict in stage]
        fitted = self.fitted.verdicts(self.history, called=self.called)
        budget = [*fitted, *map(_always_kept, self.fixed)]
        return (*before, *_with_causes_of(before, budget), *self._places())

    @property
    def by_origin(self) -> Mapping[str, int]:
        """The tokens of the texts of each origin. Their sum is `tokens`."""
        spent: dict[str, int] = {}
        for fragment in self.fragments:
            spent[fragment.claim.origin] = spent.get(fragment.claim.origin, 0) + fragment.tokens
        spent.update(self.fixed)
        if self.fitted.history_tokens:
            spent["history"] = self.fitted.history_tokens
        spent["framing"] = self.fitted.framing_tokens
        return spent

    @property
    def breakpoints(self) -> tuple[int, ...]:
        """The indexes of the messages after which a provider may cache the prompt."""
        known = self._memo.get(_BREAKPOINTS)
        if known is None:
            known = cache_breakpoints(
                self.messages, anchored=self.anchors, behind=self._origins_after_history()
            )
            self._memo[_BREAKPOINTS] = known
        return known

    @property
    def stable_tokens(self) -> int:
        """The tokens up to the last message after which a provider may cache the prompt."""
        spots = self.breakpoints
        stable = self.messages[: spots[-1] + 1] if spots else ()
        return sum(message_tokens(stable, self.counter))

    @property
    def sent(self) -> Sent:
        """The part of this prompt that the cache account of the next prompt needs."""
        return Sent(
            messages=self.messages,
            cut=self.cut,
            segment=self.history.segment,
            anchors=self.anchors,
            settings=self._settings(),
            values=self.values,
            dice=self.dice,
            tight=self.fitted.judged is not None,
        )

    def _settings(self) -> tuple[str | int, ...]:
        """The settings of this prompt, such as its layout, which only a builder's edit changes."""
        usual = (self.layout, self.blocks, self.limit_tokens, self.counter.name)
        return (
            usual if self.assembly is PLAIN else (*usual, *map(repr, self.assembly.changed.items()))
        )

    def figures(self, account: CacheAccount | None) -> dict[str, Any]:
        """Return the figures of the prompt by name, as in `PromptFigures`.

        Args:
            account: The account of the prefix shared with the previous prompt; None without one.
        """
        return PromptFigures(
            tokens=self.tokens,
            limit_tokens=self.limit_tokens,
            by_origin=self.by_origin,
            breakpoints=self.breakpoints,
            stable_tokens=self.stable_tokens,
            sha256=self.sha256,
            layout=self.layout,
            counter=self.counter.name,
            shared_tokens=account.shared_tokens if account else None,
            broken_by=account.broken_by if account else None,
            break_reason=account.reason if account else None,
        ).figures

    def account(self, older: Sent | Sequence[Message]) -> CacheAccount:
        """Return how much a provider can reuse from an older prompt, and why not more."""
        return account_for_prefix(
            older, self.sent, counter=self.counter, components=self.components
        )

    def _origins_after_history(self) -> frozenset[str]:
        """The origins of the texts that are placed after the history by their registry ID."""
        claims = (fragment.claim for fragment in self.fragments if fragment.claim.depth is None)
        return frozenset(
            claim.origin
            for claim in claims
            if (claim.shared.id if claim.shared else claim.id) > HISTORY_ID
        )

    def _places(self) -> Iterator[Verdict]:
        together = self._merged_words()
        for fragment in self.fragments:
            yield Verdict(
                stage="place",
                item=fragment.claim.origin,
                kept=True,
                reason=self._place_words(fragment) + together.get(fragment.claim.origin, ""),
                tokens=fragment.tokens,
            )
        for already_sent in self.already_sent:
            reason = f"already in the history: {self._words_after(already_sent.at)}"
            for fragment in already_sent.fragments:
                item = fragment.claim.origin
                yield Verdict(stage="place", item=item, kept=True, reason=reason)

    def _merged_words(self) -> Mapping[str, str]:
        """Return, by origin of each merged text, words that name the texts merged with it."""
        rules, told = self.assembly, dict[str, str]()
        for message in self.messages:
            if rules.squash or (rules.ties == "role" and message.injected):
                origins = tuple(dict.fromkeys(message.origins))
                for origin in origins if len(origins) > 1 else ():
                    others = [one for one in origins if one != origin]
                    told[origin] = f"; in one message with {_few_origins(others)}"
        return told

    def _place_words(self, fragment: Fragment) -> str:
        claim = fragment.claim
        if fragment.message.stays:
            return "at the end of the history, and stays there"
        if claim.depth is None:
            if claim.shared is None:
                return f"at ID {claim.id}"
            behind = claim.shared.block == "dynamic" and claim.id < claim.shared.id
            moved = f", after the history instead of at ID {claim.id}" if behind else ""
            return f"in {claim.shared}{moved}"
        if claim.origin in self.anchors:
            followed = self._words_after(self.anchors[claim.origin].at)
            return f"in the history, anchored: {followed}"
        return self._at_depth(fragment, claim.depth)

    def _at_depth(self, fragment: Fragment, depth: int) -> str:
        claim = fragment.claim
        counts = claim.depth_counts
        kept = self.history.counted(self.cut, counts)
        follow = self.history.counted(slot_of(fragment, self.history, first=self.cut), counts)
        if claim.beside is not None:
            called = "" if claim.beside.at is None else self.called(claim.beside.at)
            beside = claim.beside.words.format(called)
            return f"in the history, {beside}: {self._moved_words(claim, follow)}"
        if depth >= MAX_DEPTH and not claim.from_oldest:
            return f"at the top of the history: {_following_words(follow)}"
        if depth == 0 and not claim.from_oldest:
            return f"at the bottom of the history: {_following_words(follow)}"
        base = "from the oldest" if claim.from_oldest else "from the newest"
        clamped = f"; the kept history has {kept}" if depth > kept else ""
        spoken = " of speech" if counts == "speech" else ""
        return f"in the history, depth {depth} {base}: {_following_words(follow, spoken)}{clamped}"

    def _moved_words(self, claim: Claim, follow: int) -> str:
        """Say how many messages follow a text, and why that differs from its author's depth."""
        at = claim.beside.at if claim.beside else None
        told = _following_words(follow)
        if at is not None and at < self.cut:
            return f"{told}; that message is cut away, so the text is at the top of the history"
        return told if follow == claim.depth else f"{told}; a tool's result stays with its call"

    def _number_messages(self) -> dict[int, int]:
        """Return the index in the prompt of each kept history message, by its absolute index."""
        members: Iterable[tuple[int, Message]] = enumerate(self.messages)
        if self.assembly.squash:
            members = [(at, one) for at, whole in members for one in squashed_members(whole)]
        numbers: dict[int, int] = {}
        history = enumerate(self.history.between(self.cut, self.history.stop), start=self.cut)
        kept = iter([(index, message) for index, message in history if not message.is_emptied])
        index, wanted = next(kept, (0, None))
        for number, member in members:
            if member is wanted:
                numbers[index] = number
                index, wanted = next(kept, (0, None))
        return numbers

    def _words_after(self, index: int) -> str:
        return _following_words(self.history.counted(index))


def _with_causes_of(before: Iterable[Verdict], later: Iterable[Verdict]) -> Iterator[Verdict]:
    """Yield the later verdicts, with the causes from earlier verdicts on the same items.

    When a fragment was made, messages had no numbers yet, so its own cause may not name them.
    """
    causes = {verdict.item: verdict.cause for verdict in before if verdict.cause}
    for verdict in later:
        cause = causes.get(verdict.item, verdict.cause)
        yield verdict if cause == verdict.cause else replace(verdict, cause=cause)


def _few_origins(origins: Sequence[str]) -> str:
    return origins[0] if len(origins) == 1 else f"{len(origins)} other texts"


def _following_words(count: int, spoken: str = "") -> str:
    return f"1 message{spoken} follows" if count == 1 else f"{count} messages{spoken} follow"


def _always_kept(cost: tuple[str, int]) -> Verdict:
    item, tokens = cost
    return Verdict(stage="budget", item=item, kept=True, reason="always kept", tokens=tokens)
