"""Resolve what builders type: NPCs, rooms, `<key>@<scope>`, `<npc>/<number>`, places, locks.

Each function returns a value or raises `CommandError` with one clear line. Locks are Evennia's lock
strings. If a lock does not mention an access type, only the command's own lock decides. The lock of
an entry or a page and the lock of its book or base must both allow access. A superuser passes every
lock.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from evennia.locks.lockhandler import LockException, check_lockstring, validate_lockstring
from evennia.objects.objects import DefaultCharacter, DefaultRoom
from evennia.utils.search import search_object

from evennia_ai.commands.base import CommandError
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.engine.prompt.conditions import parse_conditions
from evennia_ai.engine.prompt.registry import ComponentRegistry
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.mind.viewers import lock_allows
from evennia_ai.npc.senses.presence import NPC, HasMind
from evennia_ai.store.history import turns
from evennia_ai.store.history.conversations import is_conversation
from evennia_ai.store.history.turns import StoredTurn


class SeveralCalledSoError(CommandError):
    """Several things have the typed name. The caller must not try another meaning of it."""


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DBREF: Final = re.compile(r"#([0-9]{1,18})")
_FORMS: Final[Mapping[str, str]] = {
    "game": "game",
    "zone": "zone:<tag>",
    "here": "here",
    "room": "room:<room>",
    "npc": "npc:<name> or the name of an NPC",
    "faction": "faction:<tag>",
    "player": "player:<name>",
    "conversation": "conversation:<number>",
}
"""How builders type each kind of place."""
COMPONENT_PLACES: Final = ("game", "zone", "here", "room", "npc")
PRESET_PLACES: Final = COMPONENT_PLACES
LORE_PLACES: Final = (*COMPONENT_PLACES, "faction", "player")
KNOWLEDGE_PLACES: Final = (*COMPONENT_PLACES, "faction", "conversation")


def whole_number(text: str, *, what: str, words: str = "") -> int:
    """Return `text` as a whole number, 0 or more. `words` names what else could be typed."""
    if _WHOLE.fullmatch(text):
        number = int(text)
        if number >= 0:
            return number
    other = f", or {words}" if words else ""
    raise CommandError(
        f"The {what} must be a whole number, 0 or more{other}; '{text}' is not."
        " Nothing was changed."
    )


def any_whole_number(text: str, *, what: str) -> int:
    """Return `text` as a whole number, which may be negative."""
    if _WHOLE.fullmatch(text):
        return int(text)
    raise CommandError(f"The {what} must be a whole number; '{text}' is not. Nothing was changed.")


def depth_typed(text: str) -> int | None:
    """Return the depth in messages that `text` means, or None for `normal`.

    `bottom` is depth 0, after the newest message. Depth n has n messages after it.
    """
    word = text.lower()
    if word == "normal":
        return None
    return 0 if word == "bottom" else whole_number(text, what="depth", words="normal or bottom")


def conditions_typed(text: str) -> str:
    """Return the conditions that `text` means, "" for `off`.

    Raises:
        ComponentValueError: A part of the text is not a condition.
    """
    text = text.strip()
    if text.lower() == "off":
        return ""
    parse_conditions(text)
    return text


def name_and_rest(
    text: str, is_name: Callable[[str], bool], *, marks: str = "/"
) -> tuple[str, str]:
    """Split `text` at a mark into a name and the rest, "" if nothing follows.

    A name may contain a mark itself, so the longest beginning for which `is_name` is true counts.
    If there is none, the text is split at the first mark.
    """
    cuts = [at for at, letter in enumerate(text) if letter in marks]
    first = cuts[0] if cuts else len(text)
    ends = (len(text), *reversed(cuts))
    at = next((end for end in ends if is_name(text[:end].strip())), first)
    return text[:at].strip(), text[at + 1 :].strip()


def npc_and_key(caller: Any, text: str) -> tuple[Any, str]:
    """Return the NPC and the key after it, "" if there is none."""

    def is_npc(name: str) -> bool:
        found = caller.search(name, quiet=True) or caller.search(
            name, global_search=True, quiet=True
        )
        return any(isinstance(one, HasMind) for one in found)

    name, key = name_and_rest(text, is_npc) if "/" in text else (text, "")
    return npc_named(caller, name), key.lower()


def is_npc_name(caller: Any, name: str) -> bool:
    """True if `name` means exactly one NPC for `caller`."""
    try:
        npc_named(caller, name)
    except CommandError:
        return False
    return True


def npc_named(caller: Any, name: str) -> Any:
    """Return the NPC that `name` means for `caller`: first in the same room, then anywhere."""
    return _one(caller, name, what="NPC", accepts=lambda found: isinstance(found, HasMind))


def npc_here(caller: Any, name: str, *, hook: str = "", exact: bool = False) -> Any:
    """Return the NPC of this name in the caller's room.

    With `hook` also an object without a mind that has a method of this name. With `exact` the
    beginning of a name is not enough.
    """
    there = caller.search(name, location=caller.location, quiet=True, exact=exact)
    meant = [it for it in there if isinstance(it, HasMind) or (hook and hasattr(it, hook))]
    found = {f"{name}-{n}": it for n, it in enumerate(meant, start=1)}
    nobody = Phrase("There is nobody called '{name}' here to talk to.", name=name)
    return _only(found, name, nobody=nobody)


def component_named(caller: Any, text: str, *, registry: ComponentRegistry) -> tuple[str, Scope]:
    """Return the key or ID and the scope of `<key>[@<scope>]`."""
    wanted, at, place = text.partition("@")
    if not wanted.strip():
        raise CommandError(f"Name a component by its key or ID before '@{place}'.")
    scope = scope_named(caller, place.strip(), registry=registry) if at else GAME
    return wanted.strip(), scope


def scope_named(caller: Any, text: str, *, registry: ComponentRegistry) -> Scope:
    """Return the scope that `text`, the word after the @, means."""
    known = {component.scope for component in registry}
    return place_named(caller, text, kinds=COMPONENT_PLACES, known=known, what="a component")


def place_named(
    caller: Any, text: str, *, kinds: Sequence[str], known: Collection[Scope], what: str
) -> Scope:
    """Return the place that `text` means: a kind with a name, or only the name of an NPC.

    Args:
        caller: The builder, who may name things in the same room by their short names.
        text: What was typed, with or without an @.
        kinds: The kinds of places that are allowed, keys of `_READERS`.
        known: Places that are in use. One of a deleted object can still be named by number.
        what: What gets the place, such as "a lorebook".
    """
    text = text.removeprefix("@")
    kind, colon, name = text.partition(":")
    kind, name = kind.strip().lower(), name.strip()
    if kind in kinds:
        dbref = _DBREF.fullmatch(name)
        if dbref:
            gone = Scope(kind=kind, ref=dbref[1])  # type: ignore[arg-type]
            if gone in known:
                return gone
        return _READERS[kind](caller, name)
    forms = ", ".join(_FORMS[one] for one in kinds)
    if colon or not text or kind in _READERS or "npc" not in kinds:
        raise CommandError(
            f"'{text}' is no place for {what}; there are {forms}. Nothing was changed."
        )
    try:
        return _npc_scope(caller, text)
    except SeveralCalledSoError:
        raise
    except CommandError as error:
        raise CommandError(f"{error} Places for {what} are {forms}. Nothing was changed.") from None


def player_called(caller: Any, name: str, *, known: Collection[Scope]) -> Scope:
    """Return the player's character of this name. A deleted one in `known` is named by number."""
    typed = f"player:{name}"
    return place_named(caller, typed, kinds=("player",), known=known, what="a player")


