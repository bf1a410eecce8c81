"""`evennia-ai worker` and `worker-file`: do the background work of a game, on any machine."""

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evennia_ai.cli.game import need, opened_game
from evennia_ai.cli.options import FILE, FORCE, GAME

if TYPE_CHECKING:
    from evennia_ai.npc.jobs.worker.configured import WorkerFile

_LOG_LINE: Final = "%(asctime)s %(levelname)s %(message)s"


@click.command("worker")
@click.argument("place", type=FILE, default=Path(), metavar="[PLACE]")
@click.option("--name", help="The worker's name in the game; default: machine and process.")
@click.option(
    "--kinds", multiple=True, metavar="KIND", help="Do only these kinds of jobs; default: all."
)
@click.option(
    "--at-once", type=click.IntRange(1, 64), default=4, help="The most jobs at the same time."
)
@click.option("--until-idle", is_flag=True, help="End when no job is waiting.")
def worker(
    place: Path, *, name: str | None, kinds: tuple[str, ...], at_once: int, until_idle: bool
) -> int:
    """Do background work of a game until SIGTERM. Jobs that are under way are finished first.

    PLACE is the game's folder, or a file that `evennia-ai worker-file` wrote there. A worker with
    such a file needs no Evennia.
    """
    need("django", "twisted", "httpx2", "procrastinate", "psycopg", extra="workers")
    from evennia_ai.npc.jobs.worker.configured import configure_django

    logging.basicConfig(level=logging.INFO, format=_LOG_LINE, stream=sys.stderr)
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    configure_django(_settings_at(place))
    from evennia_ai.npc.jobs.registry import KINDS, kinds_of, missing_for
    from evennia_ai.npc.jobs.worker.living import WorkerOptions, run_worker

    own_name = name or f"{socket.gethostname()}:{os.getpid()}"
    for kind in () if kinds else KINDS:
        if packages := missing_for(kind):
            logging.warning(
                "jobs of the kind %s are left to other workers: %s is missing",
                kind,
                ", ".join(packages),
            )
    options = WorkerOptions(name=own_name, at_once=at_once, ends_when_idle=until_idle)
    import asyncio

    asyncio.run(run_worker(kinds_of(kinds), options))
    return 0


@click.command("worker-file")
@click.argument("target", type=click.Path(path_type=Path, allow_dash=True), metavar="OUT")
@FORCE
@GAME
def worker_file(target: Path, *, force: bool, game: Path) -> int:
    """Write what a worker needs to know of a game: its database, and its settings of evennia_ai.

    The file may contain the database's password, so only its owner can read it. OUT may be - for
    standard output.
    """
    from evennia_ai.cli.output import write_file

    path = target.absolute()
    opened_game(game)
    from django.conf import settings

    from evennia_ai.npc.jobs.worker.configured import file_of_game

    text = file_of_game(settings).text()
    if str(target) == "-":
        click.echo(text, nl=False)
        return 0
    write_file(path, text.encode(), kind="worker's file", force=force)
    click.echo(f"{target}: what a worker of {game} needs to know; keep it secret like a password")
    return 0


def _settings_at(place: Path) -> "WorkerFile":
    """Return the settings in a file, or those of a game's folder, which another process reads."""
    from evennia_ai.npc.jobs.worker.configured import WorkerSettingsError, read_file

    if not place.is_dir():
        try:
            text = place.read_text(encoding="utf-8")
        except OSError as error:
            raise WorkerSettingsError(f"{place}: cannot be read: {error.strerror}") from error
        return read_file(text, where=str(place))
    command = [sys.executable, "-m", "evennia_ai.cli", "worker-file", "-", "--game", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise WorkerSettingsError(done.stderr.strip().removeprefix("evennia-ai: "))
    return read_file(done.stdout, where=str(place))
