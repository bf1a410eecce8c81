"""Run the targets of the Makefile: from a fresh clone to a conversation, and back.

Standard library only, because this runs in the machine's Python, before anything is installed.
"""

import ast
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server import workers
from server.checks import build_docs, check, test
from server.evennia_process import (
    Evennia,
    is_running,
    lost_its_server,
    recorded_ports,
    refuse_taken,
)
from server.installation import Installation, installed, write_lock
from server.logins import FILE, read_logins
from server.ports import HOST, Ports
from server.preparing import prepare
from server.steps import StepError, say
from server.telnet import Connection

ROOT = Path(__file__).resolve().parent.parent
RULE = "-" * 78


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """Who may log in to the demo world, and a good first question."""

    superuser: tuple[str, str]
    builder: tuple[str, str]
    player: tuple[str, str]
    npc: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One exchange as the player's client has shown it."""

    said: str
    reply: str
    prompt: str


def main(words: list[str]) -> int:
    """Run the requested action, and return the exit status."""
    actions: dict[str, Callable[[Path], None]] = {
        "play": _play,
        "stop": _stop,
        "test": test,
        "check": check,
        "docs": build_docs,
        "prepare": prepare,  # Used by `make check`.
        "lock": write_lock,
    }
    if len(words) != 1 or words[0] not in actions:
        say(f"usage: python3 -m server {'|'.join(actions)}")
        return 2
    try:
        actions[words[0]](ROOT)
    except (StepError, ValueError) as error:
        print(f"make {words[0]}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has closed it. Otherwise Python would report this again at its
        # end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(f"\nmake {words[0]}: interrupted", file=sys.stderr)
        return 130
    return 0


def _play(root: Path) -> None:
    count = workers.wanted()
    ports = _ports_to_play_on(root)
    is_postgres = os.environ.get(workers.ADDRESS, "").startswith("postgres")
    extras = "game,workers" if count else "game,postgres" if is_postgres else "game"
    game = Evennia(installation=installed(root, extras=extras), ports=ports)
    if count:
        play_with_workers(game, count)
    else:
        play(game)


def _stop(root: Path) -> None:
    ports = recorded_ports(root) or Ports.from_environment()
    programs = root / ".venv" / "bin"
    Evennia(installation=Installation(root=root, programs=programs), ports=ports).stop()
    workers.stop(root)
    workers.stop_postgres(root)
    say("The game is stopped. `make play` starts it again, with everything as it was.")


def _ports_to_play_on(root: Path) -> Ports:
    """Return the running game's ports, or the chosen ones after checking that they are free."""
    recorded = recorded_ports(root)
    if recorded and is_running(root):
        return recorded
    chosen = Ports.from_environment()
    refuse_taken(chosen)
    return chosen


def play(game: Evennia, *, then: Callable[[Demo], None] | None = None) -> Exchange:
    """Start the game if it does not run, play one exchange, and say how to log in.

    `then` is called before the last message.

    Raises:
        StepError: the game did not start, or no NPC answered.
    """
    if lost_its_server(game.root):
        say("== The game's Server is gone: ending the rest of the game, to start it again")
        game.stop()
    if is_running(game.root):
        say("== The game is running already")
    else:
        game.prepare()
        game.start()
    demo = read_demo(game.root / "world" / "build_demo.py")
    exchange = play_exchange(game.ports, demo)
    say(f"{RULE}\n> {exchange.said}\n{exchange.reply}\n{RULE}")
    say(f"> ai/context {demo.npc} = full\n{exchange.prompt}\n{RULE}")
    if then is not None:
        then(demo)
    say(_directions(game.ports, demo))
    return exchange


def play_with_workers(game: Evennia, count: int) -> None:
    """Do what `play` does, with PostgreSQL and workers, and show what a worker has learnt.

    Raises:
        StepError: the game runs without workers, or one of its parts did not start.
    """
    if is_running(game.root) and not workers.running(game.root):
        raise StepError("the game runs without workers; `make stop` first")
    workers.keep_in_postgres(game.root)

    def show(demo: Demo) -> None:
        workers.start(game, count)
        say(f"{RULE}\n{_learnt(game.ports, demo, count=count)}\n{RULE}")

    play(game, then=show)


def _learnt(ports: Ports, demo: Demo, *, count: int, patience_seconds: float = 180) -> str:
    """Return what the NPC remembers after a worker noted something, and the workers' state."""
    wanted = {f"ai/memory {demo.npc}": ' said: "', "ai": f"Background work: {count} worker"}
    end = time.monotonic() + patience_seconds
    told = []
    with _as_builder(ports, demo) as connection:
        for line, what in wanted.items():
            shown = ""
            while what not in shown:
                if time.monotonic() > end:
                    raise StepError(f"the workers did not do their jobs (see server/logs)\n{shown}")
                time.sleep(1)
                connection.send(line)
                shown = connection.wait_for_quiet().strip()
            told.append(f"> {line}\n{shown}")
        connection.send("quit")
    return "\n".join(told)


def read_demo(path: Path) -> Demo:
    """Return the logins of the game in the folder `path`, and the first question of its world.

    Raises:
        StepError: the logins were not made yet.
    """
    npc, question = first_question(path)
    logins = read_logins(path.parents[1])
    if logins is None:
        raise StepError("this game has no passwords yet; `make stop`, then `make play` makes them")
    return Demo(
        superuser=logins.superuser,
        builder=logins.builder,
        player=logins.player,
        npc=npc,
        question=question,
    )


def first_question(path: Path) -> tuple[str, str]:
    """Return an NPC and a question for it.

    They are read from the source of the world's builder, because this Python cannot import it.
    """
    constants = dict(_constants(ast.parse(path.read_text(encoding="utf-8"))))
    npc, question = constants["DEMO_QUESTION"]
    return npc, question


def _constants(module: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in module.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case _:
                continue
        if name.startswith("DEMO_"):
            yield name, ast.literal_eval(value)


def play_exchange(ports: Ports, demo: Demo, *, patience_seconds: float = 60) -> Exchange:
    """Log in over telnet as the demo builder, ask the question, and read the prompt that it caused.

    Raises:
        StepError: the login was refused, or no answer came in time.
    """
    said = f"say {demo.npc.capitalize()}, {demo.question}"
    with _as_builder(ports, demo) as connection:
        # The builder may have left the room since the last time.
        connection.send(f"@teleport/loc {demo.npc}")
        connection.wait_for_quiet()
        connection.send(said)
        heard = connection.wait_for(rf'(?i)^{demo.npc}\b[^\n]* says?, "', seconds=patience_seconds)
        heard = connection.wait_for_quiet()
        connection.send(f"ai/context {demo.npc} = full")
        prompt = connection.wait_for_quiet(quiet_seconds=2).strip()
        connection.send("quit")
    return Exchange(said=said, reply=_reply(heard, demo.npc), prompt=prompt)


@contextmanager
def _as_builder(ports: Ports, demo: Demo) -> Iterator[Connection]:
    """Log in over telnet as the demo builder, and return the connection.

    Raises:
        StepError: the login was refused.
    """
    name, password = demo.builder
    with Connection(HOST, ports.telnet) as connection:
        connection.wait_for("connect <name> <password>", seconds=20)
        connection.send(f"connect {name} {password}")
        connection.wait_for("You become|incorrect|Exits", seconds=30)
        arrived = connection.wait_for_quiet()
        if "incorrect" in arrived:
            raise StepError(
                f"the game refused {name!r} and the password in {FILE}: {arrived.strip()}\n"
                f"If the password was changed: `make stop`, delete {FILE}, and `make play` gives"
                " the demo accounts new ones."
            )
        yield connection


def _reply(heard: str, npc: str) -> str:
    """Return the line in which `npc` spoke."""
    found = re.search(rf'(?im)^{npc}\b[^\n]* says?, ".*$', heard)
    assert found, heard
    return found.group(0).strip()


def _directions(ports: Ports, demo: Demo) -> str:
    people = "\n".join(
        f"    {role:<11}{name} / {password}"
        for role, (name, password) in (("player", demo.player), ("builder", demo.builder))
    )
    return f"""The game is running. Only this machine can reach it.

    In a browser: http://localhost:{ports.web}/webclient/
    For builders: http://localhost:{ports.web}/ai/
    With telnet:  telnet localhost {ports.telnet}

{people}

These passwords belong to this checkout only; they are in {FILE}. Do not play as
the superuser, who may run any code as you: {" / ".join(demo.superuser)}

Stop it with: make stop"""
