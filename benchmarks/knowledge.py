"""Measure the search of pages: its time, compared with other ways, and its accuracy.

    python -m benchmarks.knowledge [--pages 20000] [--queries 200] [--database ADDRESS] [--brief]
        [--cpu] [--check]

The pages are made from a seed. They have 40 to 120 words each, from 20,000 words with a natural
distribution (Zipf). They are in the real store, in a SQLite file or in the empty database of an
address, such as postgres://user:password@localhost:5432/name. A query has a word of a page's title
and three of its text, in any order. It is answered if that page is among the first ten. Then the
demo's knowledge base and its questions follow (`world/demo/knowledge/`). A question is answered if
one of its pages is among the first five.

All drivers take turns in one process. Compare the ratios, not the milliseconds. `--check` ends with
status 1 if too few queries are answered, or if our search is slower than a scan. `--cpu` counts
processor time, including that of a PostgreSQL process on this machine. `--brief` runs only our
search and the database's scan.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from itertools import accumulate
from pathlib import Path

from evennia_ai.engine.actors import trusted

SEED = 420_711
WORDS = 20_000
FIRST = 10
FIRST_OF_DEMO = 5
LEAST_FOUND = 0.8
LEAST_ANSWERED = 0.9
BATCH = 10_000
BASE = "benchmark"
DEMO = Path(__file__).parents[1] / "world" / "demo" / "knowledge"


def started(address):
    """Set up Django with our tables in the database with this address."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "server.conf.test_settings")
    from django.conf import settings

    from evennia_ai.services.settings.database import database

    settings.DATABASES.update(database(address))
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)


def processor_clock():
    """Return a clock of the processor seconds that this process and the database server used."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return time.process_time
    connection.ensure_connection()
    worked = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
    return lambda: time.process_time() + int(worked.read_text().split()[0]) / 1e9


class Workload:
    """Pages (title and text), and queries with the title of the page that answers each."""

    def __init__(self, pages, queries):
        rng = random.Random(f"{SEED} {pages}")
        self._words = words(rng)
        self._weights = list(accumulate(1 / place for place in range(1, WORDS + 1)))
        self.pages = [self._page(rng, number) for number in range(pages)]
        self.queries = [self._query(rng, rng.choice(self.pages)) for _ in range(queries)]

    def _page(self, rng, number):
        title = " ".join(self._some(rng, 2)).capitalize()
        return f"{title} {number}", " ".join(self._some(rng, rng.randint(40, 120)))

    def _query(self, rng, page):
        title, body = page
        asked = [rng.choice(title.lower().split()[:2]), *rng.sample(body.split(), 3)]
        rng.shuffle(asked)
        return " ".join(asked), title

    def _some(self, rng, count):
        return rng.choices(self._words, cum_weights=self._weights, k=count)


def words(rng):
    """Return different words of three syllables. None of them ends like a plural."""
    syllables = [a + b for a in "bdfgklmnprtvw" for b in ("a", "e", "i", "o", "u", "an", "er")]
    made = set()
    while len(made) < WORDS:
        made.add("".join(rng.choices(syllables, k=3)))
    return rng.sample(sorted(made), WORDS)


class Ours:
    """The driver of evennia_ai: the search in the game's own database."""

    def __init__(self, pages):
        from django.db import connection, transaction

        from evennia_ai import models
        from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, page_name
        from evennia_ai.store.knowledge import page_search
        from evennia_ai.store.knowledge.knowledge_bases import add_to_counts, base_id, save_base

        save_base(BaseInfo(key=BASE, name=BASE), by=trusted("benchmark"))
        row = models.KnowledgeBase(pk=base_id(BASE))
        for start in range(0, len(pages), BATCH):
            made = [Page(name=page_name(t), body=body) for t, body in pages[start : start + BATCH]]
            rows = models.KnowledgePage.objects.bulk_create(
                models.KnowledgePage(
                    base=row,
                    namespace="Main",
                    title=page.name.title,
                    folded=page.name.folded,
                    body=page.body,
                    sha256=page.sha256,
                    characters=len(page.body),
                )
                for page in made
            )
            new = [
                page_search.PageChange(page_id=one.pk, was=None, now=page)
                for one, page in zip(rows, made, strict=True)
            ]
            with transaction.atomic():
                page_search.index_changes(row.pk, new)
        add_to_counts(row, pages=len(pages), characters=0)
        with connection.cursor() as cursor:
            # PostgreSQL would do this by itself, but only after some time.
            cursor.execute("ANALYZE")

    def search(self, query):
        from evennia_ai.store.knowledge import page_search

        return [name.title for name, _ in page_search.search_pages(BASE, query, limit=FIRST).names]


