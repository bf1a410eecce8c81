"""Tasks: what somebody wants to have written."""

from dataclasses import dataclass

from evennia_ai.knowledge.titles import PageName


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be done, in the words of who asks for it.

    `type_override` is the key of a task type: where it is given, neither the pre-check nor the
    planner decides the type. `custom_pages` are shown in any case, before all others of the
    encyclopedia. `world` is what the world is called, "" for what the config page says.
    """

    text: str
    type_override: str = ""
    custom_pages: tuple[PageName, ...] = ()
    world: str = ""
