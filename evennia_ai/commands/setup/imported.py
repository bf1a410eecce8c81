"""The switches that `card` and `preset` share: imports, approvals, grants, revisions.

Both commands name a thing as `<name>` or `<name>/<number>`. An import changes nothing until a
builder approves it. The approved file must be the file of the report: if it could be another one,
the command asks for its number. Until a reload the command remembers which file a builder was shown
last. It refuses a grant if another builder has replaced that file.
"""

import re
from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import BackgroundWork, Steps, waits
from evennia_ai.commands.base import CommandError, Run, StrictCommand, and_more, day_and_time
from evennia_ai.commands.naming import whole_number
from evennia_ai.commands.screens import diffed
from evennia_ai.engine.errors import ComponentValueError, NotStoredError
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    ALLOWS,
    NO_GRANTS,
    Grants,
    in_order,
)
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, pad_text, wrap_text
from evennia_ai.npc.mind.imported_state import see_imported
from evennia_ai.store.authored.life_cycle import (
    Grantable,
    ImportedKind,
    Revision,
    with_values_before,
)
from evennia_ai.store.core.authoring import Change

G = TypeVar("G", bound=Grantable)

_NUMBERED: Final = re.compile(r"(.+)/([0-9]{1,9})")
_BETWEEN: Final = re.compile(r"[,\s]+")
_TITLE_COLUMNS: Final = 17
_NAME_COLUMNS: Final = 28
_MOST_LISTED: Final = 100
_MOST_REVISIONS: Final = 50
_MOST_LINES: Final = 200
_MOST_WAITING: Final = 10
_UNITS: Final = ("bytes", "KB", "MB", "GB")


class Named(NamedTuple):
    """A typed name. `number` is the number of a revision, or None."""

    name: str
    number: int | None = None


class ReadFile(Protocol):
    """The file of a card or preset, read in another thread."""

    @property
    def lines(self) -> Sequence[str]:
        """Return the lines of the report on the file."""

    @property
    def uses(self) -> Mapping[str, str] | None:
        """Return what the file uses each grant for, or None if only the report says so."""


