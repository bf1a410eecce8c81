"""Tools for test games in which the server stops while a tool runs.

Each use appends a line to a file of the game's folder, so a repeated use is noticed.
"""

import os
import signal
from pathlib import Path
from typing import Any

from django.conf import settings
from twisted.internet.defer import Deferred

from evennia_ai.npc.tools.tool import Tool, Use

USED = "tools_used"


def _used(name: str) -> None:
    with (Path(settings.GAME_DIR) / USED).open("a", encoding="utf-8") as file:
        file.write(f"{name}\n")


class Ring(Tool):
    """A tool that ends at once."""

    name = "ring"
    description = "Ring the bell of the ferry."

    def run(self, use: Use, arguments: Any) -> str:
        _used(self.name)
        return "The bell rings out over the water."


class RingTooHard(Tool):
    """A tool that kills the server."""

    name = "ring_too_hard"
    description = "Ring the bell of the ferry as hard as you can."

    def run(self, use: Use, arguments: Any) -> str:
        _used(self.name)
        os.kill(os.getpid(), signal.SIGKILL)
        return "Nobody is told."


class SendTheBoy(Tool):
    """A tool whose errand never ends."""

    name = "send_the_boy"
    description = "Send the boy to ask the harbour master."
    later = True

    def run(self, use: Use, arguments: Any) -> "Deferred[str]":
        _used(self.name)
        return Deferred()
