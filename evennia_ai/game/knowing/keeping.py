"""Keeping: searches are written down as they are made, and go on where that does not work.

Of a restricted base the passages go into its vault, if the game and the base want that; nothing
else of them is written anywhere. What the database says of a failure may quote what it was given,
so its kind alone is logged.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from evennia.utils import logger

from evennia_ai.game.retrying import DATABASE_ERRORS
from evennia_ai.knowledge.restricted.mediation import PagePassage
from evennia_ai.store.knowledge import knowledge_searches
from evennia_ai.store.knowledge.knowledge_searches import NewSearch

REQUEST: Final = "Persist request"
RESPONSE: Final = "Persist response"

T = TypeVar("T")


def begun(
    new: NewSearch, chunks: tuple[PagePassage, ...], *, vaulted: tuple[PagePassage, ...] = ()
) -> int | None:
    """Write down that a search began; its number, None where it is not written down."""
    about = f"NPC {new.conversation.npc_ref} searches, {len(chunks)} passages"
    return _written(about, lambda: knowledge_searches.begin(new, chunks, vaulted=vaulted))


def ended(search: int | None, result: str, *, decision: str = "", reason: str = "") -> None:
    """Write down what the NPC was told, if the search was written down."""
    if search is not None:
        about = f"search {search}, {len(result)} characters"
        _written(
            about,
            lambda: knowledge_searches.end(search, result, decision=decision, reason=reason),
        )


def _written(about: str, write: Callable[[], T]) -> T | None:
    logger.log_msg(f"{REQUEST}: {about}")
    try:
        result = write()
    except DATABASE_ERRORS as error:
        logger.log_err(f"{RESPONSE}: {about}: not written down ({type(error).__name__})")
        return None
    logger.log_msg(f"{RESPONSE}: {about}: written down")
    return result
