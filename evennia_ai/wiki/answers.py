"""What a wiki answers: JSON whose form nobody promises, read with care.

Each function gives what is there in the form that was asked for, and nothing for the rest.
`refused_of` reads whole answers of HTTP, `Refused` says why one is of no use.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from evennia_ai.net.http import FailedAttempt, retry_after_seconds

_AGAIN_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_UNTOUCHED_STATUS: Final = frozenset({429, 503})
_AGAIN_CODES: Final = frozenset({"maxlag", "ratelimited"})
"""The wiki's own words for "later": a database that lags, somebody who asks too often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(FailedAttempt):
    """Why there is no answer.

    `code` is the wiki's own name of the problem, "" where the problem is another. `untouched` says
    that surely nothing was changed.
    """

    why: str
    code: str = ""
    untouched: bool = False


def read_answer(status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any] | Refused:
    """The JSON object of an answer, or why it is none; `headers` have names in small letters."""
    wait = retry_after_seconds(headers)
    answer = _object(body)
    problem = answer.get("error") if answer is not None else None
    if isinstance(problem, dict):
        return _refused(problem, wait)
    if 300 <= status < 400:
        target = urlsplit(headers.get("location", "")).netloc or "another address"
        return Refused(why=f"sends us on to {target}; put the address it really has in the setting")
    if status != 200:
        return Refused(
            why=f"answered with status {status}",
            again=status in _AGAIN_STATUS,
            untouched=status in _UNTOUCHED_STATUS or 400 <= status < 500,
            after_seconds=wait,
        )
    if answer is None:
        return Refused(why="answered with something that is no JSON; its address ends in api.php")
    return answer


def part(answer: Any, *path: str) -> dict[str, Any]:
    """The object at a path, an empty one where there is none."""
    for step in path:
        answer = answer.get(step) if isinstance(answer, dict) else None
    return answer if isinstance(answer, dict) else {}


def listed(answer: Any, *path: str) -> list[dict[str, Any]]:
    """The objects of the list at a path."""
    found = part(answer, *path[:-1]).get(path[-1])
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(answer: Mapping[str, Any], name: str) -> str:
    """A text, "" where it is none."""
    found = answer.get(name)
    return found if isinstance(found, str) else ""


def number(answer: Mapping[str, Any], name: str) -> int:
    """A whole number, 0 where it is none."""
    found = answer.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refused(problem: dict[str, Any], wait: float | None) -> Refused:
    code = text(problem, "code")
    said = text(problem, "info") or "no reason given"
    return Refused(
        why=f"refused: {said}",
        code=code or "unknown",
        again=code in _AGAIN_CODES,
        untouched=True,
        after_seconds=wait,
    )
