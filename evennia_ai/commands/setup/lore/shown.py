"""How lorebooks look to a builder: the books, the entries of one in pages, one entry in full.

Which fields an entry has, and what each may be, is for the table of `lorebook.formats`; how
builders write a value, and how it reads, is here.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from evennia.utils.search import search_object

from evennia_ai.commands.setup.lore import typed
from evennia_ai.commands.setup.lore.named import OpenBook, OpenEntry
from evennia_ai.commands.strict import CommandError
from evennia_ai.lorebook.book import mention_in_words
from evennia_ai.lorebook.entry import LoreEntry
from evennia_ai.lorebook.formats.entry_fields import TYPED_FIELDS, LoreField, Typed
from evennia_ai.lorebook.formats.values import Step
from evennia_ai.prompt.components import MAX_DEPTH, Scope
from evennia_ai.prompt.tokens import ESTIMATE
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.lorebooks import StoredBook
from evennia_ai.text.columns import WIDTH, clipped, padded, visible, wrapped

DEFAULT: Final = "default"
UNUSED: Final = "unused, for there is no sticky, cooldown or delay"

_SHOWN: Final = 120
# What has a switch of its own, by what somebody may call it.
_SWITCHES: Final[Mapping[str, str]] = {
    **{name: name for name in ("keys", "depth", "order", "position", "edit", "enable", "lock")},
    **dict.fromkeys(("secondary", "secondary_keys", "logic", "selective"), "secondary"),
    **dict.fromkeys(("outlet", "anchor"), "position"),
    **dict.fromkeys(("enabled", "on"), "enable"),
    "key": "keys",
    "content": "edit",
    "disabled": "off",
}


def field_named(word: str) -> LoreField:
    """The field that a builder calls `word`; CommandError names those there are."""
    name = "_".join(word.lower().split())
    if name in TYPED_FIELDS:
        return TYPED_FIELDS[name]
    if name in _SWITCHES:
        raise CommandError(f"'{word}' has a switch of its own: lore/{_SWITCHES[name]}.")
    near = get_close_matches(name[:40], TYPED_FIELDS, n=3)
    known = f"near it are {', '.join(near)}" if near else f"there are {', '.join(TYPED_FIELDS)}"
    raise CommandError(f"'{word}' is no field of an entry; {known}. Nothing was changed.")


def typed_value(field: LoreField, text: str) -> Any:
    """What a builder's text means; None takes back what the field says."""
    return None if text.lower() == DEFAULT else _READERS[field.typed or "text"](text)


def said_of(field: LoreField, entry: LoreEntry) -> Any:
    """What an entry says of a field, as builders read it."""
    return _IN_WORDS.get(field.name, field.says)(entry)


