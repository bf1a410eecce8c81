"""Embedding in the game: which pages the sentence model reads next, and storing their vectors.

The jobs (`npc/jobs/kinds/embed.py`) run in this process or in workers. For workers, several jobs
may be queued; this process makes one at a time.
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
"""The most pages in one job, so that their ids fit into its row."""
JOBS_AT_ONCE: Final = 8
"""The most jobs of one base that are queued for workers."""


class Working(Protocol):
    """Where jobs run (see `npc.background.work.Work`)."""

    @property
    def in_workers(self) -> bool:
        """True if workers run the jobs."""

    def submit(self, job: Job) -> "Deferred[tuple[Ending, str]]":
        """Start a job. The Deferred fires with how it ended, and the reason."""


class Embedding:
    """The game's half of embedding jobs (see `Applies`)."""

    name = EMBED.name

    def apply(self, job: Job, body: Mapping[str, Any]) -> None:
        """Store the vectors of those pages that have not changed meanwhile."""
        given = read_form(EmbedGiven, job.given, where=job.idempotency)
        made = read_form(EmbedMade, body, where=job.idempotency)
        with transaction.atomic():
            for page in made.pages:
                page_vectors.keep_vectors(page.number, page.sha256, given.model, page.packed)

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """Do nothing, because the caller of `submit` handles the ending."""


KIND: Final = GameKind(does=EMBED, applies=Embedding())


def jobs_for(base: str, model: str, *, in_workers: bool) -> list[Job]:
    """Return jobs for pages of a knowledge base that have no vectors.

    Empty if all pages have some.
    """
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
