"""A process in which Evennia is ready to run, and that gives birth to processes that may die.

Each connection is a job, one line of JSON: a database file, acts to play, a trouble and the step
at which it comes. A child of this process does the job and tells one line of JSON for each thing
that happens; that the connection ends without `ended` means that the child died. To fork what is
ready takes no time, where to start Evennia takes seconds.
"""

import gc
import json
import os
import sys
from pathlib import Path
from socketserver import ForkingTCPServer, StreamRequestHandler
from typing import Any

SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "server.conf.test_settings",
    "EVENNIA_SUPERUSER_USERNAME": "admin",
    "EVENNIA_SUPERUSER_EMAIL": "admin@localhost",
    "EVENNIA_SUPERUSER_PASSWORD": "checks-admin-1",
}


def start(database: str, logs: Path) -> None:
    """Start Evennia on this database, and leave no connection to it open.

    What each life would import or read for itself is imported and read here.
    """
    os.environ.update(SETTINGS)
    import django
    from django.conf import settings

    from evennia_ai.services.settings.database import database as settings_of

    address = database if database.startswith("postgres://") else f"sqlite:///{database}"
    settings.DATABASES = settings_of(address)
    settings.LOG_DIR = str(logs)
    settings.LOCKWARNING_LOG_FILE = str(logs / "locks.log")

    django.setup()
    import evennia

    evennia._init()
    from django.db import connections

    import evennia_ai.typeclasses  # noqa: F401
    from evennia_ai.npc.tools.registry import registry
    from tests.acceptance import doomed_world  # noqa: F401

    registry()  # which reads the settings
    connections.close_all()
    gc.collect()
    gc.freeze()  # a collection in a child would write to all that it shares with this process


class Job(StreamRequestHandler):
    """One job, in a child process."""

    def handle(self) -> None:
        job = json.loads(self.rfile.readline())
        self.tell(pid=os.getpid())
        play(job, self.tell, self.rfile.readline)
        self.tell(ended=True)

    def tell(self, **what: Any) -> None:
        self.wfile.write(json.dumps(what).encode() + b"\n")


def play(job: dict[str, Any], tell: Any, wait: Any) -> None:
    from tests.acceptance.doomed_steps import Steps, Troubles, watch
    from tests.acceptance.doomed_world import World, connect

    database = job["database"]
    connection = connect(database)
    if job.get("migrates"):
        from django.core.management import call_command

        call_command("migrate", run_syncdb=True, verbosity=0)
    troubles = Troubles(tell, wait, database=database)
    steps = Steps(tell, getattr(troubles, job["trouble"]), at=job["at"])
    if not job.get("migrates"):
        watch(connection, steps, tell, database=database)
    world = World(
        tell, steps, troubles, database=database, model=job["model"], writer=job["writer"]
    )
    for act, *words in job["acts"]:
        getattr(world, act)(*words)


class Children(ForkingTCPServer):
    """Takes the jobs; ends when whoever started it is gone, however that ended."""

    max_children = 4
    parent = os.getppid()

    def service_actions(self) -> None:
        super().service_actions()
        if os.getppid() != self.parent:
            os._exit(0)


if __name__ == "__main__":
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Evennia prints is not for the reader
    start(sys.argv[1], Path(sys.argv[2]))
    with Children(("127.0.0.1", 0), Job) as server:
        print(server.server_address[1], file=told, flush=True)
        server.serve_forever()
