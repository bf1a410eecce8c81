"""Evennia started twice over: without our package in the parent, with it in each child.

What a child need not import again, and the database it need not migrate, is most of the time that
a mutation would take.
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
    """Start Evennia as if our app were not installed; nothing of `evennia_ai` is imported."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import django
    from django.conf import settings

    _all_apps[:] = settings.INSTALLED_APPS
    settings.INSTALLED_APPS = [app for app in _all_apps if app != "evennia_ai"]
    # The settings read where the database is by a module of ours; each child imports it anew.
    for name in [name for name in sys.modules if name.split(".")[0] == "evennia_ai"]:
        del sys.modules[name]
    with contextlib.redirect_stdout(io.StringIO()):  # what a start says is no news here
        django.setup()
        import evennia

        evennia._init()
    if known := [name for name in sys.modules if name.startswith("evennia_ai")]:
        raise RuntimeError(f"imported before anything could be changed: {known}")


def start_with_ours() -> None:
    """Install our app too; tests do it in place of `django.setup()`."""
    from django.apps import apps
    from django.conf import settings

    settings.INSTALLED_APPS = _all_apps
    apps.set_installed_apps(_all_apps)


def modules_of_others() -> list[str]:
    """What is imported by now and is not of this repository."""
    return [name for name in sys.modules if name.split(".")[0] not in (*OURS, "__main__")]


def import_again(names: list[str]) -> None:
    """Import what a child had to import, so that no other child must."""
    for name in names:
        if name not in sys.modules:
            # Some modules are only put there by others, or refuse to be imported by name.
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def migrated_database() -> str:
    """A migrated test database, in letters."""
    from django.db import connection
    from django.test import utils

    utils.setup_databases(verbosity=0, interactive=False)
    return base64.b64encode(connection.connection.serialize()).decode()


def set_up(database: str) -> list[Any]:
    """Connect Django to a copy of this database, in memory."""
    from django.db import connection

    source = sqlite3.connect(":memory:")
    source.deserialize(base64.b64decode(database))
    connection.close()
    connection.settings_dict["NAME"] = DATABASE
    connection.ensure_connection()
    source.backup(connection.connection)
    source.close()
    return []
