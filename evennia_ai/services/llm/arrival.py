"""Detect whether the whole prompt reached the model, from the server's own token count.

Many local servers drop the start of a prompt that is longer than their window, and answer normally.
Their count of the prompt's tokens reveals it. It cannot simply be compared with our count, because
tokenizers differ (0.6 to 2.2 times our estimate), and a chat template adds tokens. So four signs
are looked for, which complete prompts do not show:

- The server reports it (`truncated` of llama.cpp).

- It counts less than half of the words: no tokenizer is that efficient.

- It counts exactly a common window size, or the same multiple of `BLOCK` for two different prompts.

- It counts clearly less than shorter prompts of the same kind at the same server suggest.

If a server counted more tokens before, its window is larger, so a smaller count is no cut: the
server may leave out cached tokens.
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
"""Shorter prompts fit into every window. They are neither judged nor remembered."""

LEAST_COUNT: Final = 128
"""A server with a lower count for such a prompt does not count prompts."""

MOST_TIMES: Final = 8
"""A count of more than this many times ours is not a count of the prompt."""

REMEMBERED: Final = 48
"""How many prompts are remembered of one model at one address."""

MOST_MODELS: Final = 64

BLOCK: Final = 256
"""Servers round their windows to a multiple of it."""

WINDOWS: Final = frozenset(2**power for power in range(11, 18))
"""Default window sizes of servers, from 2,048 to 131,072 tokens."""

LEARNED_FROM: Final = 6
"""How many shorter prompts are needed to estimate the server's tokens from ours."""

MOST_SPREAD: Final = 1.3
"""The highest ratio of their largest ratio to their smallest. Beyond it they are ignored."""

OWN_SHARE: Final = 1 / 1.4
"""The share of the words in a prompt to which the chat template adds 40 %."""

TOLERANCE: Final = 0.85
NEAR: Final = 0.9
_BYTES_A_TOKEN: Final = 9
"""More than the average bytes per token in any language."""

_SIZE: Final[Slot[tuple[int, int, int]]] = Slot("size of arrival")
"""The tokens of a message, and the characters and bytes of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Our measure of a prompt that was sent."""

    words: int
    """Our count of the tokens in its messages."""
    beside: int
    """Our count of the tokens in its tools and schema.

    A server may show the model little of them.
    """
    text_bytes: int
    width: int
    """Bytes per character, rounded. It tells alphabets apart, for which tokenizers differ."""

    @property
    def tokens(self) -> int:
        return self.words + self.beside


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A prompt, and the server's count of its tokens."""

    sent: Measure
    counted: int
    is_cut: bool

    @property
    def ratio(self) -> float:
        return self.counted / self.sent.tokens


def measure(request: ChatRequest) -> Measure:
    """Return the measure of a request's prompt."""
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
    """The prompts of this process, with the counts of their servers."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, deque[_Seen]] = OrderedDict()

    def whole_tokens(self, where: str, request: ChatRequest, reply: ChatReply) -> int | None:
        """Return the tokens of the whole prompt if it was cut, else None.

        In the server's tokens as far as the ratio is known, and always more than the server
        counted.

        Args:
            where: Identifies the model and its address.
            request: The request as it was sent.
            reply: The reply. Without a credible count, only the server's own report is used.
        """
        sent, counted = measure(request), counted_tokens(reply.usage)
        seen = self._seen.setdefault(where, deque(maxlen=REMEMBERED))
        self._seen.move_to_end(where)
        while len(self._seen) > MOST_MODELS:
            self._seen.popitem(last=False)
        is_credible = LEAST_COUNT <= counted <= MOST_TIMES * sent.tokens
        if sent.words < LEAST_PROMPT_TOKENS or not is_credible:
            return max(sent.tokens, counted + 1) if reply.prompt_cut else None
        shorter = _learned(sent, counted, seen)
        ratio = median(one.ratio for one in shorter) if shorter else 1.0
        is_cut = reply.prompt_cut or _is_cut(sent, counted, seen, shorter=shorter)
        seen.append(_Seen(sent=sent, counted=counted, is_cut=is_cut))
        return max(ceil(ratio * sent.tokens), counted + 1) if is_cut else None


def counted_tokens(usage: Usage | None) -> int:
    """Return the server's count of the prompt, or 0.

    Some servers count cached tokens separately.
    """
    if usage is None:
        return 0
    cached = usage.cached_tokens + usage.written_tokens
    return usage.input_tokens if usage.input_tokens >= cached else usage.input_tokens + cached


def _size_of(message: ChatMessage) -> tuple[int, int, int]:
    known = message.memo.get(_SIZE)
    if known is None:
        text = message.content
        calls = [text for call in message.tool_calls for text in (call.name, call.arguments)]
        tokens = ESTIMATE.of_message(text, name=message.name, more=calls)
        known = (tokens, len(text), len(text.encode("utf-8", "replace")))
        message.memo[_SIZE] = known
    return known


def _learned(sent: Measure, counted: int, seen: Sequence[_Seen]) -> list[_Seen]:
    """Return complete prompts of the same kind that fit into a window of `counted` tokens.

    Empty if there are too few, or if they differ too much.
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
    # The template's additions are a smaller share of a longer prompt.
    least = [
        one.ratio * (OWN_SHARE + (1 - OWN_SHARE) * min(1.0, one.sent.tokens / sent.tokens))
        for one in shorter
    ]
    return counted < TOLERANCE * median(least) * sent.tokens


def cut_in_words(*, counted: int, whole: int, profile: str) -> str:
    """Return the message about a cut prompt: what happened, and which setting helps."""
    return (
        f"the server read {counted} of about {whole} tokens of the prompt and dropped the rest,"
        " mostly rules and card. Enlarge its window (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx;"
        " llama.cpp: -c, which --parallel divides; LM Studio: the context length of the model),"
        f" or lower context_tokens of the profile '{profile or 'default'}'; with ai/check"
        f" {profile or 'default'} an Admin asks the server how large it is"
    )