class ImportedCommand(BackgroundWork, Generic[G]):
    """The switches of a command for imported cards or presets."""

    kind: ClassVar[ImportedKind[Any]]
    first: ClassVar[str]
    """The heading of the column that says where a card or preset is used."""

    # What each command declares.

    @abstractmethod
    def parse_later(self, thing: G) -> Any:
        """Parse a changed card or preset in another thread, before an NPC needs it."""

    @abstractmethod
    def read(self, thing: G) -> "Deferred[ReadFile]":
        """Read the file of a card or preset in another thread, with its grants."""

    @abstractmethod
    def differences(self, before: G | None, after: G) -> list[str]:
        """Return what is different in two files. Any thread may do this."""

    @abstractmethod
    def change_in_words(self, before: Revision[G] | None, change: Revision[G]) -> str:
        """Return what a revision did to the current file, in a few words."""

    @abstractmethod
    def counts_in(self, name: str) -> str:
        """Return where a card or preset is used, such as the NPCs that play a card."""

    @abstractmethod
    def after_approval(self, thing: G, old: G | None) -> Iterator[str]:
        """Yield lines that say where an approved card or preset is used now."""

    def compared_with_in_force(self, old: G, read: Any) -> Sequence[str]:
        """Return lines about how a file differs from the current one. Any thread may do this."""
        return ()

    def before_change(self, name: str) -> Any:
        """Return what `after_change` needs to know about the time before a change of the file."""
        return None

    def after_change(self, name: str, before: Any) -> list[str]:
        """Return lines that say what a change of a file did to the NPCs that use it."""
        return []

    def not_carried_over(self, thing: G) -> list[str]:
        """Return lines that say what the current file has and an import would not get."""
        if not thing.grants:
            return []
        had = f"Revision {thing.revision} has grants that the import does not get by itself:"
        return wrap_text(f"{had} {grants_in_words(thing.grants)}.", WIDTH)

    # Naming things.

    def thing_named(self, wanted: str) -> Any:
        """Return the current card or preset with this name.

        Raises:
            CommandError: It waits for an approval, or was removed.
        """
        name = self.kind.known_name(wanted)
        thing = self.kind.current(name)
        if thing is not None:
            return thing
        what, called = self.kind.name, f"{self.kind.name.capitalize()} {name}"
        if imports := self.kind.waiting(name):
            raise CommandError(
                f"{called} waits for approval; {what}/approve {name}/{imports[-1].number} approves"
                " it. Nothing was changed."
            )
        if self.kind.newest_number(name):
            raise CommandError(
                f"{called} was removed; {what}/revisions {name} lists its revisions, and"
                f" {what}/revert brings one back. Nothing was changed."
            )
        return self.kind.existing(name)

    def typed_thing(self, usage: str) -> Any:
        """Return the current card or preset that was typed to the left of "="."""
        return self.thing_named(self.plain_name(self.wanted(usage), usage))

    def plain_name(self, text: str, usage: str) -> str:
        """Return the name in a text. CommandError if the text has a number, too."""
        named = self.numbered(text)
        if named.number is not None:
            raise CommandError(f"Usage: {usage}, without a number. Nothing was changed.")
        return named.name

    def numbered(self, text: str) -> Named:
        """Return the name and the number of a revision that a text contains.

        A number after the last "/" is that of a revision, unless a thing has the whole text as its
        name.
        """
        name = self.kind.known_name(text)
        found = _NUMBERED.fullmatch(text)
        if found is None or name in self.kind.names_ever():
            return Named(name)
        return Named(self.kind.known_name(found[1].strip()), int(found[2]))

    def name_for(self, wanted: str) -> str:
        """Return the name that an import gets."""
        try:
            return self.kind.known_name(self.kind.typeable_name(wanted))
        except ComponentValueError as error:
            raise CommandError(
                f"{error}; give it another: {self.key}/import <file> = <name>."
                " Nothing was imported."
            ) from error

    # The switches.

    def listed(self) -> list[str]:
        """Return a table of all imported files with their grants, users and waiting imports."""
        what, waiting = self.kind.name, self.kind.waiting_names()
        names = sorted({*self.kind.list_keys(), *waiting})
        if not names:
            return [f"There are no {what}s yet; {what}/import reads one from a file."]
        titles = f"{pad_text(what, _NAME_COLUMNS)}  {pad_text('grants', 20)}  {self.first}"
        lines = [f"{'revision':>8}  {titles}"]
        for name in names[:_MOST_LISTED]:
            lines.append(clip_text(self._row(name), WIDTH))
            if name in waiting:
                lines += [f"{'':10}{line}" for line in _waiting_lines(self.kind.waiting(name))]
        more = and_more(names, most=_MOST_LISTED, more=f"{'':10}and {{}} more")
        return [*lines, *more[_MOST_LISTED:]]

    def state(self, thing: Any, *, facts: Sequence[str], source: str = "") -> list[str]:
        """Return the state of one file: who approved it, who gave each grant, and waiting imports.

        `source` says what the file was, such as ", from a png file".
        """
        state = see_imported(self.kind, thing.name)
        what = self.kind.name.capitalize()
        lines = [
            f"{what} {escape_controls(thing.name)}, revision {thing.revision}{source}",
            *(f"  {changed_in_words(one)}" for one in state.made_by),
            *facts,
            *(f"  may: {grant}, {given_in_words(one)}" for grant, one in state.grants.items()),
        ]
        if not state.grants:
            lines.append("  no grants: its texts stay inside the history, as a user's")
        waiting = (f"  {line}" for line in _waiting_lines(state.waiting))
        return [clip_text(line, WIDTH) for line in (*lines, *waiting)]

    @waits
    def report(self) -> Steps:
        """Show the report of an import or of a revision again."""
        text = self.wanted(f"{self.key}/report <name>[/<number>]")
        named = self.numbered(text)
        if named.number is None:
            change = self._import_named(text, switch="report")
        else:
            change = self.kind.revision(named.name, named.number)
        grants = NO_GRANTS if change.action == "imported" else change.value.grants
        thing = replace(self.kind.whole(change.value), grants=grants)
        read = yield self.read(thing)
        lines = [*read.lines]
        if change.action == "imported":
            lines += yield from self.compared_lines(change.key, read)
        self.show_report(change, lines)

    def approve(self) -> None:
        """Approve an import, with the typed grants and no others."""
        usage = f"{self.key}/approve <name>[/<number>] [= <grant>, <grant>...]"
        text = self.wanted(usage)
        if self.rhs is not None and not self.rhs:
            raise CommandError(f"Usage: {usage}")
        change = self._import_to_approve(text)
        grants = NO_GRANTS if self.rhs is None else typed_grants(self, self.rhs)
        name, old = change.key, self.kind.current(change.key)
        others = [one for one in self.kind.waiting(name) if one.number != change.number]
        before = self.before_change(name)
        thing = self.kind.approve(name, change.number, grants=grants, by=self.actor)
        self.parse_later(thing)
        told = [*self._approved(thing, old, change, others), *self.after_approval(thing, old)]
        lines = [line for one in told for line in wrap_text(one, WIDTH)]
        self.show([*lines, *self.after_change(name, before)])

    def reject(self) -> None:
        """Reject all waiting imports of a name."""
        what, usage = self.kind.name, f"{self.key}/reject <name>"
        name = self.plain_name(self.wanted(usage), usage)
        imports = self.kind.waiting(name)
        if not self.kind.reject(name, by=self.actor):
            raise CommandError(f"No import of a {what} '{name}' is waiting.")
        thing = self.kind.current(name)
        left = (
            f"Revision {thing.revision} stays as it was"
            if thing
            else f"There is no approved {what} of this name"
        )
        gone = "; ".join(import_in_words(one) for one in imports[-6:])
        self.say(f"Rejected the waiting imports of {what} {name}: {gone}. {left}.")

    @waits
    def grant(self) -> Steps:
        """Give grants to a card or preset. Without a value, show all grants."""
        usage = f"{self.key}/grant <name> [= <grant>, <grant>...]"
        thing = self.typed_thing(usage)
        if self.rhs is None:
            yield from self.show_grants(thing)
            return
        wanted = grants_typed(self, usage)
        new = wanted - thing.grants
        if not new:
            what = self.kind.name.capitalize()
            self.say(f"{what} {thing.name} has these grants already; nothing was changed.")
            return
        self._refuse_unseen(thing)
        after = self.kind.grant(thing.name, wanted, by=self.actor)
        self.parse_later(after)
        self.show(self._regranted(after, "may now", new))

    def revoke(self) -> None:
        """Take grants from a card or preset."""
        usage = f"{self.key}/revoke <name> = <grant>, <grant>..."
        thing = self.typed_thing(usage)
        gone = grants_typed(self, usage) & thing.grants
        if not gone:
            has = f"none of these grants, only {grants_in_words(thing.grants)}"
            told = has if thing.grants else "no grant at all"
            what = self.kind.name.capitalize()
            self.say(f"{what} {thing.name} has {told}; nothing was changed.")
            return
        after = self.kind.revoke(thing.name, gone, by=self.actor)
        self.parse_later(after)
        self.show(self._regranted(after, "may no longer", gone))

    @waits
    def revisions(self) -> Steps:
        """Show who changed a file and when. With a number, show what that revision changed."""
        what, usage = self.kind.name, f"{self.key}/revisions <name> [= <number>]"
        name = self.plain_name(self.wanted(usage), usage)
        changes = self.kind.revisions(name)
        if not changes:
            raise NotStoredError(what, name, self.kind.list_keys())
        if self.rhs is None:
            self.show(self._history(name, changes))
            return
        number = whole_number(self.rhs, what="revision")
        change = self.kind.revision(name, number)
        head = f"Revision {number} of {what} {name}, {changed_in_words(change)}."
        before = self.kind.revision_before(name, number)
        was = None if before is None else self.kind.whole(before.value)
        now = self.kind.whole(change.value)
        told = yield self.worked(
            f"Comparing revisions of {what} {name}", lambda _progress: self._compared(was, now)
        )
        self.show(diffed([head, *told]))

    def revert(self) -> Run:
        """Go back to an earlier revision, after a question."""
        text, value = self.both(f"{self.key}/revert <name> = <number>")
        name, number = self.kind.known_name(text), whole_number(value, what="revision")
        return self._revert_after_yes(self.kind.then(name, number))

    def remove(self) -> None:
        """Remove a card or preset. Its revisions stay."""
        what, usage = self.kind.name, f"{self.key}/remove <name>"
        thing = self.typed_thing(usage)
        self.check_removable(thing.name)
        imports = self.kind.waiting(thing.name)
        self.kind.remove(thing.name, by=self.actor)
        gone = "; ".join(import_in_words(one) for one in imports[-6:])
        waited = f" Its waiting imports are gone, too: {gone}." if imports else ""
        self.say(
            f"{what.capitalize()} {thing.name} is removed; {self.key}/revert {thing.name} ="
            f" {thing.revision} brings it back.{waited}"
        )

    def check_removable(self, name: str) -> None:
        """Raise CommandError if something in the game uses the card or preset."""

    def revert_told(self, thing: Any) -> str:
        """Return the sentence after a revert: where the card or preset is used."""
        return f"It {self.counts_in(thing.name)}."

    # What the switches share.

    def compared_lines(self, name: str, read: ReadFile) -> Generator[Any, Any, Sequence[str]]:
        """Return lines about how a file differs from the current one with this name, if any."""
        old = self.kind.current(name)
        if old is None:
            return ()
        told: Sequence[str] = yield self.worked(
            f"Comparing with {self.kind.name} {name}",
            lambda _progress: self.compared_with_in_force(old, read),
        )
        return told

    def show_report(self, change: Revision[G], lines: Sequence[str]) -> None:
        """Show a report. Remember until a reload that this builder has seen it."""
        what, name, number = self.kind.name, change.key, change.number
        if change.action == "imported":
            head = (
                f"Import {number} of {what} {name}, by {escape_controls(change.changed_by)},"
                f" {day_and_time(change.changed_at)}. It changes nothing yet."
            )
        else:
            head = f"Revision {number} of {what} {name}, {changed_in_words(change)}."
        end: list[str] = []
        if any(one.number == number for one in self.kind.waiting(name)):
            end = ["", f"To approve it: {self.key}/approve {name}/{number} [= <grants>]"]
            if thing := self.kind.current(name):
                end += self.not_carried_over(thing)
        self.show([*wrap_text(head, WIDTH), *lines, *end])
        setattr(self.caller.ndb, f"{what}_reports", {**self._reports_seen(), name: change.number})
        self.saw_file(name, change.value.sha256)

    def saw_file(self, name: str, sha256: str) -> None:
        """Remember that this builder has seen the current file."""
        seen = {**self._files_seen(), name: sha256}
        setattr(self.caller.ndb, f"{self.kind.name}_files_seen", seen)

    def show_grants(self, thing: Any) -> Steps:
        """Show every grant: what it allows, and who gave it to this card or preset."""
        read = yield self.read(thing)
        what, name = self.kind.name, thing.name
        given = see_imported(self.kind, name).grants
        lines = [f"Grants of {what} {name}, revision {thing.revision}:"]
        for grant, allows in ALLOWS.items():
            whose = f" ({given_in_words(given[grant])})" if grant in given else ""
            lines += column(f"{'*' if grant in given else ' '} {grant}", f"{allows}{whose}")
            if read.uses is not None:
                use = read.uses.get(grant)
                lines += column("", f"here: {use}" if use else f"the {what} has no use for it")
        lines += [
            "It has the grants that are marked with *.",
            f"{self.key}/grant {name} = <grant> gives a grant, {self.key}/revoke takes it.",
        ]
        if read.uses is None:
            self.saw_file(name, thing.sha256)
            lines += ["", *read.lines]
        self.show(lines)

    def _revert_after_yes(self, then: Any) -> Generator[str, Any, None]:
        what, name, number = self.kind.name, then.name, then.revision
        now = self.kind.current(name)
        is_same = now is not None and self.kind.is_same(now, then)
        changes = [] if is_same else self._compared(now, then)
        seen = now.revision if now else 0
        revert = partial(self.kind.revert, name, number, by=self.actor, seen_revision=seen)
        going = self.goes_back(f"{what} {name}", number, changes=changes, revert=revert)
        if not (yield from going):
            return
        before = self.before_change(name)
        back = revert()
        self.parse_later(back)
        was = f"it was revision {now.revision}" if now else "it was removed"
        self.say(
            f"{what.capitalize()} {name} is what it was at revision {number},"
            f" {may_in_words(back.grants)}; before {was}, this is revision {back.revision}."
            f" {self.revert_told(back)}"
        )
        if lines := self.after_change(name, before):
            self.show(lines)

    def _compared(self, before: Any, after: Any) -> list[str]:
        """Return the lines that differ between two revisions of a file, with their grants."""
        grants = []
        if before is not None and before.grants != after.grants:
            was, now = grants_in_words(before.grants), grants_in_words(after.grants)
            grants = ["grants:", f"- {was}", f"+ {now}"]
        lines = self.differences(before, after) or ["No text is different."]
        head = f"Compared with revision {before.revision}:" if before else "There was none before:"
        more = f"and {{}} lines more; {self.key}/export writes all of it"
        return and_more([*grants, head, *lines], most=_MOST_LINES, more=more)

    def _history(self, name: str, changes: Sequence[Revision[G]]) -> Iterator[str]:
        """Yield the revisions of a card or preset, oldest first."""
        yield f"Revisions of {self.kind.name} {name}; {self.key}/revert goes back to an approved"
        yield f"one, {self.key}/revisions {name} = <number> shows what one changed:"
        if len(changes) > _MOST_REVISIONS:
            yield f"       and {len(changes) - _MOST_REVISIONS} older ones"
        for before, change in [*with_values_before(changes)][-_MOST_REVISIONS:]:
            yield clip_text(f"{change.number:5}  {changed_in_words(change)}", WIDTH)
            yield clip_text(f"       {self.change_in_words(before, change)}", WIDTH)

    def _import_to_approve(self, text: str) -> Revision[G]:
        """Return the import that a builder may approve by `<name>[/<number>]`.

        Without a number it must be the only waiting import, and the one whose report the builder
        was shown last.
        """
        found = self._import_named(text, switch="approve")
        if self.numbered(text).number is None and self._reports_seen().get(found.key) != (
            found.number
        ):
            what = self.kind.name
            raise CommandError(
                f"The waiting import of {what} {found.key} is {import_in_words(found)}: read it"
                f" with {what}/report {found.key}, then {what}/approve {found.key}/{found.number}."
                " Nothing was changed."
            )
        return found

    def _import_named(self, text: str, *, switch: str) -> Revision[G]:
        named, what = self.numbered(text), self.kind.name
        imports = self.kind.waiting(named.name)
        if not imports:
            known = named.name in self.kind.names_ever()
            shown = f"; {what} {named.name} shows the approved one" if known else ""
            raise CommandError(f"No import of a {what} '{named.name}' is waiting{shown}.")
        chosen = [one for one in imports if named.number in (None, one.number)]
        if len(chosen) == 1:
            return chosen[0]
        waiting = "; ".join(import_in_words(one) for one in imports[-6:])
        raise CommandError(
            f"Name the import by its number, as in {what}/{switch}"
            f" {named.name}/{imports[-1].number}. These imports of {what} {named.name} wait:"
            f" {waiting}. Nothing was changed."
        )

    def _approved(
        self, thing: Any, old: Any, change: Revision[G], others: Sequence[Revision[G]]
    ) -> Iterator[str]:
        """Yield sentences that say what an approval did."""
        what = self.kind.name
        whose = f"import {change.number} by {escape_controls(change.changed_by)}"
        yield (
            f"{what.capitalize()} {thing.name} is approved, revision {thing.revision}: {whose},"
            f" {may_in_words(thing.grants)}."
        )
        lost = old.grants - thing.grants if old is not None else NO_GRANTS
        if lost:
            yield (
                f"Not carried over from revision {old.revision}: {grants_in_words(lost)};"
                f" {self.key}/grant {thing.name} = {grants_in_words(lost)} gives that again."
            )
        if others:
            named = "; ".join(import_in_words(one) for one in others[-_MOST_WAITING:])
            yield f"These imports no longer wait: {named}."

    def _regranted(self, thing: Any, now: str, grants: Grants) -> list[str]:
        """Return lines that say which grants changed, and for which file."""
        what = self.kind.name.capitalize()
        changes = self.kind.revisions(thing.name)
        is_from = next(one for one in changes if one.value.sha256 == thing.sha256)
        lines = [f"{what} {thing.name} {now}:"]
        for grant in in_order(grants):
            lines += column(f"  {grant}", ALLOWS[grant])
        rest = (
            f"Revision {thing.revision}, of the file that was {changed_in_words(is_from)};"
            f" it has the grants: {grants_in_words(thing.grants)}."
        )
        return lines + wrap_text(rest, WIDTH)

    def _row(self, name: str) -> str:
        thing = self.kind.current(name)
        if thing is None:
            return f"{'-':>8}  {pad_text(escape_controls(name), _NAME_COLUMNS)}  not approved yet"
        grants = "all" if thing.grants == ALL_GRANTS else grants_in_words(thing.grants)
        named = f"{pad_text(escape_controls(name), _NAME_COLUMNS)}  {pad_text(grants, 20)}"
        return f"{thing.revision:8}  {named}  {self.counts_in(name)}"

    def _refuse_unseen(self, thing: Any) -> None:
        """Raise CommandError if this builder was last shown another file than the current one."""
        what, name = self.kind.name, thing.name
        if self._files_seen().get(name, thing.sha256) != thing.sha256:
            raise CommandError(
                f"{what.capitalize()} {name} has another file than the one you saw last. Look at"
                f" it with {what} {name}, then type this again. Nothing was changed."
            )

    def _reports_seen(self) -> dict[str, int]:
        """Return, by name, the revision whose report this builder saw last."""
        return getattr(self.caller.ndb, f"{self.kind.name}_reports") or {}

    def _files_seen(self) -> dict[str, str]:
        return getattr(self.caller.ndb, f"{self.kind.name}_files_seen") or {}


