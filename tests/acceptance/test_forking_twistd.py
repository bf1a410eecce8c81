"""Test that a forked `twistd` runs in the same environment as a new process."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.games import PROGRAMS
from tests.acceptance.launching import forked_twistd
from tests.unchecked import UNCHECKED

pytestmark = pytest.mark.server

APPLICATION = """
import os, pathlib, random, sys
from django.conf import settings
shown = (sys.path, sys.argv, dict(os.environ), os.getcwd(), os.umask(0), settings.configured)
print(*shown, sorted(os.listdir("/dev/fd")), "twisted.internet.reactor" in sys.modules)
print("and says so", file=sys.stderr)
pathlib.Path("random").write_text(str(random.random()))
pathlib.Path("imported").write_text("\\n".join(sys.modules))
sys.exit(3)
"""


@pytest.fixture
def application(tmp_path: Path) -> Path:
    path = tmp_path / "application.py"
    path.write_text(APPLICATION, encoding="utf-8")
    return path


def started(twistd: list[str], application: Path) -> tuple[int, str, str]:
    """Run `twistd` on the application, and return its exit status, output and errors."""
    own = os.pathsep.join(["of a game", str(UNCHECKED), "of a game"])
    done = subprocess.run(
        [*twistd, "--nodaemon", "--pidfile=", f"--python={application}"],
        cwd=application.parent,
        env={**os.environ, "PYTHONPATH": own, "OF_A_GAME": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        umask=0o031,
    )
    return done.returncode, done.stdout, done.stderr


def test_forked_twistd_has_the_environment_and_status_of_a_new_process(application):
    twistd = str(PROGRAMS / "twistd")
    status, out, err = started(forked_twistd(twistd), application)

    assert (status, err) == (3, "and says so\n")
    assert (status, out, err) == started([twistd], application)


def test_forks_share_third_party_imports_but_not_the_random_state(application):
    drawn = set()
    for _ in range(2):
        started(forked_twistd("twistd"), application)
        drawn.add((application.parent / "random").read_text(encoding="utf-8"))

    assert len(drawn) == 2
    imported = (application.parent / "imported").read_text(encoding="utf-8").splitlines()
    assert {"django.test", "pydantic.main", "twisted.web.static"} <= set(imported)
    assert not {"evennia", "evennia_ai", "server"} & set(imported)
