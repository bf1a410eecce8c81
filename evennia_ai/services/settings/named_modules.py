"""Modules of ours that Evennia's own settings name; nothing is imported, for all processes ask."""

from typing import Final

SERVICE: Final = "evennia_ai.npc.service"
"""What is done at the start and the stop of the server (`AT_SERVER_STARTSTOP_MODULE`)."""
NODELAY: Final = "evennia_ai.web.nodelay"
"""What writes to a wire at once (`SERVER_SERVICES_PLUGIN_MODULES`, and the Portal's)."""
BODIES: Final = "evennia_ai.web.bodies"
"""What bounds the bodies of web requests (the same two settings)."""
INPUT_FUNCTIONS: Final = "evennia_ai.npc.input_functions"
"""What answers a frame without an input function (`INPUT_FUNC_MODULES`)."""