def scope_in_words(scope: Scope) -> str:
    """Return a scope as commands take it, with the name of its object."""
    if scope.kind not in ("npc", "room", "player"):
        return escape_controls(str(scope))
    found = search_object(f"#{scope.ref}")
    return f"{scope.kind}:#{scope.ref} ({escape_controls(found[0].key) if found else 'gone'})"


def _game_scope(caller: Any, name: str) -> Scope:
    if name:
        raise CommandError(f"'game' is the whole game and takes no name; you wrote '{name}'.")
    return GAME


def _tagged_scope(kind: Literal["zone", "faction"], _caller: Any, name: str) -> Scope:
    if not name:
        raise CommandError(f"Name the {kind} by its tag: {kind}:<tag>.")
    return Scope(kind=kind, ref=name.lower())  # Evennia keeps tags in lower case.


def _room_scope(caller: Any, name: str) -> Scope:
    if not name:
        raise CommandError("Name the room: room:<room>. The room you are in is called 'here'.")
    room = _one(caller, name, what="room", accepts=lambda it: isinstance(it, DefaultRoom))
    return Scope(kind="room", ref=str(room.id))


def _npc_scope(caller: Any, name: str) -> Scope:
    if not name:
        raise CommandError("Name the NPC: npc:<name>.")
    return Scope(kind="npc", ref=str(npc_named(caller, name).id))


