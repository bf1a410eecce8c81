"""A form in which a builder creates or edits one entry of a lorebook, as a new revision of the
book.

If a text cannot be saved, the form is shown again with what was typed and says why.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, get_args

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import (
    EditConflictError,
    EvenniaAIError,
    FormatError,
    NotPermittedError,
    NotStoredError,
)
from evennia_ai.engine.lorebook.entry import Logic, LoreEntry
from evennia_ai.engine.lorebook.scan.regex.pattern import has_slashes
from evennia_ai.engine.prompt.components import MAX_DEPTH
from evennia_ai.formats.lorebooks.editing.edits import add_entry, change_entry, content_at
from evennia_ai.formats.lorebooks.editing.typed import (
    field_text,
    in_words_of,
    parse_value,
    value_in_words,
)
from evennia_ai.formats.lorebooks.entry_fields import TYPED_FIELDS
from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.views.parse_cache import attached_book
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.authored.lorebooks import StoredBook
from evennia_ai.web.site import running_game
from evennia_ai.web.site.kept import make_or_foresee
from evennia_ai.web.site.next import MOST_TYPED
from evennia_ai.web.site.page import Page, find_npc_ref, name_of, read_seen_revision

PLACES: Final = (
    *("before", "after", "depth", "note_top", "note_bottom", "examples_before", "examples_after"),
)
LOGICS: Final = get_args(Logic)
_OTHER: Final = "field-"
"""The start of the names of the form's inputs for fields without an input of their own."""
_IN_THE_FORM: Final = ("place", "name", "constant")
_NEW: Final[Mapping[str, Any]] = {
    "name": "",
    "keys": [],
    "secondary_keys": [],
    "logic": "any",
    "content": "",
    "position": "after",
    "depth": None,
    "order": 100,
    "constant": False,
    "enabled": True,
}


class EntryPage(Page):
    """`/ai/lore/<book>/entry/<uid>/`, and `/ai/lore/<book>/new/` for a new entry."""

    template = "evennia_ai/entry.html"
    section = "lore"

    def page_values(self, name: str, uid: str = "") -> dict[str, Any]:
        stored = self._book(name, uid)
        fields = dict(_NEW) if not uid else _fields(stored, _entry(stored, uid))
        return self._form(stored, uid, fields)

    def post(self, request: HttpRequest, name: str, uid: str = "") -> HttpResponseBase:
        """Save the entry of the form, or say which kept answers that would change."""
        stored = self._book(name, uid)
        typed: dict[str, Any] = dict(_NEW)
        made: list[str] = []
        try:
            foreseen = make_or_foresee(
                self, lambda: made.append(self._saved(stored, uid, _typed(request.POST)))
            )
        except NotPermittedError:
            raise
        except EvenniaAIError as error:
            told = self._form(stored, uid, {**typed, **_as_typed(request.POST)})
            status = 409 if isinstance(error, EditConflictError) else 400
            return self.render_values({**told, "problem": str(error)}, status=status)
        if foreseen is not None:
            told = self._form(stored, uid, {**typed, **_as_typed(request.POST)})
            return self.render_values({**told, "foreseen": foreseen})
        where = reverse("evennia_ai:entry", kwargs={"name": name, "uid": made[0]})
        return HttpResponseRedirect(f"{where}?saved=1")

    def _book(self, name: str, uid: str) -> StoredBook:
        """Return the book.

        Raises:
            NotStoredError: There is no such book, or the account may not see it or the entry.
        """
        may_view = viewer_of(self.request.user).may_view
        stored = lorebooks.get_book(name)
        if not may_view(stored.locks) or not may_view(lorebooks.entry_locks(name).get(uid, "")):
            raise NotStoredError("lorebook", name)
        return stored

    def _form(self, stored: StoredBook, uid: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "book": stored.name,
            "uid": uid,
            "revision": stored.revision,
            "entry": dict(fields),
            "places": sorted({*PLACES, str(fields["position"])}, key=_place_order),
            "logics": list(LOGICS),
            "others": _others(stored, uid, self.request.POST),
            "problem": "",
            "saved": "saved" in self.request.GET,
            "tried": self._tried(stored.name, uid) if uid and "say" in self.request.GET else None,
        }

    def _tried(self, name: str, uid: str) -> dict[str, Any]:
        """Return whether a line would activate the entry for an NPC, and the reason."""
        line = self.request.GET["say"][:MOST_TYPED].strip()
        ref = find_npc_ref(self.request.GET.get("npc", ""))
        report = running_game.preview(ref, line, account=self.request.user).report
        found = [one for one in report.verdicts if one.item == f"lore:{name}#{uid}"]
        left = next((one for one in found if not one.kept), None)
        wakes = bool(found) and left is None
        return {
            "say": line,
            "npc": name_of(ref),
            "wakes": wakes,
            "why": (left or found[0]).reason if found else "its book does not apply there",
        }

    def _saved(self, stored: StoredBook, uid: str, typed: Mapping[str, Any]) -> str:
        """Store the entry and return its uid.

        Raises:
            EditConflictError: The book was changed since the form was shown.
        """
        locks = lorebooks.entry_locks(stored.name)
        others = _typed_others(self.request.POST)
        seen = read_seen_revision(self.request.POST.get("seen", ""))
        data: Any = json.loads(stored.source)
        now = _fields(stored, _entry(stored, uid)) if uid else _NEW
        given = {key: value for key, value in typed.items() if value != now[key]}
        fields = {**_implied(given, typed), **others}
        with in_words_of(f"entry {uid}" if uid else "the new entry"):
            if uid:
                data = change_entry(data, uid, fields)
            else:
                data, uid = add_entry(data, fields, taken=locks)
        text = json.dumps(data, ensure_ascii=False)
        lorebooks.save_book(stored.name, text, by=self.actor, seen_revision=seen)
        return uid


