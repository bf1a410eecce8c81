"""The trial in a page's address: the edits that it holds, and links that change them."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest

from evennia_ai.engine.prompt.components import MAX_DEPTH
from evennia_ai.npc.views.trials import FieldEdit, Place, Trial, read_trial

WITH: Final = "with"
ORDER_STEP: Final = 10
DEPTH_MARK: Final = "__depth__"
"""A placeholder for the depth in a link. The page's script replaces it when a row is dropped."""


def trial_in(request: HttpRequest) -> Trial:
    """Return the trial in an address or a form.

    Raises:
        FormatError: An edit in it is invalid; the message says why.
    """
    return read_trial([*request.GET.getlist(WITH), *request.POST.getlist(WITH)])


def trial_query(trial: Trial, **more: str) -> str:
    """Return the query of an address with this trial."""
    return urlencode([*((WITH, line) for line in trial.lines), *more.items()])


def move_addresses(trial: Trial, place: Place, path: str) -> dict[str, Any]:
    """Return the links that move a text one step in the trial, or leave it out.

    The keys are the moves: "deeper", "shallower", "earlier", "later", "off" and "drag". The link
    "shallower" is "" if the text has depth 0. The link "drag" contains `DEPTH_MARK`.

    Args:
        trial: The edits that the page shows now.
        place: The text and its present place in the prompt.
        path: The path of the page.
    """

    def at(field: Any, value: int) -> str:
        edit = FieldEdit(origin=place.origin, field=field, value=value)
        return f"{path}?{trial_query(trial.with_edit(edit))}"

    marked = trial_query(without_edit(trial, place.origin, "depth"))
    drag = urlencode({WITH: f"{place.origin}.depth="}) + DEPTH_MARK
    return {
        "deeper": at("depth", min(MAX_DEPTH, place.depth + 1)),
        "shallower": at("depth", place.depth - 1) if place.depth else "",
        "earlier": at("order", place.order - ORDER_STEP),
        "later": at("order", place.order + ORDER_STEP),
        "off": at("off", 1),
        "drag": f"{path}?{marked}&{drag}" if marked else f"{path}?{drag}",
    }


def without_edit(trial: Trial, origin: str, field: str) -> Trial:
    """Return the trial without the edit of one field."""
    return Trial(tuple(one for one in trial.edits if (one.origin, one.field) != (origin, field)))


def undo_links(trial: Trial, path: str) -> list[dict[str, str]]:
    """Return each edit in words, with the address of the page without this edit."""
    return [
        {"line": str(edit), "undo": _address(path, without_edit(trial, edit.origin, edit.field))}
        for edit in trial.edits
    ]


def _address(path: str, trial: Trial) -> str:
    query = trial_query(trial)
    return f"{path}?{query}" if query else path


def place_in_words(place: Mapping[str, Any], *, most: int) -> str:
    """Return a place in words for screen readers. A depth over `most` is the top of the history."""
    depth = place["depth"]
    where = f"depth {depth}" if depth <= most else f"depth {depth}, which is the top of {most}"
    return f"{where}, order {place['order']}"
