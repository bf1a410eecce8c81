"""The library, for the command line: what it has, and the way into it and out of it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evennia_ai.cli.game import machine_owner
from evennia_ai.cli.output import write_json, write_lines
from evennia_ai.engine.knowledge.pages.page import PageName
from evennia_ai.engine.text.columns import visible
from evennia_ai.npc.model_calls.naming import game_id, game_name
from evennia_ai.store.authored.cards import known_name
from evennia_ai.store.core.copies import Copy, copies, named
from evennia_ai.store.library import entries as shelf
from evennia_ai.store.library.bases import publish_base
from evennia_ai.store.library.cards import publish_card
from evennia_ai.store.library.entries import Entry
from evennia_ai.store.library.following import take


def show(*, as_json: bool) -> int:
    """Print what is in the library, one line each, and what of it this game has."""
    with shelf.reading():
        found = shelf.entries()
    known = {copy.typed: copy for copy in copies()}
    if as_json:
        write_json({"entries": [_object(one, known.get(one.typed)) for one in found]}, indent=2)
    else:
        write_lines(_lines(found, known))
    return 0


def publish(text: str) -> int:
    """Put a base or a card into the library, and print what became of it."""
    kind, name = named(text)
    kept: Sequence[PageName] = ()
    if kind == "card":
        name = known_name(name)
        is_new = publish_card(name, game=game_id(), game_name=game_name(), by=machine_owner())
    else:
        done = publish_base(name, game=game_id(), game_name=game_name(), by=machine_owner())
        is_new, kept = done.is_new, done.kept
    lines = [f"stays at home: {one.full} (its lock asks for more than permissions)" for one in kept]
    end = "is in the library from now on" if is_new else "is in the library as it is now already"
    write_lines(visible(line) for line in (*lines, f"{text} {end}"))
    return 0


def use(text: str) -> int:
    """Take a base or a card from the library, as it is there now."""
    kind, name = named(text)
    with shelf.reading():
        found = shelf.entry(kind, name)
    take(found, by=machine_owner())
    then = f"it waits: card/approve {name} in the game" if kind == "card" else "it follows from now"
    write_lines([visible(f"{found.typed} of the game {found.game_name} is taken; {then}")])
    return 0


def remove(text: str) -> int:
    """Take a base or a card out of the library."""
    shelf.remove(*named(text), by=machine_owner())
    write_lines([visible(f"{text} is in the library no more; games that use it keep it")])
    return 0


def _lines(found: Sequence[Entry], known: Mapping[str, Copy]) -> Iterator[str]:
    for one in found:
        day = datetime.fromtimestamp(one.published_at, tz=UTC).strftime("%Y-%m-%d")
        yield visible(f"{one.typed}  {one.game_name}  {day}  {_state(one, known.get(one.typed))}")
    if not found:
        yield "The library is empty."


def _state(one: Entry, copy: Copy | None) -> str:
    if copy is None:
        return "published here" if one.game == game_id() else "not used here"
    return "used here" if copy.sha256 == one.sha256 else "used here as it was before"


def _object(one: Entry, copy: Copy | None) -> dict[str, Any]:
    return {
        "name": one.typed,
        "game": one.game_name,
        "published_at": one.published_at,
        "published_by": one.published_by,
        "here": _state(one, copy),
    }