def _waiting_lines(imports: Sequence[Change]) -> Iterator[str]:
    """Yield the newest waiting imports of a name, and how many older ones there are."""
    for one in imports[-_MOST_WAITING:]:
        yield clip_text(f"waits: {import_in_words(one)}", WIDTH - 10)
    if len(imports) > _MOST_WAITING:
        yield f"and {len(imports) - _MOST_WAITING} older imports wait"


def typed_grants(command: StrictCommand, text: str) -> Grants:
    """Return the typed grants.

    Raises:
        CommandError: A word is no grant, or there is no word. All grants are listed first.
    """
    words = [word.lower() for word in _BETWEEN.split(text) if word]
    unknown = [word for word in words if word not in ALLOWS]
    if unknown or not words:
        command.show(["Grants, and what each allows:", *allowed()])
        what = f"'{unknown[0]}' is no grant" if unknown else "No grant was named"
        raise CommandError(f"{what}; see the list above. Nothing was changed.")
    return frozenset(grant for grant in ALLOWS if grant in words)


def grants_typed(command: StrictCommand, usage: str) -> Grants:
    """Return the grants typed to the right of "=". CommandError if there are none."""
    if not command.rhs:
        raise CommandError(f"Usage: {usage}")
    return typed_grants(command, command.rhs)


