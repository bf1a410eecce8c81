"""Embedding: a model reads pages of a knowledge base, so that they are found by what they mean.

A page is read as it was when the job was made, known by its hash; one that says something else by
now, or is gone, is left out. What comes of it are the vectors of each page's parts.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.npc.jobs.job import Job, JobTools
from evennia_ai.npc.jobs.kinds.forms import digest_of, plain, read_form
from evennia_ai.store.knowledge.page_vectors import Unread, unchanged_pages

NAME: Final = "embed"


class OtherModelError(EvenniaAIError):
    """The model of this process is not the one that the game searches with."""

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(
            f"pages are to be read by the model {wanted} and this process has {found}; install the"
            " game's version"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedGiven:
    """The pages that are to be read, and by which model."""

    model: str
    """Its id, another one for other weights."""
    pages: tuple[tuple[int, str], ...]
    """Each by its number and the hash of what it says."""
    since: int
    """The number of the newest vector there was: a page that says again what it said is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedPage:
    """What was made of one page."""

    number: int
    sha256: str
    vectors: tuple[str, ...]
    """Those of its parts in order, little-endian numbers of 4 bytes in base64."""

    @property
    def packed(self) -> list[bytes]:
        """The vectors as the tables have them."""
        return [b64decode(vector) for vector in self.vectors]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedMade:
    """What came of it."""

    pages: tuple[EmbeddedPage, ...]


def embed_job(given: EmbedGiven) -> Job:
    """The job that reads these pages."""
    return Job(
        kind=NAME, idempotency=f"{NAME}:{given.since}:{digest_of(given)}", given=plain(given)
    )


class Embed:
    """Vectors of pages; `JobKind` says what its members are."""

    name = NAME

    def refuse_stale(self, job: Job) -> None:
        """Nothing is erased from a page that its vectors would tell of."""

    async def run(self, job: Job, tools: JobTools) -> dict[str, Any]:
        """An `EmbedMade` as JSON.

        SentenceModelError: there is no model here. OtherModelError: it is another one.
        """
        given = read_form(EmbedGiven, job.given, where=job.idempotency)
        pages = await tools.read(unchanged_pages, given.pages)
        return plain(EmbedMade(pages=await tools.off(_embedded, tools, given.model, pages)))


def _embedded(tools: JobTools, wanted: str, pages: Sequence[Unread]) -> tuple[EmbeddedPage, ...]:
    """In a thread: what the model makes of these pages."""
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
            break  # those before it are kept; the next job begins with it, and says why
        packed = tuple(b64encode(vector).decode() for vector in vectors)
        made.append(EmbeddedPage(number=page.page_id, sha256=page.sha256, vectors=packed))
    return tuple(made)


EMBED: Final = Embed()
