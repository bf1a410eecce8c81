"""Context assembly: choose the wiki pages for a writing task, in fifteen numbered steps.

The result is a package: the pages that a model reads before it writes a new page. This model is
called the generator. The assembly itself does no I/O and calls no model. It yields requests
(`requests.py`), and its caller sends it the answers. The order of the steps is fixed, and each step
writes one line into the trace.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evennia_ai.engine.knowledge.assembly import gathering, instructing, planning
from evennia_ai.engine.knowledge.assembly.config import QUERY, AssemblyRules, TaskType
from evennia_ai.engine.knowledge.assembly.packages import (
    BUCKETS,
    DroppedPage,
    Package,
    PackedPage,
    count_section_tokens,
    rank_pages,
    render_pages,
    trim_pages,
)
from evennia_ai.engine.knowledge.assembly.planning import TaskPlan
from evennia_ai.engine.knowledge.assembly.requests import LoreTask, Step, Trace
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter

OBVIOUS_QUERY: Final = TaskPlan(
    task_type=TaskType(key=QUERY, description=QUERY),
    type_from="precheck",
    bypass_reason="the task is obviously a query",
)
"""The plan for a task whose first words show that it only asks for information."""


def assemble_package(
    task: LoreTask, *, rules: AssemblyRules | None = None, counter: TokenCounter = ESTIMATE
) -> Step[Package]:
    """Choose the wiki pages for a writing task.

    Args:
        task: The task, with the options that its author set.
        rules: The rules of the game. The config page of the wiki may change them.
        counter: Counts the tokens of the chosen pages.

    Raises:
        ContextBudgetError: The instructions alone have more tokens than all pages may have.
    """
    trace = Trace()
    rules = yield from planning.load_config(rules or AssemblyRules(), trace)  # 1: rules
    if planning.precheck_query(task, rules, trace):  # 2: only a question
        return empty_package(task, OBVIOUS_QUERY, trace)
    plan = yield from planning.make_plan(task, rules, trace)  # 3: plan
    if plan.bypass_reason:
        return empty_package(task, plan, trace)

    bible = yield from instructing.gather_world_bible(rules, trace)  # 4: page on the world
    # 5: instructions for all tasks and for the type of this task
    core = yield from instructing.gather_core_instructions(task, plan, rules, trace)
    # 6: pages that the instructions require
    instructions = yield from instructing.gather_required([*bible, *core], rules, trace)
    entities = yield from gathering.gather_encyclopedia(
        task, plan, trace
    )  # 7: pages about the entities
    linked = yield from gathering.gather_linked(entities, rules, trace)  # 8: linked pages
    sources = yield from gathering.gather_sources(plan, rules, trace)  # 9: source pages
    talk = yield from gathering.gather_talk([*sources, *entities], rules, trace)  # 10: talk pages
    wikipedia = yield from gathering.gather_wikipedia(plan, rules, trace)  # 11: Wikipedia
    found = [*instructions, *entities, *linked, *sources, *talk, *wikipedia]

    pages, duplicates = remove_duplicates(found, trace)  # 12: keep each page once

    pages = rank_pages(pages, task=task.text, stop_words=rules.stop_words)  # 13: best pages first
    scores = [f"{one.heading} {one.score:.3f}" for one in pages if one.bucket != "instructions"]
    trace.log_step(13, ", ".join(scores) or "nothing to rank")

    world = task.world or rules.world
    limit = rules.limit_tokens
    # 14: drop the pages that do not fit
    pages, trimmed = trim_pages(pages, limit_tokens=limit, world=world, counter=counter)
    gone = ", ".join(one.page.heading for one in trimmed) or "nothing"
    trace.log_step(14, f"dropped {gone}; the limit is {limit} tokens")

    total_tokens = counter.count(render_pages(pages, world=world))  # 15: count the tokens
    trace.log_step(15, f"{len(pages)} pages, {total_tokens} tokens")
    return replace(
        empty_package(task, plan, trace),
        world=world,
        pages=pages,
        dropped=(*duplicates, *trimmed),
        tokens=count_section_tokens(pages, world=world, counter=counter),
        total_tokens=total_tokens,
        limit_tokens=limit,
    )


def empty_package(task: LoreTask, plan: TaskPlan, trace: Trace) -> Package:
    """Return a package without pages. The plan has the reason for that."""
    return Package(
        task=task,
        task_type=plan.task_type.key,
        type_from=plan.type_from,
        entities=tuple(one.full for one in plan.entities),
        bypass_reason=plan.bypass_reason,
        steps=tuple(trace.steps),
        warnings=tuple(trace.warnings),
    )


def remove_duplicates(
    found: Sequence[PackedPage], trace: Trace
) -> tuple[tuple[PackedPage, ...], tuple[DroppedPage, ...]]:
    """Keep each page once: in the first section of the package that contains it.

    Only parts of talk pages may be shown. So a talk page that was found as another kind of page,
    and would be shown whole, is dropped.
    """
    kept: dict[tuple[str, str], PackedPage] = {}
    dropped: list[DroppedPage] = []
    for page in sorted(found, key=lambda one: BUCKETS.index(one.bucket)):
        if page.bucket != "talk" and page.name is not None and page.name.namespace == "Talk":
            dropped.append(DroppedPage(page=page, why="talk pages are never shown whole"))
        elif (first := kept.setdefault(page.identity, page)) is not page:
            dropped.append(
                DroppedPage(page=page, why=f"it is already in the section {first.bucket}")
            )
    trace.log_step(12, f"{len(kept)} pages kept, {len(dropped)} dropped")
    return tuple(kept.values()), tuple(dropped)
