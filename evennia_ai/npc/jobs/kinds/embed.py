"""Embed: the kind of job that makes vectors of knowledge pages, for search by meaning.

A sentence model reads the pages. Each page is identified by the hash of its text when the job was
made. A page that has changed or was deleted since is left out. The result has the vectors of the
parts of each page.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.npc.jobs.job import Job, JobTools
from evennia_ai.npc.jobs.kinds.forms import digest_of, form_to_json, read_form
from evennia_ai.store.knowledge.page_vectors import Unread, unchanged_pages

NAME: Final = "embed"


class OtherModelError(EvenniaAIError):
    """The sentence model of this process is not the one with which the game searches."""

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(
            f"the game searches with the model {wanted} and this process has {found}; install the"
            " game's version"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedGiven:
    """The input of the job: pages, and the sentence model for them."""

    model: str
    """The id of the model. Models with other weights have another id."""
    pages: tuple[tuple[int, str], ...]
    """The pages, each as its database id and the hash of its text."""
    since: int
    """The number of the newest stored vector. It makes the job's name new when a page gets an
    earlier text again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedPage:
    """The vectors of one page."""

    number: int
    sha256: str
    vectors: tuple[str, ...]
    """The vectors of the page's parts in order: little-endian 4-byte floats in base64."""

    @property
    def packed(self) -> list[bytes]:
        """Return the vectors as the tables store them."""
        return [b64decode(vector) for vector in self.vectors]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedMade:
    """The result of the job: the vectors of its pages."""

    pages: tuple[EmbeddedPage, ...]


def embed_job(given: EmbedGiven) -> Job:
    """Return the job that makes vectors of these pages."""
    return Job(
        kind=NAME, idempotency=f"{NAME}:{given.since}:{digest_of(given)}", given=form_to_json(given)
    )


class Embed:
    """The kind of job that makes vectors of pages (see `JobKind`)."""

    name = NAME

    def refuse_stale(self, job: Job) -> None:
        """Do nothing, because erasures do not concern pages."""

    async def run(self, job: Job, tools: JobTools) -> dict[str, Any]:
        """Do the job and return an `EmbedMade` as JSON.

        Raises:
            SentenceModelError: This process has no sentence model.
            OtherModelError: The sentence model of this process is another one.
        """
        given = read_form(EmbedGiven, job.given, where=job.idempotency)
        pages = await tools.read(unchanged_pages, given.pages)
        return form_to_json(
            EmbedMade(pages=await tools.off(_embed_pages, tools, given.model, pages))
        )


def _embed_pages(tools: JobTools, wanted: str, pages: Sequence[Unread]) -> tuple[EmbeddedPage, ...]:
    """Return the vectors of these pages. Call in a thread."""
    model = tools.sentences()
    if model.id != wanted:
        raise OtherModelError(wanted, model.id)
    made: list[EmbeddedPage] = []
    for page in pages:
        try:
            vectors = model.vectors(page.parts)
        except Exception:
            if not made:
                raise
            break  # keep the earlier pages; the next job starts here and reports the error
        packed = tuple(b64encode(vector).decode() for vector in vectors)
        made.append(EmbeddedPage(number=page.page_id, sha256=page.sha256, vectors=packed))
    return tuple(made)


EMBED: Final = Embed()
