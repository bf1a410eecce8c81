"""Detect whether the whole prompt reached the model, from the server's own token count.

Many local servers drop the start of a prompt that is longer than their window, and answer normally.
Their count of the prompt's tokens reveals it. It cannot simply be compared with the estimate of
this package, because tokenizers differ (0.6 to 2.2 times the estimate), and a chat template adds
tokens. So this module looks for four signs of a cut prompt. Complete prompts do not show them:

- The server reports it (`truncated` of llama.cpp).

- Its count is less than half the number of words. No tokenizer is that efficient.

- Its count is exactly a common window size, or the same multiple of `BLOCK` for two different
  prompts.

- Its count is clearly lower than shorter prompts of the same kind at the same server suggest.

If the server has counted more tokens for another prompt, its window must be larger. A lower count
then does not mean a cut, because some servers leave out cached tokens.
"""

import json
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Final

from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.services.llm.chat import ChatMessage, ChatReply, ChatRequest, Usage

LEAST_PROMPT_TOKENS: Final = 400
"""The smallest prompt that is examined. Shorter prompts fit into every window."""

LEAST_COUNT: Final = 128
"""The lowest credible count. A server that counts fewer tokens does not count the prompt."""

MOST_TIMES: Final = 8
"""The highest credible ratio of the server's token count to this package's estimate."""

REMEMBERED: Final = 48
"""How many recent prompts are kept for each model at each address."""

MOST_MODELS: Final = 64

BLOCK: Final = 256
"""Servers round their context windows to a multiple of this many tokens."""

WINDOWS: Final = frozenset(2**power for power in range(11, 18))
"""Default window sizes of servers, from 2,048 to 131,072 tokens."""

LEARNED_FROM: Final = 6
"""How many shorter prompts are needed to learn the ratio of the server's tokens to ours."""

MOST_SPREAD: Final = 1.3
"""The most that the learned ratios may differ: the highest divided by the lowest.

If they differ more, the shorter prompts are not used.
"""

OWN_SHARE: Final = 1 / 1.4
"""The share of a short prompt's tokens that is our text. The chat template adds the rest."""

TOLERANCE: Final = 0.85
NEAR: Final = 0.9
_BYTES_A_TOKEN: Final = 9
"""More than the average bytes per token of any tokenizer in any language."""

_SIZE: Final[Slot[tuple[int, int, int]]] = Slot("size of arrival")
"""The cached size of a message: tokens, characters and bytes of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Our own measurements of a prompt that was sent."""

    words: int
    """The estimated tokens of the messages."""
    beside: int
    """The estimated tokens of tools and schema.

    A server may show only a part of them to the model.
    """
    text_bytes: int
    width: int
    """Bytes per character, rounded. It separates alphabets, which tokenizers handle differently."""

    @property
    def tokens(self) -> int:
        return self.words + self.beside


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """An earlier prompt, with its size as measured here and the server's token count."""

    sent: Measure
    counted: int
    is_cut: bool

    @property
    def ratio(self) -> float:
        return self.counted / self.sent.tokens


def measure(request: ChatRequest) -> Measure:
    """Measure the prompt of a request: its words, bytes and estimated tokens."""
    sizes = zip((0, 0, 0), *map(_size_of, request.messages), strict=True)
    words, characters, text_bytes = map(sum, sizes)
    beside: list[object] = [[one.name, one.description, one.parameters] for one in request.tools]
    if request.schema is not None:
        beside.append(request.schema.schema)
    return Measure(
        words=words,
        beside=ESTIMATE.recall(json.dumps(beside, default=dict)) if beside else 0,
        text_bytes=text_bytes,
        width=round(text_bytes / characters) if characters else 1,
    )


