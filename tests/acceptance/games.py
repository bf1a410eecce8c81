"""Real games for tests: a copy of this checkout's game, on free ports of its own."""

import shutil
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

from server.evennia_process import Evennia
from server.installation import Installation
from server.ports import Ports

ROOT = Path(__file__).resolve().parents[2]
GAME = ("commands", "evennia_ai", "server", "world")
MADE_BY_RUNNING = shutil.ignore_patterns(
    "__pycache__", "logs", "*.db3*", "*.pid", ".static", ".media", "secret_settings.py"
)


def copied_game(root: Path, *, settings: str = "") -> Evennia:
    """The game in the empty folder `root`, with `settings` after its own; not started yet."""
    for name in GAME:
        shutil.copytree(ROOT / name, root / name, ignore=MADE_BY_RUNNING)
    with (root / "server" / "conf" / "settings.py").open("a", encoding="utf-8") as file:
        file.write(f"\n{settings}\n")
    programs = Path(sys.executable).parent
    return Evennia(installation=Installation(root=root, programs=programs), ports=free_ports())


def free_ports() -> Ports:
    """Ports nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(5)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        telnet, web, websocket, web_internal, amp = (s.getsockname()[1] for s in sockets)
    return Ports(telnet=telnet, web=web, websocket=websocket, web_internal=web_internal, amp=amp)
