"""Settings of a game process of these tests: our app alone, two databases of one cluster."""

import json
import os

from evennia_ai.services.settings.database import database, library

_SAID = json.loads(os.environ["EVENNIA_AI_TEST_SHARED"])
SECRET_KEY = "of tests alone"
INSTALLED_APPS = ["evennia_ai"]
DATABASES = database(_SAID["game"]) | library(_SAID["library"])
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
GAME_DIR = "."
