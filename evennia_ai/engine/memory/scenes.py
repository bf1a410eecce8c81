"""Scenes: the words around a memory when it was learnt, and the words that were just said.

A memory is one short sentence. Players often ask later for something that the sentence does not
repeat: who was there, where it was, what was said before and after. So the words of the scene are
stored with the memory, in the form in which texts are compared. They are sorted and without
duplicates, so that they can be matched, but nobody's sentences can be reconstructed.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

from evennia_ai.engine.memory.memories import comparison_words
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, without_time_line
from evennia_ai.engine.text.word_forms import Languages

MOST_WORDS: Final = 48
"""The maximum number of words that are stored as the scene of a memory."""

RUN_LINES: Final = 3
"""How many consecutive messages form a scene: one and its two neighbours."""

MOST_COMPARED: Final = 1024
"""How many messages have their words cached.

This is enough for the newest few messages of each conversation.
"""


def scene_of(
    text: str, lines: Sequence[Message], *, there: Sequence[str], languages: Languages = ()
) -> str:
    """Return the words around a memory when it was learnt, sorted and separated by blanks.

    The scene is the run of lines that shares the most words with the memory; among equal runs, the
    newest one. Tool calls, tool results and texts inserted into prompts are left out, because
    nobody said them.

    Args:
        text: The text of the memory.
        lines: The messages of the conversation.
        there: The names of the place and of the people there.
        languages: The languages whose inflected word forms match.
    """
    spoken = [line for line in lines if line.is_user or line.is_reply]
    said = [words_of_message(line, languages) for line in spoken]
    own = comparison_words(text, languages)
    runs = [said[start : start + RUN_LINES] for start in range(max(1, len(said) - RUN_LINES + 1))]
    shared = [len(own.intersection(chain.from_iterable(run))) for run in runs]
    newest = max(range(len(runs)), key=lambda start: (shared[start], start))
    around = [comparison_words(" ".join(there), languages), *runs[newest]]
    # The words of the place come first, so that the limit drops words of the last lines instead.
    words = dict.fromkeys(chain.from_iterable(sorted(some - own) for some in around))
    return " ".join(sorted([*words][:MOST_WORDS]))


def words_said(
    history: History, event: Message | None, *, messages: int, languages: Languages = ()
) -> frozenset[str]:
    """Return the words of the newest messages and of their speakers' names, as a set.

    The event that the NPC answers counts as the newest message.
    """
    newest = [] if event is None else [event]
    first = history.newest_from(max(0, messages - len(newest)))
    newest += (said for said in history.between(first, history.stop) if said.counted)
    return frozenset().union(*(words_of_message(said, languages) for said in newest))


def words_of_message(message: Message, languages: Languages = ()) -> frozenset[str]:
    """Return the words of a message and of its speaker's name, in the form for comparison."""
    return _compared(message.name or "", without_time_line(message.content), languages)


@lru_cache(maxsize=MOST_COMPARED)
def _compared(name: str, content: str, languages: Languages) -> frozenset[str]:
    return comparison_words(f"{name} {content}", languages)
