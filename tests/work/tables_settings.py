"""Settings under which our tables and the queue's are made, without Evennia's."""

import os

INSTALLED_APPS = ["evennia_ai", "procrastinate.contrib.django"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["EVENNIA_AI_TEST_DATABASE"],
        "USER": "evennia_ai",
        "HOST": "127.0.0.1",
        "PORT": os.environ["EVENNIA_AI_TEST_POSTGRES_PORT"],
    }
}
USE_TZ = True