class LikeScan:
    """A driver that asks the database for texts with the words, and ranks by their number."""

    def __init__(self, pages):
        self.pages = pages  # It searches the pages that `Ours` has stored.

    def search(self, query):
        from django.db import connection

        asked = query.split()
        has = "(lower(title || ' ' || body) LIKE %s)"
        if connection.vendor == "postgresql":
            has += "::int"
        told = " + ".join([has] * len(asked))
        sql = (
            f"SELECT title FROM evennia_ai_knowledgepage ORDER BY {told} DESC, title LIMIT {FIRST}"
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, [f"%{word}%" for word in asked])
            return [row[0] for row in cursor.fetchall()]


class PythonScan:
    """A driver that keeps all words in memory and ranks each page, as we rank the game's help."""

    def __init__(self, pages):
        from evennia_ai.engine.knowledge.pages.page import Page, page_name
        from evennia_ai.engine.knowledge.relevance import index_page

        self.pages = [(t, index_page(Page(name=page_name(t), body=body))) for t, body in pages]
        self.counts = {}
        for _, page in self.pages:
            for word in set(page.body.split()):
                self.counts[word] = self.counts.get(word, 0) + 1

    def search(self, query):
        from evennia_ai.engine.knowledge.relevance import query_weights, score_page, word_rarity

        asked = {
            word: word_rarity(self.counts[word], pages=len(self.pages))
            for word in query_weights(query)
            if word in self.counts
        }
        scored = ((-score_page(page, asked), title) for title, page in self.pages)
        return [title for _, title in sorted(scored)[:FIRST]]


class Tantivy:
    """The driver of Tantivy, a library in Rust with an index in memory."""

    def __init__(self, pages):
        import tantivy

        schema = tantivy.SchemaBuilder()
        for field in ("title", "body"):
            schema.add_text_field(field, stored=field == "title")
        self.index = tantivy.Index(schema.build())
        writer = self.index.writer()
        for title, body in pages:
            writer.add_document(tantivy.Document(title=title, body=body))
        writer.commit()
        self.index.reload()
        self.searcher = self.index.searcher()

    def search(self, query):
        asked = self.index.parse_query(query, ["title", "body"])
        hits = self.searcher.search(asked, FIRST).hits
        return [self.searcher.doc(address)["title"][0] for _, address in hits]


class Bm25s:
    """The driver of bm25s, a library that ranks with numpy in memory."""

    def __init__(self, pages):
        import bm25s

        self.titles = [title for title, _ in pages]
        texts = [f"{title} {body}" for title, body in pages]
        self.tokens = bm25s.tokenize(texts, stopwords=None, show_progress=False)
        self.index = bm25s.BM25()
        self.index.index(self.tokens, show_progress=False)
        self.tokenize = bm25s.tokenize

    def search(self, query):
        tokens = self.tokenize([query], stopwords=None, show_progress=False)
        rows, _ = self.index.retrieve(tokens, k=FIRST, show_progress=False)
        return [self.titles[row] for row in rows[0]]


DRIVERS = {
    "evennia_ai": Ours,
    "LIKE scan": LikeScan,
    "Python scan": PythonScan,
    "tantivy": Tantivy,
    "bm25s": Bm25s,
}
SLOW = ("LIKE scan", "Python scan")
"""Slow drivers, which answer only a tenth of the queries."""
BRIEF = ("evennia_ai", "LIKE scan")


