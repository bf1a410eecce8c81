"""Secrets in presets: passwords and private addresses, which the application saves beside prompts.

They are dropped before anything is stored, shown or written, and who imports the file is told
their names, never their values. An empty one is no secret and stays, so that a file without
secrets comes out as it went in.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.foreign.documents import one_line

_NAMES: Final = frozenset(
    {
        *("reverse_proxy", "proxy_password", "custom_url", "custom_include_body"),
        *("custom_exclude_body", "custom_include_headers"),
    }
)
# Names under which extensions and older versions keep keys.
_LIKELY: Final = re.compile(
    r"(?:^|[_-])(?:api_?key|secret(?:_?key)?|passwords?|passwd|access_?token|auth_?token|bearer"
    r"|authorization|credentials?)(?:$|[_-])",
    re.IGNORECASE,
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def without_secrets(value: Any) -> tuple[Any, tuple[str, ...]]:
    """A JSON value without its secrets, and the paths of those; the same value where it has none.

    Values are known by their names alone: texts of prompts are not looked into.
    """
    dropped = tuple(_paths(value, ""))
    return (_without(value), dropped) if dropped else (value, ())


def _is_secret(name: str, value: Any) -> bool:
    is_named = name in _NAMES or _LIKELY.search(_CAMEL.sub("_", name)) is not None
    return is_named and value not in ("", None, False, [], {})


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths(item, f"{path}[{index}]")
    if isinstance(value, dict):
        for name, item in value.items():
            at = f"{path}.{one_line(name)[:60]}".lstrip(".")
            if _is_secret(name, item):
                yield at
            else:
                yield from _paths(item, at)


def _without(value: Any) -> Any:
    if isinstance(value, list):
        return [_without(item) for item in value]
    if isinstance(value, dict):
        return {name: _without(item) for name, item in value.items() if not _is_secret(name, item)}
    return value
