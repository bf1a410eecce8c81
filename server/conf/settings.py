"""Settings of the demo game: Evennia's defaults, fitted to this repository's layout.

A game of your own needs only the line under "Apps". Ports are chosen by environment variables
(`server/ports.py`); what must stay secret comes from `secret_settings.py`, which Evennia makes and
git ignores.
"""

import os
from pathlib import Path

from evennia.settings_default import *

from evennia_ai import database
from server.logins import read_logins
from server.ports import HOST, Ports

SERVERNAME = "Ebbwick"
GAME_SLOGAN = "People you can talk to, prompts you can read"

# Apps
INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]

# Who reads does not wait for who writes; what NPCs say is then written beside the game.
DATABASES["default"]["OPTIONS"] = {"init_command": "PRAGMA journal_mode=WAL"}
# Or another database, such as postgres://user:password@localhost:5432/name (docs/run/deploying.md).
if os.environ.get("EVENNIA_AI_DATABASE"):
    DATABASES = database(os.environ["EVENNIA_AI_DATABASE"])

# `make play WORKERS=2`: what NPCs do besides speaking is done by workers. They
# learn from every exchange; instead of a model a function of the demo is asked what to note.
if os.environ.get("EVENNIA_AI_DEMO_WORKERS"):
    INSTALLED_APPS = [*INSTALLED_APPS, "procrastinate.contrib.django"]
    EVENNIA_AI_WORKERS = {"queue": "procrastinate"}
    EVENNIA_AI_MEMORY = {"after_messages": 2}
    EVENNIA_AI_PROFILES = {"notes": {"client": "scripted", "script": "world.demo_notes.notes"}}
    EVENNIA_AI_MODEL_ROLES = {"summariser": "notes"}

# Network: this machine only
_ports = Ports.from_environment()
TELNET_PORTS = [_ports.telnet]
TELNET_INTERFACES = [HOST]
WEBSERVER_PORTS = [(_ports.web, _ports.web_internal)]
WEBSERVER_INTERFACES = [HOST]
WEBSOCKET_CLIENT_PORT = _ports.websocket
WEBSOCKET_CLIENT_INTERFACE = HOST
AMP_HOST = HOST
AMP_PORT = _ports.amp
AMP_INTERFACE = HOST
# Evennia takes a packet that is cut behind the wrong byte for a browser's, and starts anew.
AMP_SERVER_PROTOCOL_CLASS = "evennia_ai.web.amp.SteadyPortal"
AMP_CLIENT_PROTOCOL_CLASS = "evennia_ai.web.amp.SteadyServer"
ALLOWED_HOSTS = ["localhost", HOST]
# A page of another origin, open in the browser of who plays here, is told nothing and does nothing.
WEBSOCKET_PROTOCOL_CLASS = "evennia_ai.web.portal.OwnOriginsWebSocket"
AJAX_CLIENT_CLASS = "evennia_ai.web.portal.OwnOriginsAjax"
MIDDLEWARE = ["evennia_ai.web.origins.OwnOriginsMiddleware", *MIDDLEWARE]
REST_API_ENABLED = True
REST_FRAMEWORK = {
    **REST_FRAMEWORK,
    # No password with each request: nothing here counts how often one is guessed.
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    # No browsable pages: those of the old version that Evennia pins run scripts (CVE-2024-21520).
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
# Nor can such a page's browser type at the telnet port, by a form that it sends there.
TELNET_PROTOCOL_CLASS = "evennia_ai.web.telnet.TelnetWithoutHttp"
# What clients send is bounded and plain. Evennia takes link markup out of a typed line in time that
# grows with the cube of its length: its default of 6,000 characters lets one line hold everybody up
# for seconds.
PORTAL_SESSION_HANDLER_CLASS = "evennia_ai.npc.typed_lines.BoundedSessions"
MAX_CHAR_LIMIT = 1500

# A player reads one sentence when a command fails. Evennia's default shows them the traceback.
IN_GAME_ERRORS = False

# The web client gets the pane that shows the mind of an NPC (`ai/watch`).
TEMPLATES[0]["DIRS"].insert(0, Path(__file__).with_name("templates"))

# Layout: there is no `typeclasses` and no `web` folder here
BASE_ACCOUNT_TYPECLASS = "evennia.accounts.accounts.DefaultAccount"
BASE_GUEST_TYPECLASS = "evennia.accounts.accounts.DefaultGuest"
BASE_OBJECT_TYPECLASS = "evennia.objects.objects.DefaultObject"
BASE_CHARACTER_TYPECLASS = "evennia.objects.objects.DefaultCharacter"
BASE_ROOM_TYPECLASS = "evennia.objects.objects.DefaultRoom"
BASE_EXIT_TYPECLASS = "evennia.objects.objects.DefaultExit"
BASE_CHANNEL_TYPECLASS = "evennia.comms.comms.DefaultChannel"
BASE_SCRIPT_TYPECLASS = "evennia.scripts.scripts.DefaultScript"
TYPECLASS_PATHS = [*TYPECLASS_PATHS, "evennia_ai", "evennia_ai.npc", "world"]
ROOT_URLCONF = "server.conf.web_urls"
STATICFILES_DIRS = []

# Modules: only those that do something here
SERVER_SERVICES_PLUGIN_MODULES = []
# What is written is sent at once, not when the packet before is acknowledged. The body of a web
# request is refused if it is too large, before it is kept.
PORTAL_SERVICES_PLUGIN_MODULES = ["evennia_ai.web.nodelay", "evennia_ai.web.bodies"]
LOCK_FUNC_MODULES = ("evennia.locks.lockfuncs",)
INPUT_FUNC_MODULES = ["evennia.server.inputfuncs"]
FUNCPARSER_OUTGOING_MESSAGES_MODULES = ["evennia.utils.funcparser"]
FUNCPARSER_PROTOTYPE_PARSING_MODULES = ["evennia.prototypes.protfuncs"]
AT_INITIAL_SETUP_HOOK_MODULE = ""

# evennia_ai
EVENNIA_AI_CARD_FOLDER = "world/demo/cards"
EVENNIA_AI_PRESET_FOLDER = "world/demo/presets"
EVENNIA_AI_KNOWLEDGE_FOLDER = "world/demo/knowledge"

# Demo
DEMO_WORLD = True
"""Build the harbour of `world/build_demo.py` when the server starts."""
DEMO_PASSWORDS = read_logins(Path(__file__).parents[2])
"""Of its accounts, None while nobody has made them."""

try:
    from server.conf.secret_settings import *
except ImportError:
    if os.environ.get("DJANGO_SETTINGS_MODULE") != "server.conf.test_settings":
        print("server/conf/secret_settings.py is missing; `evennia --initmissing` makes it.")
