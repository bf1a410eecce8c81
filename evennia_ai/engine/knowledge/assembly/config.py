"""Rules of an assembly: everything a game may choose, in its settings and on a page of the wiki.

The settings of the game give one value of `AssemblyRules`. The page Instructions:Config may say
each field anew, in its metadata and under the field's own name. `task_types` maps keys to
`description`, `instructions` and `bypass`; a new key is a new type, a known one is changed. Front
matter and JSON have numbers, truths and lists; a table on a page has texts alone; both are read
alike. What cannot be read keeps its value and gives a warning: no slip on a page stops the work.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final, Literal, get_args

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.knowledge.pages.page import Page, PageName, TitleError, page_name
from evennia_ai.engine.text.words import COMMON_WORDS, signs_of

Bypass = Literal["never", "read_only", "always"]
BYPASSES: Final[tuple[Bypass, ...]] = get_args(Bypass)

QUERY: Final = "query"
"""The type of a task that only reads."""

UNKNOWN: Final = "unknown"
"""The type of a task that could not be determined; a package is assembled for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskType:
    """A kind of work."""

    key: str
    description: str
    """What the planner reads."""
    instructions: tuple[PageName, ...] = ()
    """Pages that such tasks need, beside those whose own metadata names the type."""
    bypass: Bypass = "never"
    """When such a task goes to the generator without a package.

    Never, where the planner finds that no page is created or edited (`read_only`), or always.
    """


TASK_TYPES: Final = (
    TaskType(
        key="create_encyclopedia_article",
        description="Create a new encyclopedia article about an entity, event or concept",
    ),
    TaskType(key="create_source", description="Create a source document that exists in the world"),
    TaskType(key="edit_page", description="Edit or update an existing page"),
    TaskType(
        key="maintenance_report",
        description="Produce a maintenance or audit report",
        bypass="read_only",
    ),
    TaskType(key=QUERY, description="Read-only retrieval of information", bypass="always"),
    TaskType(
        key="batch_operation",
        description="Perform the same operation on several pages",
        bypass="read_only",
    ),
    TaskType(key="stub_expansion", description="Expand a stub or an incomplete article"),
    TaskType(
        key="red_link_generation", description="Create the page that a red link was found to want"
    ),
    TaskType(key=UNKNOWN, description="None of these, or it cannot be determined"),
)
"""The types that every game has, in the order in which the planner reads them."""


