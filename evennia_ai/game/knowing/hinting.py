"""Hinting: the hints that an NPC may be given of bases that tell nothing else of their pages.

All hints of the pages that the NPC may find are there to choose from, whatever their pages say.
"""

from collections.abc import Iterable
from typing import Any

from evennia.utils import logger

from evennia_ai.errors import EvenniaAIError
from evennia_ai.game.guarding import may_search
from evennia_ai.game.knowing.searching import NAMESPACES, Findings
from evennia_ai.game.retrying import DATABASE_ERRORS
from evennia_ai.knowledge.pages.page import BaseInfo
from evennia_ai.knowledge.restricted.hinting import FIELD, hints_of, ranked
from evennia_ai.knowledge.restricted.mediation import PagePassage
from evennia_ai.store.knowledge import pages


def offered(npc: Any, bases: Iterable[BaseInfo], query: str) -> Findings:
    """The hints of these bases for the NPC, those with most words of the query first."""
    hints: list[PagePassage] = []
    unread: list[str] = []
    for info in bases:
        try:
            hints += _in_base(npc, info)
        except (EvenniaAIError, *DATABASE_ERRORS) as error:
            kind = type(error).__name__
            logger.log_err(f"evennia_ai: hints of base '{info.key}' cannot be read: {kind}")
            unread.append(info.key)
    return Findings(chunks=ranked(query, hints), unread=tuple(unread))


def _in_base(npc: Any, info: BaseInfo) -> list[PagePassage]:
    found = pages.with_field(info.key, FIELD)
    return [
        PagePassage(
            base=info.key,
            base_name=info.name,
            title=page.name.full,
            revision=page.revision,
            score=1.0,
            content=hint,
        )
        for page in found
        if page.name.namespace in NAMESPACES and may_search(npc, page.locks)
        for hint in hints_of(page)
    ]
