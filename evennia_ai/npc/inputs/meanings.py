"""Meanings: compares memories with what was said by meaning, with a sentence model.

The model runs in a thread. A turn waits for the vector of what was said, which takes some
hundredths of a second. It never waits for vectors of memories. A memory without a vector is scored
by its words, and its vector is computed afterwards. Vectors are cached by text and only in this
process, so nothing remains of an erased memory after a restart.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.engine.memory.memories import DIGITS, Memory
from evennia_ai.services.llm.sentence_model import SentenceModelError, Sentences

log: Final = logging.getLogger(__name__)

MOST_KEPT: Final = 20_000
"""The most texts whose vectors are cached. A vector has about 1,500 bytes."""

READ_AT_ONCE: Final = 8

Near = tuple[tuple[int, float], ...]
"""Ids of memories, each with the cosine of its vector and the vector of what was said."""

InThread = Callable[..., "Deferred[Any]"]


class Meanings:
    """A cache of the vectors of all NPCs' memories."""

    def __init__(self, *, in_thread: InThread, model: Callable[[], Sentences]) -> None:
        self._in_thread: Final = in_thread
        self._model: Final = model
        self._vectors: OrderedDict[str, Any] = OrderedDict()
        self._unread: dict[str, None] = {}
        self._is_reading = False

    async def near(self, said: str, memories: Sequence[Memory]) -> Near:
        """Return how close those memories are that have a vector. Empty if the model is missing."""
        if not said.strip() or not memories:
            return ()
        try:
            (asked,) = await self._in_thread(self._vectors_of_texts, (said,))
        except SentenceModelError as error:
            log.warning("memories are recalled by their words only: %s", error)
            return ()
        known = [(memory.id, self._vectors.get(memory.text)) for memory in memories]
        self._compute_missing([memory.text for memory in memories])
        return tuple(
            (memory_id, round(float(vector @ asked), DIGITS))
            for memory_id, vector in known
            if vector is not None
        )

    def _vectors_of_texts(self, texts: Sequence[str]) -> list[Any]:
        """Return the vectors of some texts. Runs in a thread.

        Raises:
            SentenceModelError: The model or a package that it needs is missing.
        """
        vectors = self._model().vectors(texts)
        import numpy as np  # installed, because the model has just answered

        return [np.frombuffer(vector, "<f4") for vector in vectors]

    def _compute_missing(self, texts: Sequence[str]) -> None:
        """Compute missing vectors in the background, and mark the others as recently used."""
        for text in texts:
            if text in self._vectors:
                self._vectors.move_to_end(text)
            else:
                self._unread[text] = None
        if self._unread and not self._is_reading:
            self._is_reading = True
            Deferred.fromCoroutine(self._compute_all()).addErrback(self._stopped)

    async def _compute_all(self) -> None:
        try:
            while self._unread:
                texts = [*self._unread][:READ_AT_ONCE]
                vectors = await self._in_thread(self._vectors_of_texts, texts)
                for text, vector in zip(texts, vectors, strict=True):
                    self._vectors[text] = vector
                    self._unread.pop(text, None)
                while len(self._vectors) > MOST_KEPT:
                    self._vectors.popitem(last=False)
        finally:
            self._is_reading = False

    def _stopped(self, failure: Any) -> None:
        self._unread.clear()
        log.error("the sentence model did not read all memories: %s", failure.value)
