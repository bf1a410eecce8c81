"""Embedding in the game: which pages are to be read by the model, and the vectors kept of them.

The reading is a kind of work (`npc/jobs/kinds/embed.py`), done here or by workers; several jobs
wait for workers at a time, one is done here.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from django.db import transaction
from twisted.internet.defer import Deferred

from evennia_ai.npc.background.applying import Ending, GameKind
from evennia_ai.npc.jobs.job import Job
from evennia_ai.npc.jobs.kinds.embed import EMBED, EmbedGiven, EmbedMade, embed_job
from evennia_ai.npc.jobs.kinds.forms import read_form
from evennia_ai.store.knowledge import page_vectors

PAGES: Final = 8
"""That one job reads; their names have to fit into its row."""
JOBS_AT_ONCE: Final = 8
"""That wait for workers, of one base."""


class Working(Protocol):
    """Where jobs are done (`evennia_ai.npc.background.work.Work`)."""

    @property
    def in_workers(self) -> bool:
        """True if workers do them."""

    def submit(self, job: Job) -> "Deferred[tuple[Ending, str]]":
        """How the job ended, with the reason."""


class Embedding:
    """Keeps what was made of pages; `Applies` says what its members are."""

    name = EMBED.name

    def apply(self, job: Job, body: Mapping[str, Any]) -> None:
        """Keep the vectors of those pages that say still what was read."""
        given = read_form(EmbedGiven, job.given, where=job.idempotency)
        made = read_form(EmbedMade, body, where=job.idempotency)
        with transaction.atomic():
            for page in made.pages:
                page_vectors.keep_vectors(page.number, page.sha256, given.model, page.packed)

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """Whoever submitted it is told."""


KIND: Final = GameKind(does=EMBED, applies=Embedding())


def jobs_for(base: str, model: str, *, in_workers: bool) -> list[Job]:
    """Jobs that read pages of a base which were not read yet, none where all were."""
    most = PAGES * (JOBS_AT_ONCE if in_workers else 1)
    pages = [
        (page.page_id, page.sha256)
        for page in page_vectors.pages_without_vectors(base, model, most=most)
    ]
    since = page_vectors.newest_vector()
    return [
        embed_job(EmbedGiven(model=model, pages=tuple(pages[start : start + PAGES]), since=since))
        for start in range(0, len(pages), PAGES)
    ]