def in_words(value: Any) -> str:
    """A field's value in words, on one line of bounded length."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "as the book or the rules say"
    if isinstance(value, tuple | frozenset):
        return clipped(visible(", ".join(map(str, value))), _SHOWN) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return clipped(visible(" ".join(str(value).split())), _SHOWN) or "none"


def member_in_words(path: Sequence[Step]) -> str:
    """A member of an entry that an error names by its steps, as builders call it.

    `("when", 0, "test")` is the test of condition 1.
    """
    steps = [step for step in path if step not in _WRAPPINGS]
    name, *inside = steps or [*path]
    word = _WORDS.get(str(name), str(name))
    if name == "when" and inside:
        number, *inside = inside
        word = f"condition {int(number) + 1}"
    members = [step for step in inside if isinstance(step, str)]
    return f"the {members[-1]} of {word}" if members else word


def place_in_words(entry: LoreEntry) -> str:
    """Where an entry wants to stand."""
    if entry.depth == MAX_DEPTH and not entry.from_oldest:
        return f"the top of the history, {entry.role}"
    if entry.depth is not None:
        end = " from the oldest" if entry.from_oldest else ""
        return f"depth {entry.depth}{end}, {entry.role}"
    if entry.outlet:
        return f"outlet {entry.outlet}"
    if entry.anchor:
        return f"{entry.anchor.side} {entry.anchor.component}"
    if entry.mention:
        return mention_in_words(entry.mention)
    return entry.position


def _clock(entry: LoreEntry) -> Any:
    timing = entry.timing
    return timing.clock if timing.sticky or timing.cooldown or timing.delay else UNUSED


# How what builders type is read, and what is told otherwise than an entry says it.
_READERS: Final[Mapping[Typed, Callable[[str], Any]]] = {
    "text": typed.text_in,
    "word": typed.word,
    "flag": typed.flag,
    "number": typed.number,
    "number or off": typed.number_or_off,
    "keys": typed.keys_in,
    "mention": typed.mention_in,
    "questions": typed.questions,
}
_IN_WORDS: Final[Mapping[str, Callable[[LoreEntry], Any]]] = {
    "mention": place_in_words,
    "clock": _clock,
}
# What the editing calls a field that builders call otherwise.
_WORDS: Final[Mapping[str, str]] = {
    **{field.name: word for word, field in TYPED_FIELDS.items()},
    "secondary_keys": "secondary keys",
    "anchor": "position",
    "enabled": "state",
}
# Members of a file that only hold others.
_WRAPPINGS: Final = frozenset({"extensions", "evennia_ai"})


PAGE: Final = 30
_BOOK_COLUMNS: Final = 24
_UID_COLUMNS: Final = 8
_NAME_COLUMNS: Final = 20
_PLACE_COLUMNS: Final = 16
_MOST_NOTICES: Final = 6
_UNSET: Final = ("off", "none", "0", "100", in_words(None), UNUSED)


def listed(books: Iterable[StoredBook]) -> list[str]:
    """The books: how many entries each has, which revision it is, where it counts."""
    lines = [f"{padded('lorebook', _BOOK_COLUMNS)} entries revision  attached to", "-" * WIDTH]
    for book in books:
        name = padded(visible(book.name), _BOOK_COLUMNS)
        where = ", ".join(scope_in_words(scope) for scope in store.attachments(book.name))
        row = f"{name} {entry_count(book):7} {book.revision:8}  {where or 'nothing'}"
        lines.append(clipped(visible(row), WIDTH))
    return lines


def entry_count(book: StoredBook) -> int:
    """How many entries a book has; what they are is not looked at."""
    given = json.loads(book.source)
    inner = given.get("data") if given.get("spec") == "lorebook_v3" else given
    entries = inner.get("entries") if isinstance(inner, dict) else None
    return len(entries) if isinstance(entries, list | dict) else 0


def entries_in_words(count: int) -> str:
    """So many entries."""
    return "1 entry" if count == 1 else f"{count} entries"


def shown(book: OpenBook, entries: Sequence[LoreEntry], *, page: int) -> list[str]:
    """A book and one page of its entries, those that whoever looks may see."""
    pages = max(1, -(-len(entries) // PAGE))
    if not 1 <= page <= pages:
        raise CommandError(f"Lorebook '{book.name}' has the pages 1 to {pages}, no page {page}.")
    first = (page - 1) * PAGE
    lines = [*_head(book, len(entries)), "", _ENTRY_HEAD, "-" * WIDTH]
    lines += [_row(entry) for entry in entries[first : first + PAGE]]
    if page < pages:
        lines.append(f"Page {page} of {pages}; the next one is: lore {book.name} = {page + 1}")
    return lines


def entry_shown(found: OpenEntry) -> list[str]:
    """One entry in full."""
    entry, locks = found.entry, found.of.entry_locks.get(found.entry.uid, "")
    logic = f" ({entry.logic.replace('_', ' ')})" if entry.secondary_keys else ""
    lines = [
        *_wrapped(f"{found.label}, {'on' if entry.enabled else 'off'}"),
        *_titled("keys", ", ".join(entry.keys) or "none"),
        *_titled("secondary", (", ".join(entry.secondary_keys) or "none") + logic),
        *_titled("stands", f"{place_in_words(entry)}, order {entry.order:g}"),
        *_titled("also", ", ".join(_set_fields(entry)) or "nothing else is set"),
        *(_titled("lock", locks) if locks else []),
        *(_titled("never used", entry.refused) if entry.refused else []),
    ]
    for condition in entry.conditions:
        lines += _titled("only if", str(condition))
    for name, written in entry.decorators:
        lines += _titled("decorator", f"@@{name} {', '.join(written)}".rstrip())
    text = entry.template.source
    if not text.strip():
        return [*lines, "  no content: it is never active"]
    return [*lines, f"  content, about {ESTIMATE.count(text)} tokens:", "", text]


def scope_in_words(scope: Scope) -> str:
    """A place of a lorebook as a command takes it, with the name of an object."""
    if scope.kind in ("game", "zone", "faction"):
        return str(scope)
    found = search_object(f"#{scope.ref}")
    name = found[0].key if found else "gone"
    return f"{scope.kind}:#{scope.ref} ({name})"


_ENTRY_HEAD: Final = (
    f"{padded('id', _UID_COLUMNS)} {padded('name', _NAME_COLUMNS)}"
    f" {padded('stands', _PLACE_COLUMNS)} order  keys"
)


def _head(book: OpenBook, seen: int) -> Iterator[str]:
    stored, held = book.stored, book.book
    where = ", ".join(scope_in_words(scope) for scope in store.attachments(stored.name))
    hidden = len(held.entries) - seen
    more = f", {hidden} more hidden by locks" if hidden else ""
    count = entries_in_words(seen)
    yield from _wrapped(f"Lorebook {stored.name}, revision {stored.revision}, {count}{more}")
    yield from _titled("attached to", where or "nothing; lore/attach lets it count")
    for title, value in (("scan depth", held.scan_depth), ("budget", held.token_budget)):
        if value is not None:
            yield from _titled(title, str(value))
    if held.mode != "floating":
        yield from _titled("mode", held.mode)
    if stored.locks:
        yield from _titled("lock", stored.locks)
    for notice in held.notices[:_MOST_NOTICES]:
        yield from _titled("note", notice)


def _row(entry: LoreEntry) -> str:
    uid = padded(visible(entry.uid), _UID_COLUMNS)
    name = padded(visible(entry.name) or "-", _NAME_COLUMNS)
    place = padded(visible(place_in_words(entry)), _PLACE_COLUMNS)
    keys = "always" if entry.constant else ", ".join(entry.keys) or "no keys"
    state = "" if entry.enabled else "(off) "
    return clipped(f"{uid} {name} {place} {entry.order:5g}  {visible(state + keys)}", WIDTH)


def _set_fields(entry: LoreEntry) -> Iterator[str]:
    """The other fields that say something."""
    for word, field in TYPED_FIELDS.items():
        value = in_words(said_of(field, entry))
        if value not in _UNSET and word not in ("name", "place", "role"):
            yield f"{word} {value}"


def _titled(title: str, text: str) -> list[str]:
    first, *others = wrapped(text, WIDTH - 16)
    return [f"  {title:13} {first}", *(f"{'':16}{line}" for line in others)]


def _wrapped(text: str) -> list[str]:
    first, *others = wrapped(text, WIDTH - 4)
    return [first, *(f"    {line}" for line in others)]
