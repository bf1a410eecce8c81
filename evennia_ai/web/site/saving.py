"""Save a trial: each edit becomes a revision of the edited text, all in one transaction.

The form says which revisions it showed. If a text was changed since, nothing is saved, and the
error names who changed it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.formats.lorebooks.editing.edits import change_entry
from evennia_ai.npc.views.trials import Place, Trial, component_fields, entry_fields
from evennia_ai.store.authored import components, lorebooks, notes
from evennia_ai.store.core.snapshots import one_transaction

SEEN: Final = "seen"
_KIND: Final = "trial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saver:
    """Saves the edits that a builder tried on an NPC."""

    by: Actor
    npc_ref: str
    seen: Mapping[str, int]
    """The revisions that the form showed, by the component, note or book."""

    def save(self, trial: Trial, places: Mapping[str, Place]) -> None:
        """Write a revision of everything that is edited, or change nothing.

        Raises:
            FormatError: An edit cannot be saved here.
            NotPermittedError: A permission or a lock forbids it.
            EditConflictError: A text was changed since the form was shown.
            StoreError: The database refused.
        """
        wanted: dict[str, dict[str, int]] = {}
        for edit in trial.edits:
            if edit.origin not in places:
                raise FormatError(
                    _KIND,
                    f"{edit.origin} has no place that can be changed here; nothing was changed",
                )
            wanted.setdefault(edit.origin, {})[edit.field] = edit.value
        if not wanted:
            raise FormatError(_KIND, "there is no edit to save; nothing was changed")
        with one_transaction("saving a trial"):
            books: dict[str, list[str]] = {}
            for origin, given in wanted.items():
                place = places[origin]
                if place.holder == "component":
                    self._component(place, given)
                elif place.holder == "note":
                    self._note(place, given)
                else:
                    books.setdefault(place.key, []).append(origin)
            for name, origins in books.items():
                self._book(places[origins[0]], {one: wanted[one] for one in origins}, name)

    def _component(self, place: Place, given: Mapping[str, int]) -> None:
        assert place.scope is not None
        components.update(
            place.key,
            by=self.by,
            scope=place.scope,
            seen_revision=self._seen(place),
            **component_fields(given),
        )

    def _note(self, place: Place, given: Mapping[str, int]) -> None:
        fields = {name: given[name] for name in ("depth", "order") if name in given}
        switched = {"enabled": False} if "off" in given else {}
        notes.set_note(
            self.npc_ref,
            place.key,
            by=self.by,
            seen_revision=self._seen(place),
            **fields,
            **switched,
        )

    def _book(self, place: Place, wanted: Mapping[str, Mapping[str, int]], name: str) -> None:
        if place.holder == "card":
            raise FormatError(
                _KIND, f"'{name}' is the book inside a card; change it in the game with `lore`"
            )
        source: Any = json.loads(lorebooks.get_book(name).source)
        for origin, given in wanted.items():
            source = change_entry(source, origin.removeprefix(f"lore:{name}#"), entry_fields(given))
        text = json.dumps(source, ensure_ascii=False)
        lorebooks.save_book(name, text, by=self.by, seen_revision=self._seen(place))

    def _seen(self, place: Place) -> int:
        """Return the revision that the form showed.

        Raises:
            FormatError: The form does not say which.
        """
        seen = self.seen.get(_holder(place))
        if seen is None:
            raise FormatError(
                "form",
                f"the form does not name the revision of {place.origin} it showed; nothing changed:"
                " open the page again",
            )
        return seen


def current_revisions(places: Iterable[Place], npc_ref: str) -> dict[str, int]:
    """Return the current revisions of the components, notes and books that have these places."""
    return {_holder(place): _revision(place, npc_ref) for place in places}


def read_seen_revisions(lines: Iterable[str]) -> dict[str, int]:
    """Return the revisions that a form sent back, as `current_revisions` had returned them.

    Raises:
        FormatError: The form was not made by this page.
    """
    found: dict[str, int] = {}
    for line in lines:
        holder, at, number = line.rpartition("@")
        if not at or not number.isdecimal() or len(number) > 9:
            raise FormatError(
                "form", "the form does not say which revisions it showed; open the page again"
            )
        found[holder] = int(number)
    return found


def _holder(place: Place) -> str:
    scope = f"{place.scope.kind}:{place.scope.ref}/" if place.scope else ""
    return f"{place.holder}:{scope}{place.key}"


def _revision(place: Place, npc_ref: str) -> int:
    if place.holder == "component" and place.scope is not None:
        changes = components.COMPONENTS.revisions(place.key, scope=place.scope)
        return changes[-1].number if changes else 0
    if place.holder == "note":
        note = notes.NOTES.current(place.key, of_npc(npc_ref))
        return note.revision if note else 0
    return lorebooks.get_book(place.key).revision if place.holder == "book" else 0
