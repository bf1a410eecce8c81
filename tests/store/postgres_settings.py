"""Settings for tests on PostgreSQL. The environment gives the port and the name of the database."""

import os

from evennia_ai.services.settings.database import database
from server.conf.test_settings import *  # noqa: F403 - settings are made so

_port = os.environ["EVENNIA_AI_TEST_POSTGRES_PORT"]
_name = os.environ["EVENNIA_AI_TEST_POSTGRES_NAME"]
# No database has this name, because Evennia must read no tables while it is imported.
DATABASES = database(f"postgres://evennia_ai@127.0.0.1:{_port}/{_name}")
