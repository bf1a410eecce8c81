"""The game that is attacked, its model server, and the people in it."""

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from server.client import Client
from server.evennia_process import Evennia
from server.newcomer import Demo, read_demo
from server.ports import HOST
from server.telnet import Connection
from tests.acceptance.web_client import WebClient
from tests.services.llm.clients.stub_server import Seen, StubServer, answers

PASSWORD = "harbour-player-2"
START = "#2"
"""The room in which new characters begin."""

PATIENCE_SECONDS = 60
"""How long an answer may take on a busy machine. No test depends on time."""

SETTINGS = """
EVENNIA_AI_PROFILES = {{
    "default": {{
        "base_url": {base_url!r},
        "model": "tiny",
        "timeout_seconds": 10.0,
        "idle_seconds": 3.0,
        "max_retries": 1,
    }},
}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_LIMITS = {{"player": {{"calls_per_minute": 1000}}, "npc": {{"calls_per_minute": 1000}}}}
# Attackers come by the dozen, from one address, and each types as fast as a program does.
CREATION_THROTTLE_LIMIT = LOGIN_THROTTLE_LIMIT = 10000
MAX_COMMAND_RATE = 100000
MAX_NR_CHARACTERS = 1000
"""

_markers = count(1)


@dataclass(slots=True)
class Person:
    """A person who plays, over telnet or in the web client."""

    name: str
    client: Client

    def types(self, *lines: str) -> str:
        """Type lines, wait until the game has executed them all, and return what was shown.

        An unknown command is typed after them, because the game answers line by line.
        """
        end = f"zz{next(_markers)}"
        for line in lines:
            self.client.send(line)
        self.client.send(end)
        return self.client.wait_for(f"{end}' is not available", seconds=PATIENCE_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A room for one subject, with the builder and an NPC in it."""

    harbour: "Harbour"
    subject: str
    room: str
    """The number of the room in the game, such as `#12`."""

    npc: str

    def enters(self, person: Person) -> Person:
        """Move a person into the room. Only the superuser may move a player."""
        shown = self.harbour.admin.types(f"@teleport/quiet {person.name} = {self.room}")
        assert "was teleported" in shown or "Teleported" in shown, shown
        person.types("look")
        return person

    def asks(self, person: Person, line: str, *, reads: str = "") -> Seen:
        """Let a person type a line to the NPC, and return the request that its model got."""
        model = self.harbour.model
        before = len(model.requests)
        person.client.send(line)
        person.client.wait_for(f'^{self.npc} says, "{reads}', seconds=PATIENCE_SECONDS)
        asked = [one for one in model.requests[before:] if self._is_a_turn(one)]
        assert asked, f"no model was asked: {person.client.text[-500:]}"
        return asked[0]

    def _is_a_turn(self, request: Seen) -> bool:
        """True if a request is for an answer of the NPC, and not for a summary or memories."""
        return f"You are {self.npc}" in request.body["messages"][0]["content"]


class Harbour:
    """The running game, its model server, and everybody who has entered."""

    def __init__(self, game: Evennia, model: StubServer) -> None:
        self.game = game
        self.model = model.behaves(answers("Aye."))
        self.demo: Demo = read_demo(game.root / "world" / "build_demo.py")
        self._people: dict[str, Person] = {}

    @property
    def builder(self) -> Person:
        """Tamsin, a Builder."""
        return self._known("Tamsin", lambda: self.at_telnet(*self.demo.builder))

    @property
    def admin(self) -> Person:
        """The superuser."""
        return self._known("admin", lambda: self.at_telnet(*self.demo.superuser))

    @property
    def anna(self) -> Person:
        """Anna, a Player who is there from the start."""
        return self._known("Anna", lambda: self.at_telnet(*self.demo.player))

    def newcomer(self, name: str, *, links: bool = False, web: bool = False) -> Person:
        """Return the Player with this name, who is created at first."""
        return self._known(name, lambda: self._comes(name, links=links, web=web))

    def at_telnet(self, name: str, password: str, *, links: bool = False) -> Client:
        """Return a telnet connection for somebody who has an account."""
        client = Connection(HOST, self.game.ports.telnet, links=links)
        client.wait_for("come ashore", seconds=PATIENCE_SECONDS)
        return _connected(client, name, password)

    def at_the_web(self, name: str, password: str) -> WebClient:
        """Return a web client connection for somebody who has an account."""
        client = WebClient(HOST, self.game.ports.websocket)
        client.wait_for("come ashore", seconds=PATIENCE_SECONDS)
        _connected(client, name, password)
        return client

    def scene(self, subject: str, *, npc: str) -> Scene:
        """Make a room and an NPC, and move the builder there: `to <subject>` from the start."""
        dug = self.builder.types(
            f"@teleport {START}", f"@dig/teleport The room of {subject} = to {subject}, back"
        )
        (room,) = re.findall(rf"The room of {subject}\((#\d+)\)", dug)[:1]
        self.builder.types(f"create/drop {npc}:evennia_ai.typeclasses.AINPC")
        return Scene(harbour=self, subject=subject, room=room, npc=npc)

    def memory_mib(self) -> int:
        """Return the memory of the game's Server, in MiB."""
        pid = (self.game.root / "server" / "server.pid").read_text(encoding="utf-8").strip()
        ran = subprocess.run(["ps", "-o", "rss=", "-p", pid], capture_output=True, check=True)
        return int(ran.stdout) // 1024

    def log_ends(self) -> dict[Path, int]:
        """Return how long each log is now."""
        return {path: path.stat().st_size for path in self._logs()}

    def log_since(self, ends: Mapping[Path, int]) -> str:
        """Return what was written to the logs since then."""
        new = (path.read_bytes()[ends.get(path, 0) :] for path in self._logs())
        return b"\n".join(new).decode(errors="replace")

    def _logs(self) -> list[Path]:
        return sorted((self.game.root / "server" / "logs").glob("*.log"))

    def close(self) -> None:
        """Disconnect everybody."""
        for person in self._people.values():
            person.client.close()

    def _known(self, name: str, comes: Callable[[], Client]) -> Person:
        if name not in self._people:
            self._people[name] = Person(name, comes())
        return self._people[name]

    def _comes(self, name: str, *, links: bool, web: bool) -> Client:
        with Connection(HOST, self.game.ports.telnet) as first:
            first.wait_for("come ashore", seconds=PATIENCE_SECONDS)
            first.send(f"create {name} {PASSWORD}")
            first.wait_for(r"\[Y\]/N", seconds=PATIENCE_SECONDS)
            first.send("y")
            first.wait_for("A new account", seconds=PATIENCE_SECONDS)
        if web:
            return self.at_the_web(name, PASSWORD)
        return self.at_telnet(name, PASSWORD, links=links)


def _connected(client: Client, name: str, password: str) -> Client:
    client.send(f"connect {name} {password}")
    client.wait_for("You become", seconds=PATIENCE_SECONDS)
    return client
