"""Echoes: replies that hand on the hint of a base that the NPC guards are told in the log.

A hint helps the NPC to find the words of a search and is no answer. It was written to be told, so
an NPC that repeats it gives no secret away; but its model does not do as it was told.
"""

from typing import Final

from evennia.utils import logger

from evennia_ai.game.guarding import is_held, searchable, told_before
from evennia_ai.game.presence import object_of
from evennia_ai.game.watching import WatchedCall, Watcher
from evennia_ai.knowledge.pages.page import BaseInfo
from evennia_ai.knowledge.restricted.leaks import leak, protected
from evennia_ai.llm.chat import ChatReply
from evennia_ai.store.calls.model_calls import NewCall
from evennia_ai.store.knowledge.knowledge_bases import bases

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
