"""Settings for tests: a database in memory, fast passwords, and no migrations but our own.

Ours run because one of them creates the static components; Evennia's take ten seconds and
change nothing.
"""

from server.conf.settings import *
from server.logins import ONE_PASSWORD, Logins

SECRET_KEY = "only-for-tests"  # noqa: S105 - signs nothing that outlives a test
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEMO_WORLD = False
EVENNIA_AI_TIME_SUFFIX = ""  # most tests look at what was said, letter for letter
DEMO_PASSWORDS = Logins.made({ONE_PASSWORD: "only-for-tests"})


class _OursAlone:
    """A `MIGRATION_MODULES` in which every app but ours has no migrations."""

    def __contains__(self, app_label: str) -> bool:
        return app_label != "evennia_ai"

    def __getitem__(self, app_label: str) -> None:
        if app_label == "evennia_ai":
            raise KeyError(app_label)

    def get(self, app_label: str, default: str | None = None) -> str | None:
        return default if app_label == "evennia_ai" else None


MIGRATION_MODULES = _OursAlone()
