"""Values out of a server's JSON, which may be anything: what does not fit counts as nothing."""

import json
from typing import Any


def read_object(body: bytes | str) -> dict[str, Any] | None:
    """The JSON object in `body`, None where there is none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def count_of(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def object_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def words_of(body: object) -> str:
    """A server's own explanation, wherever in its error body it stands."""
    said = body
    for field in ("error", "message", "detail"):
        if isinstance(said, dict) and field in said:
            said = said[field]
    return text_of(said)
