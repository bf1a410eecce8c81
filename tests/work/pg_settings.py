"""Settings of a game process of these tests: PostgreSQL, and its work done as the test says."""

import json
import os

from evennia_ai.settings.database import database
from server.conf.test_settings import *  # noqa: F403 - settings are made so

DATABASES = database(os.environ["EVENNIA_AI_TEST_DATABASE"])
INSTALLED_APPS = [*INSTALLED_APPS, "procrastinate.contrib.django"]  # noqa: F405
EVENNIA_AI_PROFILES = {"wise": {"script": "tests.work.ledger.answer"}}
EVENNIA_AI_MODEL_ROLES = {"summariser": "wise"}
EVENNIA_AI_LIMITS = {
    "npc": {"calls_per_minute": 10**6, "calls_per_day": 10**6},
    "game": {"calls_per_minute": 10**6, "calls_per_day": 10**6},
}
EVENNIA_AI_WORKERS = json.loads(os.environ.get("EVENNIA_AI_TEST_WORKERS", '{"queue": "inprocess"}'))
EVENNIA_AI_LIMITS["game"].update(json.loads(os.environ.get("EVENNIA_AI_TEST_LIMITS", "{}")))