class Arrivals:
    """The recent prompts of this process, by model, with the token counts of their servers."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, deque[_Seen]] = OrderedDict()

    def whole_tokens(self, where: str, request: ChatRequest, reply: ChatReply) -> int | None:
        """Return the tokens of the whole prompt if the server shortened it, else None.

        Earlier prompts show how many tokens the server counts for each estimated token. The result
        uses that ratio if it is known. It is always higher than the server's count.

        Args:
            where: A key for the model and its address.
            request: The request that was sent.
            reply: The reply with the server's count. If the count is not credible, only the
                server's own report of a cut is used.
        """
        sent, counted = measure(request), counted_tokens(reply.usage)
        seen = self._seen.setdefault(where, deque(maxlen=REMEMBERED))
        self._seen.move_to_end(where)
        while len(self._seen) > MOST_MODELS:
            self._seen.popitem(last=False)
        is_credible = LEAST_COUNT <= counted <= MOST_TIMES * sent.tokens
        if sent.words < LEAST_PROMPT_TOKENS or not is_credible:
            return max(sent.tokens, counted + 1) if reply.prompt_cut else None
        shorter = _comparable_prompts(sent, counted, seen)
        ratio = median(one.ratio for one in shorter) if shorter else 1.0
        is_cut = reply.prompt_cut or _is_cut(sent, counted, seen, shorter=shorter)
        seen.append(_Seen(sent=sent, counted=counted, is_cut=is_cut))
        return max(ceil(ratio * sent.tokens), counted + 1) if is_cut else None


def counted_tokens(usage: Usage | None) -> int:
    """Return the server's token count of the prompt, or 0 if it sent none."""
    return 0 if usage is None else usage.prompt_tokens


def _size_of(message: ChatMessage) -> tuple[int, int, int]:
    known = message.memo.get(_SIZE)
    if known is None:
        text = message.content
        calls = [text for call in message.tool_calls for text in (call.name, call.arguments)]
        tokens = ESTIMATE.of_message(text, name=message.name, more=calls)
        known = (tokens, len(text), len(text.encode("utf-8", "replace")))
        message.memo[_SIZE] = known
    return known


def _comparable_prompts(sent: Measure, counted: int, seen: Sequence[_Seen]) -> list[_Seen]:
    """Return earlier complete prompts from which the server's ratio of tokens can be learned.

    They are shorter than `counted` tokens, in the same alphabet and with the same tools. The list
    is empty if there are too few, or if their ratios differ too much.
    """
    shorter = [
        one
        for one in seen
        if not one.is_cut
        and one.counted <= NEAR * counted
        and (one.sent.width, one.sent.beside) == (sent.width, sent.beside)
    ]
    ratios = [one.ratio for one in shorter]
    is_steady = len(ratios) >= LEARNED_FROM and max(ratios) <= MOST_SPREAD * min(ratios)
    return shorter if is_steady else []


def _is_cut(
    sent: Measure, counted: int, seen: Sequence[_Seen], *, shorter: Sequence[_Seen]
) -> bool:
    same = [one.sent.words for one in seen if one.counted == counted]
    is_lowest = all(counted / sent.tokens < one.ratio for one in seen if not one.is_cut)
    is_other = any(abs(one - sent.words) > one / 20 for one in same)
    if counted % BLOCK == 0 and is_other and is_lowest:
        return True
    if counted < NEAR * max((one.counted for one in seen), default=0):
        return False
    if counted < min(sent.words / 2, sent.text_bytes / _BYTES_A_TOKEN):
        return True
    if counted in WINDOWS and counted < TOLERANCE * sent.words:
        return True
    if not shorter:
        return False
    # In a longer prompt, the tokens that the chat template adds are a smaller share.
    least = [
        one.ratio * (OWN_SHARE + (1 - OWN_SHARE) * min(1.0, one.sent.tokens / sent.tokens))
        for one in shorter
    ]
    return counted < TOLERANCE * median(least) * sent.tokens


def describe_cut_prompt(*, counted: int, whole: int, profile: str) -> str:
    """Return the message to an admin that a server shortened a prompt.

    The message names the settings that help.
    """
    return (
        f"the server read {counted} of about {whole} tokens of the prompt and dropped the rest,"
        " mostly rules and card. Enlarge its window (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx;"
        " llama.cpp: -c, which --parallel divides; LM Studio: the context length of the model),"
        f" or lower context_tokens of the profile '{profile or 'default'}'; with ai/check"
        f" {profile or 'default'} an Admin asks the server how large it is"
    )
