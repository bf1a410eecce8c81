"""Text as it can be sent at all."""

from collections.abc import Mapping
from typing import Any


def sendable(text: str) -> str:
    """`text` with a question mark for half a surrogate pair: a player's client can send one."""
    return text.encode("utf-8", "replace").decode("utf-8")


def sendable_json(value: Any) -> Any:
    """A JSON value with all its texts sendable: a tool's schema may list names of the game."""
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, Mapping):
        return {sendable(name): sendable_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [sendable_json(one) for one in value]
    return value