def _player_scope(caller: Any, name: str) -> Scope:
    if not name:
        raise CommandError("Name the player's character: player:<name>.")
    return Scope(kind="player", ref=str(_one(caller, name, what="player", accepts=_is_played).id))


def _here_scope(caller: Any, name: str) -> Scope:
    if name:
        raise CommandError(f"'here' is the room you are in; for another one: room:{name}.")
    if caller.location is None:
        raise CommandError("You are in no room; name one: room:<room>.")
    return Scope(kind="room", ref=str(caller.location.id))


def _conversation_scope(_caller: Any, name: str) -> Scope:
    number = int(name) if re.fullmatch(r"[0-9]{1,18}", name) else 0
    if not is_conversation(number):
        raise CommandError(
            f"There is no conversation '{name}'; ai/history <npc> shows the numbers of an NPC's"
            " conversations."
        )
    return Scope(kind="conversation", ref=str(number))


def _is_played(found: Any) -> bool:
    return isinstance(found, DefaultCharacter) and not isinstance(found, HasMind)


_READERS: Final[Mapping[str, Callable[[Any, str], Scope]]] = {
    "game": _game_scope,
    "zone": partial(_tagged_scope, "zone"),
    "here": _here_scope,
    "room": _room_scope,
    "npc": _npc_scope,
    "faction": partial(_tagged_scope, "faction"),
    "player": _player_scope,
    "conversation": _conversation_scope,
}
"""What reads each kind of place."""


def _one(caller: Any, name: str, *, what: str, accepts: Callable[[Any], bool]) -> Any:
    near = caller.search(name, quiet=True)
    found = [it for it in near if accepts(it)]
    if not found:
        far = caller.search(name, global_search=True, quiet=True)
        found = [it for it in far if accepts(it)]
        near = near or far
    mindless = what == "NPC" and near and not found
    why = (
        f"'{name}' exists, but has no mind: its typeclass must be AINPC or use AIMixin."
        if mindless
        else f"There is no {what} called '{name}'."
    )
    return _only({f"#{it.id}": it for it in found}, name, nobody=why)


def _only(found: dict[str, Any], name: str, *, nobody: str | Phrase) -> Any:
    """Return the only object in `found`. Its keys are names that tell the objects apart."""
    if not found:
        raise CommandError(nobody)
    if len(found) > 1:
        which = ", ".join(f"{it.key} ({alone})" for alone, it in list(found.items())[:8])
        raise SeveralCalledSoError(
            Phrase(
                "'{name}' could be {names}; name one as {one}.",
                name=name,
                names=which,
                one=next(iter(found)),
            )
        )
    return next(iter(found.values()))


