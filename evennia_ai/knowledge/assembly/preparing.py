"""Steps 1 to 3: the rules that hold, and what is known of the task before anything is read."""

from evennia_ai.knowledge.assembly.config_page import configured
from evennia_ai.knowledge.assembly.planner import Planned, overridden, plan_request, planned
from evennia_ai.knowledge.assembly.precheck import is_obviously_query
from evennia_ai.knowledge.assembly.reading import read
from evennia_ai.knowledge.assembly.requests import Step
from evennia_ai.knowledge.assembly.rules import CONFIG_PAGE, AssemblyRules
from evennia_ai.knowledge.assembly.tasks import Task
from evennia_ai.knowledge.assembly.trace import Trace


def load_config(rules: AssemblyRules, trace: Trace) -> Step[AssemblyRules]:
    """Step 1: the rules as the wiki's own config page has them."""
    [page] = yield from read([CONFIG_PAGE], trace)
    if page is None:
        trace.did(1, "there is none; the settings of the game hold")
        return rules
    changed, warnings = configured(rules, page)
    trace.warn(*warnings)
    trace.did(1, f"{page.name}, revision {page.revision}" if page.revision else str(page.name))
    return changed


def is_query(task: Task, rules: AssemblyRules, trace: Trace) -> bool:
    """Step 2: whether the words of the task alone say that it only reads."""
    if task.type_override:
        trace.did(2, "left out, the type was given")
        return False
    found = is_obviously_query(task.text, rules=rules)
    trace.did(2, "obviously a query" if found else "not obviously a query")
    return found


def plan(task: Task, rules: AssemblyRules, trace: Trace) -> Step[Planned]:
    """Step 3: the type of the task and what it is about."""
    if task.type_override:
        found = overridden(task.text, task.type_override, rules)
    else:
        answer = yield plan_request(task.text, rules)
        found = planned(task.text, answer, rules)
    trace.warn(*found.warnings)
    about = ", ".join(one.full for one in found.entities) or "nothing that has a name"
    trace.did(3, f"{found.task_type.key} by {found.type_from}, about {about}")
    return found
