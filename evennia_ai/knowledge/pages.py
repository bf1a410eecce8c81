"""Pages: what a knowledge base is made of.

A page is a value: its text without the block of metadata it may have been written with, what that
block said, and the revision it is of. Which notations a text may have is told in `markup.py`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, get_args

from evennia_ai.knowledge.titles import PageName

MediationKind = Literal["summary", "hints"]
MEDIATIONS: Final[tuple[MediationKind, ...]] = get_args(MediationKind)
"""What a search of a restricted base may come to."""

NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMeta:
    """What the author of a page says about it.

    `redirect` sends readers to another page. `requires` are pages that must be read with this one,
    in the order that counts. `summary` and `topics` tell what it is about. `fields` holds whatever
    else was said, such as `type`, `task_type`, `include_by_default` or `reliability`, as JSON.
    """

    summary: str = ""
    topics: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    requires: tuple[PageName, ...] = ()
    redirect: PageName | None = None
    fields: Mapping[str, Any] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of a knowledge base.

    `base` is the key of that base, "" for a page that belongs to none yet. `revision` is the
    backend's own id of this text, "" where it is not stored. `links` are the pages it links to, in
    the order of their first link. `locks` is an Evennia lock string, "" where there is none.
    """

    name: PageName
    body: str
    meta: PageMeta = PageMeta()
    links: tuple[PageName, ...] = ()
    base: str = ""
    revision: str = ""
    locks: str = ""

    @cached_property
    def sha256(self) -> str:
        """The hash of everything an author wrote: name, text and metadata."""
        meta = self.meta
        written = [
            *(self.name.full, self.body, meta.summary, meta.topics, meta.aliases, meta.tags),
            [one.full for one in meta.requires],
            meta.redirect.full if meta.redirect else "",
            dict(meta.fields),
        ]
        told = json.dumps(written, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseInfo:
    """What is known of a knowledge base without reading its pages.

    `key` is the id that tools and commands take. `summary` and `topics` are written for everybody
    who may search the base; of a `restricted` one only `hint` and `keywords` are told, which its
    author wrote to be told. `mediation` says what a search of it comes to: a "summary" that a
    mediator makes, or "hints" that the authors of pages wrote. `direct_characters` is the most the
    whole base may have to be shown whole, 0 for never. `locks` may have `view`, `search` and
    `restricted`.
    """

    key: str
    name: str
    summary: str = ""
    topics: tuple[str, ...] = ()
    hint: str = ""
    keywords: tuple[str, ...] = ()
    restricted: bool = False
    keeps_chunks: bool = True
    direct_characters: int = 0
    pages: int = 0
    characters: int = 0
    revision: int = 0
    locks: str = ""
    backend: str = "database"
    mediation: MediationKind = "summary"
