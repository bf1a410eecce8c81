"""Games and workers as processes on one PostgreSQL cluster, for the tests of jobs."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.forking import ROOT, Forker
from tests.npc.jobs import worker
from tests.store.postgres import Cluster

STALLED_SECONDS = 2
SERVER_CONFIG = "CREATE TABLE server_serverconfig (id serial, db_key text, db_value text)"
"""The only table that Evennia reads while it is imported."""

WORKERS = {"queue": "procrastinate", "stalled_seconds": STALLED_SECONDS}
MANY = {"calls_per_minute": 10**6, "calls_per_day": 10**6}
LIMITS = {"npc": MANY, "game": MANY}
FIELDS = ("lock", "queueing_lock", "limits", "deadline")


class Databases:
    """Databases of a cluster with our tables and the queue's, for one worker of pytest.

    It also starts the programs from which games and workers are forked. `of` is its folder.
    """

    def __init__(self, cluster: Cluster, *, of: Path) -> None:
        self._cluster = cluster
        self._names = f"work_{of.parent.name}".replace("-", "_")
        self._count = 0
        self._folder = of
        self._forkers = {}
        address = self._address = cluster.make(self._names)
        script = (
            "import django; django.setup();"
            "from django.core.management import call_command as call;"
            "call('migrate', 'evennia_ai', verbosity=0);"
            "call('migrate', 'procrastinate', verbosity=0)"
        )
        settings = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.npc.jobs.tables_settings",
            "EVENNIA_AI_TEST_DATABASE": address,
        }
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT, env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        cluster.rows(self._names, SERVER_CONFIG)

    def new(self):
        """Make a database with empty tables. Return its address."""
        self._count += 1
        return self._cluster.make(f"{self._names}_{self._count}", like=self._names)

    def forker(self, module):
        """Return the program that forks processes of the module "game" or "worker"."""
        if module not in self._forkers:
            environment = {
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.npc.jobs.pg_settings",
                "EVENNIA_AI_TEST_DATABASE": self._address,
            }
            if module == "worker":
                file = self._folder / "worker.json"
                file.write_text(json.dumps(self._of_worker()))
                environment[worker.FILE] = str(file)
                del environment["DJANGO_SETTINGS_MODULE"]
            said = self._folder / f"{module}.err"
            made = Forker(f"tests.npc.jobs.{module}", environment=environment, said=said)
            self._forkers[module] = made
        return self._forkers[module]

    def _of_worker(self):
        """Return the content of a worker's file."""
        return {
            "database": self._address,
            "game_folder": str(ROOT),
            "settings": {
                "EVENNIA_AI_PROFILES": {"wise": {"script": "tests.npc.jobs.ledger.answer"}},
                "EVENNIA_AI_MODEL_ROLES": {"summariser": "wise"},
            },
        }

    def close(self):
        for forker in self._forkers.values():
            forker.close()


class Place:
    """One game's database, and the processes on it."""

    def __init__(self, databases: Databases, folder: Path) -> None:
        self.address = databases.new()
        self.folder = folder
        self.workers_set = WORKERS
        self.limits = LIMITS
        self.processes = []
        self._databases = databases

    def sql(self, text, *values):
        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def locked(self, *tables):
        """Lock these tables through another connection meanwhile."""
        with psycopg.connect(self.address) as other:
            other.execute(f"LOCK TABLE {', '.join(tables)}")
            yield
            other.rollback()

    def game(self, *, workers=None, **given):
        """Start a game's process."""
        return self._begun("game", given, workers or self.workers_set)

    def worker(self, name="w1", **given):
        """Start a worker's process."""
        return self._begun("worker", {"name": name, **given}, self.workers_set)

    def _begun(self, module, given, workers):
        number = len(self.processes)
        settings = {"EVENNIA_AI_WORKERS": workers, "EVENNIA_AI_LIMITS": self.limits}
        given = {"address": self.address, "settings": settings, **given}
        out, err = (self.folder / f"{number}.{kind}" for kind in ("out", "err"))
        process = self._databases.forker(module).begin(given, out=out, err=err)
        self.processes.append(process)
        return process

    def ends(self, game, *, seconds=150):
        """Wait until a game's process has ended. Return how its jobs ended, by name."""
        status = game.wait(seconds)
        assert status == 0, game.err.read_text()
        return {one["name"]: one["ending"] for one in told(game) if "name" in one}

    def ledger(self):
        """Return the rows of applied jobs, sorted by name."""
        rows = self.sql("SELECT text FROM evennia_ai_memory WHERE npc_ref = 'ledger'")
        return sorted(text for (text,) in rows)

    def proposals(self):
        """Return the states of proposals by job name."""
        return dict(self.sql("SELECT idempotency, state FROM evennia_ai_proposal"))

    def queued(self):
        """Return how many jobs are in the queue."""
        return self.sql("SELECT count(*) FROM procrastinate_jobs")[0][0]

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait(10)


def told(process):
    """Return the lines of JSON that a process printed, parsed."""
    lines = process.out.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def a_job(number, **given):
    """Return a job in the form in which a game's process gets it."""
    fields = {key: given.pop(key) for key in FIELDS if key in given}
    return {"idempotency": f"ledger:{number}", "given": {"number": number, **given}, **fields}
