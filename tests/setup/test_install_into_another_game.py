"""Test the installation into a new game: pip, one line of settings, one command set, migrate."""

import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = [pytest.mark.packaging, pytest.mark.minutes(1)]

SETTINGS_LINE = 'INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]\n'
IMPORT_LINE = "from evennia_ai.commands.cmdset import AICmdSet\n"
CMDSET_LINE = "        self.add(AICmdSet)\n"

URL_LINE = """
urlpatterns = [path("ai/", include("evennia_ai.web.site.urls")), *urlpatterns]
"""

CHECK = """
from django.db import connection
from commands.default_cmdsets import CharacterCmdSet
import evennia_ai

cmdset = CharacterCmdSet()
cmdset.at_cmdset_creation()
print("KEYS", *sorted(command.key for command in cmdset))
print("TABLES", *sorted(connection.introspection.table_names()))
print("FROM", evennia_ai.__file__)

from django.contrib.auth import get_user_model
from django.contrib.staticfiles import finders
from django.test import Client

client = Client(SERVER_NAME="localhost")
nobody = client.get("/ai/").status_code
builder = get_user_model().objects.create(username="tilda", is_active=True)
builder.permissions.add("Builder")
client.force_login(builder)
page = client.get("/ai/")
print("PAGES", nobody, page.status_code, b"<h1>Home</h1>" in page.content)
files = ("tokens.css", "pages.css", "turn.js")
print("STATIC", *(bool(finders.find(f"evennia_ai/{name}")) for name in files))
"""


class Game:
    """A new Evennia game in a folder, with its own Python."""

    def __init__(self, folder: Path) -> None:
        self._python = folder / "python"
        venv.create(self._python, with_pip=False)
        self.site_packages = next(self._python.glob("lib/python*/site-packages"))
        # Evennia and pip are shared with this environment. Only our wheel is really installed.
        known = sysconfig.get_paths()["purelib"]
        (self.site_packages / "dependencies.pth").write_text(f"{known}\n")
        self.run("evennia", "--init", "mygame", cwd=folder)
        self.folder = folder / "mygame"

    def run(self, *words: str, cwd: Path | None = None) -> str:
        """Run a program of the game's Python, or of the running one, and return its output."""
        programs = [str(self._python / "bin"), sysconfig.get_path("scripts"), os.environ["PATH"]]
        script = Path(sysconfig.get_path("scripts")) / "evennia"
        python = str(self._python / "bin" / "python")
        command = [python, str(script), *words[1:]] if words[0] == "evennia" else [python, *words]
        environment = {
            name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"
        }
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env={**environment, "PATH": os.pathsep.join(programs), "PYTHONPATH": ""},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _append(path: Path, line: str, *, before: str | None = None) -> None:
    text = path.read_text()
    at = text.index(before) if before else len(text)
    path.write_text(text[:at] + line + text[at:])


@pytest.fixture(scope="module")
def report(wheel, tmp_path_factory) -> dict[str, list[str]]:
    """Return what the game reports after the four steps of the README."""
    game = Game(tmp_path_factory.mktemp("another"))
    game.run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    _append(game.folder / "server" / "conf" / "settings.py", SETTINGS_LINE)
    cmdsets = game.folder / "commands" / "default_cmdsets.py"
    _append(cmdsets, IMPORT_LINE, before="\n\nclass CharacterCmdSet")
    _append(cmdsets, CMDSET_LINE, before="\n\nclass AccountCmdSet")
    _append(game.folder / "web" / "urls.py", URL_LINE)
    game.run("evennia", "migrate")
    lines = game.run("evennia", "shell", "-c", CHECK).splitlines()
    answers = {words[0]: words[1:] for line in lines if (words := line.split())}
    return {**answers, "SITE": [str(game.site_packages)]}


def test_game_uses_the_installed_wheel(report):
    assert report["FROM"][0].startswith(report["SITE"][0])


def test_one_line_adds_the_commands(report):
    assert {"component", "card", "note", "ai", "talk"} <= set(report["KEYS"])


def test_one_line_adds_the_pages(report):
    assert report["PAGES"] == ["302", "200", "True"]
    assert report["STATIC"] == ["True"] * 3


def test_migrate_makes_the_tables(report):
    assert any(name.startswith("evennia_ai_") for name in report["TABLES"])
