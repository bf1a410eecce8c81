"""The ports of the demo game. Each has an environment variable.

The settings read them, and `make play` before anything is installed. Standard library only.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple, Self

HOST = "127.0.0.1"
"""The address on which the demo game listens.

It is this machine only, because nothing is encrypted.
"""


class Port(NamedTuple):
    """One port of the game: its environment variable, its default and its purpose."""

    purpose: str
    variable: str
    default: int


PORTS = {
    "telnet": Port("telnet", "EVENNIA_AI_TELNET_PORT", 4000),
    "web": Port("web client and site", "EVENNIA_AI_WEB_PORT", 4001),
    "websocket": Port("web client's websocket", "EVENNIA_AI_WEBSOCKET_PORT", 4002),
    "web_internal": Port("Portal to Server, web", "EVENNIA_AI_WEB_INTERNAL_PORT", 4005),
    "amp": Port("Portal to Server, messages", "EVENNIA_AI_AMP_PORT", 4006),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The five port numbers of a running game."""

    telnet: int
    web: int
    websocket: int
    web_internal: int
    amp: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the ports that `environment` sets, with defaults for the others.

        Raises:
            ValueError: a variable is not a port number; the text names it.
        """
        return cls(**{name: _number(port, environment) for name, port in PORTS.items()})

    def as_environment(self) -> dict[str, str]:
        """Return the environment variables that set exactly these ports."""
        return {PORTS[f.name].variable: str(getattr(self, f.name)) for f in fields(self)}


def _number(port: Port, environment: Mapping[str, str]) -> int:
    text = environment.get(port.variable, "") or str(port.default)
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise ValueError(
            f"{port.variable} is {text!r}; the {port.purpose} port must be a number from 1 to 65535"
        )
    return int(text)
