"""Context assembly: from a task to the package that its generator is given, in fifteen steps.

It does no I/O and knows no model: it yields what it needs (`requests.py`) and is sent the answers.
The order of the steps is fixed; each writes one line into the trace.
"""

from evennia_ai.knowledge.assembly import finishing, gathering, instructing, planning
from evennia_ai.knowledge.assembly.config import AssemblyRules
from evennia_ai.knowledge.assembly.packages import Package
from evennia_ai.knowledge.assembly.requests import LoreTask, Step, Trace
from evennia_ai.prompt.tokens import ESTIMATE, TokenCounter


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
        return finishing.bypassed_by_words(task, trace)
    plan = yield from planning.plan(task, rules, trace)  # 3
    if plan.bypass_reason:
        return finishing.bypassed(task, plan, trace)
    bible = yield from instructing.world_bible(rules, trace)  # 4
    core = yield from instructing.core_instructions(task, plan, rules, trace)  # 5
    instructions = yield from instructing.required([*bible, *core], rules, trace)  # 6
    entities = yield from gathering.encyclopedia(task, plan, trace)  # 7
    linked = yield from gathering.linked(entities, rules, trace)  # 8
    sources = yield from gathering.sources(plan, rules, trace)  # 9
    talk = yield from gathering.talk([*sources, *entities], rules, trace)  # 10
    wikipedia = yield from gathering.wikipedia(plan, rules, trace)  # 11
    found = [*instructions, *entities, *linked, *sources, *talk, *wikipedia]
    pages, twice = finishing.deduplicated(found, trace)  # 12
    pages = finishing.ranked(pages, task, rules, trace)  # 13
    pages, over = finishing.trimmed(pages, task, rules=rules, trace=trace, counter=counter)  # 14
    return finishing.package(  # 15
        task, plan, pages, dropped=(*twice, *over), rules=rules, trace=trace, counter=counter
    )
