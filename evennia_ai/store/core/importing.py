"""Importing: what came from outside waits under its name until a builder answers it.

An import is written down as a revision and nothing else: it changes nothing until it is approved.
An approval, a rejection and a removal answer all imports of their name that came before. What is
granted is a row's text, the names of the grants.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from django.db.models import Exists, Max, OuterRef, QuerySet

from evennia_ai.engine.errors import ComponentValueError, StoreError
from evennia_ai.engine.prompt.components import Grant, Grants, in_order
from evennia_ai.store.core.authoring import MAX_NAME, Revisions

IMPORTED: Final = "imported"
# What answers the imports before it.
_ANSWERS: Final = ("approved", "rejected", "removed")


# "Oren/3" is revision 3 of Oren: one called so would be approved in its place.
_NUMBERED: Final = re.compile(r"/ ?[0-9]{1,9}\Z")
# Letters and marks that count as printable and show nothing: two names would look the same.
_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0]")
_WANTED: Final = (
    "1 to 200 printable characters, no = and no / at its start, and no / before a number at its end"
)


def typeable(name: str, *, what: str) -> str:
    """`name` in one line; ComponentValueError where no command could be told it."""
    plain = " ".join(name.split())
    fits = plain and plain.isprintable() and len(plain) <= MAX_NAME
    is_odd = _UNSEEN.search(plain) or _NUMBERED.search(plain)
    if not fits or is_odd or "=" in plain or plain.startswith("/"):
        raise ComponentValueError(f"name of the {what}", name[:60], _WANTED)
    return plain


def in_known_case(wanted: str, *known: Sequence[str]) -> str:
    """`wanted` in the case in which one of these names is it; without one, as it is.

    What the first of `known` has goes before the second.
    """
    for names in known:
        if wanted in names:
            return wanted
        same = [name for name in names if name.casefold() == wanted.casefold()]
        if len(same) == 1:
            return same[0]
    return wanted


class Granted(Protocol):
    """A change after which something has grants."""

    @property
    def action(self) -> str: ...
    @property
    def grants(self) -> Grants: ...


G = TypeVar("G", bound=Granted)


class Imports(Revisions):
    """Revisions of things that have a name and may be imported; the rows have a column for it."""

    def waiting(self, name: str) -> QuerySet:
        """The imports of this name that nobody has answered, oldest first."""
        rows = self.of(name=name)
        answered = rows.filter(action__in=_ANSWERS).aggregate(newest=Max("number"))["newest"]
        return rows.filter(action=IMPORTED, number__gt=answered or 0)

    def names(self) -> tuple[str, ...]:
        """All names that things have or had, those of imports included, in alphabetical order."""
        rows = self._table.objects.order_by("name").values_list("name", flat=True)
        return tuple(rows.distinct())

    def waiting_names(self) -> tuple[str, ...]:
        """The names under which imports wait, in alphabetical order."""
        return tuple(sorted(set(self._unanswered().values_list("name", flat=True))))

    def count_waiting(self) -> int:
        """How many imports wait, of all names."""
        return int(self._unanswered().count())

    def refuse_too_many(self, before: Sequence[str], *, most: int) -> None:
        """StoreError where more than `most` imports wait; `before` are the names that did."""
        if self.count_waiting() > most:
            raise StoreError(
                f"more than {most} imports would wait; approve or reject some first, as of"
                f" {', '.join(before[:10])}"
            )

    def _unanswered(self) -> QuerySet:
        """The rows of all imports that nobody has answered."""
        rows: Any = self._table.objects
        answers = rows.filter(
            name=OuterRef("name"), action__in=_ANSWERS, number__gt=OuterRef("number")
        )
        return rows.filter(~Exists(answers), action=IMPORTED)


def who_gave(changes: Iterable[G], *, in_force: Iterable[str]) -> dict[Grant, G]:
    """The change that gave each grant there is now, of all changes, oldest first.

    `in_force` are the actions after which something is in force as its revision has it.
    """
    counted, given = frozenset(in_force), dict[Grant, G]()
    for change in changes:
        if change.action in counted:
            given = {grant: given.get(grant, change) for grant in in_order(change.grants)}
    return given


def grants_text(grants: Grants) -> str:
    """Grants as a row has them."""
    return " ".join(in_order(grants))


def grants_from(text: str) -> Grants:
    """The grants a row has; one that is not known any more gives nothing."""
    return frozenset(in_order(frozenset(text.split())))  # type: ignore[arg-type]
