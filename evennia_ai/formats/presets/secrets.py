"""Remove secrets from presets: SillyTavern saves passwords and private addresses with the prompts.

Secrets are removed before anything is stored, shown or written. The builder who imports the file
sees the names of the secrets, never their values. An empty value is not removed, so a file without
secrets is exported unchanged.
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
# Matches member names that extensions and older versions use for secrets.
_LIKELY: Final = re.compile(
    r"(?:^|[_-])(?:api_?key|secret(?:_?key)?|passwords?|passwd|access_?token|auth_?token|bearer"
    r"|authorization|credentials?)(?:$|[_-])",
    re.IGNORECASE,
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


IsSecret = Callable[[str, Any], bool]
"""A function that returns True if a member, given by its name and value, is a secret."""


def drop_secrets(
    value: Any, *, is_secret: IsSecret = lambda name, value: False
) -> tuple[Any, tuple[str, ...]]:
    """Remove secrets from a JSON value.

    Members of objects with the usual names of secrets are always removed.

    Args:
        is_secret: returns True for further secrets; items of lists have the name "".

    Returns:
        The value without its secrets, and their paths. A value without secrets is returned as it
        is, not copied.
    """

    def is_any(name: str, member: Any) -> bool:
        has_name = name in _NAMES or _LIKELY.search(_CAMEL.sub("_", name)) is not None
        is_empty = member in ("", None, False, [], {})
        return (has_name and not is_empty) or is_secret(name, member)

    dropped = tuple(_secret_paths(value, "", is_any))
    return (_without_secrets(value, is_any), dropped) if dropped else (value, ())


def _secret_paths(value: Any, path: str, is_secret: IsSecret) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            at = f"{path}[{index}]"
            if is_secret("", item):
                yield at
            else:
                yield from _secret_paths(item, at, is_secret)
    if isinstance(value, dict):
        for name, item in value.items():
            at = f"{path}.{one_line(name)[:60]}".lstrip(".")
            if is_secret(name, item):
                yield at
            else:
                yield from _secret_paths(item, at, is_secret)


def _without_secrets(value: Any, is_secret: IsSecret) -> Any:
    if isinstance(value, list):
        return [_without_secrets(item, is_secret) for item in value if not is_secret("", item)]
    if isinstance(value, dict):
        return {
            name: _without_secrets(item, is_secret)
            for name, item in value.items()
            if not is_secret(name, item)
        }
    return value
