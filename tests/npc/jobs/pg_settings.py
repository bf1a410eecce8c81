"""Settings of the game processes in these tests. Each fork gets its own database later."""

import os

from evennia_ai.services.settings.database import database
from server.conf.test_settings import *  # noqa: F403 - settings are made so

DATABASES = database(os.environ["EVENNIA_AI_TEST_DATABASE"])
INSTALLED_APPS = [*INSTALLED_APPS, "procrastinate.contrib.django"]  # noqa: F405
EVENNIA_AI_PROFILES = {"wise": {"script": "tests.npc.jobs.ledger.answer"}}
EVENNIA_AI_MODEL_ROLES = {"summariser": "wise"}
