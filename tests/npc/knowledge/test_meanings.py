"""Pages found by words and by meaning, with a fake sentence model."""

import struct

import pytest
from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import BackendError, BaseInfo, PageDraft
from evennia_ai.models import KnowledgePageVector
from evennia_ai.npc.jobs.kinds.embed import Embed, EmbedGiven, OtherModelError, embed_job
from evennia_ai.npc.knowledge import embedding
from evennia_ai.npc.knowledge.embedding import KIND
from evennia_ai.npc.knowledge.own_pages import LIMIT_SECONDS, MeaningBackend, Threads
from evennia_ai.services.llm.sentence_model import SentenceModelError
from evennia_ai.store.knowledge.knowledge_bases import save_base
from tests.absent import need
from tests.engine.knowledge.backend_suite import PAGES, BackendSuite, a_draft, a_page

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True)
def _needs_numpy() -> None:
    need("numpy", undone="no vectors are compared")


class BoatModel:
    """A model with two vectors: one for texts about boats, one for all others."""

    id = "boats"
    texts: list[str]

    def __init__(self):
        self.texts = []

    def vectors(self, texts):
        self.texts += texts
        about = [any(word in text.lower() for word in ("boat", "vessel")) for text in texts]
        return [struct.pack("<2f", *((1, 0) if boats else (0, 1))) for boats in about]


class NoModel:
    """A model that gives every text a zero vector, so that no meanings match."""

    id = "nothing"

    def vectors(self, texts):
        return [struct.pack("<2f", 0, 0) for _ in texts]


@pytest.fixture(autouse=True)
def _harbour(db):
    from evennia_ai.store.core.snapshots import forget_everything
    from evennia_ai.store.knowledge import page_vectors

    forget_everything()
    page_vectors._kept.clear()
    save_base(BaseInfo(key="harbour", name="Harbour"), by=trusted("Mira"))
    yield
    forget_everything()


class Here:
    """Does the jobs of a backend at once, with the backend's model and threads."""

    in_workers = False

    def __init__(self):
        self.backend = None
        self.jobs = []

    def submit(self, job):
        self.jobs.append(job)
        return Deferred.fromCoroutine(self._ended(job))

    async def _ended(self, job):
        try:
            body = await Embed().run(job, self)
        except ValueError as error:
            return "failed", str(error)
        KIND.applies.apply(job, body)
        return "applied", ""

    def sentences(self):
        return self.backend._model()

    def off(self, work, *values):
        return self.backend.threads.run(work, *values)

    read = off


def opened(model, run=execute, key="harbour"):
    work = Here()
    made = MeaningBackend(key, Threads(run=run, clock=Clock()), work, model=lambda: model)
    work.backend = made
    return made


def told_now(answer):
    """Return the result of an answer that has fired, or raise its error."""
    if not isinstance(answer, Deferred):
        return answer
    results = []
    answer.addBoth(results.append)
    (result,) = results
    if hasattr(result, "raiseException"):
        result.raiseException()
    return result


def found(backend, query, **options):
    return [hit.page.name.full for hit in told_now(backend.search(query, **options))]


class TestWithAModelThatFindsNothing(BackendSuite):
    """The tests of all backends, when the search by meaning finds nothing."""

    @pytest.fixture
    def backend(self):
        backend = opened(NoModel())
        for page in PAGES:
            backend.write(PageDraft(page=page, was="", by=trusted("Mira")))
        return backend

    @pytest.fixture
    def told(self):
        return told_now


@pytest.fixture
def backend():
    backend = opened(BoatModel())
    backend.write(a_draft("Ferry", "A flat boat."))
    backend.write(a_draft("Slee", "Grey water."))
    return backend


def test_page_is_found_by_meaning_after_the_model_has_read_it(backend):
    assert found(backend, "vessel") == []
    assert found(backend, "vessel") == ["Ferry"]


def test_page_found_by_words_and_meaning_comes_first(backend):
    backend.write(a_draft("Skiff", "A small vessel."))
    found(backend, "vessel")

    assert found(backend, "vessel") == ["Skiff", "Ferry"]


def test_model_reads_each_page_once(backend):
    found(backend, "vessel")
    found(backend, "vessel")

    texts = backend._model().texts
    assert sum(text.startswith("Ferry") for text in texts) == 1


def test_passage_of_a_hit_is_the_part_with_the_closest_meaning(backend):
    backend.write(a_page_of_two_parts())
    found(backend, "vessel")

    hits = {hit.page.name.full: hit for hit in told_now(backend.search("vessel"))}
    assert "boat" in hits["Book"].passage