_NUMBERED: Final = re.compile(r"(.+)/\s*(-?[0-9]{1,9})\s*")


def npc_and_number(caller: Any, text: str, *, what: str) -> tuple[Any, int | None]:
    """Return the NPC and the number after it, or None. `what` says what the number counts."""
    found = _NUMBERED.fullmatch(text)
    if found is None:
        return npc_named(caller, text), None
    return npc_named(caller, found[1].strip()), counted_number(found[2], what=what)


def counted_number(text: str, *, what: str) -> int:
    """Return `text` as a whole number from 1 on."""
    if re.fullmatch(r"[0-9]{1,9}", text) and int(text) > 0:
        return int(text)
    raise CommandError(f"The {what} must be a whole number from 1 on; '{text}' is not.")


def turn_of(npc: NPC, number: int) -> StoredTurn:
    """Return one turn of an NPC.

    Raises:
        CommandError: There is no such turn; the message names the newest.
    """
    last = turns.last_turn(npc.ai.ref)
    if last is None:
        raise CommandError(f"{npc.key} had no turn yet: it has answered nobody.")
    if number > last.number:
        raise CommandError(f"{npc.key} had no turn {number}; the newest is {last.number}.")
    return turns.get_turn(npc.ai.ref, number)


def turn_or_newest(npc: NPC, number: int | None) -> StoredTurn:
    """Return one turn of an NPC, by default the newest.

    Raises:
        CommandError: There is no such turn; the message names the newest.
    """
    return turn_of(npc, turns.next_number(npc.ai.ref) - 1 if number is None else number)


ACCESS: Final = ("view", "edit")
_TO_DO: Final = {"view": "see", "edit": "change"}


def lost_by(caller: Any, locks: str, access: Sequence[str] = ACCESS) -> str:
    """Return what `caller` could no longer do under this lock, in words; "" if all is allowed."""
    lost = [_TO_DO[kind] for kind in access if not lock_allows(caller, locks, kind)]
    return " or ".join(lost)


def checked_locks(
    caller: Any, locks: str, *, access: Sequence[str] = ACCESS, thing: str = "lorebook"
) -> str:
    """Return `locks` if Evennia can read them and they name only these access types.

    `thing` says what they are for.
    """
    is_valid, problem = validate_lockstring(locks)
    if not is_valid:
        raise CommandError(f"{_plain(problem)} Nothing was changed.")
    types = [part.partition(":")[0].strip() for part in locks.split(";") if part.strip()]
    example = f"{access[-1]}:perm(Admin);{access[0]}:all()"
    for unknown in (kind for kind in types if kind not in access):
        raise CommandError(
            f"'{unknown}' is no access type of a {thing}; there are {' and '.join(access)}, as in"
            f" {example}. Nothing was changed."
        )
    if not types or len(set(types)) < len(types):
        raise CommandError(f"Name each access type once, as in {example}. Nothing was changed.")
    for kind in types:
        _try_out(caller, locks, kind, thing=thing)
    return locks


def _try_out(caller: Any, locks: str, kind: str, *, thing: str) -> None:
    """Try the lock once, so that no lock is stored that fails when it is checked."""
    try:
        check_lockstring(caller, locks, no_superuser_bypass=True, access_type=kind)
    except LockException as error:
        raise CommandError(f"{_plain(str(error))} Nothing was changed.") from error
    # A lock function of the game may fail because it expects an object in the world.
    except Exception as error:
        raise CommandError(
            f"The lock '{locks}' fails for a {thing} ({type(error).__name__}: {error}); nothing"
            " was changed."
        ) from error


def _plain(problem: object) -> str:
    """Return Evennia's message about a bad lock as one sentence."""
    text = " ".join(str(problem).split()).removeprefix("Lock: ").rstrip(".")
    return f"The lock is refused: {text}."
