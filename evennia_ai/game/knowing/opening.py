"""Opening: the backend of a knowledge base in the running game.

A base says by a word where its pages are. One backend a base is made and kept for as long as the
runtime lives, so that a wiki is logged into once.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred, ensureDeferred, succeed

from evennia_ai.game.endpoints import Models
from evennia_ai.game.runtime import runtime
from evennia_ai.knowledge.backends import Backend, BackendError
from evennia_ai.knowledge.pages.pages import BaseInfo

_opened: Final[WeakKeyDictionary[Models, dict[str, Backend]]] = WeakKeyDictionary()


def backend_of(info: BaseInfo) -> Backend:
    """Where the pages of a base are. BackendError: the game has no such place, or not this one."""
    make = _MAKERS.get(info.backend)
    if make is None:
        raise BackendError(
            f"knowledge base '{info.key}' is in '{info.backend}', which is no place for pages;"
            f" there are {', '.join(BACKENDS)}"
        )
    kept = _opened.setdefault(runtime().models, {})
    place = f"{info.backend}:{info.key}"
    if place not in kept:
        kept[place] = make(info.key)
    return kept[place]


def later(answer: Any) -> "Deferred[Any]":
    """What a backend says, as a Deferred, whether it is there at once or comes later."""
    if isinstance(answer, Deferred):
        return answer
    if hasattr(answer, "__await__"):
        return ensureDeferred(answer)
    return succeed(answer)


def _database(key: str) -> Backend:
    if runtime().conf.knowledge_embeddings:
        from evennia_ai.game.knowing.meanings import MeaningBackend

        return MeaningBackend(key)
    from evennia_ai.store.knowledge_backend import DatabaseBackend

    return DatabaseBackend(key)


def _help(key: str) -> Backend:
    from evennia_ai.game.knowing.help_pages import HelpBackend

    return HelpBackend(key)


def _mediawiki(key: str) -> Backend:
    """A wiki; its client is imported where a game has one, and nowhere else."""
    from evennia_ai.wiki.backend import MediaWikiBackend

    live = runtime()
    site = live.conf.knowledge_wikis.get(key)
    if site is None:
        raise BackendError(
            f"knowledge base '{key}' is a wiki that EVENNIA_AI_KNOWLEDGE_WIKIS does not name;"
            " say there where it is"
        )
    return MediaWikiBackend(key, site, live.models.bridge)


_MAKERS: Final[Mapping[str, Callable[[str], Backend]]] = {
    "database": _database,
    "help": _help,
    "mediawiki": _mediawiki,
}
BACKENDS: Final = tuple(_MAKERS)
"""The words by which a base says where its pages are."""