QUERY_STARTERS: Final = (
    *("show", "list", "search", "find", "display", "browse", "view", "read", "open", "look up"),
    *("lookup", "look for", "count", "check", "who", "what", "which", "where", "when", "how many"),
    *("how much", "is there", "are there", "tell me", "give me a list"),
)
GENERATIVE_KEYWORDS: Final = (
    *("write", "create", "generate", "make", "draft", "compose", "author", "invent", "design"),
    *("add", "edit", "update", "change", "rewrite", "revise", "improve", "expand", "extend"),
    *("fix", "correct", "rename", "merge", "split", "remove", "delete", "replace", "translate"),
    *("build", "continue", "complete", "fill", "produce", "prepare", "turn into", "new article"),
    *("report", "audit", "review", "summarise", "summarize", "describe", "imagine", "develop"),
    *("adapt", "finish", "insert", "come up with", "put together", "flesh out", "what if"),
)
CONFIG_PAGE: Final = PageName(namespace="Instructions", title="Config")
WORLD_BIBLE: Final = PageName(namespace="Instructions", title="World Bible")
CORE_INSTRUCTIONS: Final = (
    PageName(namespace="Instructions", title="Core/Canon Policy"),
    PageName(namespace="Instructions", title="Core/Continuity Rules"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyRules:
    """How a package is assembled."""

    world: str = ""
    world_bible: PageName = WORLD_BIBLE
    core_instructions: tuple[PageName, ...] = CORE_INSTRUCTIONS
    task_types: tuple[TaskType, ...] = TASK_TYPES
    query_starters: tuple[str, ...] = QUERY_STARTERS
    generative_keywords: tuple[str, ...] = GENERATIVE_KEYWORDS
    stop_words: frozenset[str] = COMMON_WORDS
    max_depth: int = 2
    """How many hops of `requires` are followed."""
    fully_resolve: bool = False
    """Whether all of them are."""
    most_entities: int = 8
    linked_pages: int = 5
    """For all entities together."""
    sources_per_entity: int = 2
    """For each."""
    talk_sections: tuple[str, ...] = ("Reliability Assessment", "Bias Analysis", "Editorial Notes")
    wikipedia: bool = False
    """Whether introductions of its articles are asked for; whether that may be, the driver says."""
    budget_tokens: int = 6000
    """The most that is assembled, with the reserve."""
    reserve_tokens: int = 500

    @property
    def limit_tokens(self) -> int:
        """The most tokens that a package may have."""
        return self.budget_tokens - self.reserve_tokens

    def task_type(self, key: str) -> TaskType | None:
        """The type of this key, None where there is none."""
        return next((one for one in self.task_types if one.key == key), None)

    @property
    def unknown_type(self) -> TaskType:
        """The type of tasks that could not be determined."""
        return self.task_type(UNKNOWN) or TASK_TYPES[-1]


MOST_ITEMS: Final = 200
MOST_CHARACTERS: Final = 2_000
_TRUTHS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class WrittenValueError(EvenniaAIError):
    """A value cannot be meant; the text ends a sentence that begins with "must be"."""


def a_truth(value: Any) -> bool:
    """True or false, or a word for one."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (found := _TRUTHS.get(value.strip().casefold())) is not None:
        return found
    raise WrittenValueError("true or false")


def a_number(value: Any, *, least: int, most: int) -> int:
    """A whole number between two bounds."""
    wanted = f"a whole number from {least} to {most}"
    if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise WrittenValueError(wanted)
    return value


def a_line(value: Any) -> str:
    """One line of text."""
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_CHARACTERS:
        raise WrittenValueError(f"a text of at most {MOST_CHARACTERS} characters")
    return " ".join(value.split())


def lines(value: Any) -> tuple[str, ...]:
    """A list of texts, or one text with commas between them."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or len(items) > MOST_ITEMS:
        raise WrittenValueError(f"a list of at most {MOST_ITEMS} texts")
    given = (item for item in items if not isinstance(item, str) or item.strip())
    return tuple(dict.fromkeys(map(a_line, given)))


def phrases(value: Any) -> tuple[str, ...]:
    """A list of texts that each have a word, since they are looked for by their words."""
    found = lines(value)
    if not all(signs_of(one) for one in found):
        raise WrittenValueError("a list of texts with at least one word each")
    return found


def instruction_page(value: Any) -> PageName:
    """The title of a page, of the namespace Instructions where it names none."""
    try:
        return page_name(a_line(value), default="Instructions")
    except TitleError as error:
        raise WrittenValueError("the title of a page") from error


def instruction_pages(value: Any) -> tuple[PageName, ...]:
    """Titles of such pages: a list, or one text with commas between them."""
    return tuple(instruction_page(one) for one in lines(value))


MOST_TASK_TYPES: Final = 50

_BUDGET: Final = partial(a_number, least=200, most=1_000_000)
READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "world": a_line,
    "world_bible": instruction_page,
    "core_instructions": instruction_pages,
    "query_starters": phrases,
    "generative_keywords": phrases,
    "stop_words": lambda value: frozenset(signs_of(" ".join(lines(value)))),
    "max_depth": partial(a_number, least=0, most=20),
    "fully_resolve": a_truth,
    "most_entities": partial(a_number, least=0, most=50),
    "linked_pages": partial(a_number, least=0, most=50),
    "sources_per_entity": partial(a_number, least=0, most=20),
    "talk_sections": lines,
    "wikipedia": a_truth,
    "budget_tokens": _BUDGET,
    "reserve_tokens": partial(a_number, least=0, most=1_000_000),
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
        name = a_line(key)
        if not isinstance(told, Mapping):
            raise WrittenValueError(f"keys with a description each, and '{name}' has none")
        types[name] = _task_type(types.get(name, TaskType(key=name, description=name)), told)
    return tuple(types.values())


def _task_type(known: TaskType, told: Mapping[Any, Any]) -> TaskType:
    readers: dict[str, Callable[[Any], Any]] = {
        "description": a_line,
        "instructions": instruction_pages,
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
        return "always" if a_truth(value) else "never"
    except WrittenValueError as error:
        raise WrittenValueError(f"types whose bypass is one of {', '.join(BYPASSES)}") from error
