"""Lorebooks as builders read them: the list of books, the entries of one, one entry in full.

Also the trial of `lore/test`: which entries a sentence would activate, and why not the others.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from evennia_ai.commands.base import CommandError, and_more, counted, titled
from evennia_ai.commands.naming import scope_in_words
from evennia_ai.commands.setup.lore.named import (
    OpenEntry,
    card_called,
    entry_count,
    entry_in,
    opened,
    split,
    stored_book,
)
from evennia_ai.engine.compose import Composition
from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.book import names_of, pack_uids
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.prompt.report import hidden_lines, origins_called
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, pad_text, wrap_text
from evennia_ai.formats.lorebooks.editing.typed import (
    FIELDS_SHOWN_ELSEWHERE,
    UNSET,
    field_text,
    place_in_words,
    value_in_words,
)
from evennia_ai.formats.lorebooks.entry_fields import TYPED_FIELDS
from evennia_ai.npc.mind.viewers import seer_for, viewer_of
from evennia_ai.npc.senses.presence import NPC, HasMind
from evennia_ai.npc.views.books import SeenBook, SeenEntry
from evennia_ai.npc.views.looking import foreseen_report
from evennia_ai.npc.views.withheld.lore import HiddenLore
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.cards import players_of
from evennia_ai.store.authored.lorebooks import StoredBook

PAGE: Final = 30
_BOOK_COLUMNS: Final = 24
_UID_COLUMNS: Final = 8
_NAME_COLUMNS: Final = 20
_PLACE_COLUMNS: Final = 16
_MOST_NOTICES: Final = 6


def listed(books: Iterable[StoredBook]) -> list[str]:
    """Return the list of books: their entries, revision, and where they are assigned."""
    lines = [f"{pad_text('lorebook', _BOOK_COLUMNS)} entries revision  assigned to", "-" * WIDTH]
    for book in books:
        name = pad_text(escape_controls(book.name), _BOOK_COLUMNS)
        row = f"{name} {entry_count(book):7} {book.revision:8}  {_where(book.name) or 'nothing'}"
        lines.append(clip_text(escape_controls(row), WIDTH))
    return lines


def shown(book: SeenBook, *, page: int) -> list[str]:
    """Return a book and one page of those of its entries that the caller may see."""
    pages = max(1, -(-len(book.entries) // PAGE))
    if not 1 <= page <= pages:
        raise CommandError(
            f"There is no page {page}; lorebook '{book.name}' has the pages 1 to {pages}."
        )
    first = (page - 1) * PAGE
    lines = [*_head(book), "", _ENTRY_HEAD, "-" * WIDTH]
    lines += [_row(entry) for entry in book.entries[first : first + PAGE]]
    if page < pages:
        lines.append(f"Page {page} of {pages}; the next one is: lore {book.name} = {page + 1}")
    return lines


def entry_shown(found: OpenEntry) -> list[str]:
    """Return one entry in full."""
    entry, locks = found.entry, found.of.entry_locks.get(found.entry.uid, "")
    logic = f" ({entry.logic.replace('_', ' ')})" if entry.secondary_keys else ""
    lines = [
        *_wrapped(f"{found.label}, {'on' if entry.enabled else 'off'}"),
        *titled("keys", ", ".join(entry.keys) or "none"),
        *titled("secondary", (", ".join(entry.secondary_keys) or "none") + logic),
        *titled("place", f"{place_in_words(entry)}, order {entry.order:g}"),
        *titled("also", ", ".join(_set_fields(entry)) or "nothing else is set"),
        *(titled("lock", locks) if locks else []),
        *(titled("never used", entry.refused) if entry.refused else []),
    ]
    for condition in entry.conditions:
        lines += titled("only if", str(condition))
    for name, written in entry.decorators:
        lines += titled("decorator", f"@@{name} {', '.join(written)}".rstrip())
    text = entry.template.source
    if not text.strip():
        return [*lines, "  no content: it is never active"]
    return [*lines, f"  content, about {ESTIMATE.count(text)} tokens:", "", *wrap_text(text, WIDTH)]


_ENTRY_HEAD: Final = (
    f"{pad_text('id', _UID_COLUMNS)} {pad_text('name', _NAME_COLUMNS)}"
    f" {pad_text('place', _PLACE_COLUMNS)} order  keys"
)


def _head(book: SeenBook) -> Iterator[str]:
    more = f", {book.hidden} more hidden by locks" if book.hidden else ""
    count = counted(len(book.entries), "entry", "entries")
    yield from _wrapped(f"Lorebook {book.name}, revision {book.revision}, {count}{more}")
    where = _where(book.name)
    yield from titled("assigned to", where or "nothing; lore/assign assigns it")
    for title, value in (("scan depth", book.scan_depth), ("budget", book.token_budget)):
        if value is not None:
            yield from titled(title, str(value))
    if book.mode != "floating":
        yield from titled("mode", book.mode)
    if book.locks:
        yield from titled("lock", book.locks)
    for notice in book.notices[:_MOST_NOTICES]:
        yield from titled("note", notice)


def _where(book: str) -> str:
    """Return where a book is assigned, or for a card's book how many NPCs play the card."""
    card = card_called(book)
    if card is not None:
        playing = len(players_of(card.name))
        return f"card {card.name}, which {counted(playing, 'NPC')} play{'s' * (playing == 1)}"
    return ", ".join(map(scope_in_words, store.LOREBOOKS.assigned_to(book)))


