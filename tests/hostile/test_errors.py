"""Commands that raise an error must show players no traceback, path or address."""

import shutil
from pathlib import Path

import pytest

from tests.hostile.audit import audit
from tests.hostile.failing_commands import ERRORS, WHERE
from tests.hostile.harbour import Harbour

pytestmark = pytest.mark.server

COMMANDS = Path(__file__).with_name("failing_commands.py")
SECRETS = ("Traceback", "10.0.0.7", "4630", "/srv", ".py", "secret_settings", "Error", "File ")


def test_player_sees_no_traceback_when_a_command_fails(harbour: Harbour) -> None:
    scene = harbour.scene("errors", npc="Nell")
    players = [
        scene.enters(harbour.newcomer("Err")),
        scene.enters(harbour.newcomer("Erw", web=True)),
    ]
    shutil.copy(COMMANDS, harbour.game.root / "server")
    harbour.admin.types(
        f"@teleport {scene.room}",
        "py from server.failing_commands import give; give(self.location)",
    )
    with audit("errors", harbour) as subject:
        for name in ERRORS:
            for where in WHERE:
                for player in players:
                    logged = harbour.log_ends()
                    with subject.attack(f"{name} in {where} read by {player.name}"):
                        shown = player.types(f"{name}{where.replace('_', '')}")
                        assert "Your command was not finished" in shown, shown
                        assert not [secret for secret in SECRETS if secret in shown], shown
                        assert "Traceback" in harbour.log_since(logged)
