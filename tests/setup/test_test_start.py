"""Test that only tests of games start Evennia."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

COLLECT = """
import sys, pytest
status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]])
print("STATUS", int(status), "GAME", "evennia" in sys.modules)
"""


def _collected(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()[-1] if done.stdout else done.stderr


@pytest.mark.long
def test_pure_tests_do_not_start_evennia():
    assert _collected("tests/setup/test_telnet.py") == "STATUS 0 GAME False"


@pytest.mark.long
def test_store_tests_start_evennia_before_their_import():
    assert _collected("tests/store/authored/test_notes.py").endswith("GAME True")


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "example.com"])
def test_cannot_use_the_network(host):
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock, pytest.raises(AssertionError, match="stay on loopback"):
        sock.connect((host, 80))
