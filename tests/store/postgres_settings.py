"""Settings for tests on PostgreSQL; its port comes in the environment."""

import os

from server.conf.test_settings import *  # noqa: F403 - settings are made so

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "evennia_ai",  # there is none: Evennia reads no tables while it is imported
        "USER": "evennia_ai",
        "HOST": "127.0.0.1",
        "PORT": os.environ["EVENNIA_AI_TEST_POSTGRES_PORT"],
    }
}
