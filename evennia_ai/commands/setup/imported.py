"""What is imported under a name and granted rights: how builders name it, and words about it.

Cards and presets are named alike, `<name>` or `<name>/<number>`, wait alike, are approved by the
report that was read, and have grants. Each kind brings its own store.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from evennia_ai.commands.base import CommandError, StrictCommand, day_and_time
from evennia_ai.engine.prompt.components import ALLOWS, Grants, in_order
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, pad_text, wrap_text

_NUMBERED: Final = re.compile(r"(.+)/([0-9]{1,9})")
_BETWEEN: Final = re.compile(r"[,\s]+")
_TITLE_COLUMNS: Final = 17
MOST_WAITING: Final = 10
_UNITS: Final = ("bytes", "KB", "MB", "GB")


class Changed(Protocol):
    """A change of something that is imported."""

    @property
    def number(self) -> int: ...
    @property
    def action(self) -> str: ...
    @property
    def changed_by(self) -> str: ...
    @property
    def changed_at(self) -> float: ...
    @property
    def name(self) -> str: ...
    @property
    def sha256(self) -> str: ...


C = TypeVar("C", bound=Changed)


class Named(NamedTuple):
    """A thing as it was named; `number` is that of a revision, None where none was written."""

    name: str
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported(Generic[C]):
    """One kind of imported things, and what its store knows of their names and revisions."""

    what: str
    """What one is called, which is its command's name too."""
    known_name: Callable[[str], str]
    names: Callable[[], Sequence[str]]
    """All names that were ever in use."""
    waiting: Callable[[str], Sequence[C]]
    newest_number: Callable[[str], int]
    """The number of the newest revision of a name, 0 for none."""
    change: Callable[[str, int], C]
    """One change by name and number; NotStoredError: there is none."""

    def refuse_absent(self, name: str) -> None:
        """CommandError where nothing of this name is in force, but was or waits to be."""
        called = f"{self.what.capitalize()} {name}"
        if imports := self.waiting(name):
            raise CommandError(
                f"{called} is not in force, its import only waits:"
                f" {self.what}/approve {name}/{imports[-1].number} puts it in force."
                " Nothing was changed."
            )
        if self.newest_number(name):
            raise CommandError(
                f"{called} is not in force any more; {self.what}/revisions {name} tells what it"
                f" was, and {self.what}/revert brings it back. Nothing was changed."
            )

    def waiting_lines(self, name: str) -> Iterator[str]:
        """The newest imports of a name that wait, a line each, and how many older ones do."""
        imports = self.waiting(name)
        for one in imports[-MOST_WAITING:]:
            yield clip_text(f"waits: {import_in_words(one)}", WIDTH - 10)
        if len(imports) > MOST_WAITING:
            yield f"and {len(imports) - MOST_WAITING} older imports wait"

    def plain_name(self, text: str, usage: str) -> str:
        """The name in `text`, which stands without a number."""
        named = self.numbered(text)
        if named.number is not None:
            raise CommandError(f"Usage: {usage}, without a number. Nothing was changed.")
        return named.name

    def numbered(self, text: str) -> Named:
        """The thing, and the revision, that `text` names.

        What stands behind the last "/" is a number where it is one, and nothing has the whole name.
        """
        name = self.known_name(text)
        found = _NUMBERED.fullmatch(text)
        if found is None or name in self.names():
            return Named(name)
        return Named(self.known_name(found[1].strip()), int(found[2]))

    def import_named(self, text: str, *, read: Mapping[str, int]) -> C:
        """The import that waits and that `<name>[/<number>]` means, to be approved.

        Without a number it is the only one, and the one whose report the builder was shown last, as
        `read` has it: what was imported meanwhile, under whatever builder's name, nobody has read.
        """
        found = self._import_named(text, switch="approve")
        if self.numbered(text).number is None and read.get(found.name) != found.number:
            raise CommandError(
                f"The import of {self.what} {found.name} that waits is {import_in_words(found)}:"
                f" read it with {self.what}/report {found.name}, then"
                f" {self.what}/approve {found.name}/{found.number}. Nothing was changed."
            )
        return found

    def reported(self, text: str) -> C:
        """The revision that `<name>/<number>` means, or the one import of the name that waits."""
        named = self.numbered(text)
        if named.number is not None:
            return self.change(named.name, named.number)
        return self._import_named(text, switch="report")

    def report_head(self, change: C) -> list[str]:
        """What a report is about."""
        if change.action == "imported":
            said = (
                f"Import {change.number} of {self.what} {change.name}, by"
                f" {escape_controls(change.changed_by)}, {day_and_time(change.changed_at)}."
                " It changes nothing yet."
            )
        else:
            said = (
                f"Revision {change.number} of {self.what} {change.name},"
                f" {changed_in_words(change)}."
            )
        return wrap_text(said, WIDTH)

    def saw_report(self, builder: Any, change: C) -> None:
        """The builder was shown the report on this revision."""
        reports = {**self.reports_seen(builder), change.name: change.number}
        setattr(builder.ndb, f"{self.what}_reports", reports)
        self.saw_file(builder, change.name, change.sha256)

    def reports_seen(self, builder: Any) -> dict[str, int]:
        """The revision whose report the builder was shown last, by the thing's name."""
        return getattr(builder.ndb, f"{self.what}_reports") or {}

    def saw_file(self, builder: Any, name: str, sha256: str) -> None:
        """The builder was shown the file in force."""
        seen = {**self._files_seen(builder), name: sha256}
        setattr(builder.ndb, f"{self.what}_files_seen", seen)

    def refuse_unseen(self, builder: Any, name: str, sha256: str) -> None:
        """CommandError where the file in force is not the one the builder was shown last."""
        if self._files_seen(builder).get(name, sha256) != sha256:
            raise CommandError(
                f"Another file is in force as {self.what} {name} than the one you were shown last:"
                f" look at it with {self.what} {name}, then type this again. Nothing was changed."
            )

    def _files_seen(self, builder: Any) -> dict[str, str]:
        return getattr(builder.ndb, f"{self.what}_files_seen") or {}

    def _import_named(self, text: str, *, switch: str) -> C:
        named = self.numbered(text)
        imports = self.waiting(named.name)
        if not imports:
            known = named.name in self.names()
            shown = f"; {self.what} {named.name} shows what is in force" if known else ""
            raise CommandError(f"No import of a {self.what} '{named.name}' waits{shown}.")
        chosen = [one for one in imports if named.number in (None, one.number)]
        if len(chosen) == 1:
            return chosen[0]
        waiting = "; ".join(import_in_words(one) for one in imports[-6:])
        raise CommandError(
            f"Name the import by its number, as in"
            f" {self.what}/{switch} {named.name}/{imports[-1].number}."
            f" Of {self.what} {named.name} wait: {waiting}. Nothing was changed."
        )


