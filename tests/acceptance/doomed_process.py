"""Start Evennia once, then fork a child process for each job.

Each connection carries one job as a line of JSON: a database, acts to play, a trouble and the step
at which it happens. The child reports each event as a line of JSON. If the connection ends without
`ended`, the child was killed. A fork takes no time, while starting Evennia takes seconds.
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
    """Start Evennia on this database, and close its connections.

    Everything that each child would import or read is imported and read here.
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

    registry()  # reads the settings before forking
    connections.close_all()
    gc.collect()
    gc.freeze()  # garbage collection in a child would copy the shared memory


class Job(StreamRequestHandler):
    """A job that a child process does."""

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
    """A server that forks for each job. It exits when its parent process is gone."""

    max_children = 4
    parent = os.getppid()

    def service_actions(self) -> None:
        super().service_actions()
        if os.getppid() != self.parent:
            os._exit(0)


if __name__ == "__main__":
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keep Evennia's output out of the channel to the parent
    start(sys.argv[1], Path(sys.argv[2]))
    with Children(("127.0.0.1", 0), Job) as server:
        print(server.server_address[1], file=told, flush=True)
        server.serve_forever()
