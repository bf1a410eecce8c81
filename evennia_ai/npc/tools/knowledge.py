"""The tool with which an NPC searches its knowledge bases.

The model gets passages of ordinary bases unchanged. From a base that the NPC must guard, it gets
only a safe summary, which a second model makes inside the tool. So the NPC's own model never reads
a text that it must not reveal.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import Field, StringConstraints
from twisted.internet.defer import Deferred

from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.knowledge.pages.markup import strip_links
from evennia_ai.engine.knowledge.pages.page import BaseInfo, MediationKind
from evennia_ai.engine.knowledge.restricted.hinting import merge_summaries
from evennia_ai.engine.knowledge.restricted.leaks import Protected
from evennia_ai.engine.knowledge.restricted.mediation import (
    MOST_CHUNKS,
    MOST_IN_ALL,
    NO_CHUNKS,
    PagePassage,
    SafeSummary,
    build_envelope,
    protect_passages,
    refuse_answer,
    select_passages,
)
from evennia_ai.engine.knowledge.settings import judge_search
from evennia_ai.npc.knowledge import mediating, search
from evennia_ai.npc.knowledge.guarding import guarded_keys, searchable_bases
from evennia_ai.npc.knowledge.mediating import NOTHING_PROTECTED, Mediation
from evennia_ai.npc.knowledge.search import Findings, offer_hints
from evennia_ai.npc.senses.events import began_by
from evennia_ai.npc.tools.tool import Refused, Tool, ToolArguments, Use, result_text
from evennia_ai.store.history import turns
from evennia_ai.store.knowledge import knowledge_searches
from evennia_ai.store.knowledge.knowledge_searches import NewSearch

MOST_QUERY: Final = 400
MOST_HITS: Final = 20
USUAL_HITS: Final = 8
MOST_TOLD: Final = 8_000
"""The most characters of passages in one result. A small model gets fewer."""

NONE_BOUND: Final = "rag_not_configured: you have no base of knowledge that you could search."
NOTHING_FOUND: Final = "Nothing was found."

Query = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_QUERY)
]
Id = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One search: its knowledge bases and a warning for the model.

    `held` has the keys of the bases that the NPC guards.
    """

    use: Use
    query: str
    limit: int
    bases: tuple[BaseInfo, ...]
    held: frozenset[str]
    warning: str

    @property
    def open_bases(self) -> tuple[BaseInfo, ...]:
        """Return the knowledge bases whose passages the model gets unchanged."""
        return tuple(info for info in self.bases if info.key not in self.held)

    @property
    def held_bases(self) -> tuple[BaseInfo, ...]:
        """Return the knowledge bases that the NPC guards."""
        return tuple(info for info in self.bases if info.key in self.held)

    def of_mediation(self, kind: MediationKind) -> tuple[BaseInfo, ...]:
        """Return the guarded knowledge bases of which the model gets summaries, or hints."""
        return tuple(info for info in self.held_bases if info.mediation == kind)


class KnowledgeBaseSearch(Tool):
    """The tool that searches the knowledge bases of the NPC, its place and the conversation."""

    name = TOOL
    description = (
        "Search the bases of knowledge you were told of, for what you do not know yet. Give a few"
        " words of the matter itself."
    )
    waits = True

    class Arguments(ToolArguments):
        query: Query = Field(description="a few words of what you want to know")
        bases: Annotated[tuple[Id, ...], Field(max_length=12)] = Field(
            default=(), description="ids of the bases to search; leave it out for all of them"
        )
        limit: int = Field(
            default=USUAL_HITS, ge=1, le=MOST_HITS, description="how many passages at most"
        )

    def run(self, use: Use, arguments: Arguments) -> "Deferred[str]":
        """Start a search. The Deferred fires with the result for the model.

        Raises:
            Refused: The NPC may not search now, or may not search one of these knowledge bases.
        """
        bases = _wanted_bases(searchable_bases(use.npc, use.conversation), arguments.bases)
        asked = Asked(
            use=use,
            query=arguments.query,
            limit=arguments.limit,
            bases=bases,
            held=guarded_keys(use.npc, bases),
            warning=_check_budget(use),
        )
        return Deferred.fromCoroutine(_search_all(asked))


