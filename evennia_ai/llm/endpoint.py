"""Where a model is and how it may be used: a value, made from the settings by the game.

The key lives in a `SecretText`, which no print, log, traceback or pickle can show.
"""

import hmac
import math
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import urlsplit

from evennia_ai.llm.errors import EndpointError
from evennia_ai.llm.roles import OPEN, STRICT, RoleProfile


class SecretText:
    """A text that is only shown to who asks for it by `reveal()`."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one call that sends it."""
        return self._text

    def fits_a_header(self) -> bool:
        """Whether it can be sent at all: printable ASCII without spaces."""
        return all("!" <= letter <= "~" for letter in self._text)

    def hidden_in(self, text: str) -> str:
        """`text` with every occurrence of the secret replaced."""
        return text.replace(self._text, "***") if self._text else text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SecretText):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "SecretText(***)" if self._text else "SecretText()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is never stored: keep it in the environment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An OpenAI-compatible server and one model on it.

    `timeout_seconds` bounds one attempt, `max_retries` how many follow a failed one (a
    `Retry-After` of the server is obeyed); the request's own time limit bounds them all.
    `strict_roles` is for servers whose chat template takes nothing but user and assistant in
    turn after one system message. `max_reply_bytes` bounds what is read of one reply.
    """

    name: str
    base_url: str
    model: str
    api_key: SecretText = field(default_factory=SecretText)
    timeout_seconds: float = 60.0
    max_retries: int = 2
    max_concurrent: int = 4
    strict_roles: bool = False
    max_reply_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        if problem := _address_problem(self.base_url):
            raise EndpointError(self.name, "base_url", problem)
        if not self.api_key.fits_a_header():
            raise EndpointError(
                self.name, "api_key", "has characters no key has; look for a space or line break"
            )
        if not self.model:
            raise EndpointError(self.name, "model", "is empty: give the model's name")
        if not (self.timeout_seconds > 0 and math.isfinite(self.timeout_seconds)):
            raise EndpointError(self.name, "timeout_seconds", "must be a number over 0")
        for limit, least in (("max_retries", 0), ("max_concurrent", 1), ("max_reply_bytes", 1)):
            if getattr(self, limit) < least:
                raise EndpointError(self.name, limit, f"must be {least} or more")

    @property
    def roles(self) -> RoleProfile:
        """What to give to `roles.adapt` for this server."""
        return STRICT if self.strict_roles else OPEN


def _address_problem(address: str) -> str:
    """What is wrong with a base address, or nothing; the address is never quoted."""
    wanted = "it must look like http://127.0.0.1:8080/v1"
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return f"is not an address; {wanted}"
    if parts.scheme not in ("http", "https") or not host:
        return f"is not an http or https address; {wanted}"
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        return f"must not hold a name, a key or a question mark; {wanted}"
    return ""
