"""Copied into the game of a test: tools that are under way when the server stops.

Each use is a line in a file of the game's folder, so that nobody can do anything twice unseen.
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
    """Rings the bell, which is done at once."""

    name = "ring"
    description = "Ring the bell of the ferry."

    def run(self, use: Use, arguments: Any) -> str:
        _used(self.name)
        return "The bell rings out over the water."


class RingTooHard(Tool):
    """Rings the bell, and the server dies of it."""

    name = "ring_too_hard"
    description = "Ring the bell of the ferry as hard as you can."

    def run(self, use: Use, arguments: Any) -> str:
        _used(self.name)
        os.kill(os.getpid(), signal.SIGKILL)
        return "Nobody is told."


class SendTheBoy(Tool):
    """Sends somebody who never comes back."""

    name = "send_the_boy"
    description = "Send the boy to ask the harbour master."
    later = True

    def run(self, use: Use, arguments: Any) -> "Deferred[str]":
        _used(self.name)
        return Deferred()
