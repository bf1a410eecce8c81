"""Activation: which entries are awake, what they say, and why the others are silent.

Pure. Each entry of each book gets one verdict. What is awake and has text competes for the lore
budget: constants before matched entries, then high priority before low, then as in the file;
entries marked `@@ignore_on_max_context` come last of all. What does not fit is skipped and the
next one is tried, unless the rules say to stop. `Activation.entries` goes book by book (chat before
character before global), inside a book by order, ties as in the file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.lorebook.books import ATTACH_RANK, Lorebook
from evennia_ai.lorebook.decorators import Decorator
from evennia_ai.lorebook.entries import LoreEntry, Position
from evennia_ai.lorebook.judging import Facts, Judgement, judge
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.scanning import Scan, Scanner, Window, scanner_of
from evennia_ai.prompt.components import MAX_DEPTH
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.messages import Role
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Verdict

__all__ = ["Activation", "ActiveEntry", "Scan", "activate", "decorators_of"]

JointName = Literal["world_info_before", "world_info_after", ""]
_JOINTS: Final[Mapping[Position, JointName]] = {
    "before": "world_info_before",
    "after": "world_info_after",
    "depth": "",
}
_VOUCHED: Final = frozenset({"author", "builder"})
_CONTAINED: Final = "; at the top of the history, because nobody approved its book"
_NOTHING: Final = Window({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveEntry:
    """An entry that goes into the prompt.

    `label` is `book#uid`, `key` sorts entries of one order, `text` has its decorators cut and its
    macros expanded. `joint` is the place an entry without depth shares, "" for one with depth.
    """

    origin: str
    label: str
    book: str
    uid: str
    name: str
    key: str
    text: str
    tokens: int
    position: Position
    joint: JointName
    depth: int | None
    from_oldest: bool
    role: Role
    order: float
    priority: float
    constant: bool
    revision: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The entries that go into the prompt, and a verdict on every entry of every book."""

    entries: tuple[ActiveEntry, ...]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Awake:
    """An entry that its conditions let through, with its text; `rank` is the book's."""

    rank: int
    book: Lorebook
    entry: LoreEntry
    reason: str
    text: str
    tokens: int


def activate(
    books: Iterable[Lorebook],
    scan: Scan,
    *,
    rules: ActivationRules,
    limit_tokens: int,
    counter: TokenCounter,
    values: Mapping[str, str],
    dice: Dice,
) -> Activation:
    """What the books give for this scan; `limit_tokens` is the limit of the whole prompt."""
    facts = Facts(greeting_index=rules.greeting_index, replies=scan.history.replies)
    awake: list[_Awake] = []
    judged: list[list[Verdict]] = []
    for rank, book in enumerate(_ranked(books, rules)):
        verdicts, woken = _judged(book, scan, rules=rules, facts=facts)
        for index, reason in woken:
            entry = book.entries[index]
            text, tokens = _text(book, entry, values, dice, counter)
            if not text.strip():
                verdicts[index] = _no(book, entry, f"{reason}, but its content is empty")
                continue
            awake.append(
                _Awake(rank=rank, book=book, entry=entry, reason=reason, text=text, tokens=tokens)
            )
        judged.append(verdicts)
    entries: list[ActiveEntry] = []
    over = _over_budget(awake, rules=rules, limit_tokens=limit_tokens)
    for one in sorted(awake, key=_activation_order):
        problem = over.get(id(one))
        if problem is None:
            active, verdict = _active(one)
            entries.append(active)
        else:
            verdict = _no(one.book, one.entry, problem, tokens=one.tokens)
        judged[one.rank][one.entry.index] = verdict
    return Activation(
        entries=tuple(entries), verdicts=tuple(verdict for book in judged for verdict in book)
    )


def decorators_of(books: Iterable[Lorebook]) -> dict[str, tuple[Decorator, ...]]:
    """For each entry's label the decorators that count, after fallbacks."""
    return {
        f"{book.label}#{entry.uid}": entry.decorators for book in books for entry in book.entries
    }


def _ranked(books: Iterable[Lorebook], rules: ActivationRules) -> list[Lorebook]:
    """The books in the order they are activated in; those of one attachment stay as given."""

    def rank(book: Lorebook) -> int:
        if rules.strategy == "global_first" and book.attach != "chat":
            return -ATTACH_RANK[book.attach] + 100
        return ATTACH_RANK[book.attach]

    return sorted(books, key=rank)


def _judged(
    book: Lorebook, scan: Scan, *, rules: ActivationRules, facts: Facts
) -> tuple[list[Verdict], list[tuple[int, str]]]:
    """A verdict on each entry as if it were silent, and which ones are awake, with the reason.

    Only entries that a key was found for, or that need no key, are asked anew.
    """
    scanner = scanner_of(book, rules)
    depth = rules.scan_depth if book.scan_depth is None else book.scan_depth
    window = scanner.window(scan, depth=depth, include_names=rules.include_names)
    asked = set(_unkeyed(book))
    for key in window:
        asked.update(scanner.owners.get(key, ()))
    verdicts = _silent(book, scanner, depth).copy()
    woken: list[tuple[int, str]] = []
    for index in sorted(asked):
        found = _judge(book.entries[index], scanner, window, depth=depth, facts=facts)
        if found.awake:
            woken.append((index, found.reason))
        else:
            verdicts[index] = _no(book, book.entries[index], found.reason)
    return verdicts, woken


