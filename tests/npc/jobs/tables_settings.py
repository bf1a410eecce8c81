"""Settings to create our tables and the queue's, without Evennia's."""

import os

from evennia_ai.services.settings.database import database

INSTALLED_APPS = ["evennia_ai", "procrastinate.contrib.django"]
DATABASES = database(os.environ["EVENNIA_AI_TEST_DATABASE"])
USE_TZ = True