def _wanted_bases(known: Sequence[BaseInfo], ids: Sequence[str]) -> tuple[BaseInfo, ...]:
    """Return the knowledge bases with these ids, or all bases if no id is given.

    Raises:
        Refused: The NPC has no base with one of the ids.
    """
    if not known:
        raise Refused(NONE_BOUND)
    by_id = {info.key.casefold(): info for info in known}
    unknown = [one for one in ids if one.casefold() not in by_id]
    if unknown:
        there_are = ", ".join(info.key for info in known)
        raise Refused(
            f"document_scope_violation: '{unknown[0][:40]}' is no base of yours; there are:"
            f" {there_are}."
        )
    return tuple(dict.fromkeys(by_id[one.casefold()] for one in ids)) or tuple(known)


def _check_budget(use: Use) -> str:
    """Return a warning for the model that few searches are left, "" if none is needed.

    Raises:
        Refused: No search is left.
    """
    budget = use.conf.knowledge_budget
    before = knowledge_searches.count_since(
        use.conversation, use.event.speaker_ref, since=time.time() - 60 * budget.minutes
    )
    used, limit = (0, 1) if before < budget.free else _prompt_tokens(use)
    verdict = judge_search(budget, before=before, used_tokens=used, limit_tokens=limit)
    if not verdict.is_allowed:
        raise Refused(f"{verdict.code}: {verdict.message}")
    return verdict.message


def _prompt_tokens(use: Use) -> tuple[int, int]:
    """Return the tokens of this turn's prompt, and the limit of the prompt."""
    manifest = turns.get_turn(use.mind.ref, use.turn).manifest
    return manifest.tokens, manifest.limit_tokens


async def _search_all(asked: Asked) -> str:
    """Search ordinary bases, then guarded ones."""
    most_told = _most_characters(asked)
    found = await search.search_bases(
        asked.use.npc,
        asked.open_bases,
        asked.query,
        backends=asked.use.backends,
        limit=asked.limit,
        most_whole=most_told,
    )
    shown = _first_fitting(found.chunks, most_characters=most_told)
    if not asked.held:
        return _open_result(asked, found, shown)
    guarded = await search.search_bases(
        asked.use.npc,
        asked.of_mediation("summary"),
        asked.query,
        backends=asked.use.backends,
        limit=min(MOST_CHUNKS, MOST_HITS),
        most_whole=MOST_IN_ALL,
    )
    return await _safe_result(asked, guarded, found, shown)


def _open_result(asked: Asked, found: Findings, shown: tuple[PagePassage, ...]) -> str:
    """Record the search and return the passages, if the NPC guards none of the knowledge bases."""
    number = search.record_search(_new_search(asked, found, shown, restricted=False), shown)
    lines = [f"[{chunk.base}] {chunk.title}: {_passage_text(chunk)}" for chunk in shown]
    unread = [f"{key} cannot be read just now." for key in found.unread]
    told = result_text("\n".join([*(lines or [NOTHING_FOUND]), *unread, asked.warning]))
    search.record_result(number, told)
    return told


