"""Test a real MediaWiki as a knowledge base, with the tests of all backends and the demo's pages.

It needs Debian's packages, see `real_wiki.py`. Each test begins with the same state of the wiki.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.files import read_folder
from evennia_ai.engine.knowledge.pages.page import BackendError, PageDraft, page_name
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.wiki.backend import Intro, MediaWikiBackend, Wikipedia
from tests.engine.knowledge.backend_suite import PAGES, BackendSuite, a_draft
from tests.services.net.handover import Handover
from tests.services.wiki.conftest import Outcome
from tests.services.wiki.real_wiki import RealWiki

DEMO = Path(__file__).parents[3] / "world" / "demo" / "knowledge"

pytestmark = [pytest.mark.service, pytest.mark.minutes(1)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWiki]:
    wiki = RealWiki(tmp_path_factory.mktemp("wiki"))
    yield wiki
    wiki.close()


@pytest.fixture(scope="module")
def filled(installed: RealWiki) -> RealWiki:
    """The wiki with the pages of the shared tests."""
    reactor = Handover()
    bridge = AsyncBridge(reactor)
    backend = MediaWikiBackend("harbour", installed.site(), bridge)
    for page in PAGES:
        draft = PageDraft(page=page, was="", by=trusted("Mira"))
        assert reactor.outcome_of(backend.write(draft), within_seconds=60).name == page.name
    bridge.stop()
    installed.remember()
    return installed


@pytest.fixture
def backend(filled: RealWiki, bridge: AsyncBridge) -> MediaWikiBackend:
    filled.forget()
    return MediaWikiBackend("harbour", filled.site(), bridge)


class OnAWiki(BackendSuite):
    """The shared tests of backends, with answers that come later."""

    @pytest.fixture
    def told(self, reactor: Handover) -> Callable[[Any], Any]:
        def told(answer: Any) -> Any:
            came = reactor.outcome_of(answer, within_seconds=30)
            if isinstance(came, Exception):
                raise came
            return came

        return told


class TestSmallWiki(OnAWiki):
    """A wiki that is read completely and searched here."""


class TestLargeWiki(OnAWiki):
    """A wiki that searches by itself."""

    @pytest.fixture(autouse=True)
    def _large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("evennia_ai.services.wiki.finding.SMALL_PAGES", 0)

    def test_word_in_a_script_without_blanks_is_found(self, found):
        """The word is found by the start of a run without spaces, which is all that is indexed."""
        assert found("清晨") == ["渡口"]


def test_conflict_names_who_changed_the_page(backend: MediaWikiBackend, outcome: Outcome) -> None:
    first = outcome(backend.write(a_draft("Pier", "Old planks.")))
    outcome(backend.write(a_draft("Pier", "New planks.", was=first.revision)))
    problem = outcome(backend.write(a_draft("Pier", "My planks.", was=first.revision)))
    assert isinstance(problem, BackendError)
    assert "has a newer version of 'Pier': Admin changed it" in str(problem)
    assert "nothing was written" in str(problem)


def test_deleted_page_is_not_written_over(backend: MediaWikiBackend, outcome: Outcome) -> None:
    problem = outcome(backend.write(a_draft("Nowhere", "Fog.", was="7")))
    assert "has no page 'Nowhere' any more" in str(problem)


def test_edit_summary_names_who_approved_it(
    filled: RealWiki, backend: MediaWikiBackend, outcome: Outcome
) -> None:
    page = outcome(backend.write(a_draft("Pier", "Old planks.")))
    assert filled.comment_of(page.revision) == "for a test (approved by Anna)"


def test_pages_that_govern_the_wiki_are_never_written(
    backend: MediaWikiBackend, outcome: Outcome
) -> None:
    problem = outcome(backend.write(a_draft("MediaWiki:Common.js", "alert()")))
    assert "can have no page 'MediaWiki:Common.js'" in str(problem)


def test_redirect_is_written_in_the_wikis_format(
    backend: MediaWikiBackend, outcome: Outcome
) -> None:
    outcome(backend.write(a_draft("The Book", "", redirect=page_name("Talk:Sources:Ledger"))))
    outcome(backend.write(a_draft("Talk:Sources:Ledger", "Is it whole?")))
    (page,) = outcome(backend.fetch([page_name("The Book")]))
    assert page.name == page_name("Talk:Sources:Ledger")


def test_bot_with_a_wrong_password_is_refused(
    filled: RealWiki, bridge: AsyncBridge, outcome: Outcome
) -> None:
    stranger = MediaWikiBackend("harbour", filled.site(user="Admin@other"), bridge)
    assert "does not let 'Admin@other' in" in str(outcome(stranger.fetch([page_name("Ferry")])))


def test_anonymous_reading_works(filled: RealWiki, bridge: AsyncBridge, outcome: Outcome) -> None:
    anybody = MediaWikiBackend("harbour", filled.site(user=""), bridge)
    (page,) = outcome(anybody.fetch([page_name("Ferry")]))
    assert page.name == page_name("Ferry")


def test_intro_is_the_plain_text_before_the_first_heading(
    filled: RealWiki, bridge: AsyncBridge, backend: MediaWikiBackend, outcome: Outcome
) -> None:
    outcome(
        backend.write(a_draft("Barge", "A '''barge''' is [[Ferry|a boat]].\n\n== Past ==\nOld."))
    )
    intro = outcome(Wikipedia(f"{filled.address}/api.php", bridge).intro("barge"))
    assert intro == Intro(title="Barge", text="A barge is a boat.")


@pytest.fixture(scope="module")
def demo(filled: RealWiki) -> RealWiki:
    """The wiki with the demo's pages in addition."""
    reactor = Handover()
    bridge = AsyncBridge(reactor)
    backend = MediaWikiBackend("harbour", filled.site(), bridge)
    filled.forget()
    for page in read_folder(DEMO / "harbour").pages:
        reactor.outcome_of(
            backend.write(PageDraft(page=page, was="", by=trusted("Mira"))), within_seconds=60
        )
    bridge.stop()
    filled.remember()
    return filled


@pytest.mark.parametrize("small", [300, 0])
def test_questions_about_the_demo_find_an_answering_page(
    demo: RealWiki,
    bridge: AsyncBridge,
    outcome: Outcome,
    monkeypatch: pytest.MonkeyPatch,
    small: int,
) -> None:
    monkeypatch.setattr("evennia_ai.services.wiki.finding.SMALL_PAGES", small)
    backend = MediaWikiBackend("harbour", demo.site(), bridge)
    questions = yaml.safe_load((DEMO / "questions.yaml").read_text(encoding="utf-8"))[::3]
    found = [
        {hit.page.name.full for hit in outcome(backend.search(one["question"], limit=5))}
        for one in questions
    ]
    answered = [bool(names & {*one["pages"]}) for names, one in zip(found, questions, strict=True)]
    assert sum(answered) / len(answered) >= 0.8


def test_demo_page_is_read_as_it_was_written(
    demo: RealWiki, bridge: AsyncBridge, outcome: Outcome
) -> None:
    every = read_folder(DEMO / "harbour").pages
    written = [page for page in every if page.meta.redirect is None]
    backend = MediaWikiBackend("harbour", demo.site(), bridge)
    pages = outcome(backend.fetch([page.name for page in written]))
    changed = {
        page.name.full: (page.body, again.body, page.meta, again.meta)
        for page, again in zip(written, pages, strict=True)
        if (page.body.rstrip(), page.meta, page.links) != (again.body, again.meta, again.links)
    }
    assert changed == {}
