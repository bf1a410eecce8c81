"""Namesakes: who bore a name before somebody, looked up for all of a room at once."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.db import DatabaseError
from evennia.objects.models import ObjectDB
from evennia.utils import logger

from evennia_ai.prompt.names import spelt

MOST_OLDER: Final = 20
"""Of so many who are called so it is told."""


class Bearer(NamedTuple):
    """Somebody and what they are called, as it is shown and as it is compared."""

    ref: str
    name: str
    folded: str


OlderCalled = Mapping[Bearer, Sequence[Any]]
"""Who is called as somebody is and was there before, by how that one is called."""


def older_called(people: Mapping[Bearer, Any]) -> OlderCalled:
    """A few of those who were there before each of these and are called so, the first ones."""
    if not people:
        return {}
    ways = {bearer: _ways_to_write(bearer) for bearer in people}
    called = ObjectDB.objects.filter(db_key__in=set().union(*ways.values())).order_by("id")
    most = MOST_OLDER * len(people)
    try:
        rows = called.values_list("id", "db_key")[:most]
        if len(rows) == most and len(people) > 1:  # some name has so many that others find no room
            each = [older_called({bearer: person}) for bearer, person in people.items()]
            return {bearer: older for one in each for bearer, older in one.items()}
        ids = {
            bearer: [
                known
                for known, key in rows
                if key in ways[bearer] and (person.id is None or known < person.id)
            ]
            for bearer, person in people.items()
        }
        return {
            bearer: list(ObjectDB.objects.filter(id__in=older)) if older else []
            for bearer, older in ids.items()
        }
    except DatabaseError as error:
        logger.log_err(f"evennia_ai: older names cannot be read: {error}")
        return {}


def _ways_to_write(bearer: Bearer) -> set[str]:
    """How keys of objects may be written that are a name."""
    ways = {spelt(bearer.name), bearer.folded}
    return {way for one in ways for way in (one, one.title(), one.capitalize(), one.upper())}