def a_page_of_two_parts():
    return PageDraft(
        page=a_page("Book", "Reed. " * 190 + "\n\nA boat. " * 90), was="", by=trusted("Mira")
    )


def test_search_returns_at_most_the_limit(backend):
    backend.write(a_draft("Skiff", "A small vessel."))
    found(backend, "vessel")

    assert found(backend, "vessel", limit=1) == ["Skiff"]


def test_search_uses_only_words_when_the_model_is_missing(backend, caplog):
    def missing():
        raise SentenceModelError("it is not installed")

    backend._model = missing

    assert found(backend, "boat") == ["Ferry"]
    assert "searched by words only: it is not installed" in caplog.text


def test_other_pages_are_found_when_the_model_fails_on_one(backend, caplog):
    class Failing(BoatModel):
        def vectors(self, texts):
            if texts[0].startswith("Slee"):
                raise ValueError("too grey")
            return super().vectors(texts)

    failing = Failing()
    backend._model = lambda: failing

    assert found(backend, "vessel") == []
    assert "did not read all pages of knowledge base harbour: too grey" in caplog.text
    assert found(backend, "vessel") == ["Ferry"]


class TestInThreads:
    """The search in threads: each test runs the queued work step by step."""

    @pytest.fixture(autouse=True)
    def _threads(self, backend):
        self.waiting, self.clock = [], Clock()
        backend.threads = Threads(run=self._later, clock=self.clock)
        self.backend = backend

    def _later(self, work, *args):
        self.waiting.append((Deferred(), work, args))
        return self.waiting[-1][0]

    def ends(self):
        deferred, work, args = self.waiting.pop(0)
        execute(work, *args).chainDeferred(deferred)

    def test_search_does_not_wait_for_pages_that_the_model_still_reads(self):
        answer = self.backend.search("boat")
        self.ends()
        self.ends()

        assert [hit.page.name.full for hit in told_now(answer)] == ["Ferry"]
        assert len(self.waiting) == 1

    def test_search_uses_only_words_when_the_model_takes_too_long(self, caplog):
        answer = self.backend.search("boat")
        self.clock.advance(LIMIT_SECONDS)
        self.ends()
        self.ends()

        assert [hit.page.name.full for hit in told_now(answer)] == ["Ferry"]
        assert "searched by words only" in caplog.text


class TestInWorkers:
    """Embedding jobs for workers, and their results."""

    @pytest.fixture
    def backend(self, backend, monkeypatch):
        monkeypatch.setattr(embedding, "PAGES", 1)
        backend._work.in_workers = True
        return backend

    def test_several_jobs_are_submitted_at_once(self, backend):
        found(backend, "vessel")
        first, second = backend._work.jobs
        assert {first.kind, second.kind} == {"embed"}
        assert first.idempotency != second.idempotency
        assert found(backend, "vessel") == ["Ferry"]

    def test_page_restored_to_an_earlier_text_gets_a_new_job(self, backend):
        found(backend, "vessel")
        for body in ("A house.", "A flat boat."):
            again(backend, body)
            found(backend, "vessel")
        names = [job.idempotency for job in backend._work.jobs]
        assert len(names) == len(set(names)) == 4
        assert found(backend, "vessel") == ["Ferry"]

    def test_vectors_of_a_page_changed_meanwhile_are_not_stored(self, backend):
        job = embedding.jobs_for("harbour", "boats", in_workers=True)[0]
        again(backend, "A house.")
        (body,) = ran(backend, job)
        assert body == {"pages": []}
        KIND.applies.apply(job, body)
        assert KnowledgePageVector.objects.count() == 0

    def test_job_fails_in_a_worker_with_another_model(self, backend):
        given = EmbedGiven(model="ships", pages=((1, "0"),), since=0)
        (failure,) = ran(backend, embed_job(given))
        assert failure.check(OtherModelError)
        assert "with the model ships and this process has boats" in failure.getErrorMessage()


def again(backend, body):
    """Give the page "Ferry" another text."""
    (was,) = backend.fetch([a_page("Ferry", "").name])
    backend.write(a_draft("Ferry", body, was=was.revision))


def ran(backend, job):
    """Run a job. Return a list with its body, or with its failure."""
    results = []
    run = Embed().run(job, backend._work)
    Deferred.fromCoroutine(run).addBoth(results.append)
    return results


def test_search_in_a_missing_knowledge_base_raises_an_error_that_names_the_base():
    with pytest.raises(BackendError, match="castle"):
        told_now(opened(BoatModel(), key="castle").search("boat"))