def _row(entry: SeenEntry) -> str:
    uid = pad_text(escape_controls(entry.uid), _UID_COLUMNS)
    name = pad_text(escape_controls(entry.name) or "-", _NAME_COLUMNS)
    place = pad_text(escape_controls(entry.place), _PLACE_COLUMNS)
    keys = "always" if entry.constant else ", ".join(entry.keys) or "no keys"
    state = "" if entry.enabled else "(off) "
    return clip_text(
        f"{uid} {name} {place} {entry.order:5g}  {escape_controls(state + keys)}", WIDTH
    )


def _set_fields(entry: LoreEntry) -> Iterator[str]:
    """Yield the other fields that differ from their default."""
    for word, field in TYPED_FIELDS.items():
        value = value_in_words(field_text(field, entry))
        if value not in UNSET and word not in FIELDS_SHOWN_ELSEWHERE:
            yield f"{word} {value}"


def _wrapped(text: str) -> list[str]:
    first, *others = wrap_text(text, WIDTH - 4)
    return [first, *(f"    {line}" for line in others)]


_MOST_SHOWN: Final = 60


def npc_at_hand(caller: Any) -> Any:
    """Return the only NPC with a mind in the caller's room."""
    here = caller.location.contents if caller.location else []
    npcs: list[Any] = [npc for npc in here if isinstance(npc, HasMind)]
    if len(npcs) != 1:
        there = ", ".join(npc.key for npc in npcs)
        who = f"There are several NPCs here ({there})" if npcs else "There is no NPC here"
        raise CommandError(f"{who}; name one: lore/test <npc> = <text>.")
    return npcs[0]


def trial_lines(caller: Any, npc: NPC, text: str) -> list[str]:
    """Return what `text` would activate in `npc` if `caller` said it now. Nothing is changed."""
    if not npc.ai.view().books:
        return [f"No lorebook is used for {npc.key} here; lore/assign assigns one."]
    made, report = foreseen_report(seer_for(caller, npc.ai.ref), npc.ai.foreseen(text, caller))
    names = names_of(npc.ai.view().books)
    touched = made.lore.calling(made.prompt.called).touched
    awake = [verdict for verdict in _in_order(made.lore, touched) if verdict.kept]
    others = [verdict for verdict in touched if not verdict.kept]
    head = f"If {caller.key} said this to {npc.key} now; nothing was changed."
    lines = [*_indented(head, 0), *hidden_lines(report), f"{len(awake)} active:"]
    left_out = _left_out(made)
    for verdict in awake:
        lines += _judged(verdict, names, late=left_out.get(verdict.item, ""))
    lines.append(f"{len(others)} considered, but not active:")
    told = ["\n".join(_judged(verdict, names)) for verdict in others]
    lines += and_more(told, most=_MOST_SHOWN)
    return [*lines, *_silent(made.lore)]


def item_to_explain(caller: Any, npc: NPC, text: str) -> str:
    """Return the item that `text` names, with `<book>/<entry>` as the entry's label.

    Raises:
        CommandError: A lock hides the entry from `caller`.
    """
    book, entry = split(text)
    stored = stored_book(book) if entry else None
    item = f"{stored.name}#{entry}" if stored else text
    if stored is not None and card_called(stored.name) is not None:
        item = entry_in(caller, opened(stored), entry).entry.origin
    hidden = HiddenLore(viewer_of(caller))
    origins = [item, *origins_called(item, names_of(npc.ai.view().books))]
    if any(hidden.covers(origin) for origin in origins):
        raise CommandError(f"You may not see '{text}': its lock hides it from you.")
    return item


def _in_order(lore: Activation, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts, those on active entries first and in the order of activation."""
    at = {entry.origin: index for index, entry in enumerate(lore.entries)}
    return sorted(verdicts, key=lambda verdict: at.get(verdict.item, len(at)))


def _judged(verdict: Verdict, names: Mapping[str, str], *, late: str = "") -> Iterator[str]:
    name = f" ({names[verdict.item]})" if verdict.item in names else ""
    cost = f", {verdict.tokens} tokens" if verdict.tokens else ""
    yield from _indented(f"{verdict.item.removeprefix('lore:')}{name}{cost}", 2)
    yield from _indented(verdict.reason, 6)
    if late:
        yield from _indented(f"but left out of the prompt: {late}", 6)


def _left_out(made: Composition) -> dict[str, str]:
    """Return, by entry, why active entries are not in the prompt."""
    later = [v for v in made.prompt.touched if v.stage != "activate" and not v.kept]
    return {verdict.item: verdict.reason for verdict in reversed(later)}


def _silent(lore: Activation) -> Iterator[str]:
    touched = {verdict.item for verdict in lore.touched}
    count = len(lore.verdicts) - len(touched)
    yield f"{count} more are not active."
    for silence in lore.silent:
        labels = [label for label in silence.labels() if f"lore:{label}" not in touched]
        if labels:
            uids = pack_uids(label.removeprefix(f"{silence.book}#") for label in labels)
            told = f"{silence.book}, {counted(len(labels), 'entry', 'entries')}"
            line = f"  {told}: {silence.reason}: {uids}"
            yield clip_text(escape_controls(line), WIDTH)


def _indented(text: str, margin: int) -> list[str]:
    return [" " * margin + line for line in wrap_text(text, WIDTH - margin)]
