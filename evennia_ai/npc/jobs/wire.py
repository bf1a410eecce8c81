"""Jobs as JSON, as they are in the queue and in proposals.

A job has only ids and hashes, and at most a kilobyte. Its version is read first, because in another
version the fields may have other meanings.
"""

import json
from dataclasses import asdict
from typing import Final

from pydantic import TypeAdapter, ValidationError

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.foreign.fields import to_format_error
from evennia_ai.npc.jobs.job import VERSION, Job

MOST_BYTES: Final = 1024
_READER: Final = TypeAdapter(Job)


class JobError(EvenniaAIError):
    """A text is not a job, or a job that this process cannot do."""


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
    """Return the job as one line of JSON. Equal jobs give the same bytes.

    Empty fields are left out.

    Raises:
        JobError: The job is too long.
    """
    said = {name: value for name, value in asdict(job).items() if value}
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    size = len(text.encode())
    if size > MOST_BYTES:
        raise JobError(
            f"job {job.idempotency!r} has {size} bytes, at most {MOST_BYTES} are allowed: give it"
            " ids and hashes, and let its function read the texts"
        )
    return text


def job_of(text: str) -> Job:
    """Parse a job from a line of JSON.

    Raises:
        OtherVersionError: The job was made by another version of this package.
        JobError: The text is not a job. The message names the first wrong field.
    """
    try:
        said = json.loads(text)
    except ValueError as error:
        raise JobError(f"a job is not JSON ({error}): {text[:80]!r}") from error
    if not isinstance(said, dict):
        raise JobError(f"a job must be a JSON object, not {text[:80]!r}")
    name = str(said.get("idempotency", "without a name"))
    if said.get("version") != VERSION:
        raise OtherVersionError(name, said.get("version"))
    try:
        return _READER.validate_json(text)
    except ValidationError as error:
        wrong = to_format_error(error, kind="job", where=f"job {name!r}")
        raise JobError(wrong.message) from error
