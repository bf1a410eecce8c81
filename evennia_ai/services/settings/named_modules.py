"""Our modules that Evennia's settings name. Nothing is imported here: all processes read them."""

from typing import Final

SERVICE: Final = "evennia_ai.npc.service"
"""Work at the start and the stop of the server (`AT_SERVER_STARTSTOP_MODULE`)."""
NODELAY: Final = "evennia_ai.web.nodelay"
"""Writes to connections without delay (`SERVER_SERVICES_PLUGIN_MODULES`, and the Portal's)."""
BODIES: Final = "evennia_ai.web.bodies"
"""Limits the bodies of web requests (the same two settings)."""
INPUT_FUNCTIONS: Final = "evennia_ai.npc.input_functions"
"""Answers frames that have no input function (`INPUT_FUNC_MODULES`)."""
