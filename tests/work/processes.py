"""Games and workers as processes on one PostgreSQL, for the tests of work."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psycopg

from tests.store.postgres import Cluster

ROOT = Path(__file__).resolve().parents[2]
STALLED_SECONDS = 2
SERVER_CONFIG = "CREATE TABLE server_serverconfig (id serial, db_key text, db_value text)"
"""The one table that Evennia reads while it is imported."""

WORKERS = {"queue": "procrastinate", "stalled_seconds": STALLED_SECONDS}


class Databases:
    """Databases of a cluster with our tables and the queue's; those `of` one worker of pytest."""

    def __init__(self, cluster: Cluster, *, of: Path) -> None:
        self._cluster = cluster
        self._names = f"work_{of.parent.name}".replace("-", "_")
        self._count = 0
        address = cluster.make(self._names)
        script = (
            "import django; django.setup();"
            "from django.core.management import call_command as call;"
            "call('migrate', 'evennia_ai', verbosity=0);"
            "call('migrate', 'procrastinate', verbosity=0)"
        )
        settings = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.work.tables_settings",
            "EVENNIA_AI_TEST_DATABASE": address,
        }
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT, env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        cluster.rows(self._names, SERVER_CONFIG)

    def new(self):
        """The address of a new one with the tables and nothing in them."""
        self._count += 1
        return self._cluster.make(f"{self._names}_{self._count}", like=self._names)


class Place:
    """One game's database, its worker's file, and the processes on it."""

    def __init__(self, databases: Databases, folder: Path) -> None:
        self.address = databases.new()
        self.folder = folder
        self.workers_set = WORKERS
        self.file = folder / "worker.json"
        self.processes = []
        self.limits = {}

    def write_file(self, **settings):
        wise = {"wise": {"script": "tests.work.ledger.answer"}}
        told = {
            "database": self.address,
            "game_folder": str(ROOT),
            "settings": {
                "EVENNIA_AI_PROFILES": wise,
                "EVENNIA_AI_MODEL_ROLES": {"summariser": "wise"},
                "EVENNIA_AI_WORKERS": self.workers_set,
                **settings,
            },
        }
        self.file.write_text(json.dumps(told))

    def sql(self, text, *values):
        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else []

    def game(self, *, workers=None, **given):
        """A game's process."""
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.work.pg_settings",
            "EVENNIA_AI_TEST_DATABASE": self.address,
            "EVENNIA_AI_TEST_WORKERS": json.dumps(workers or self.workers_set),
            "EVENNIA_AI_TEST_LIMITS": json.dumps(self.limits),
        }
        return self._begun(
            [sys.executable, "-m", "tests.work.game", json.dumps(given)], environment
        )

    def worker(self, name="w1", **given):
        """A worker's process."""
        return self._by_file("tests.work.doomed_worker", name, json.dumps(given))

    def dying_workers(self, deaths):
        """A process of workers that die, so many."""
        return self._by_file("tests.work.dying_workers", str(deaths))

    def _by_file(self, module, *words):
        if not self.file.exists():
            self.write_file()
        environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
        command = [sys.executable, "-m", module, str(self.file), *words]
        return self._begun(command, environment)

    def _begun(self, command, environment):
        number = len(self.processes)
        out, err = self.folder / f"{number}.out", self.folder / f"{number}.err"
        with out.open("w") as said, err.open("w") as complained:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                stdout=said, stderr=complained,
            )  # fmt: skip
        process.out, process.err = out, err
        self.processes.append(process)
        return process

    def ends(self, game, *, seconds=150):
        """How the jobs ended that a game asked for, by name, when it has ended itself."""
        status = game.wait(seconds)
        assert status == 0, game.err.read_text()
        return {one["name"]: one["ending"] for one in told(game) if "name" in one}

    def ledger(self):
        """What was applied, in order of the names."""
        rows = self.sql("SELECT text FROM evennia_ai_memory WHERE npc_ref = 'ledger'")
        return sorted(text for (text,) in rows)

    def proposals(self):
        """The states of proposals by name."""
        return dict(self.sql("SELECT idempotency, state FROM evennia_ai_proposal"))

    def queued(self):
        """How many jobs are in the queue."""
        return self.sql("SELECT count(*) FROM procrastinate_jobs")[0][0]

    def end(self):
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait(10)


def told(process):
    """The lines of JSON that a game printed."""
    lines = process.out.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def a_job(number, **given):
    """A job as a game's process is given it."""
    fields = {key: given.pop(key) for key in ("lock", "queueing_lock", "deadline") if key in given}
    return {"idempotency": f"ledger:{number}", "given": {"number": number, **given}, **fields}
