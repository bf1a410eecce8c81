"""Build the knowledge bases of `world/demo/knowledge/` in the running game.

`world/build_demo.py` calls it. A base is imported once. When the demo has a new edition, its pages
are updated, except those that somebody else has changed or removed.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.knowledge.pages.files import PageFolder, read_folder
from evennia_ai.engine.knowledge.pages.page import Page
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.npc.npc_settings import settings_of
from evennia_ai.npc.tools.registry import choose_tools
from evennia_ai.store.knowledge import knowledge_bases, page_imports
from evennia_ai.store.knowledge.page_rows import last_changed_by
from world.demo_content import DEMO, Wiki

_HASHED: Final = 12


def wiki_folder(wiki: Wiki) -> PageFolder:
    """Return the folder of a knowledge base, with all its pages."""
    return read_folder(DEMO / "knowledge" / wiki.key, key=wiki.key)


def edition_of(folder: PageFolder) -> str:
    """Return a hash that changes with every page of the knowledge base."""
    told = "\n".join(page.sha256 for page in folder.pages)
    return sha256(told.encode()).hexdigest()[:_HASHED]


def make_wiki(folder: PageFolder, *, by: Actor) -> str:
    """Import a knowledge base, unless one with its key exists."""
    key = folder.info.key
    if knowledge_bases.base_or_none(key) is not None:
        return ""
    knowledge_bases.save_base(folder.info, by=by)
    return f"knowledge base {key}, {_pages(_imported(key, folder.pages, by=by))}"


def renew_wiki(folder: PageFolder, *, by: Actor) -> str:
    """Import new pages of a knowledge base, except those that somebody else has changed."""
    key = folder.info.key
    if knowledge_bases.base_or_none(key) is None:
        return ""
    ours = [page for page in folder.pages if last_changed_by(key, page.name) in ("", by.name)]
    count = _imported(key, ours, by=by)
    return f"knowledge base {key}, {_pages(count)} of a new edition" if count else ""


def bind_wiki(key: str, npc: Any, *, by: Actor) -> str:
    """Let an NPC search a knowledge base, if it exists."""
    if knowledge_bases.base_or_none(key) is None:
        return ""
    knowledge_bases.assign_base(key, Scope(kind="npc", ref=str(npc.id)), by=by)
    return f"knowledge base {key} for {npc.key}"


def give_search(npc: Any, *, by: Actor) -> str:
    """Give an NPC the tool that searches knowledge bases, in addition to its other tools."""
    tools = settings_of(npc).tools
    if TOOL in tools:
        return ""
    choose_tools(npc, [*tools, TOOL], by=by)
    return f"tool {TOOL} for {npc.key}"


def _imported(key: str, pages: list[Page] | tuple[Page, ...], *, by: Actor) -> int:
    wanted = page_imports.plan_pages(key, [replace(page, base=key) for page in pages])
    return page_imports.import_pages(wanted, by=by).changes


def _pages(count: int) -> str:
    return "1 page" if count == 1 else f"{count} pages"