def import_in_words(change: Change) -> str:
    """Return the number of an import, who made it, and when, as part of a line."""
    who = escape_controls(change.changed_by)
    return f"number {change.number} by {who}, {day_and_time(change.changed_at)}"


def changed_in_words(change: Change) -> str:
    """Return what a change did, who made it, and when, as part of a line."""
    who = escape_controls(change.changed_by)
    return f"{change.action} by {who}, {day_and_time(change.changed_at)}"


def given_in_words(change: Change) -> str:
    """Return who gave a grant, and when, as part of a line."""
    return f"given by {escape_controls(change.changed_by)}, {day_and_time(change.changed_at)}"


def grants_in_words(grants: Grants) -> str:
    """Return the names of grants as builders type them, or "none"."""
    return ", ".join(in_order(grants)) or "none"


def may_in_words(grants: Grants) -> str:
    """Return the grants of a file as a phrase, such as "with the grants fields"."""
    return f"with the grants {grants_in_words(grants)}" if grants else "without any grant"


def allowed() -> list[str]:
    """Return all grants with what each allows."""
    return [line for grant, allows in ALLOWS.items() for line in column(f"  {grant}", allows)]


def column(title: str, text: str) -> list[str]:
    """Return lines with a title in the left column and a text next to it."""
    first, *rest = wrap_text(text, WIDTH - _TITLE_COLUMNS)
    lines = [f"{pad_text(title, _TITLE_COLUMNS)}{first}"]
    return lines + [f"{'':{_TITLE_COLUMNS}}{line}" for line in rest]


def size_in_words(size_bytes: int) -> str:
    """Return a file's size in readable units."""
    size, unit = float(size_bytes), _UNITS[0]
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size_bytes} bytes" if unit == _UNITS[0] else f"{size:.1f} {unit}"
