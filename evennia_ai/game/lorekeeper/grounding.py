"""Grounding: introductions of Wikipedia, where the game's settings name its address.

The page Instructions:Config may turn them off and never on: that this machine asks another one is
for its admin to say.
"""

from typing import Final
from weakref import WeakKeyDictionary

from evennia.utils import logger
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from evennia_ai.game.models.clients import Models
from evennia_ai.game.runtime import Runtime
from evennia_ai.knowledge.assembly.requests import Article, Failed
from evennia_ai.knowledge.backends import BackendError
from evennia_ai.wiki.backend import Wikipedia

OFF: Final = "EVENNIA_AI_KNOWLEDGE_WIKIPEDIA names no address"

_opened: Final[WeakKeyDictionary[Models, Wikipedia]] = WeakKeyDictionary()


def introduction(live: Runtime, entity: str) -> "Deferred[Article | Failed | None]":
    """The introduction of the article about `entity`, None where there is none."""
    if not live.conf.knowledge_wikipedia:
        return succeed(Failed(OFF))
    if live.models not in _opened:
        _opened[live.models] = Wikipedia(live.conf.knowledge_wikipedia, live.models.bridge)
    found: Deferred[Article | Failed | None] = _opened[live.models].intro(entity)
    return found.addErrback(_failed, entity)


def _failed(failure: Failure, entity: str) -> Failed:
    """What the assembly is told where Wikipedia does not answer: it goes on without it."""
    failure.trap(BackendError)
    logger.log_warn(f"evennia_ai: no introduction of {entity!r}: {failure.value}")
    return Failed(str(failure.value))
