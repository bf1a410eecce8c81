"""Searching: what an NPC finds in its knowledge bases, and which hints it gets.

A small base may be returned as a whole. Others are searched by the words of the query. Instructions
for authors, talk pages, and pages whose lock excludes the NPC are never found. A restricted base
may offer hints in place of summaries. Then all hints of its visible pages are offered. The base's
own hint only helps the NPC to word a search; if a reply repeats it, that is logged.

Searches are recorded. If that fails, the search continues. Passages of a restricted base are stored
only in its vault, and only if both the game and the base want that. An error of the database may
quote its input, so only its kind is logged.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, TypeVar

from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.knowledge.pages.page import Backend, BaseInfo, Namespace, Page
from evennia_ai.engine.knowledge.relevance import split_chunks
from evennia_ai.engine.knowledge.restricted.hinting import HINTS_FIELD, page_hints, rank_hints
from evennia_ai.engine.knowledge.restricted.leaks import find_leak, protect_texts
from evennia_ai.engine.knowledge.restricted.mediation import PagePassage, RetrievalMode
from evennia_ai.npc.knowledge.backends import Backends, as_deferred
from evennia_ai.npc.knowledge.guarding import (
    bases_for_npc,
    may_search,
    must_guard,
    searchable_bases,
)
from evennia_ai.npc.model_calls.watching import WatchedCall, Watcher
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS
from evennia_ai.npc.senses.presence import NPC, object_of
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.speech import written_text
from evennia_ai.store.knowledge import knowledge_searches, pages
from evennia_ai.store.knowledge.knowledge_bases import list_bases
from evennia_ai.store.knowledge.knowledge_searches import NewSearch
from evennia_ai.store.model_calls import NewCall

NAMESPACES: Final[tuple[Namespace, ...]] = ("Main", "Sources")
PROTECTED_FIELD: Final = "protect"
"""The metadata field in which a page lists words that no summary may contain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The passages that were found in one or several knowledge bases, best first.

    `names` has all titles and aliases of their pages, `terms` the words that these pages protect.
    `unread` has the keys of bases that could not be read.
    """

    chunks: tuple[PagePassage, ...] = ()
    mode: RetrievalMode = "rag_retrieval"
    names: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


NOTHING: Final = Findings()


async def search_bases(
    npc: NPC,
    bases: Sequence[BaseInfo],
    query: str,
    *,
    backends: Backends,
    limit: int,
    most_whole: int,
) -> Findings:
    """Search these knowledge bases for the NPC. Bases that cannot be read are named in the result.

    Args:
        most_whole: The most characters of a base that may be returned as a whole.
    """
    each: list[Findings] = []
    for info in bases:
        try:
            backend = backends.of(info)
            each.append(
                await _in_base(npc, info, backend, query, limit=limit, most_whole=most_whole)
            )
        except CancelledError:
            raise
        except Exception as error:  # wikis, databases and a game's own backend may raise anything
            _log_unread(info, error)
            each.append(Findings(unread=(info.key,)))
    return merge_findings(each, limit=limit)


def merge_findings(each: Sequence[Findings], *, limit: int) -> Findings:
    """Merge what was found in several knowledge bases: the best of each, then the second best.

    The limit does not apply if any base was returned as a whole.
    """
    is_whole = any(one.mode == "direct_injection" for one in each)
    rows = zip_longest(*(one.chunks for one in each))
    ordered = [chunk for row in rows for chunk in row if chunk is not None]
    return Findings(
        chunks=tuple(ordered if is_whole else ordered[:limit]),
        mode="direct_injection" if is_whole else "rag_retrieval",
        names=_once(name for one in each for name in one.names),
        terms=_once(term for one in each for term in one.terms),
        unread=_once(key for one in each for key in one.unread),
    )


def _log_unread(info: BaseInfo, error: Exception) -> None:
    """Log that a knowledge base cannot be read.

    For a restricted base, leave out the error's text.
    """
    why = type(error).__name__ if info.restricted else f"{type(error).__name__}: {error}"
    logger.log_err(f"evennia_ai: knowledge base '{info.key}' cannot be read: {why}")


async def _in_base(
    npc: NPC, info: BaseInfo, backend: Backend, query: str, *, limit: int, most_whole: int
) -> Findings:
    most = min(info.direct_characters, most_whole)
    if most and (whole := await as_deferred(backend.pages(most_characters=most))) is not None:
        pages = [page for page in whole if _is_found(npc, page)]
        passages = [(page, part, 1.0) for page in pages for part in split_chunks(page.body)]
        return _findings(info, passages, mode="direct_injection")
    hits = await as_deferred(backend.search(query, namespaces=NAMESPACES, limit=limit))
    passages = [(hit.page, hit.passage, hit.score) for hit in hits if _is_found(npc, hit.page)]
    return _findings(info, passages, mode="rag_retrieval")


def _is_found(npc: NPC, page: Page) -> bool:
    return page.name.namespace in NAMESPACES and may_search(npc, page.locks)


def _findings(
    info: BaseInfo, passages: Sequence[tuple[Page, str, float]], *, mode: RetrievalMode
) -> Findings:
    pages = [page for page, _, _ in passages]
    return Findings(
        chunks=tuple(
            PagePassage(
                base=info.key,
                base_name=info.name,
                title=page.name.full,
                revision=page.revision,
                score=score,
                content=part,
            )
            for page, part, score in passages
        ),
        mode=mode,
        names=_once(
            name for page in pages for name in (page.name.full, page.name.title, *page.meta.aliases)
        ),
        terms=_once(term for page in pages for term in _protected_terms(page)),
    )


def _protected_terms(page: Page) -> tuple[str, ...]:
    """Return the words that a page protects. Its metadata has them as a text or a list."""
    given = page.meta.fields.get(PROTECTED_FIELD, ())
    listed = [given] if isinstance(given, str) else given
    return tuple(str(term) for term in listed) if isinstance(listed, list | tuple) else ()


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


REQUEST: Final = "Persist request"
RESPONSE: Final = "Persist response"

T = TypeVar("T")


def record_search(
    new: NewSearch, chunks: tuple[PagePassage, ...], *, vaulted: tuple[PagePassage, ...] = ()
) -> int | None:
    """Record that a search begins. Return its number, None if recording failed."""
    about = f"NPC {new.conversation.npc_ref} searches, {len(chunks)} passages"
    return _write_logged(
        about, lambda: knowledge_searches.begin_search(new, chunks, vaulted=vaulted)
    )


def record_result(search: int | None, result: str, *, decision: str = "", reason: str = "") -> None:
    """Record the result that the NPC gets, if the search itself was recorded."""
    if search is not None:
        about = f"search {search}, {len(result)} characters"
        _write_logged(
            about,
            lambda: knowledge_searches.end_search(search, result, decision=decision, reason=reason),
        )


def _write_logged(about: str, write: Callable[[], T]) -> T | None:
    logger.log_msg(f"{REQUEST}: {about}")
    try:
        result = write()
    except DATABASE_ERRORS as error:
        logger.log_err(f"{RESPONSE}: {about}: not stored ({type(error).__name__})")
        return None
    logger.log_msg(f"{RESPONSE}: {about}: stored in the database")
    return result


def offer_hints(npc: NPC, bases: Iterable[BaseInfo], query: str) -> Findings:
    """Return the hints of these knowledge bases that the NPC may get.

    The hints with the most words of the query come first.
    """
    hints: list[PagePassage] = []
    unread: list[str] = []
    for info in bases:
        try:
            hints += _hints_in(npc, info)
        except (EvenniaAIError, *DATABASE_ERRORS) as error:
            kind = type(error).__name__
            logger.log_err(f"evennia_ai: hints of base '{info.key}' cannot be read: {kind}")
            unread.append(info.key)
    return Findings(chunks=rank_hints(query, hints), unread=tuple(unread))


def _hints_in(npc: NPC, info: BaseInfo) -> list[PagePassage]:
    found = pages.pages_with_field(info.key, HINTS_FIELD)
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
        for hint in page_hints(page)
    ]


SPEAKER: Final = "speaker"


class HintEchoes(Watcher):
    """Logs each reply with the hint of a knowledge base that the NPC guards.

    Only the start of a reply is compared, because the rest is never said. The comparison may take
    long, so it runs in a thread.
    """

    def __init__(self, in_thread: Callable[..., "Deferred[Any]"]) -> None:
        self._in_thread: Final = in_thread

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """Compare the reply with the hints of all knowledge bases that the NPC guards."""
        if call.key.role != SPEAKER or not reply.text or not _is_anything_guarded():
            return
        npc = object_of(call.key.npc_ref)
        if npc is None:
            return
        infos = [
            info
            for info in bases_for_npc(npc, searchable_bases(npc, None))
            if must_guard(npc, info)
        ]
        if infos:
            where = f"evennia_ai: NPC {call.key.npc_ref}, turn {call.key.turn}: the reply"
            repeated = self._in_thread(_repeated_hints, reply.text, infos)
            repeated.addCallback(lambda keys: _log_repeated(where, keys))
            repeated.addErrback(
                lambda failure: logger.log_err(f"{where} was not checked: {failure}")
            )


def _is_anything_guarded() -> bool:
    return any(info.restricted for info in list_bases())


def _repeated_hints(reply: str, infos: Iterable[BaseInfo]) -> list[str]:
    """Return the keys of the knowledge bases whose hint the reply repeats. Runs in a thread."""
    text = written_text(reply, late_end="hides_nothing")
    kinds = ((info.key, find_leak(text, protect_texts([info.hint]))) for info in infos)
    return [key for key, kind in kinds if kind in ("words", "letters")]


def _log_repeated(where: str, keys: Iterable[str]) -> None:
    for key in keys:
        logger.log_warn(f"{where} repeats the hint of the restricted knowledge base '{key}'")
