"""Scenes: which words were around when something was learnt, and which were just said.

A memory is one short sentence; what it does not repeat (who was there, where it was, what was said
before and after) often is what somebody asks for later. Of its scene the words are kept as they are
compared, sorted and each once: enough to be found by, and no sentence of anybody's.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

from evennia_ai.engine.memory.memories import compared_words
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.time_line import without_time_line
from evennia_ai.engine.text.word_forms import Languages

MOST_WORDS: Final = 48
"""Words of a scene that are kept."""

RUN: Final = 3
"""Lines in a row that are the scene of a memory: what was said, and what it answered or led to."""

_WORDS: Final = 48
"""Words of a scene that are kept."""

AROUND: Final = 1
"""Lines before, and after, the one that a memory was made of."""

MOST_COMPARED: Final = 1024
"""Messages whose words are kept: the newest few of each conversation, ten times their text."""


def scene_of(
    text: str, lines: Sequence[Message], *, there: Sequence[str], languages: Languages = ()
) -> str:
    """The words around what was learnt, a blank between two.

    `there` names the place and the people. Of the lines those in a row count that share most words
    with `text`, the newest of several such runs. Calls of tools, what came of them and what was
    put into a prompt were said by nobody.
    """
    told = [line for line in lines if line.is_user or line.is_reply]
    said = [words_of_message(line, languages) for line in told]
    own = compared_words(text, languages)
    runs = [said[start : start + RUN] for start in range(max(1, len(said) - RUN + 1))]
    shared = [len(own.intersection(chain.from_iterable(run))) for run in runs]
    newest = max(range(len(runs)), key=lambda start: (shared[start], start))
    around = [compared_words(" ".join(there), languages), *runs[newest]]
    # One by one, so that what there is no room for is of the last lines.
    words = dict.fromkeys(chain.from_iterable(sorted(some - own) for some in around))
    return " ".join(sorted([*words][:MOST_WORDS]))


def words_said(
    history: History, event: Message | None, *, messages: int, languages: Languages = ()
) -> frozenset[str]:
    """The words of the newest messages and of their speakers' names."""
    newest = [] if event is None else [event]
    first = history.newest_from(max(0, messages - len(newest)))
    newest += (said for said in history.between(first, history.stop) if said.counted)
    return frozenset().union(*(words_of_message(said, languages) for said in newest))


def words_of_message(message: Message, languages: Languages = ()) -> frozenset[str]:
    """The words of a message and of its speaker's name, as they are compared."""
    return _compared(message.name or "", without_time_line(message.content), languages)


@lru_cache(maxsize=MOST_COMPARED)
def _compared(name: str, content: str, languages: Languages) -> frozenset[str]:
    return compared_words(f"{name} {content}", languages)
