"""The trial in an address of a page: which edits it holds, and the addresses of the next ones."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest

from evennia_ai.engine.prompt.components import MAX_DEPTH
from evennia_ai.npc.views.trials import FieldEdit, Place, Trial, read_trial

WITH: Final = "with"
ORDER_STEP: Final = 10
DEPTH_MARK: Final = "__depth__"
"""What stands for a depth in the address that a script fills in when a row is dropped."""


def trial_in(request: HttpRequest) -> Trial:
    """The trial that an address or a form holds; FormatError says what is wrong with it."""
    return read_trial([*request.GET.getlist(WITH), *request.POST.getlist(WITH)])


def query_of(trial: Trial, **more: str) -> str:
    """The query of an address that holds the trial."""
    return urlencode([*((WITH, line) for line in trial.lines), *more.items()])


def moves(trial: Trial, place: Place, path: str) -> dict[str, Any]:
    """The addresses that one step away from a place has: the page with one edit more."""

    def at(field: Any, value: int) -> str:
        edit = FieldEdit(origin=place.origin, field=field, value=value)
        return f"{path}?{query_of(trial.with_edit(edit))}"

    marked = query_of(without(trial, place.origin, "depth"))
    drag = urlencode({WITH: f"{place.origin}.depth="}) + DEPTH_MARK
    return {
        "deeper": at("depth", min(MAX_DEPTH, place.depth + 1)),
        "shallower": at("depth", place.depth - 1) if place.depth else "",
        "earlier": at("order", place.order - ORDER_STEP),
        "later": at("order", place.order + ORDER_STEP),
        "off": at("off", 1),
        "drag": f"{path}?{marked}&{drag}" if marked else f"{path}?{drag}",
    }


def without(trial: Trial, origin: str, field: str) -> Trial:
    """The trial without its edit of one field."""
    return Trial(tuple(one for one in trial.edits if (one.origin, one.field) != (origin, field)))


def undone(trial: Trial, path: str) -> list[dict[str, str]]:
    """Each edit as a line, with the address of the page without it."""
    return [
        {"line": str(edit), "undo": _address(path, without(trial, edit.origin, edit.field))}
        for edit in trial.edits
    ]


def _address(path: str, trial: Trial) -> str:
    query = query_of(trial)
    return f"{path}?{query}" if query else path


def place_in_words(place: Mapping[str, Any], *, most: int) -> str:
    """Where a text stands, for who hears the page: its depth is clamped to the history."""
    depth = place["depth"]
    where = f"depth {depth}" if depth <= most else f"depth {depth}, which is the top of {most}"
    return f"{where}, order {place['order']}"
