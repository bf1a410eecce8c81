"""Find the objects of the demo."""

from typing import Any

from evennia.objects.models import ObjectDB

from world import build_demo


def tagged(name: str) -> Any:
    """Return the only object that the demo made under a name, such as `room:landing`."""
    found = list(ObjectDB.objects.get_by_tag(name, category=build_demo.TAG))
    assert len(found) == 1, name
    return found[0]
