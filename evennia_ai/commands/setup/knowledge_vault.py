"""The switch of `kb` that opens a vault: what searches of a restricted base really found.

No NPC and no model is told this. It is for staff who want to see what a safe summary was made
from: whoever the locks of base and page let view it, and each reading is written down first.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from evennia_ai.commands.setup import knowledge_named as named
from evennia_ai.commands.shown import day_and_time
from evennia_ai.commands.strict import CommandError, StrictCommand
from evennia_ai.game.viewers import viewer_of
from evennia_ai.knowledge.pages import BaseInfo
from evennia_ai.minds.seeing.hidden_knowledge import withheld
from evennia_ai.minds.seeing.locked import HiddenPages
from evennia_ai.store import knowledge_searches
from evennia_ai.text.columns import hanging

_MOST_READINGS: Final = 40


class KnowledgeVault(StrictCommand):
    """Everything about what restricted searches found."""

    def vault(self) -> None:
        """Show what is in the vault of a base, who read it, or empty it."""
        info = named.base_named(self.caller, self.wanted("kb/vault <base> [= readings | empty]"))
        shown = _passages if self.rhs is None else _SHOWN.get(self.rhs.lower())
        if shown is None:
            raise CommandError(f"'{self.rhs}' opens no vault; write readings or empty.")
        if shown is _emptied:
            named.refuse_change(self.caller, info)
        self.show("\n".join(shown(self.caller, info, self.typed_by)))


def _passages(looker: Any, info: BaseInfo, by: str) -> Iterator[str]:
    found, pages = knowledge_searches.open_vault(info.key, by=by), HiddenPages(viewer_of(looker))
    if not found:
        yield f"The vault of knowledge base {info.key} is empty. That you looked is written down."
        return
    yield f"The vault of knowledge base {info.key}, newest first; that you read it is written down."
    for chunk in found:
        yield ""
        if pages.covers(chunk.base, chunk.title):
            mark = withheld(f"a page of knowledge base '{chunk.base}'")
            yield from hanging(f"search {chunk.search}: {mark}")
            continue
        yield from hanging(f"search {chunk.search}: {chunk.title}, revision {chunk.revision}")
        yield chunk.content


def _readings(_viewer: Any, info: BaseInfo, _by: str) -> Iterator[str]:
    readings = knowledge_searches.readings(info.key)
    if not readings:
        yield f"Nobody read the vault of knowledge base {info.key}."
        return
    yield f"Who read the vault of knowledge base {info.key}, newest first:"
    for one in readings[:_MOST_READINGS]:
        yield from hanging(f"  {day_and_time(one.at)}  {one.by}, passages: {one.chunks}")


def _emptied(_viewer: Any, info: BaseInfo, _by: str) -> Iterator[str]:
    count = knowledge_searches.empty_vault(info.key)
    yield f"Threw away what was in the vault of knowledge base {info.key}, passages: {count}."


_SHOWN: Final[Mapping[str, Callable[[Any, BaseInfo, str], Iterator[str]]]] = {
    "readings": _readings,
    "empty": _emptied,
}
