"""Context assembly: from a task to the package that its generator is given, in fifteen steps.

It does no I/O and knows no model: it yields what it needs (`requests.py`) and is sent the answers.
The order of the steps is fixed; each writes one line into the trace.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evennia_ai.engine.knowledge.assembly import gathering, instructing, packages, planning
from evennia_ai.engine.knowledge.assembly.config import QUERY, AssemblyRules, TaskType
from evennia_ai.engine.knowledge.assembly.packages import (
    BUCKETS,
    DroppedPage,
    Package,
    PackedPage,
    serialised,
)
from evennia_ai.engine.knowledge.assembly.planning import Planned
from evennia_ai.engine.knowledge.assembly.requests import LoreTask, Step, Trace
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter

Dropped = tuple[DroppedPage, ...]

OBVIOUS_QUERY: Final = Planned(
    task_type=TaskType(key=QUERY, description=QUERY),
    type_from="precheck",
    bypass_reason="the task is obviously a query",
)
"""The plan of a task that step 2 found to be one."""


def assemble(
    task: LoreTask, *, rules: AssemblyRules | None = None, counter: TokenCounter = ESTIMATE
) -> Step[Package]:
    """The package for a task, by these rules where the wiki has none of its own.

    Raises:
        ContextBudgetError: the instructions alone are more than a package may have.
    """
    trace = Trace()
    rules = yield from planning.load_config(rules or AssemblyRules(), trace)  # 1
    if planning.is_query(task, rules, trace):  # 2
        return without_pages(task, OBVIOUS_QUERY, trace)
    plan = yield from planning.plan(task, rules, trace)  # 3
    if plan.bypass_reason:
        return without_pages(task, plan, trace)
    bible = yield from instructing.world_bible(rules, trace)  # 4
    core = yield from instructing.core_instructions(task, plan, rules, trace)  # 5
    instructions = yield from instructing.required([*bible, *core], rules, trace)  # 6
    entities = yield from gathering.encyclopedia(task, plan, trace)  # 7
    linked = yield from gathering.linked(entities, rules, trace)  # 8
    sources = yield from gathering.sources(plan, rules, trace)  # 9
    talk = yield from gathering.talk([*sources, *entities], rules, trace)  # 10
    wikipedia = yield from gathering.wikipedia(plan, rules, trace)  # 11
    found = [*instructions, *entities, *linked, *sources, *talk, *wikipedia]
    pages, twice = deduplicated(found, trace)  # 12
    pages = ranked(pages, task, rules, trace)  # 13
    pages, over = trimmed(pages, task, rules=rules, trace=trace, counter=counter)  # 14
    return package(  # 15
        task, plan, pages, dropped=(*twice, *over), rules=rules, trace=trace, counter=counter
    )


def without_pages(task: LoreTask, plan: Planned, trace: Trace) -> Package:
    """The package of a task before anything is put into it."""
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
    return replace(
        without_pages(task, plan, trace),
        world=world,
        pages=pages,
        dropped=dropped,
        tokens=packages.section_tokens(pages, world=world, counter=counter),
        total_tokens=total_tokens,
        limit_tokens=rules.limit_tokens,
    )


def world_of(task: LoreTask, rules: AssemblyRules) -> str:
    """What the world is called: by the task, else by the rules."""
    return task.world or rules.world
