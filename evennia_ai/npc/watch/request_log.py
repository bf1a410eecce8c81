"""Two lines in the game's log for each model call, one for the request and one for the reply.

The lines are `LLM_REQUEST` and `LLM_RESPONSE`, each followed by a JSON object in ASCII. Both lines
of a call have the same `id`. The log is off by default. Texts are cut to their first words unless
the game asks for whole texts. A request itself contains no keys of models. If a key occurs in any
text, it is masked.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

from evennia.utils import logger

from evennia_ai.engine.prompt.messages import Block, Message
from evennia_ai.npc.model_calls.watching import WatchedCall, Watcher
from evennia_ai.services.llm.chat import ChatMessage, ChatReply, ChatRequest
from evennia_ai.services.net.secrets import SecretText
from evennia_ai.store.model_calls import NewCall

REQUEST: Final = "LLM_REQUEST"
RESPONSE: Final = "LLM_RESPONSE"
PREVIEW_CHARACTERS: Final = 60
LOOKED_AT: Final = 1_000

# The names in the log of blocks that have another name in the engine.
_KINDS: Final[dict[Block, str]] = {"dynamic": "dynamic_context"}
_SPACE: Final = re.compile(r"\s+")


class RequestLog(Watcher):
    """A watcher that writes a line when a call begins and one when it ends.

    The lines have the whole texts if `in_full`.

    It masks `secrets` in all texts.
    """

    def __init__(self, *, in_full: bool = False, secrets: Iterable[SecretText] = ()) -> None:
        self._in_full: Final = in_full
        self._secrets: Final = tuple(secret for secret in secrets if secret)

    def asked(self, call: WatchedCall, request: ChatRequest, prompt: Sequence[Message]) -> None:
        """Write the line of a request."""
        key = call.key
        kinds = kinds_of(request.messages, prompt)
        self._write(
            REQUEST,
            {
                "id": call.id,
                "name": call.name,
                "npc": key.npc_ref,
                "turn": key.turn,
                "profile": key.profile,
                "endpoint": call.endpoint,
                "model": request.model,
                "max_tokens": request.max_tokens,
                "tools": [tool.name for tool in request.tools],
                "schema": request.schema.name if request.schema is not None else None,
                "messages": [
                    {
                        "index": index,
                        "role": message.role,
                        "kind": kind,
                        **({"name": self._clean(message.name)} if message.name else {}),
                        **self._text(message.content),
                    }
                    for index, (message, kind) in enumerate(
                        zip(request.messages, kinds, strict=True)
                    )
                ],
            },
        )

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """Write the line of a reply."""
        self._write(
            RESPONSE,
            {
                **_ending(call, row),
                "model": reply.model,
                "finish_reason": reply.finish_reason,
                "tool_calls": [
                    {"name": one.name, **self._text(one.arguments)} for one in reply.tool_calls
                ],
                **self._text(reply.text),
            },
        )

    def failed(self, call: WatchedCall, error: BaseException, row: NewCall) -> None:
        """Write the line of a call without a reply."""
        self._write(RESPONSE, {**_ending(call, row), "error": self._clean(str(error))})

    def _text(self, text: str) -> dict[str, Any]:
        """Return the length of a text, its hash and its first words."""
        cut = not self._in_full and len(text) > PREVIEW_CHARACTERS
        # Mask keys before the text is cut, so that no part of a key remains.
        shown = self._clean(text[:LOOKED_AT] if cut else text)
        return {
            "characters": len(text),
            "sha256": sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            "text": shown[:PREVIEW_CHARACTERS] + "..." if cut else shown,
        }

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = secret.mask_in(text)
        return text

    def _write(self, tag: str, values: dict[str, Any]) -> None:
        # ASCII has no line separators, bidirectional marks or other invisible characters.
        logger.log_msg(f"{tag} {json.dumps(values, ensure_ascii=True)}")


def kinds_of(sent: Sequence[ChatMessage], prompt: Sequence[Message]) -> list[str]:
    """Return the kind of each sent message: "ordered", "history", "dynamic_context", "event", ...

    A message that was joined from several ones has all their kinds, separated by "+". A message
    that is not from the prompt is "added". If no prompt is known, each kind is "message".
    """
    if not prompt:
        return ["message"] * len(sent)
    left = list(prompt)
    return ["+".join(dict.fromkeys(_kinds_in(message, left))) or "added" for message in sent]


def _kinds_in(sent: ChatMessage, left: list[Message]) -> Iterator[str]:
    """Yield the kinds of the prompt's next messages that a sent message contains.

    Removes these messages from `left`.
    """
    text, at = _squeeze(sent.content), 0
    while left:
        wanted = _squeeze(left[0].content)
        found = text.find(wanted, at)
        is_same = left[0].tool_call_id == sent.tool_call_id
        if found < 0 or not is_same:
            return
        at = found + len(wanted)
        yield _KINDS.get(left[0].block, left[0].block)
        del left[0]
        if at == len(text):
            return


def _squeeze(text: str) -> str:
    """Return a text without white space, because adapters indent and join texts."""
    return _SPACE.sub("", text)


def _ending(call: WatchedCall, row: NewCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "name": call.name,
        "npc": row.npc_ref,
        "turn": row.turn,
        "outcome": row.outcome,
        "seconds": round(row.seconds, 3),
        "first_piece_seconds": row.first_piece_seconds,
        "input_tokens": row.input_tokens,
        "cached_tokens": row.cached_tokens,
        "output_tokens": row.output_tokens,
        "is_estimated": row.is_estimated,
        "nanodollars": row.nanodollars,
    }
