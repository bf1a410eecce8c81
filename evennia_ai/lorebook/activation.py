"""Activation: which entries are awake, what they say, and why the others are silent.

Pure. Each entry of each book gets one verdict. What is awake and has text competes for the lore
budget (`allotment`). `Activation.entries` goes book by book (chat before character before global),
inside a book by order, ties as in the file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from evennia_ai.lorebook.allotment import Awake, over_budget
from evennia_ai.lorebook.books import ATTACH_RANK, Lorebook
from evennia_ai.lorebook.decorators import Decorator
from evennia_ai.lorebook.entries import LoreEntry, Position
from evennia_ai.lorebook.judging import Facts, Judgement, judge
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.scanning import Scan, Scanner, Window, scanner_of
from evennia_ai.prompt.components import MAX_DEPTH, VOUCHED
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
    awake: list[Awake] = []
    judged: list[list[Verdict]] = []
    for rank, book in enumerate(_ranked(books, rules)):
        verdicts, woken = _judged(book, scan, rules=rules, facts=facts)
        for index, reason in woken:
            text, tokens = _text(book, book.entries[index], values, dice, counter)
            if text.strip():
                awake.append(Awake(rank, book, book.entries[index], reason, text, tokens))
            else:
                why = f"{reason}, but its content is empty"
                verdicts[index] = _no(book.entries[index], why)
        judged.append(verdicts)
    entries: list[ActiveEntry] = []
    over = over_budget(awake, rules=rules, limit_tokens=limit_tokens)
    for one in sorted(awake, key=_activation_order):
        if id(one) in over:
            verdict = _no(one.entry, over[id(one)], tokens=one.tokens)
        else:
            active, verdict = _active(one)
            entries.append(active)
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

    def rank(book: Lorebook) -> tuple[bool, int]:
        rank = ATTACH_RANK[book.attach]
        return rank > 0, -rank if rules.strategy == "global_first" else rank

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
            verdicts[index] = _no(book.entries[index], found.reason)
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
        _no(entry, _judge(entry, scanner, _NOTHING, depth=depth, facts=facts).reason)
        for entry in book.entries
    ]
    book.memo[slot] = made
    return made


def _no(entry: LoreEntry, reason: str, *, tokens: int = 0) -> Verdict:
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


def _activation_order(one: Awake) -> tuple[int, float, int]:
    return one.rank, one.entry.order, one.entry.index


def _active(one: Awake) -> tuple[ActiveEntry, Verdict]:
    """The entry for the prompt and its verdict: the same objects while nothing about it changed."""
    book, entry = one.book, one.entry
    seen = (one.rank, one.reason, one.text, one.tokens)
    slot = ("active", entry.index)
    known = book.memo.get(slot)
    if isinstance(known, tuple) and known[0] == seen:
        return known[1], known[2]
    vouched = book.trust in VOUCHED
    active = _placed(one) if vouched else _contained(_placed(one))
    verdict = Verdict(
        stage="activate",
        item=entry.origin,
        kept=True,
        reason=one.reason if vouched else one.reason + _CONTAINED,
        tokens=one.tokens,
        cause=one.reason,
    )
    book.memo[slot] = (seen, active, verdict)
    return active, verdict


def _placed(one: Awake) -> ActiveEntry:
    """The entry where it asks to stand."""
    book, entry = one.book, one.entry
    return ActiveEntry(
        origin=entry.origin,
        label=f"{book.label}#{entry.uid}",
        book=book.label,
        uid=entry.uid,
        name=entry.name,
        key=f"{one.rank:04}:{entry.index:06}",
        text=one.text,
        tokens=one.tokens,
        position=entry.position,
        joint=_JOINTS[entry.position],
        depth=entry.depth,
        from_oldest=entry.from_oldest,
        role=entry.role,
        order=entry.order,
        priority=entry.priority,
        constant=entry.constant,
        revision=book.revision,
        cause=one.reason,
    )


def _contained(entry: ActiveEntry) -> ActiveEntry:
    """The entry where text that nobody approved may stand."""
    return replace(
        entry, position="depth", joint="", depth=MAX_DEPTH, from_oldest=False, role="user"
    )
