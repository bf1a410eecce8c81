"""Placing: where a package goes in the messages for the generator.

One-shot work has it before the system prompt. In a conversation the instructions alone stay in that
static part; the rest is a block of context before the task, so that the start of the prompt stays
the same from task to task.
"""

from evennia_ai.knowledge.assembly.package import Package
from evennia_ai.knowledge.assembly.packed import BUCKETS
from evennia_ai.knowledge.lorekeeper_settings import Placement


def placed(package: Package, system_prompt: str, placement: Placement) -> tuple[str, str]:
    """The system text and the context text; either may be ""."""
    if placement == "prepend":
        return _joined(package.serialised(), system_prompt), ""
    instructions, *rest = BUCKETS
    return _joined(package.serialised(instructions), system_prompt), package.serialised(*rest)


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))
