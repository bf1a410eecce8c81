"""Copies: what this game has taken from the library, and may therefore not be edited here.

The library itself is asked elsewhere: whoever reads or refuses by what stands here needs no other
machine.
"""

import time
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.store.core.snapshots import one_change, value_of

Kind = Literal["base", "card"]
_CARD: Final = "card:"
WORDS: Final = {"base": "knowledge base", "card": "card"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A base or a card that comes from the library."""

    kind: Kind
    name: str
    sha256: str
    """That of the library's entry as it was taken."""
    said: frozenset[str]
    """What the library says of who may read a base: fields, and access types of its lock."""
    game_name: str
    """The game that published it."""
    is_gone: bool
    """Whether it is in the library no more."""
    taken_by: str
    taken_at: float
    """When it was taken, or changed, last; in epoch seconds."""

    @property
    def typed(self) -> str:
        """How commands name it."""
        return typed(self.kind, self.name)


class CopyError(EvenniaAIError):
    """What comes from the library is edited where it comes from."""

    def __init__(self, copy: Copy, what: str = "") -> None:
        self.copy = copy
        thing = f"{WORDS[copy.kind]} '{copy.name}'"
        super().__init__(
            f"{what or thing} comes from the library, where the game {copy.game_name} published"
            f" {'that' if what else 'it'}: edit it there. library/own {copy.typed} makes {thing}"
            " this game's own. Nothing was changed"
        )


def typed(kind: Kind, name: str) -> str:
    """How commands name a base or a card."""
    return name if kind == "base" else f"{_CARD}{name}"


def named(text: str) -> tuple[Kind, str]:
    """What commands mean: "harbour" is a base, "card:Oren" a card."""
    if text.lower().startswith(_CARD):
        return "card", text[len(_CARD) :].strip()
    return "base", text.strip().lower()


def in_words(copy: Copy) -> str:
    """Where it comes from, for builders."""
    gone = ", which has it no more" if copy.is_gone else ""
    return f"the library{gone}; the game {copy.game_name} published it, and it is edited there"


def copies() -> tuple[Copy, ...]:
    """All that comes from the library, bases first, by their names."""
    rows = models.LibraryCopy.objects.order_by("kind", "name")
    return tuple(_value(row) for row in rows)


def copy_of(kind: Kind, name: str) -> Copy | None:
    """The base or card of this name, where it comes from the library."""
    row = models.LibraryCopy.objects.filter(kind=kind, name=name).first()
    return None if row is None else _value(row)


def refuse_copy(kind: Kind, name: str) -> None:
    """CopyError where the base or card of this name comes from the library."""
    if copy := copy_of(kind, name):
        raise CopyError(copy)


def keep(copy: Copy) -> None:
    """Write down what was taken, in the transaction that takes it."""
    columns = ("sha256", "game_name", "is_gone", "taken_by")
    models.LibraryCopy.objects.update_or_create(
        kind=copy.kind,
        name=copy.name,
        defaults={
            **{name: getattr(copy, name) for name in columns},
            "said": " ".join(sorted(copy.said)),
            "taken_at": time.time(),
        },
    )


def mark(kind: Kind, name: str, *, is_gone: bool) -> None:
    """Write down whether it is in the library no more."""
    models.LibraryCopy.objects.filter(kind=kind, name=name).update(is_gone=is_gone)


def make_own(kind: Kind, name: str, *, by: Actor) -> bool:
    """Make a copy this game's own, so that it is edited here; whether it came from the library."""
    with one_change(f"making {typed(kind, name)} this game's own", by=by):
        return forget(kind, name)


def forget(kind: Kind, name: str) -> bool:
    """Let it be the game's own from now on; whether it came from the library."""
    gone, _ = models.LibraryCopy.objects.filter(kind=kind, name=name).delete()
    return gone > 0


def _value(row: models.LibraryCopy) -> Copy:
    return value_of(Copy, row, said=frozenset(row.said.split()))
