"""Starts Django and Evennia for the tests that need them, and for no others.

A pure test (the prompt, the lorebook, cards, ...) must start at once, so the game is started when
the first test file of `EVENNIA_PATHS` is collected. A `conftest.py` or `__init__.py` in those
folders must not import Evennia at its top.
"""

import functools
import gc
import importlib.metadata
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from server.checks import ALONE, QUICK
from tests.properties import register_profiles
from tests.unchecked import UNCHECKED

EVENNIA_PATHS = (
    "acceptance/test_load_table.py",
    "acceptance/test_real_model.py",
    "cli/folder",
    "cli/test_history.py",
    "cli/test_knowledge.py",
    "commands",
    "npc",
    "services/settings",
    "store",
    "test_injection_depth.py",
    "test_public_names.py",
    "test_walk.py",
    "web",
)
"""Folders and files below `tests/` whose tests live inside a started Evennia."""

TESTS = Path(__file__).parent
MARKS = {"server", "service", "packaging", "extra"}
NOT_ALONE = f"not ({ALONE})"
_MARKED = re.compile(rf"mark\.({'|'.join(sorted(MARKS))})\b")
_MARKED_WHOLE = re.compile(r"^pytestmark = .*", re.MULTILINE)
_LEFT_OUT = {ALONE: MARKS, QUICK: MARKS | {"long"}}
"""The marks of which a run with these words has no test."""
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "server.conf.test_settings",
    # Without these Evennia asks for a superuser, or recurses where there is no terminal.
    "EVENNIA_SUPERUSER_USERNAME": "admin",
    "EVENNIA_SUPERUSER_EMAIL": "admin@localhost",
    "EVENNIA_SUPERUSER_PASSWORD": "checks-admin-1",
}

_started = False


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Hypothesis's own plugin comes after it, with the profile that the command line names."""
    register_profiles()
    gc.set_threshold(100_000, 50, 100)  # a test's objects mostly go without being searched for
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # pytest asks before each test which Twisted there is, which is looked up in its papers.
    importlib.metadata.version = functools.cache(importlib.metadata.version)
    for name in ("connect", "connect_ex"):
        setattr(socket.socket, name, _on_loopback(getattr(socket.socket, name)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures that tests print, a line each: attacks that were held, walks of actions."""
    for report in terminalreporter.getreports("passed"):
        for line in report.capstdout.splitlines():
            if line.endswith("attacks held") or line.startswith("walk "):
                terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that say how many minutes they take come first: nobody waits for them at the end."""
    for item in items:
        marked = MARKS & {mark.name for mark in item.iter_markers()}
        assert not marked or _is_marked(item.path), f"{item.path} does not say {marked} itself"
    items.sort(key=lambda item: -_minutes(item))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which the marks that were asked for leave no test.

    To import them all takes each process longer than many a game.
    """
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    words = config.getoption("markexpr")
    if words == NOT_ALONE and not _is_marked(collection_path):
        return True
    whole = _MARKED_WHOLE.search(_text(collection_path))
    if whole and _LEFT_OUT.get(words, set()) & set(re.findall(r"mark\.(\w+)", whole[0])):
        return True
    return None


def _is_marked(path: Path) -> bool:
    return bool(_MARKED.search(_text(path)))


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _minutes(item: pytest.Item) -> float:
    mark = item.get_closest_marker("minutes")
    return float(mark.args[0]) if mark else 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> None:
    """Start Evennia before a folder or file of game tests is imported.

    The hooks that make collectors come too early: they are called for neighbours nobody asked for.
    """
    _start_evennia_for(collector.path)


def _start_evennia_for(path: Path) -> None:
    global _started
    if _started or not _needs_evennia(path):
        return
    sys.path.insert(0, str(UNCHECKED))
    import django

    django.setup()
    import evennia

    evennia._init()
    from django.conf import settings

    settings.CMDSET_CHARACTER = "tests.command_sets.CharacterCmdSet"
    _started = True


def _needs_evennia(path: Path) -> bool:
    return path.is_relative_to(TESTS) and any(
        path.relative_to(TESTS).is_relative_to(known) for known in EVENNIA_PATHS
    )


@pytest.fixture(scope="session", autouse=True)
def _evennia_database() -> Iterator[None]:
    """One migrated test database for the whole run; nothing when no test needs Evennia."""
    if not _started:
        yield
        return
    from django.conf import settings
    from django.test import utils

    gc.freeze()  # Evennia collects after the migrations of each app, through all that is imported
    settings.TEST_ENVIRONMENT = True
    utils.setup_test_environment()
    databases = utils.setup_databases(verbosity=0, interactive=False)
    yield
    utils.teardown_databases(databases, verbosity=0)
    utils.teardown_test_environment()
    settings.TEST_ENVIRONMENT = False


@pytest.fixture(scope="module", autouse=True)
def _short_collections() -> None:
    """Keep what is alive out of the collections; emptying Evennia's caches makes one a test."""
    if _started:
        gc.freeze()


@contextmanager
def _rolled_back() -> Iterator[None]:
    """A block after which the database is as before, and Evennia's caches are empty."""
    from django.db import transaction

    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    forget_objects()


def forget_objects() -> None:
    """Empty Evennia's caches, also of what it would keep because something is on its `ndb`."""
    from django.apps import apps
    from evennia.utils.idmapper.models import SharedMemoryModel

    from evennia_ai.npc.views.looking import forget_past

    for model in apps.get_models():
        if issubclass(model, SharedMemoryModel):
            model.flush_instance_cache(force=True)
    forget_past()


@pytest.fixture
def db() -> Iterator[None]:
    """A database that forgets everything the test wrote, Evennia's caches included."""
    with _rolled_back():
        yield


@pytest.fixture(scope="session")
def world() -> Callable[[], AbstractContextManager[None]]:
    """A block around tests that share what is made at its beginning: `with world(): ...`.

    What one of them changes is forgotten by its `db`. Objects must be fetched anew in each, for
    the caches do not outlive a test.
    """
    return _rolled_back


@pytest.fixture
def no_queries() -> Callable[[], AbstractContextManager[None]]:
    """A block in which the database must not be asked anything."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    @contextmanager
    def block() -> Iterator[None]:
        with CaptureQueriesContext(connection) as queries:
            yield
        assert [query["sql"] for query in queries] == []

    return block


@pytest.fixture
def query_count() -> Callable[[Callable[[], object]], int]:
    """How many queries something makes."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def counted(do: Callable[[], object]) -> int:
        with CaptureQueriesContext(connection) as queries:
            do()
        return len(queries)

    return counted


def _on_loopback(connect: Callable[..., Any]) -> Callable[..., Any]:
    """`connect`, refusing every address that is not on this machine."""

    def connect_on_loopback(sock: socket.socket, address: Any) -> Any:
        if sock.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            raise AssertionError(f"a test tried to reach {address!r}; tests stay on loopback")
        return connect(sock, address)

    return connect_on_loopback


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
