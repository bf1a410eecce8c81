"""Start Evennia in two steps: without our package in the parent, with it in each child.

Most of the time that a mutation would take is saved, because children need not import Evennia or
migrate a database again.
"""

import base64
import contextlib
import importlib
import io
import os
import sqlite3
import sys
from typing import Any

ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "server.conf.test_settings",
    "EVENNIA_SUPERUSER_USERNAME": "admin",
    "EVENNIA_SUPERUSER_EMAIL": "admin@localhost",
    "EVENNIA_SUPERUSER_PASSWORD": "checks-admin-1",
}
OURS = ("benchmarks", "commands", "evennia_ai", "fuzz", "server", "tests", "world")
DATABASE = "file:mutations?mode=memory&cache=shared"

_all_apps: list[str] = []


def start_without_ours() -> None:
    """Start Evennia as if our app were not installed. Nothing of `evennia_ai` is imported."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import django
    from django.conf import settings

    _all_apps[:] = settings.INSTALLED_APPS
    settings.INSTALLED_APPS = [app for app in _all_apps if app != "evennia_ai"]
    # The settings get the address of the database from a module of ours. Each child imports it
    # again.
    for name in [name for name in sys.modules if name.split(".")[0] == "evennia_ai"]:
        del sys.modules[name]
    # Messages of the start are of no interest here.
    with contextlib.redirect_stdout(io.StringIO()):
        django.setup()
        import evennia

        evennia._init()
    if known := [name for name in sys.modules if name.startswith("evennia_ai")]:
        raise RuntimeError(f"imported before anything could be changed: {known}")


def start_with_ours() -> None:
    """Install our app too. Tests call this instead of `django.setup()`."""
    from django.apps import apps
    from django.conf import settings

    settings.INSTALLED_APPS = _all_apps
    apps.set_installed_apps(_all_apps)


def modules_of_others() -> list[str]:
    """Return the imported modules that do not belong to this repository."""
    return [name for name in sys.modules if name.split(".")[0] not in (*OURS, "__main__")]


def import_again(names: list[str]) -> None:
    """Import what a child has imported, so that no other child must do it."""
    for name in names:
        if name not in sys.modules:
            # Some modules exist only after others are imported, or cannot be imported by name.
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def migrated_database() -> str:
    """Return a migrated test database as text."""
    from django.db import connection
    from django.test import utils

    utils.setup_databases(verbosity=0, interactive=False)
    return base64.b64encode(connection.connection.serialize()).decode()


def set_up(database: str) -> list[Any]:
    """Connect Django to a copy of this database in memory."""
    from django.db import connection

    source = sqlite3.connect(":memory:")
    source.deserialize(base64.b64decode(database))
    connection.close()
    connection.settings_dict["NAME"] = DATABASE
    connection.ensure_connection()
    source.backup(connection.connection)
    source.close()
    return []
