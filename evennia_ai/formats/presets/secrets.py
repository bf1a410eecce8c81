"""Secrets in presets: passwords and private addresses, which the application saves beside prompts.

They are dropped before anything is stored, shown or written, and who imports the file is told
their names, never their values. An empty one is no secret and stays, so that a file without
secrets comes out as it went in.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from evennia_ai.engine.foreign.documents import one_line

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


IsSecret = Callable[[str, Any], bool]
"""Says of a member of an object, by its name and value, whether it is a secret."""


def _is_named_so(name: str, value: Any) -> bool:
    is_named = name in _NAMES or _LIKELY.search(_CAMEL.sub("_", name)) is not None
    return is_named and value not in ("", None, False, [], {})


def without_secrets(
    value: Any, *, is_secret: IsSecret = lambda name, value: False
) -> tuple[Any, tuple[str, ...]]:
    """Return a JSON value without its secrets, and the paths of those; the same value if none.

    Secrets are members of objects with the name of one, and those that `is_secret` names besides.
    In a list, texts that `is_secret` names under the name "" are secrets as well.
    """

    def is_any(name: str, member: Any) -> bool:
        return _is_named_so(name, member) or is_secret(name, member)

    dropped = tuple(_paths(value, "", is_any))
    return (_without(value, is_any), dropped) if dropped else (value, ())


def _paths(value: Any, path: str, is_secret: IsSecret) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            at = f"{path}[{index}]"
            if is_secret("", item):
                yield at
            else:
                yield from _paths(item, at, is_secret)
    if isinstance(value, dict):
        for name, item in value.items():
            at = f"{path}.{one_line(name)[:60]}".lstrip(".")
            if is_secret(name, item):
                yield at
            else:
                yield from _paths(item, at, is_secret)


def _without(value: Any, is_secret: IsSecret) -> Any:
    if isinstance(value, list):
        return [_without(item, is_secret) for item in value if not is_secret("", item)]
    if isinstance(value, dict):
        return {
            name: _without(item, is_secret)
            for name, item in value.items()
            if not is_secret(name, item)
        }
    return value
