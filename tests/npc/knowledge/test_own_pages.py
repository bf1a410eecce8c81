"""Searches in the game's own database: they run in threads and have a time limit."""

import pytest
from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import BackendError, BaseInfo
from evennia_ai.npc.knowledge.own_pages import LIMIT_SECONDS, OwnBackend, Threads
from evennia_ai.store.knowledge.knowledge_bases import save_base
from tests.engine.knowledge.backend_suite import PAGES, BackendSuite, a_draft
from tests.npc.knowledge.test_meanings import told_now


def a_backend():
    save_base(BaseInfo(key="harbour", name="Harbour"), by=trusted("Mira"))
    return OwnBackend("harbour", Threads(run=execute, clock=Clock()))


@pytest.fixture
def backend(db):
    return a_backend()


class TestOwnPages(BackendSuite):
    """The tests of all backends, for bases in the game's database."""

    @pytest.fixture(scope="class")
    def written(self, world):
        """The backend with its pages, written once for this class."""
        with world():
            made = a_backend()
            for page in PAGES:
                made.write(a_draft(page.name.full, page.body, **_said(page)))
            yield made

    @pytest.fixture
    def backend(self, written, db):
        return written

    @pytest.fixture
    def told(self):
        return told_now


def _said(page):
    names = ("summary", "topics", "aliases", "tags", "requires", "fields", "redirect")
    return {name: getattr(page.meta, name) for name in names}


def test_search_returns_its_hits_when_the_thread_has_ended(backend):
    backend.write(a_draft("Ferry", "A flat boat."))
    waiting = Deferred()
    asked = []

    def run(work):
        asked.append(work)
        return waiting

    backend.threads = Threads(run=run, clock=Clock())
    answer = backend.search("boat")

    assert not answer.called
    execute(asked[0]).chainDeferred(waiting)
    assert [hit.page.name.full for hit in told_now(answer)] == ["Ferry"]


@pytest.mark.req("S0-44")
def test_search_fails_after_the_time_limit_and_drops_the_late_result(backend):
    clock, waiting = Clock(), Deferred()
    backend.threads = Threads(run=lambda _: waiting, clock=clock)
    answer = backend.search("boat")
    clock.advance(LIMIT_SECONDS)

    with pytest.raises(BackendError, match="'harbour' took longer than 250 ms and was given up"):
        told_now(answer)
    waiting.callback(())


def test_search_within_the_time_limit_cancels_its_timer(backend):
    clock = Clock()
    backend.threads = Threads(run=execute, clock=clock)
    told_now(backend.search("boat"))

    assert clock.getDelayedCalls() == []
