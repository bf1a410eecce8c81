"""Opening: the backend of a knowledge base in the running game.

A base says by a word where its pages are. One backend a base is made and kept for as long as the
runtime lives, so that a wiki is logged into once.
"""

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred, ensureDeferred, succeed

from evennia_ai.game.models.clients import Models
from evennia_ai.knowledge.backends import Backend, BackendError
from evennia_ai.knowledge.pages.page import BaseInfo
from evennia_ai.settings.game import Conf

BACKENDS: Final = ("database", "help", "mediawiki")
"""The words by which a base says where its pages are."""


class Backends:
    """The backends of the bases of this game; `conf` says which wikis there are."""

    def __init__(self, conf: Conf, models: Models) -> None:
        self._conf: Final = conf
        self._models: Final = models
        self._opened: dict[str, Backend] = {}
        self._makers: Final[dict[str, Callable[[str], Backend]]] = {
            "database": self._database,
            "help": _help,
            "mediawiki": self._mediawiki,
        }

    def of(self, info: BaseInfo) -> Backend:
        """Where the pages of a base are.

        BackendError: the game has no such place, or not this one.
        """
        make = self._makers.get(info.backend)
        if make is None:
            raise BackendError(
                f"knowledge base '{info.key}' is in '{info.backend}', which is no place for pages;"
                f" there are {', '.join(BACKENDS)}"
            )
        place = f"{info.backend}:{info.key}"
        if place not in self._opened:
            self._opened[place] = make(info.key)
        return self._opened[place]

    def _database(self, key: str) -> Backend:
        if self._conf.knowledge_embeddings:
            from evennia_ai.game.knowledge.meanings import MeaningBackend

            return MeaningBackend(key)
        from evennia_ai.store.knowledge.backend import DatabaseBackend

        return DatabaseBackend(key)

    def _mediawiki(self, key: str) -> Backend:
        """A wiki; its client is imported where a game has one, and nowhere else."""
        from evennia_ai.wiki.backend import MediaWikiBackend

        site = self._conf.knowledge_wikis.get(key)
        if site is None:
            raise BackendError(
                f"knowledge base '{key}' is a wiki that EVENNIA_AI_KNOWLEDGE_WIKIS does not name;"
                " say there where it is"
            )
        return MediaWikiBackend(key, site, self._models.bridge)


def later(answer: Any) -> "Deferred[Any]":
    """What a backend says, as a Deferred, whether it is there at once or comes later."""
    if isinstance(answer, Deferred):
        return answer
    if hasattr(answer, "__await__"):
        return ensureDeferred(answer)
    return succeed(answer)


def _help(key: str) -> Backend:
    from evennia_ai.game.knowledge.help_pages import HelpBackend

    return HelpBackend(key)