def _judge(
    entry: LoreEntry, scanner: Scanner, window: Window, *, depth: int, facts: Facts
) -> Judgement:
    wanted = scanner.wanted[entry.index]
    depth = depth if wanted.depth is None else wanted.depth
    return judge(entry, wanted, window, depth=depth, facts=facts)


def _unkeyed(book: Lorebook) -> tuple[int, ...]:
    """Entries to ask every time: their keys alone do not decide."""
    known = book.memo.get("unkeyed")
    if isinstance(known, tuple):
        return known
    made = tuple(
        entry.index
        for entry in book.entries
        if entry.enabled and not entry.refused and _asks_more_than_keys(entry)
    )
    book.memo["unkeyed"] = made
    return made


def _asks_more_than_keys(entry: LoreEntry) -> bool:
    gates = entry.gates
    counts = (gates.greeting, gates.replies_from, gates.every_replies)
    return entry.constant or gates.forced or any(count is not None for count in counts)


def _silent(book: Lorebook, scanner: Scanner, depth: int) -> list[Verdict]:
    """The verdicts where nothing was found; made once for a book and a scan depth."""
    slot = ("silent", depth)
    known = book.memo.get(slot)
    if isinstance(known, list):
        return known
    facts = Facts(greeting_index=0, replies=0)
    made = [
        _no(book, entry, _judge(entry, scanner, _NOTHING, depth=depth, facts=facts).reason)
        for entry in book.entries
    ]
    book.memo[slot] = made
    return made


def _no(book: Lorebook, entry: LoreEntry, reason: str, *, tokens: int = 0) -> Verdict:
    return Verdict(stage="activate", item=entry.origin, kept=False, reason=reason, tokens=tokens)


def _text(
    book: Lorebook,
    entry: LoreEntry,
    values: Mapping[str, str],
    dice: Dice,
    counter: TokenCounter,
) -> tuple[str, int]:
    """The entry's text and its tokens; kept while what it reads stays the same."""
    template = entry.template
    seen = ([values.get(name) for name in template.names], template.rolls and dice, counter)
    slot = ("text", entry.index)
    known = book.memo.get(slot)
    if isinstance(known, tuple) and known[0] == seen:
        return known[1], known[2]
    text = template.render(values, dice)
    tokens = counter.count(text)
    book.memo[slot] = (seen, text, tokens)
    return text, tokens


def _over_budget(
    awake: Sequence[_Awake], *, rules: ActivationRules, limit_tokens: int
) -> dict[int, str]:
    """For each entry that does not fit (by `id`) the reason.

    A book's own budget stands in place of the rules'; a book that nobody approved keeps to both.
    """
    room: dict[Lorebook | None, int] = {None: rules.budget(limit_tokens)}
    full: set[Lorebook | None] = set()
    over: dict[int, str] = {}
    for one in sorted(awake, key=_survival):
        purses = _purses(one.book)
        left = min(room.setdefault(purse, one.book.token_budget or 0) for purse in purses)
        if not full.isdisjoint(purses):
            over[id(one)] = "over the lore budget: an entry before it did not fit"
        elif one.tokens > left:
            over[id(one)] = f"over the lore budget: needs {one.tokens} tokens, {left} were left"
            full.update(purses if rules.overflow == "stop" else ())
        else:
            room.update({purse: room[purse] - one.tokens for purse in purses})
    return over


def _purses(book: Lorebook) -> tuple[Lorebook | None, ...]:
    """The budgets an entry of the book is paid from; None is the one of the rules."""
    if book.token_budget is None:
        return (None,)
    return (book,) if book.trust in _VOUCHED else (book, None)


def _survival(one: _Awake) -> tuple[bool, bool, float, int, int]:
    entry = one.entry
    return entry.first_to_go, not entry.constant, -entry.priority, one.rank, entry.index


def _activation_order(one: _Awake) -> tuple[int, float, int]:
    return one.rank, one.entry.order, one.entry.index


def _active(one: _Awake) -> tuple[ActiveEntry, Verdict]:
    """The entry for the prompt and its verdict: the same objects while nothing about it changed."""
    book, entry = one.book, one.entry
    seen = (one.rank, one.reason, one.text, one.tokens)
    slot = ("active", entry.index)
    known = book.memo.get(slot)
    if isinstance(known, tuple) and known[0] == seen:
        return known[1], known[2]
    vouched = book.trust in _VOUCHED
    position: Position = entry.position if vouched else "depth"
    reason = one.reason if vouched else one.reason + _CONTAINED
    active = ActiveEntry(
        origin=entry.origin,
        label=f"{book.label}#{entry.uid}",
        book=book.label,
        uid=entry.uid,
        name=entry.name,
        key=f"{one.rank:04}:{entry.index:06}",
        text=one.text,
        tokens=one.tokens,
        position=position,
        joint=_JOINTS[position],
        depth=entry.depth if vouched else MAX_DEPTH,
        from_oldest=entry.from_oldest and vouched,
        role=entry.role if vouched else "user",
        order=entry.order,
        priority=entry.priority,
        constant=entry.constant,
        revision=book.revision,
        cause=reason,
    )
    verdict = Verdict(
        stage="activate",
        item=entry.origin,
        kept=True,
        reason=reason,
        tokens=one.tokens,
        cause=one.reason,
    )
    book.memo[slot] = (seen, active, verdict)
    return active, verdict
