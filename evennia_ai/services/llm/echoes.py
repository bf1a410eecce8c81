"""Remove from a server's error message what it repeats of the prompt.

Some servers quote the request that they refuse. All builders can see an error and the log keeps it,
but the prompt may contain private conversations, or texts that a lock hides.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from evennia_ai.services.llm.chat import ChatRequest

REPEATED: Final = "[...]"
"""The text that replaces the repeated words."""

_RUN: Final = 4
"""How many consecutive words of the prompt count as repeated.

A shorter text must be repeated completely.
"""
_FEWEST_LETTERS: Final = 8
"""The fewest letters of a prompt's text that count as repeated.

Shorter ones, such as "hi", are in many errors.
"""
_MOST_CHARACTERS: Final = 20_000
"""The most characters of an error that are examined. Only the start of an error is shown."""
_WORD: Final = re.compile(r"\w+")

Words = tuple[str, ...]


def without_prompt(words: str, request: ChatRequest) -> str:
    """Return a server's error message without words that repeat texts of the request."""
    words = words[:_MOST_CHARACTERS]
    found = list(_WORD.finditer(words))
    said = [one[0].casefold() for one in found]
    repeated = _runs(request)
    covered = {
        place
        for size in range(1, _RUN + 1)
        for start in range(len(said) - size + 1)
        if tuple(said[start : start + size]) in repeated
        for place in range(start, start + size)
    }
    kept, at = [], 0
    for place in sorted(covered):
        if place - 1 not in covered:
            kept += [words[at : found[place].start()], REPEATED]
        at = found[place].end()
    return "".join((*kept, words[at:]))


def _runs(request: ChatRequest) -> set[Words]:
    """Return all runs of consecutive words in the texts of a request that count as repeated."""
    return {run for text in _texts(request) for run in _runs_of(text)}


def _texts(request: ChatRequest) -> Iterable[str]:
    for message in request.messages:
        yield message.content
        yield from (call.arguments for call in message.tool_calls)


def _runs_of(text: str) -> Iterator[Words]:
    words = [word.casefold() for word in _WORD.findall(text)]
    size = min(_RUN, len(words))
    if sum(map(len, words)) >= _FEWEST_LETTERS:
        yield from (tuple(words[at : at + size]) for at in range(len(words) - size + 1))
