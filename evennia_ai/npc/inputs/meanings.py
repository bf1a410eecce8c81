"""Meanings: how near memories lie to what is said, by a model for sentences.

The model reads in a thread. A turn waits for it to read what was said, some hundredths of a second,
and for no memory: one that was not read yet is judged by its words, and read after that. What was
read is kept by its text, in this process alone, so nothing of it is left when a memory is erased
and the server has started again.
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
"""Texts whose vectors are kept, of one and a half thousand bytes each."""

READ_AT_ONCE: Final = 8

Near = tuple[tuple[int, float], ...]
"""The ids of memories, each with the cosine of its vector and that of what was said."""

InThread = Callable[..., "Deferred[Any]"]


class Meanings:
    """What the memories of all NPCs mean, as far as it was read."""

    def __init__(self, *, in_thread: InThread, model: Callable[[], Sentences]) -> None:
        self._in_thread: Final = in_thread
        self._model: Final = model
        self._vectors: OrderedDict[str, Any] = OrderedDict()
        self._unread: dict[str, None] = {}
        self._is_reading = False

    async def near(self, said: str, memories: Sequence[Memory]) -> Near:
        """How near those of the memories lie that were read; none without a model."""
        if not said.strip() or not memories:
            return ()
        try:
            (asked,) = await self._in_thread(self._read, (said,))
        except SentenceModelError as error:
            log.warning("memories are recalled by words alone: %s", error)
            return ()
        known = [(memory.id, self._vectors.get(memory.text)) for memory in memories]
        self._read_on([memory.text for memory in memories])
        return tuple(
            (memory_id, round(float(vector @ asked), DIGITS))
            for memory_id, vector in known
            if vector is not None
        )

    def _read(self, texts: Sequence[str]) -> list[Any]:
        """The vectors of some texts; runs in a thread.

        SentenceModelError: the model, or a package that it needs, is not there.
        """
        vectors = self._model().vectors(texts)
        import numpy as np  # the model says what is missing, and has it where it answered

        return [np.frombuffer(vector, "<f4") for vector in vectors]

    def _read_on(self, texts: Sequence[str]) -> None:
        """Have the texts read that were not read yet; those that were stay longest."""
        for text in texts:
            if text in self._vectors:
                self._vectors.move_to_end(text)
            else:
                self._unread[text] = None
        if self._unread and not self._is_reading:
            self._is_reading = True
            Deferred.fromCoroutine(self._read_all()).addErrback(self._stopped)

    async def _read_all(self) -> None:
        try:
            while self._unread:
                texts = [*self._unread][:READ_AT_ONCE]
                vectors = await self._in_thread(self._read, texts)
                for text, vector in zip(texts, vectors, strict=True):
                    self._vectors[text] = vector
                    self._unread.pop(text, None)
                while len(self._vectors) > MOST_KEPT:
                    self._vectors.popitem(last=False)
        finally:
            self._is_reading = False

    def _stopped(self, failure: Any) -> None:
        self._unread.clear()
        log.error("memories were not all read by the model for sentences: %s", failure.value)
