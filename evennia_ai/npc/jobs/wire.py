"""Jobs as JSON, as they stand in the queue and in proposals: ids and hashes, under a kilobyte.

What is read is judged: a job of another version is refused by its name, before any of its fields is
trusted to mean what they mean here.
"""

import json
from dataclasses import asdict, fields
from typing import Any, Final

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.npc.jobs.job import VERSION, Job

MOST_BYTES: Final = 1024
_KEYS: Final[dict[str, str]] = {"v": "version"}
_NAMES: Final = {field: key for key, field in _KEYS.items()}
_TYPES: Final[dict[str, Any]] = {
    "deadline": (int, float),
    "given": dict,
    "limits": dict,
    "version": int,
}


class JobError(EvenniaAIError):
    """Something is no job that can be done here."""


class OtherVersionError(JobError):
    """A job of another version of this package."""

    def __init__(self, name: str, version: object) -> None:
        self.name = name
        self.version = version
        older = isinstance(version, int) and version < VERSION
        what = "the game that asked for it" if older else "this worker's evennia-ai"
        super().__init__(
            f"job {name!r} is of version {version!r} and this does version {VERSION}: update {what}"
        )


def text_of(job: Job) -> str:
    """The job as one line of JSON, always the same bytes. JobError: it is too long."""
    said = {_NAMES.get(name, name): value for name, value in asdict(job).items() if value}
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    size = len(text.encode())
    if size > MOST_BYTES:
        raise JobError(
            f"job {job.idempotency!r} has {size} bytes, at most {MOST_BYTES} are allowed: give it"
            " ids and hashes, and let its function read the texts"
        )
    return text


def job_of(text: str) -> Job:
    """The job in a line of JSON. JobError says what is wrong with it."""
    try:
        said = json.loads(text)
    except ValueError as error:
        raise JobError(f"a job is no JSON ({error}): {text[:80]!r}") from error
    if not isinstance(said, dict):
        raise JobError(f"a job must be an object of JSON, not {text[:80]!r}")
    name = str(said.get("idempotency", "without a name"))
    if said.get("v") != VERSION:
        raise OtherVersionError(name, said.get("v"))
    given = {_KEYS.get(str(key), str(key)): value for key, value in said.items()}
    _judge(name, given)
    return Job(**given)


def _judge(name: str, given: dict[str, Any]) -> None:
    known = {field.name for field in fields(Job)}
    if unknown := sorted(given.keys() - known):
        raise JobError(f"job {name!r} has the unknown field {unknown[0]!r}")
    for field in ("kind", "idempotency"):
        if not given.get(field):
            raise JobError(f"job {name!r} has no {field}")
    for field, value in given.items():
        if not isinstance(value, _TYPES.get(field, str)):
            raise JobError(f"job {name!r}: {field} cannot be {value!r}")
