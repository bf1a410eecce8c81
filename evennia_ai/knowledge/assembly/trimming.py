"""Trimming: what is left out so that a package fits.

Wikipedia goes first, then talk, then sources, then the encyclopedia; in each of them the page that
ranks lowest, and the next only when the one before is empty. Instructions are never trimmed.
"""

from collections.abc import Sequence
from typing import Final

from evennia_ai.knowledge.assembly.packed import BUCKETS, Bucket, DroppedPage, PackedPage
from evennia_ai.knowledge.assembly.serialising import serialised
from evennia_ai.prompt.errors import BudgetError
from evennia_ai.prompt.tokens import TokenCounter

DROP_ORDER: Final[tuple[Bucket, ...]] = ("wikipedia", "talk", "sources", "encyclopedia")


class ContextBudgetError(BudgetError):
    """The instructions alone are more than a package may have; no generator can be asked."""


def trimmed(
    pages: Sequence[PackedPage], *, limit_tokens: int, world: str, counter: TokenCounter
) -> tuple[tuple[PackedPage, ...], tuple[DroppedPage, ...]]:
    """The pages that fit, and those that do not in the order in which they went.

    `pages` are ranked: the last of a bucket is its lowest.

    Raises:
        ContextBudgetError: the instructions alone do not fit.
    """
    _refuse_instructions(pages, limit_tokens=limit_tokens, world=world, counter=counter)
    kept, dropped = list(pages), []
    while (tokens := counter.count(serialised(kept, world=world))) > limit_tokens:
        why = f"trimmed: the package had {tokens} tokens and the limit is {limit_tokens}"
        dropped.append(DroppedPage(page=kept.pop(_lowest(kept)), why=why))
    return tuple(kept), tuple(dropped)


def section_tokens(
    pages: Sequence[PackedPage], *, world: str, counter: TokenCounter
) -> dict[str, int]:
    """The tokens of each section that has pages."""
    texts = {bucket: serialised(pages, world=world, buckets=(bucket,)) for bucket in BUCKETS}
    return {bucket: counter.count(text) for bucket, text in texts.items() if text}


def _refuse_instructions(
    pages: Sequence[PackedPage], *, limit_tokens: int, world: str, counter: TokenCounter
) -> None:
    needed = [one for one in pages if one.bucket == "instructions"]
    if counter.count(serialised(needed, world=world)) > limit_tokens:
        costs = [(one.heading, counter.count(one.text)) for one in needed]
        raise ContextBudgetError(limit_tokens, costs)


def _lowest(pages: Sequence[PackedPage]) -> int:
    """Where the page stands that goes next."""
    return max(
        (DROP_ORDER.index(one.bucket) * -1, at)
        for at, one in enumerate(pages)
        if one.bucket in DROP_ORDER
    )[1]
