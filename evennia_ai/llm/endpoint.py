"""Where a model is and how it may be used: a value, made from the settings by the game.

Its key is a `SecretText` (`net.secrets`), which nothing can show.
"""

import math
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from evennia_ai.errors import EndpointError
from evennia_ai.net.secrets import SecretText


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server, one model on it, and what the two can do; a request's own time bounds it all."""

    name: str
    base_url: str
    model: str
    api_key: SecretText = field(default_factory=SecretText)
    timeout_seconds: float = 60.0
    """Of one attempt."""
    max_retries: int = 2
    """How many follow a failed one; a `Retry-After` of the server is obeyed."""
    idle_seconds: float = 20.0
    """How long nothing may arrive in an attempt.

    Before the headers it counts for streams alone: a server that does not stream is silent while it
    writes.
    """
    max_concurrent: int = 4
    max_reply_bytes: int = 1_000_000
    """What is read of one reply."""
    stream: bool = True
    """Whether the reply of a request that has a listener is read while it is written."""

    def __post_init__(self) -> None:
        if problem := _address_problem(self.base_url):
            raise EndpointError(self.name, "base_url", problem)
        if not self.api_key.fits_a_header():
            raise EndpointError(
                self.name, "api_key", "has characters no key has; look for a space or line break"
            )
        if not self.model:
            raise EndpointError(self.name, "model", "is empty: give the model's name")
        for limit in ("timeout_seconds", "idle_seconds"):
            if not (getattr(self, limit) > 0 and math.isfinite(getattr(self, limit))):
                raise EndpointError(self.name, limit, "must be a number over 0")
        for limit, least in (("max_retries", 0), ("max_concurrent", 1), ("max_reply_bytes", 1)):
            if getattr(self, limit) < least:
                raise EndpointError(self.name, limit, f"must be {least} or more")


def _address_problem(address: str) -> str:
    """What is wrong with a base address, or nothing; the address is never quoted."""
    wanted = "it must look like http://127.0.0.1:8080/v1"
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return f"is not an address; {wanted}"
    if not address.isprintable() or " " in address:
        return f"has a space or a character nobody can see; {wanted}"
    if parts.scheme not in ("http", "https") or not host:
        return f"is not an http or https address; {wanted}"
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        return f"must not hold a name, a key or a question mark; {wanted}"
    return ""
