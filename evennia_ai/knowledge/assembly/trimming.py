"""Trimming: what is left out so that a package fits.

Wikipedia goes first, then talk, then sources, then the encyclopedia; in each of them the page that
ranks lowest, and the next only when the one before is empty. Instructions are never trimmed.
"""

from collections.abc import Sequence
from typing import Final

from evennia_ai.errors import BudgetError
from evennia_ai.knowledge.assembly.packed import BUCKETS, Bucket, DroppedPage, PackedPage
from evennia_ai.knowledge.assembly.serialising import serialised
from evennia_ai.prompt.tokens import TokenCounter

DROP_ORDER: Final[tuple[Bucket, ...]] = ("wikipedia", "talk", "sources", "encyclopedia")


class ContextBudgetError(BudgetError):
    """The instructions alone are more than a package may have; no generator can be asked."""


def trimmed(
    pages: Sequence[PackedPage], *, limit_tokens: int, world: str, counter: TokenCounter
) -> tuple[tuple[PackedPage, ...], tuple[DroppedPage, ...]]:
    """The pages that fit, and those that do not in the order in which they went.

    `pages` are ranked: the last of a bucket is its lowest. They are put in from the one that would
    go last, until one is too much, so that long texts with no place in it cost nothing.

    Raises:
        ContextBudgetError: the instructions alone do not fit.
    """

    def fits(number: int) -> bool:
        text = serialised(last_to_go[:number], world=world)
        return counter.count(text) <= limit_tokens

    last_to_go = sorted(pages, key=_place_in_line)
    needed = sum(one.bucket == "instructions" for one in pages)
    if needed and not fits(needed):
        costs = [(one.heading, counter.count(one.text)) for one in last_to_go[:needed]]
        raise ContextBudgetError(limit_tokens, costs)
    over = next((at for at in range(needed, len(pages)) if not fits(at + 1)), len(pages))
    why = f"trimmed: the package would have more than {limit_tokens} tokens with it"
    return (
        tuple(sorted(last_to_go[:over], key=lambda one: BUCKETS.index(one.bucket))),
        tuple(DroppedPage(page=one, why=why) for one in reversed(last_to_go[over:])),
    )


def _place_in_line(page: PackedPage) -> int:
    """How early the bucket of a page goes, negated: the one that goes first is the greatest."""
    return -DROP_ORDER.index(page.bucket) if page.bucket in DROP_ORDER else -len(DROP_ORDER)


def section_tokens(
    pages: Sequence[PackedPage], *, world: str, counter: TokenCounter
) -> dict[str, int]:
    """The tokens of each section that has pages."""
    texts = {bucket: serialised(pages, world=world, buckets=(bucket,)) for bucket in BUCKETS}
    return {bucket: counter.count(text) for bucket, text in texts.items() if text}