def ready(workload, names, clock):
    """Return the installed drivers, each with the seconds that it took to index the pages."""
    made = {}
    for name in names:
        start = clock()
        try:
            made[name] = DRIVERS[name](workload.pages), clock() - start
        except ImportError as missing:
            print(f"left out: {name}: {missing}")
    return made


def measured(workload, drivers, clock):
    """Return, for each driver, the seconds of its searches and the share of right answers."""
    times, found = {name: [] for name in drivers}, {name: [] for name in drivers}
    for number, (query, title) in enumerate(workload.queries):
        for name, (driver, _) in drivers.items():
            if name in SLOW and number % 10:
                continue
            start = clock()
            titles = driver.search(query)
            times[name].append(clock() - start)
            found[name].append(title in titles)
    return times, {name: statistics.mean(answers) for name, answers in found.items()}


def report(drivers, times, found):
    print(f"{'milliseconds':14} {'median':>9} {'p99':>9} {'of ours':>9} {'made in s':>10}  found")
    ours = statistics.median(times["evennia_ai"])
    for name, seconds in times.items():
        median = statistics.median(seconds)
        p99 = sorted(seconds)[int(len(seconds) * 0.99)]
        print(
            f"{name:14} {1000 * median:9.2f} {1000 * p99:9.2f} {median / ours:8.2f}x"
            f" {drivers[name][1]:10.1f} {found[name]:6.2f}"
        )


class Demo:
    """The knowledge base of the demo world, and questions with the pages that answer them."""

    def __init__(self):
        import yaml

        from evennia_ai.engine.knowledge.pages.files import read_folder
        from evennia_ai.engine.knowledge.pages.page import BaseInfo
        from evennia_ai.store.knowledge import page_imports
        from evennia_ai.store.knowledge.knowledge_bases import save_base

        questions = yaml.safe_load((DEMO / "questions.yaml").read_text(encoding="utf-8"))
        self.questions = [(one["question"], {*one["pages"]}) for one in questions]
        save_base(BaseInfo(key="demo", name="Demo"), by=trusted("benchmark"))
        self.pages = read_folder(DEMO / "harbour").pages
        page_imports.import_pages(
            page_imports.plan_pages("demo", self.pages), by=trusted("benchmark")
        )

    def answered(self):
        """Return the share of answered questions, and of the right pages that were found."""
        from evennia_ai.store.knowledge import page_search

        hits, recalls = [], []
        for question, wanted in self.questions:
            names = page_search.search_pages("demo", question, limit=FIRST_OF_DEMO).names
            found = wanted & {name.full for name, _ in names}
            hits.append(bool(found))
            recalls.append(len(found) / min(len(wanted), FIRST_OF_DEMO))
        return statistics.mean(hits), statistics.mean(recalls)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument(
        "--check", action="store_true", help="end with status 1 if our search is not good enough"
    )
    parser.add_argument(
        "--cpu", action="store_true", help="count processor time, on a machine that others use too"
    )
    parser.add_argument(
        "--database",
        metavar="ADDRESS",
        help="the address of an empty database, which is written to",
    )
    parser.add_argument("--brief", action="store_true", help="without the peers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        started(options.database or f"sqlite:///{folder}/knowledge.sqlite3")
        clock = processor_clock() if options.cpu else time.perf_counter
        demo = Demo()
        answered, recall = demo.answered()
        workload = Workload(options.pages, options.queries)
        drivers = ready(workload, BRIEF if options.brief else DRIVERS, clock)
        times, found = measured(workload, drivers, clock)
    print(f"{options.pages:,} pages, {options.queries} queries")
    report(drivers, times, found)
    print(
        f"{len(demo.questions)} questions to the {len(demo.pages)} pages of the demo wiki: answered"
        f" {answered:.2f}, recall {recall:.2f}, both at {FIRST_OF_DEMO}"
    )
    slower = statistics.median(times["evennia_ai"]) > statistics.median(times["LIKE scan"])
    missed = found["evennia_ai"] < LEAST_FOUND or answered < LEAST_ANSWERED or slower
    if options.check and missed:
        raise SystemExit("the search finds too little, or takes longer than reading every page")


if __name__ == "__main__":
    main()
