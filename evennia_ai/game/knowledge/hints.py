"""Hints: what an NPC may be given of bases that tell nothing else of their pages.

All hints of the pages that the NPC may find are there to choose from, whatever their pages say. A
hint helps the NPC to find the words of a search and is no answer. It was written to be told, so an
NPC that repeats it gives no secret away; but its model does not do as it was told, and the log says
so.
"""

from collections.abc import Iterable
from typing import Final

from evennia.utils import logger

from evennia_ai.errors import EvenniaAIError
from evennia_ai.game.knowledge.guarding import is_held, may_search, searchable, told_before
from evennia_ai.game.knowledge.search import NAMESPACES, Findings
from evennia_ai.game.models.watching import WatchedCall, Watcher
from evennia_ai.game.recording.retrying import DATABASE_ERRORS
from evennia_ai.game.senses.presence import NPC, object_of
from evennia_ai.knowledge.pages.page import BaseInfo
from evennia_ai.knowledge.restricted.hinting import FIELD, hints_of, ranked
from evennia_ai.knowledge.restricted.leaks import leak, protected
from evennia_ai.knowledge.restricted.mediation import PagePassage
from evennia_ai.llm.chat import ChatReply
from evennia_ai.store.calls.model_calls import NewCall
from evennia_ai.store.knowledge import pages
from evennia_ai.store.knowledge.knowledge_bases import bases


def offered(npc: NPC, bases: Iterable[BaseInfo], query: str) -> Findings:
    """The hints of these bases for the NPC, those with most words of the query first."""
    hints: list[PagePassage] = []
    unread: list[str] = []
    for info in bases:
        try:
            hints += _hints_in(npc, info)
        except (EvenniaAIError, *DATABASE_ERRORS) as error:
            kind = type(error).__name__
            logger.log_err(f"evennia_ai: hints of base '{info.key}' cannot be read: {kind}")
            unread.append(info.key)
    return Findings(chunks=ranked(query, hints), unread=tuple(unread))


def _hints_in(npc: NPC, info: BaseInfo) -> list[PagePassage]:
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


SPEAKER: Final = "speaker"


class HintEchoes(Watcher):
    """Logs each reply of an NPC that repeats such a hint."""

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """Compare the reply with what the NPC guards, if anything is guarded in the game."""
        if call.key.role != SPEAKER or not reply.text or not _is_anything_guarded():
            return
        npc = object_of(call.key.npc_ref)
        if npc is None:
            return
        for info in told_before(npc, searchable(npc, None)):
            if is_held(npc, info) and _repeats(reply.text, info):
                logger.log_warn(
                    f"evennia_ai: NPC {call.key.npc_ref}, turn {call.key.turn}: the reply repeats"
                    f" the hint of the restricted knowledge base '{info.key}'"
                )


def _is_anything_guarded() -> bool:
    return any(info.restricted for info in bases())


def _repeats(text: str, info: BaseInfo) -> bool:
    return leak(text, protected([info.hint])) in ("words", "letters")
