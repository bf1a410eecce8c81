"""The page Instructions:Config: what a wiki says itself about how its packages are assembled.

Each field of `AssemblyRules` may stand in the page's metadata under its own name. `task_types` maps
keys to `description`, `instructions` and `bypass`; a new key is a new type, a known one is changed.
What cannot be read keeps its value and gives a warning, so that no slip on a page stops the work.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final

from evennia_ai.knowledge.assembly import written_values as written
from evennia_ai.knowledge.assembly.rules import AssemblyRules
from evennia_ai.knowledge.assembly.task_types import BYPASSES, Bypass, TaskType
from evennia_ai.knowledge.assembly.words import words_of
from evennia_ai.knowledge.assembly.written_values import WrittenValueError
from evennia_ai.knowledge.pages import Page

MOST_TASK_TYPES: Final = 50

_BUDGET: Final = partial(written.a_number, least=200, most=1_000_000)
READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "world": written.a_line,
    "world_bible": written.instruction_page,
    "core_instructions": written.instruction_pages,
    "query_starters": written.phrases,
    "generative_keywords": written.phrases,
    "stop_words": lambda value: frozenset(words_of(" ".join(written.lines(value)))),
    "max_depth": partial(written.a_number, least=0, most=20),
    "fully_resolve": written.a_truth,
    "most_entities": partial(written.a_number, least=0, most=50),
    "linked_pages": partial(written.a_number, least=0, most=50),
    "sources_per_entity": partial(written.a_number, least=0, most=20),
    "talk_sections": written.lines,
    "wikipedia": written.a_truth,
    "budget_tokens": _BUDGET,
    "reserve_tokens": partial(written.a_number, least=0, most=1_000_000),
}
"""How each field is read, by its name."""

# What pages of instructions say of themselves; on the config page it configures nothing.
_OF_ANY_PAGE: Final = frozenset(
    {
        *("id", "type", "applies_to", "task_type", "priority", "status", "canonical"),
        *("include_by_default", "keywords", "version", "author", "date"),
    }
)


def configured(rules: AssemblyRules, page: Page) -> tuple[AssemblyRules, tuple[str, ...]]:
    """The rules as the config page changes them, and a warning for each value it gets wrong."""
    found: dict[str, Any] = {}
    warnings: list[str] = []
    for key, value in page.meta.fields.items():
        try:
            found |= _read(key, value, rules)
        except WrittenValueError as error:
            warnings.append(f"{page.name}: {key} must be {error}; it is not used")
    changed = replace(rules, **found)
    if changed.limit_tokens <= 0:
        warnings.append(
            f"{page.name}: reserve_tokens must be less than budget_tokens; neither is used"
        )
        kept = {one: getattr(rules, one) for one in ("budget_tokens", "reserve_tokens")}
        changed = replace(changed, **kept)
    return changed, tuple(warnings)


def _read(key: str, value: Any, rules: AssemblyRules) -> dict[str, Any]:
    if key in _OF_ANY_PAGE:
        return {}
    if key == "task_types":
        return {key: _task_types(value, rules)}
    if (reader := READERS.get(key)) is None:
        known = ", ".join(sorted(one.name for one in fields(AssemblyRules)))
        raise WrittenValueError(f"one of the known fields, which are {known}")
    return {key: reader(value)}


def _task_types(value: Any, rules: AssemblyRules) -> tuple[TaskType, ...]:
    """The known types, changed where `value` says so, and the new ones after them."""
    if not isinstance(value, Mapping) or len(value) > MOST_TASK_TYPES:
        raise WrittenValueError(f"at most {MOST_TASK_TYPES} types, each a key with its description")
    types = {one.key: one for one in rules.task_types}
    for key, told in value.items():
        name = written.a_line(key)
        if not isinstance(told, Mapping):
            raise WrittenValueError(f"keys with a description each, and '{name}' has none")
        types[name] = _task_type(types.get(name, TaskType(key=name, description=name)), told)
    return tuple(types.values())


def _task_type(known: TaskType, told: Mapping[Any, Any]) -> TaskType:
    readers: dict[str, Callable[[Any], Any]] = {
        "description": written.a_line,
        "instructions": written.instruction_pages,
        "bypass": _bypass,
    }
    if unknown := [key for key in told if key not in readers]:
        raise WrittenValueError(
            f"types that say {', '.join(readers)}, and '{known.key}' says {unknown}"
        )
    return replace(known, **{key: readers[key](value) for key, value in told.items()})


def _bypass(value: Any) -> Bypass:
    """When a type goes without a package: true and false are "always" and "never"."""
    for bypass in BYPASSES:
        if value == bypass:
            return bypass
    try:
        return "always" if written.a_truth(value) else "never"
    except WrittenValueError as error:
        raise WrittenValueError(f"types whose bypass is one of {', '.join(BYPASSES)}") from error
