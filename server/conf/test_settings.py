"""Settings for tests: a database in memory, fast password hashing, and only our own migrations.

Our migrations run because one of them creates the static components. Evennia's migrations take ten
seconds and have no effect on the tests.
"""

from server.conf.settings import *
from server.logins import ONE_PASSWORD, Logins

SECRET_KEY = "only-for-tests"  # noqa: S105 - signs nothing that outlives a test
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEMO_WORLD = False
DEMO_EVENING = False
EVENNIA_AI_LORE_FACTS = []  # Tests of the demo's evening set it.
EVENNIA_AI_TIME_SUFFIX = ""  # Most tests compare what was said letter by letter.
EVENNIA_AI_GATHER_SECONDS = 0.0  # Most tests expect an answer to each line at once.
DEMO_PASSWORDS = Logins.made({ONE_PASSWORD: "only-for-tests"})


class _OursAlone:
    """A mapping for `MIGRATION_MODULES` in which only our app has migrations."""

    def __contains__(self, app_label: str) -> bool:
        return app_label != "evennia_ai"

    def __getitem__(self, app_label: str) -> None:
        if app_label == "evennia_ai":
            raise KeyError(app_label)

    def get(self, app_label: str, default: str | None = None) -> str | None:
        return default if app_label == "evennia_ai" else None


MIGRATION_MODULES = _OursAlone()
