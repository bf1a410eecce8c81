"""Get vectors of texts from a server, through the `/embeddings` address of OpenAI's API.

Most model servers support it. It can replace the packaged model (`services/llm/sentence_model.py`).
Both are slow, so call them in a thread.
"""

import hashlib
import json
import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from evennia_ai.services.llm.clients.error_bodies import readable_start, redirection, words_in
from evennia_ai.services.llm.failures import failure
from evennia_ai.services.llm.profiles import Endpoint
from evennia_ai.services.llm.sentence_model import SentenceModelError
from evennia_ai.services.net.http import (
    LONGEST_REASON_BYTES,
    USER_AGENT,
    json_object,
    json_value,
    no_connection,
    text_in,
)

if TYPE_CHECKING:
    import httpx2

MOST_CHARACTERS: Final = 4_000
"""The most characters of a text that are sent. Small models read only a few hundred words."""

MOST_BYTES: Final = 16_000_000
"""The largest response that is read, in bytes."""

MOST_NUMBERS: Final = 8_192
"""The longest vector that is accepted."""


class EmbeddingServer:
    """An embedding model on a server."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint: Final = endpoint
        self._client: httpx2.Client | None = None
        self._size = 0
        """The bytes of its vectors; 0 before the first."""

    @property
    def id(self) -> str:
        """An id that changes if the address, the model's name or the length of its vectors changes.

        The first use asks the server for a vector.

        Raises:
            SentenceModelError: the server does not return a vector.
        """
        if not self._size:
            self.vectors(("a",))
        where = f"{self._endpoint.base_url}\n{self._endpoint.model}\n{self._size}"
        return hashlib.sha256(where.encode()).hexdigest()[:16]

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector of length 1 for each text, as little-endian 4-byte numbers.

        Raises:
            SentenceModelError: the server does not answer, or its vectors do not have the length of
                the first one.
        """
        made = self._vectors(texts)
        sizes = {self._size or len(made[0]), *map(len, made)} if made else set()
        if len(sizes) > 1:
            self._size = 0
            raise self._problem("it has a new model, whose vectors have another length")
        self._size = sizes.pop() if sizes else self._size
        return made

    def _vectors(self, texts: Sequence[str]) -> list[bytes]:
        body = self._asked({"model": self._endpoint.model, "input": [_sendable(t) for t in texts]})
        rows = (json_object(body) or {}).get("data")
        try:
            found = {int(row["index"]): row["embedding"] for row in rows or ()}
            return [_unit_vector(found[number]) for number in range(len(texts))]
        except (KeyError, TypeError, ValueError, OverflowError, struct.error) as error:
            words = self._endpoint.api_key.quote(readable_start(text_in(body)))
            raise self._problem(f"it answers without a vector for each text: {words}") from error

    def _asked(self, body: dict[str, Any]) -> bytes:
        """Send the texts to the server and return the body of its response."""
        import httpx2  # Imported here because the import takes a tenth of a second.

        endpoint = self._endpoint
        if self._client is None:
            self._client = httpx2.Client(
                timeout=endpoint.timeout_seconds,
                # Redirects are not followed, because the key would go to another server.
                follow_redirects=False,
                headers={"User-Agent": USER_AGENT, "Content-Type": "application/json"},
            )
        key = endpoint.api_key
        headers = {"Authorization": f"Bearer {key.reveal()}"} if key else {}
        address = f"{endpoint.base_url.rstrip('/')}/embeddings"
        came = bytearray()
        try:
            with self._client.stream(
                "POST", address, content=json.dumps(body), headers=headers
            ) as response:
                for chunk in response.iter_bytes():
                    came += chunk
                    if len(came) > MOST_BYTES:
                        raise self._problem(f"its answer is larger than {MOST_BYTES} bytes")
        except httpx2.HTTPError as error:
            # `from None`, because httpx2's error contains the request and the key.
            raise self._problem(str(no_connection(error))) from None
        if response.status_code != 200:
            said = bytes(came[:LONGEST_REASON_BYTES])
            words = words_in(said)
            if response.is_redirect:
                words = redirection(response.headers.get("location", ""))
            refusal = failure(
                endpoint, status=response.status_code, words=words, body=json_value(said)
            )
            raise self._problem(str(refusal))
        return bytes(came)

    def _problem(self, why: str) -> SentenceModelError:
        return SentenceModelError(f"{self._endpoint.name} gives no vectors of texts: {why}")


def _sendable(text: str) -> str:
    """Return the start of a text without lone surrogates.

    An empty text becomes " ", because servers refuse empty ones.
    """
    return text[:MOST_CHARACTERS].encode("utf-8", "replace").decode() or " "


def _unit_vector(numbers: Any) -> bytes:
    """Return the vector scaled to length 1.

    Raises:
        ValueError: the value is not a list of finite numbers, or all of them are 0.
    """
    if not isinstance(numbers, list) or not 0 < len(numbers) <= MOST_NUMBERS:
        raise ValueError("no vector")
    values = [float(number) for number in numbers]
    length = math.hypot(*values)
    if not (length > 0 and math.isfinite(length)):
        raise ValueError("no direction")
    return struct.pack(f"<{len(values)}f", *(value / length for value in values))
