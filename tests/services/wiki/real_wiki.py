"""A real MediaWiki for tests: Debian's packages, its own folder, and PHP's own web server.

If the packages are missing, the tests are skipped with the reason; in continuous integration they
fail.
"""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from time import monotonic, sleep
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from evennia_ai.services.net.secrets import SecretText
from evennia_ai.services.wiki.site import Site
from server.preparing import MEDIAWIKI
from tests.absent import absent

FOLDER: Final = Path("/usr/share/mediawiki")
START_SECONDS: Final = 60
BOT: Final = "Admin@game"
ADMIN_PASSWORD: Final = "harbour-admin-password-1"
BOT_PASSWORD: Final = "0123456789abcdefghijklmnopqrstuv"
GRANTS: Final = "basic,highvolume,editpage,createeditmovepage,delete"

SETTINGS: Final = """
wfLoadExtension( 'TextExtracts' );
$wgExtraNamespaces[3000] = "Instructions";
$wgExtraNamespaces[3001] = "Instructions_talk";
$wgExtraNamespaces[3002] = "Sources";
$wgExtraNamespaces[3003] = "Sources_talk";
$wgNamespacesWithSubpages[3000] = true;
$wgRateLimits = [];
$wgPasswordConfig['pbkdf2']['cost'] = 10;
$wgMainCacheType = CACHE_NONE;
$wgMessageCacheType = CACHE_NONE;
$wgJobRunRate = 0;
"""


class RealWiki:
    """A running wiki, empty except for its main page.

    `remember` saves its state, and `forget` restores the last saved state.
    """

    def __init__(self, folder: Path) -> None:
        _require_mediawiki()
        port = _free_port()
        self.address = f"http://127.0.0.1:{port}"
        self._folder = folder
        self._install()
        self._process = self._started(port)

    def site(self, key: str = "harbour", **values: object) -> Site:
        """Return the site for the game, with an account that may edit."""
        wanted = {"user": BOT, "password": SecretText(BOT_PASSWORD), **values}
        return Site(key=key, api=f"{self.address}/api.php", **wanted)

    def remember(self) -> None:
        """Save the current state of the wiki."""
        shutil.copytree(self._data, self._folder / "kept", dirs_exist_ok=True)

    def forget(self) -> None:
        """Restore the saved state of the wiki."""
        shutil.copytree(self._folder / "kept", self._data, dirs_exist_ok=True)

    def comment_of(self, revision: str) -> str:
        """Return the summary of an edit."""
        asked = f"action=query&prop=revisions&rvprop=comment&revids={revision}"
        address = f"{self.address}/api.php?{asked}&format=json&formatversion=2"
        with urlopen(address, timeout=300) as answer:
            comment: str = json.load(answer)["query"]["pages"][0]["revisions"][0]["comment"]
        return comment

    def close(self) -> None:
        """Stop the server, and wait for its end."""
        self._process.terminate()
        self._process.wait(timeout=START_SECONDS)

    def _install(self) -> None:
        self._data.mkdir()
        self._maintain(
            *("install", "--confpath", str(self._folder), "--dbtype", "sqlite"),
            *("--dbpath", str(self._data), "--dbname", "wiki", "--server", self.address),
            *("--scriptpath", "", "--lang", "en", "--pass", ADMIN_PASSWORD, "Test Wiki", "Admin"),
        )
        with self._settings.open("a", encoding="utf-8") as settings:
            settings.write(SETTINGS)
        bot = ("createBotPassword", "--appid", "game", "--grants", GRANTS, "Admin", BOT_PASSWORD)
        self._maintain(*bot)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _settings(self) -> Path:
        return self._folder / "LocalSettings.php"

    def _maintain(self, script: str, *arguments: str) -> None:
        done = subprocess.run(
            ["php", str(FOLDER / "maintenance" / f"{script}.php"), *arguments],
            env=self._environment() if self._settings.exists() else os.environ,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{script}: {done.stdout[-2000:]}{done.stderr[-2000:]}"

    def _started(self, port: int) -> "subprocess.Popen[bytes]":
        with (self._folder / "php.log").open("wb") as log:
            process = subprocess.Popen(
                ["php", "-S", f"127.0.0.1:{port}", "-t", str(FOLDER)],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        ends = monotonic() + START_SECONDS
        while not self._answers():
            assert process.poll() is None, (self._folder / "php.log").read_text()
            assert monotonic() < ends, "the wiki did not come up"
            sleep(0.1)
        return process

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.address}/api.php?action=query&format=json", timeout=300) as answer:
                return bool(answer.status == 200)
        except URLError:
            return False

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "MW_CONFIG_FILE": str(self._settings)}


def _require_mediawiki() -> None:
    if FOLDER.is_dir() and shutil.which("php"):
        return
    why = f"MediaWiki is missing; type, as root: apt-get install {' '.join(MEDIAWIKI)}"
    absent("no real wiki is asked", why=why)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])