async def _safe_result(
    asked: Asked, guarded: Findings, found: Findings, shown: tuple[PagePassage, ...]
) -> str:
    """Record the search. Return a safe summary of the guarded knowledge bases as JSON.

    The passages of the other knowledge bases follow unchanged.
    """
    sent = select_passages(
        guarded.chunks, most_characters=mediating.most_characters(asked.use.calls)
    )
    secret = protect_passages(
        sent, names=guarded.names, terms=guarded.terms, public=_public_texts(asked.held_bases)
    )
    hints = offer_hints(asked.use.npc, asked.of_mediation("hints"), asked.query)
    number = search.record_search(
        _new_search(asked, guarded, (*sent, *hints.chunks), restricted=True),
        (*sent, *hints.chunks),
        vaulted=_passages_for_vault(asked, sent),
    )
    summary: SafeSummary = refuse_answer(NO_CHUNKS)
    if asked.of_mediation("summary"):
        before = knowledge_searches.safe_summaries(asked.use.conversation)
        wanted = replace(_mediation(asked, sent, secret), before=before)
        summary = await mediating.summarise_safely(wanted, asked.use.calls)
    if asked.of_mediation("hints"):
        of_hints = _mediation(asked, hints.chunks, NOTHING_PROTECTED)
        choice = await mediating.choose_hints(of_hints, asked.use.calls)
        summary = merge_summaries(summary, choice) if asked.of_mediation("summary") else choice
    external = [
        {"knowledge_base_id": chunk.base, "title": chunk.title, "content": _passage_text(chunk)}
        for chunk in shown
    ]
    # A player must not find out by many searches which words a restricted page contains. Therefore
    # a search without results gets the same answer as a refused search, and the answer hides how
    # many passages were found.
    is_whole = guarded.mode == "direct_injection"
    told = build_envelope(
        refuse_answer("other") if summary.reason == NO_CHUNKS else summary,
        mode=guarded.mode,
        total=len(guarded.chunks) + len(hints.chunks) if is_whole else 0,
        external=external if asked.open_bases else None,
    )
    unread = (*guarded.unread, *hints.unread, *found.unread)
    extra = {"warning": asked.warning, "unread": list(unread)}
    text = json.dumps({**told, **{k: v for k, v in extra.items() if v}}, ensure_ascii=False)
    search.record_result(number, text, decision=summary.decision, reason=summary.reason)
    return text


def _mediation(asked: Asked, chunks: tuple[PagePassage, ...], secret: Protected) -> Mediation:
    event = asked.use.event
    return Mediation(
        npc_limits=asked.use.settings.limits,
        npc_ref=asked.use.mind.ref,
        player_ref=began_by(event),
        line=event.line,
        turn=asked.use.turn,
        query=asked.query,
        chunks=chunks,
        secret=secret,
    )


def _passage_text(chunk: PagePassage) -> str:
    """Return a passage without links, because a pipe in a link would start a colour code."""
    return strip_links(chunk.content)


def _new_search(
    asked: Asked, found: Findings, used: Sequence[PagePassage], *, restricted: bool
) -> NewSearch:
    use = asked.use
    return NewSearch(
        conversation=use.conversation,
        turn=use.turn,
        speaker_ref=use.event.speaker_ref,
        bases=tuple(info.key for info in asked.bases),
        query=asked.query,
        restricted=restricted,
        mode=found.mode,
        total=len(found.chunks),
        sent=len(used),
    )


def _passages_for_vault(asked: Asked, sent: Sequence[PagePassage]) -> tuple[PagePassage, ...]:
    """Return the passages that the vault stores.

    The settings of the game and of each knowledge base decide which passages these are.
    """
    keeping_bases = {info.key for info in asked.held_bases if info.keeps_chunks}
    if not asked.use.conf.knowledge_vault:
        return ()
    return tuple(chunk for chunk in sent if chunk.base in keeping_bases)


def _public_texts(bases: Sequence[BaseInfo]) -> str:
    """Return the public texts about guarded knowledge bases.

    They are public because every prompt contains them.
    """
    return "\n".join(part for info in bases for part in (info.name, info.hint, *info.keywords))


def _most_characters(asked: Asked) -> int:
    """Return the most characters of passages: about a quarter of the prompt of the NPC's model."""
    limit_tokens = asked.use.view.rules.budget.limit_tokens
    return min(MOST_TOLD, limit_tokens)


def _first_fitting(
    chunks: Sequence[PagePassage], *, most_characters: int
) -> tuple[PagePassage, ...]:
    """Return the first passages that together have at most this many characters."""
    kept: list[PagePassage] = []
    left = most_characters
    for chunk in chunks:
        left -= len(chunk.content)
        if left < 0:
            break
        kept.append(chunk)
    return tuple(kept)
