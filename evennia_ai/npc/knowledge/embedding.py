"""Embedding in the game: which pages the sentence model reads next, and the stored vectors.

The kind of work in `npc/jobs/kinds/embed.py` reads pages, in this process or in workers. Workers
may have several jobs queued, this process only one.
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
"""The most pages of one job. Their ids must fit into its row."""
JOBS_AT_ONCE: Final = 8
"""The most queued jobs of one base for workers."""


class Working(Protocol):
    """Where jobs run (see `npc.background.work.Work`)."""

    @property
    def in_workers(self) -> bool:
        """True if workers run them."""

    def submit(self, job: Job) -> "Deferred[tuple[Ending, str]]":
        """Start a job. The Deferred fires with how it ended, and the reason."""


class Embedding:
    """Applies the results of embedding jobs in the game (see `Applies`)."""

    name = EMBED.name

    def apply(self, job: Job, body: Mapping[str, Any]) -> None:
        """Store the vectors of pages that have not changed meanwhile."""
        given = read_form(EmbedGiven, job.given, where=job.idempotency)
        made = read_form(EmbedMade, body, where=job.idempotency)
        with transaction.atomic():
            for page in made.pages:
                page_vectors.keep_vectors(page.number, page.sha256, given.model, page.packed)

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """Do nothing: the caller of `submit` gets the result."""


KIND: Final = GameKind(does=EMBED, applies=Embedding())


def jobs_for(base: str, model: str, *, in_workers: bool) -> list[Job]:
    """Return jobs for pages of a base without vectors, empty if all have one."""
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
