"""Start Django and Evennia for the tests that need them, and only for those.

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
"""Folders and files below `tests/` whose tests need a started Evennia."""

TESTS = Path(__file__).parent
MARKS = {"server", "service", "packaging", "extra"}
NOT_ALONE = f"not ({ALONE})"
_MARKED = re.compile(rf"mark\.({'|'.join(sorted(MARKS))})\b")
_MARKED_WHOLE = re.compile(r"^pytestmark = .*", re.MULTILINE)
_LEFT_OUT = {ALONE: MARKS, QUICK: MARKS | {"long"}}
"""For each `-m` option of a run, the marks whose tests it leaves out."""
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "server.conf.test_settings",
    # Without these variables, Evennia asks for a superuser, or recurses if there is no terminal.
    "EVENNIA_SUPERUSER_USERNAME": "admin",
    "EVENNIA_SUPERUSER_EMAIL": "admin@localhost",
    "EVENNIA_SUPERUSER_PASSWORD": "checks-admin-1",
}

_started = False


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Load Hypothesis's plugin after our profiles exist, because the command line may name one."""
    register_profiles()
    # Collect garbage less often: most objects of a test are freed without it.
    gc.set_threshold(100_000, 50, 100)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # Before each test, pytest looks up the version of Twisted, which takes long; it is cached here.
    importlib.metadata.version = functools.cache(importlib.metadata.version)
    for name in ("connect", "connect_ex"):
        setattr(socket.socket, name, _on_loopback(getattr(socket.socket, name)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each figure that a test recorded, such as the size of a walk."""
    for report in terminalreporter.getreports("passed"):
        for line in report.capstdout.splitlines():
            if line.endswith("attacks held") or line.startswith("walk "):
                terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with a `minutes` mark first, so that no process works alone at the end."""
    for item in items:
        marked = MARKS & {mark.name for mark in item.iter_markers()}
        assert not marked or _is_marked(item.path), f"{item.path} does not say {marked} itself"
    items.sort(key=lambda item: -_minutes(item))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files in which the selected marks leave no test.

    Importing all files would take each process longer than many tests of games.
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

    Earlier hooks cannot be used, because pytest calls them also for files that nobody selected.
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
    """Make one migrated test database for the whole run, if any test needs Evennia."""
    if not _started:
        yield
        return
    from django.conf import settings
    from django.test import utils

    # Evennia collects garbage after the migrations of each app, which takes long with all imported
    # modules.
    gc.freeze()
    settings.TEST_ENVIRONMENT = True
    utils.setup_test_environment()
    databases = utils.setup_databases(verbosity=0, interactive=False)
    yield
    utils.teardown_databases(databases, verbosity=0)
    utils.teardown_test_environment()
    settings.TEST_ENVIRONMENT = False


@pytest.fixture(scope="module", autouse=True)
def _short_collections() -> None:
    """Exclude existing objects from garbage collection, which emptying Evennia's caches starts."""
    if _started:
        gc.freeze()


@contextmanager
def _rolled_back() -> Iterator[None]:
    """Undo all changes to the database after a block, and empty Evennia's caches."""
    from django.db import transaction

    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    forget_objects()


def forget_objects() -> None:
    """Empty Evennia's caches, including objects that it keeps because of their `ndb` attributes."""
    from django.apps import apps
    from evennia.utils.idmapper.models import SharedMemoryModel

    from evennia_ai.npc.views.looking import forget_past

    for model in apps.get_models():
        if issubclass(model, SharedMemoryModel):
            model.flush_instance_cache(force=True)
    forget_past()


_rows_made: dict[Callable[[], Any], tuple[Any, dict[str, list[tuple[Any, ...]]]]] = {}


def once_a_process(make: Callable[[], Any]) -> Any:
    """Fill the database with what `make` makes, and return what it returned.

    `make` runs once. Later its rows are copied, which takes a small part of the time of creating
    objects. Call this in a block that is rolled back, before anything else was written.
    """
    from django.db import connection

    from evennia_ai.store.core.snapshots import forget_everything

    if connection.vendor != "sqlite":
        return make()
    with connection.cursor() as cursor:
        if make not in _rows_made:
            result, rows = make(), {}
            for table in connection.introspection.table_names(cursor):
                cursor.execute(f'SELECT * FROM "{table}"')
                rows[table] = cursor.fetchall()
            _rows_made[make] = result, {table: found for table, found in rows.items() if found}
            return result
        result, rows = _rows_made[make]
        for table, found in rows.items():
            cursor.execute(f'DELETE FROM "{table}"')
            marks = ", ".join(["%s"] * len(found[0]))
            cursor.executemany(f'INSERT INTO "{table}" VALUES ({marks})', found)
    forget_everything()
    return result


@pytest.fixture
def db() -> Iterator[None]:
    """A database that forgets everything that the test wrote, with empty Evennia caches."""
    with _rolled_back():
        yield


@pytest.fixture(scope="session")
def world() -> Callable[[], AbstractContextManager[None]]:
    """A block around tests that share what is made at its beginning: `with world(): ...`.

    Changes of one test are undone by its `db` fixture. Each test must fetch objects again, because
    the caches are emptied.
    """
    return _rolled_back


@pytest.fixture
def no_queries() -> Callable[[], AbstractContextManager[None]]:
    """A block in which no query of the database is allowed."""
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
    """A function that counts the queries of a call."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def counted(do: Callable[[], object]) -> int:
        with CaptureQueriesContext(connection) as queries:
            do()
        return len(queries)

    return counted


def _on_loopback(connect: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `connect` so that it refuses all addresses that are not on this machine."""

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
