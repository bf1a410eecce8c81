"""Packed pages: one page, or a part of one, as it stands in a package, or why it does not."""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from evennia_ai.knowledge.pages import Page
from evennia_ai.knowledge.titles import PageName

Bucket = Literal["instructions", "encyclopedia", "sources", "talk", "wikipedia"]
BUCKETS: Final[tuple[Bucket, ...]] = get_args(Bucket)
"""The sections of a package in their order; a page that is in several stays in the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPage:
    """A page that was chosen.

    `heading` is what its header says, `text` what stands below it. `name` is None for an article of
    Wikipedia, and then `article` is its title there. `base`, `revision` and `sha256` tell which
    text of the page this was. `why` says what brought it here, `depth` over how many hops of
    `requires`. A `forced` page was asked for by name and is trimmed after all others of its bucket.
    """

    bucket: Bucket
    heading: str
    text: str
    why: str
    sha256: str
    name: PageName | None = None
    article: str = ""
    base: str = ""
    revision: str = ""
    depth: int = 0
    score: float = 0.0
    forced: bool = False

    @property
    def identity(self) -> tuple[str, str]:
        """What two packed pages share that are the same page."""
        if self.name is None:
            return "Wikipedia", self.article
        return self.name.namespace, self.name.title

    def told(self) -> dict[str, Any]:
        """What a record keeps of it: everything but its text."""
        return {
            "section": self.bucket,
            "page": self.article if self.name is None else self.name.full,
            "why": self.why,
            "base": self.base,
            "revision": self.revision,
            "sha256": self.sha256,
            "depth": self.depth,
            "score": round(self.score, 6),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedPage:
    """A page that was chosen and then left out, and why."""

    page: PackedPage
    why: str

    def told(self) -> dict[str, Any]:
        """What a record keeps of it."""
        return self.page.told() | {"dropped": self.why}


def packed(page: Page, bucket: Bucket, *, why: str, depth: int = 0) -> PackedPage:
    """A whole page as it stands in a bucket."""
    return PackedPage(
        bucket=bucket,
        heading=page.name.full,
        text=page.body,
        why=why,
        sha256=page.sha256,
        name=page.name,
        base=page.base,
        revision=page.revision,
        depth=depth,
    )
