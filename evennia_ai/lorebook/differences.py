"""What a conversion there and back would lose of an object, as JSON values.

A difference names a member (or one of `extensions`), what it originally was and what the way back
makes of it; a side that is missing was absent. Restoring takes a difference only where the way back
still makes the same of the member, so whoever changed it in between is heard.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

# The member that is looked into.
INSIDE: Final = "extensions"


def differences(rebuilt: Mapping[str, Any], original: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What must be changed of `rebuilt` to have `original`."""
    return list(_differences(rebuilt, original, ()))


def restored(rebuilt: Mapping[str, Any], found: Any) -> dict[str, Any]:
    """A copy of `rebuilt` with the differences undone; what is no difference is left alone."""
    value = dict(rebuilt)
    if isinstance(value.get(INSIDE), dict):
        value[INSIDE] = dict(value[INSIDE])
    for one in found if isinstance(found, list) else ():
        place = _place(value, one)
        if place is not None:
            _restore(*place, one)
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, numbers and flags apart, members in any order."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _differences(
    rebuilt: Mapping[str, Any], original: Mapping[str, Any], at: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    for name in sorted({*original, *rebuilt}):
        sides = {
            side: value[name]
            for side, value in (("original", original), ("rebuilt", rebuilt))
            if name in value
        }
        if len(sides) == 2 and same(*sides.values()):
            continue
        objects = [value for value in sides.values() if isinstance(value, dict)]
        if not at and name == INSIDE and len(objects) == 2:
            yield from _differences(rebuilt[name], original[name], (name,))
        else:
            yield {"at": [*at, name], **sides}


def _place(value: dict[str, Any], one: Any) -> tuple[dict[str, Any], str] | None:
    """The object and the member that a difference is about."""
    at = one.get("at") if isinstance(one, dict) else None
    match at:
        case [str(name)]:
            return value, name
        case ["extensions", str(name)] if isinstance(value.get(INSIDE), dict):
            return value[INSIDE], name
    return None


def _restore(parent: dict[str, Any], name: str, one: Mapping[str, Any]) -> None:
    is_as_rebuilt = (name in parent) == ("rebuilt" in one) and same(
        parent.get(name), one.get("rebuilt")
    )
    if not is_as_rebuilt:
        return
    if "original" in one:
        parent[name] = one["original"]
    else:
        parent.pop(name, None)