def _place_order(place: str) -> int:
    return PLACES.index(place) if place in PLACES else len(PLACES)


def _entry(stored: StoredBook, uid: str) -> LoreEntry:
    for entry in attached_book(stored).entries:
        if entry.uid == uid:
            return entry
    raise NotStoredError(f"entry of lorebook '{stored.name}' called", uid)


def _fields(stored: StoredBook, entry: LoreEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "keys": list(entry.keys),
        "secondary_keys": list(entry.secondary_keys),
        "logic": entry.logic,
        "content": content_at(json.loads(stored.source), entry.index),
        "position": entry.position,
        "depth": entry.depth,
        "order": entry.order,
        "constant": entry.constant,
        "enabled": entry.enabled,
    }


def _others(stored: StoredBook, uid: str, form: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the entry's values of all fields that have no input of their own in the form."""
    entry = _entry(stored, uid) if uid else None
    return [
        {
            "word": word,
            "says": value_in_words(field_text(field, entry)) if entry else "",
            "typed": form.get(f"{_OTHER}{word}", ""),
        }
        for word, field in TYPED_FIELDS.items()
        if word not in _IN_THE_FORM
    ]


def _typed_others(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the typed values of the fields of `_others`. An empty input changes nothing."""
    return {
        field.name: parse_value(field, text)
        for word, field in TYPED_FIELDS.items()
        if word not in _IN_THE_FORM and (text := form.get(f"{_OTHER}{word}", "").strip())
    }


def _implied(given: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to write.

    A depth is written together with the place `depth` only. Keys with slashes make the entry
    recognise regular expressions by their form.
    """
    fields = dict(given)
    if typed["position"] == "depth" and ("position" in fields or "depth" in fields):
        fields |= {
            "position": "depth",
            "depth": typed["depth"] if typed["depth"] is not None else 4,
        }
    else:
        fields.pop("depth", None)
    if fields.get("secondary_keys"):
        fields["selective"] = True
    keys = [*fields.get("keys", ()), *fields.get("secondary_keys", ())]
    if any(map(has_slashes, keys)):
        fields["patterns"] = "by_form"
    return fields


def _as_typed(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the form's texts as they were typed, to show them again."""
    return {
        "name": form.get("name", ""),
        "keys": _lines(form.get("keys", "")),
        "secondary_keys": _lines(form.get("secondary_keys", "")),
        "content": form.get("content", ""),
        "depth": form.get("depth", ""),
        "order": form.get("order", ""),
        "constant": "constant" in form,
        "enabled": "enabled" in form,
        "position": form.get("position", "after"),
        "logic": form.get("logic", "any"),
    }


def _typed(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the form.

    Raises:
        FormatError: A field is invalid; the message names it.
    """
    position, logic = form.get("position", "after"), form.get("logic", "any")
    if logic not in LOGICS:
        raise FormatError("form", f"the logic must be one of {', '.join(LOGICS)}")
    depth = form.get("depth", "").strip()
    if depth and not (depth.isdecimal() and len(depth) < 9 and int(depth) <= MAX_DEPTH):
        raise FormatError("form", f"the depth must be a number from 0 to {MAX_DEPTH}")
    return {
        "name": form.get("name", "").strip(),
        "keys": _lines(form.get("keys", "")),
        "secondary_keys": _lines(form.get("secondary_keys", "")),
        "logic": logic,
        "content": form.get("content", "").replace("\r\n", "\n"),
        "position": position,
        "depth": int(depth) if depth else None,
        "order": _number(form.get("order", "100")),
        "constant": "constant" in form,
        "enabled": "enabled" in form,
    }


def _number(text: str) -> float:
    try:
        number = float(text.strip())
    except ValueError as error:
        raise FormatError("form", f"the order must be a number, not '{text[:40]}'") from error
    return int(number) if number.is_integer() else number


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
