"""The pre-check: a task that only reads is known by its words, before any model is asked."""

from evennia_ai.knowledge.assembly.rules import AssemblyRules
from evennia_ai.knowledge.assembly.words import phrase_of


def is_obviously_query(task: str, *, rules: AssemblyRules) -> bool:
    """Whether `task` starts like a query and has no word that asks for something to be written.

    Case, marks and the width of letters make no difference; words count whole, so that "showcase"
    does not start like "show".
    """
    said = phrase_of(task)
    starts = any(said.startswith(phrase_of(one)) for one in rules.query_starters if one.strip())
    return starts and not any(phrase_of(one) in said for one in rules.generative_keywords)
