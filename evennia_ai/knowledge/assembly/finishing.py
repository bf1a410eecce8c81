"""Steps 12 to 15: what of the pages that were found stays, and the package of it."""

from collections.abc import Sequence

from evennia_ai.knowledge.assembly import packages
from evennia_ai.knowledge.assembly.config import QUERY, AssemblyRules
from evennia_ai.knowledge.assembly.packages import (
    BUCKETS,
    DroppedPage,
    Package,
    PackedPage,
    serialised,
)
from evennia_ai.knowledge.assembly.planning import Planned
from evennia_ai.knowledge.assembly.requests import LoreTask, Trace
from evennia_ai.prompt.tokens import TokenCounter

Dropped = tuple[DroppedPage, ...]


def bypassed_by_words(task: LoreTask, trace: Trace) -> Package:
    """The package of a task that step 2 found to be a query."""
    return Package(
        task=task,
        task_type=QUERY,
        type_from="precheck",
        bypass_reason="the task is obviously a query",
        steps=tuple(trace.steps),
        warnings=tuple(trace.warnings),
    )


def bypassed(task: LoreTask, plan: Planned, trace: Trace) -> Package:
    """The package of a task that needs no pages by its type."""
    return Package(
        task=task,
        task_type=plan.task_type.key,
        type_from=plan.type_from,
        entities=tuple(one.full for one in plan.entities),
        bypass_reason=plan.bypass_reason,
        steps=tuple(trace.steps),
        warnings=tuple(trace.warnings),
    )


def deduplicated(
    found: Sequence[PackedPage], trace: Trace
) -> tuple[tuple[PackedPage, ...], Dropped]:
    """Step 12: each page once, in the first section that has it.

    A talk page that came by another way than step 10 would be shown whole, and is left out.
    """
    kept: dict[tuple[str, str], PackedPage] = {}
    dropped: list[DroppedPage] = []
    for page in sorted(found, key=lambda one: BUCKETS.index(one.bucket)):
        if page.bucket != "talk" and page.name is not None and page.name.namespace == "Talk":
            dropped.append(DroppedPage(page=page, why="talk pages are never shown whole"))
        elif (first := kept.setdefault(page.identity, page)) is not page:
            dropped.append(DroppedPage(page=page, why=f"it is in the section {first.bucket}"))
    trace.did(12, f"{len(kept)} pages stay, {len(dropped)} go")
    return tuple(kept.values()), tuple(dropped)


def ranked(
    pages: Sequence[PackedPage], task: LoreTask, rules: AssemblyRules, trace: Trace
) -> tuple[PackedPage, ...]:
    """Step 13: the pages of each section by how much they have of the task's words."""
    found = packages.ranked(pages, task=task.text, stop_words=rules.stop_words)
    told = [f"{one.heading} {one.score:.3f}" for one in found if one.bucket != "instructions"]
    trace.did(13, ", ".join(told) or "nothing to rank")
    return found


def trimmed(
    pages: Sequence[PackedPage],
    task: LoreTask,
    *,
    rules: AssemblyRules,
    trace: Trace,
    counter: TokenCounter,
) -> tuple[tuple[PackedPage, ...], Dropped]:
    """Step 14: what fits the budget; the instructions stay.

    Raises:
        ContextBudgetError: the instructions alone do not fit.
    """
    kept, dropped = packages.trimmed(
        pages, limit_tokens=rules.limit_tokens, world=world_of(task, rules), counter=counter
    )
    gone = ", ".join(one.page.heading for one in dropped) or "nothing"
    trace.did(14, f"{gone} had to go, the limit is {rules.limit_tokens} tokens")
    return kept, dropped


def package(
    task: LoreTask,
    plan: Planned,
    pages: tuple[PackedPage, ...],
    *,
    dropped: Dropped,
    rules: AssemblyRules,
    trace: Trace,
    counter: TokenCounter,
) -> Package:
    """Step 15: the package, whose text is under the headers of its sections."""
    world = world_of(task, rules)
    total_tokens = counter.count(serialised(pages, world=world))
    trace.did(15, f"{len(pages)} pages, {total_tokens} tokens")
    return Package(
        task=task,
        task_type=plan.task_type.key,
        type_from=plan.type_from,
        entities=tuple(one.full for one in plan.entities),
        world=world,
        pages=pages,
        dropped=dropped,
        tokens=packages.section_tokens(pages, world=world, counter=counter),
        total_tokens=total_tokens,
        limit_tokens=rules.limit_tokens,
        steps=tuple(trace.steps),
        warnings=tuple(trace.warnings),
    )


def world_of(task: LoreTask, rules: AssemblyRules) -> str:
    """What the world is called: by the task, else by the rules."""
    return task.world or rules.world