def typed_grants(command: StrictCommand, text: str) -> Grants:
    """The grants that were typed; CommandError, after a list of all, where one is none."""
    words = [word.lower() for word in _BETWEEN.split(text) if word]
    unknown = [word for word in words if word not in ALLOWS]
    if unknown or not words:
        command.show(["Grants, and what each allows:", *allowed()])
        what = f"'{unknown[0]}' is no grant" if unknown else "No grant was named"
        raise CommandError(f"{what}; those there are stand above. Nothing was changed.")
    return frozenset(grant for grant in ALLOWS if grant in words)


def grants_typed(command: StrictCommand, usage: str) -> Grants:
    """The grants right of "=", of which there must be some."""
    if not command.rhs:
        raise CommandError(f"Usage: {usage}")
    return typed_grants(command, command.rhs)


def import_in_words(change: Changed) -> str:
    """An import, for a line: its number, whose it is, and when it was made."""
    who = escape_controls(change.changed_by)
    return f"number {change.number} of {who}, {day_and_time(change.changed_at)}"


def changed_in_words(change: Changed) -> str:
    """Who made a change, and when."""
    who = escape_controls(change.changed_by)
    return f"{change.action} by {who}, {day_and_time(change.changed_at)}"


def given_in_words(change: Changed) -> str:
    """Who gave a grant, and when."""
    return f"given by {escape_controls(change.changed_by)}, {day_and_time(change.changed_at)}"


def grants_in_words(grants: Grants) -> str:
    """The names of grants, as they are typed."""
    return ", ".join(in_order(grants)) or "none"


def may_in_words(grants: Grants) -> str:
    """What somebody's text may do, in one clause."""
    return f"with the grants {grants_in_words(grants)}" if grants else "without any grant"


def allowed() -> list[str]:
    """All grants, with what each allows."""
    return [line for grant, allows in ALLOWS.items() for line in column(f"  {grant}", allows)]


def column(title: str, text: str) -> list[str]:
    """A text beside its title, in lines."""
    first, *rest = wrap_text(text, WIDTH - _TITLE_COLUMNS)
    lines = [f"{pad_text(title, _TITLE_COLUMNS)}{first}"]
    return lines + [f"{'':{_TITLE_COLUMNS}}{line}" for line in rest]


def size_in_words(size_bytes: int) -> str:
    """A file's size."""
    size, unit = float(size_bytes), _UNITS[0]
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size_bytes} bytes" if unit == _UNITS[0] else f"{size:.1f} {unit}"
