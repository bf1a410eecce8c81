"""The rules by which wiki pages are chosen for a task, from settings and from a wiki page.

The settings of the game give one `AssemblyRules`. The metadata of the page Instructions:Config may
override each field by its name. There, `task_types` maps a key to the fields `description`,
`instructions` and `bypass`. A known key changes a task type, and a new key adds one.

Each parser accepts texts as well as numbers, booleans and lists, because a table on a page contains
only texts. An invalid value gives a warning and changes nothing. So a typing error on a page never
stops the assembly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final, Literal, get_args

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.knowledge.pages.page import Page, PageName, TitleError, page_name
from evennia_ai.engine.text.words import COMMON_WORDS, split_signs

Bypass = Literal["never", "read_only", "always"]
BYPASSES: Final[tuple[Bypass, ...]] = get_args(Bypass)

QUERY: Final = "query"
"""The type of a task that only asks for information and writes no wiki page."""

UNKNOWN: Final = "unknown"
"""The type of a task whose type nobody could determine. Such a task gets a package, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskType:
    """A kind of writing task, with the wiki pages that such tasks need."""

    key: str
    description: str
    """The description that the planner model reads. The planner chooses the type of a task."""
    instructions: tuple[PageName, ...] = ()
    """The wiki pages that tasks of this type need.

    Pages whose own metadata names this type are needed as well.
    """
    bypass: Bypass = "never"
    """When such a task is given to the generator without wiki pages.

    "read_only" means: only if the planner finds that the task creates and edits no page.
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
    TaskType(key="red_link_generation", description="Create the page to which a red link leads"),
    TaskType(key=UNKNOWN, description="None of these, or it cannot be determined"),
)
"""The task types that every game has, in the order in which the planner model reads them."""


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
    """The rules by which wiki pages are chosen for a writing task."""

    world: str = ""
    world_bible: PageName = WORLD_BIBLE
    core_instructions: tuple[PageName, ...] = CORE_INSTRUCTIONS
    task_types: tuple[TaskType, ...] = TASK_TYPES
    query_starters: tuple[str, ...] = QUERY_STARTERS
    generative_keywords: tuple[str, ...] = GENERATIVE_KEYWORDS
    stop_words: frozenset[str] = COMMON_WORDS
    max_depth: int = 2
    """How many `requires` links are followed one after another at most."""
    fully_resolve: bool = False
    """True if `requires` links are followed without a limit, whatever `max_depth` says."""
    most_entities: int = 8
    linked_pages: int = 5
    """How many pages are added at most because other chosen pages link to them."""
    sources_per_entity: int = 2
    """How many source pages are chosen at most for each entity of the task."""
    talk_sections: tuple[str, ...] = ("Reliability Assessment", "Bias Analysis", "Editorial Notes")
    wikipedia: bool = False
    """True to request introductions of Wikipedia articles.

    The caller of the assembly decides whether the game allows such requests.
    """
    budget_tokens: int = 6000
    """The maximum number of tokens of all chosen pages, including the reserve."""
    reserve_tokens: int = 500

    @property
    def limit_tokens(self) -> int:
        """Return the maximum number of tokens of all chosen pages."""
        return self.budget_tokens - self.reserve_tokens

    def task_type(self, key: str) -> TaskType | None:
        """Return the task type with this key; None if there is none."""
        return next((one for one in self.task_types if one.key == key), None)

    @property
    def unknown_type(self) -> TaskType:
        """Return the type for tasks whose type could not be determined."""
        return self.task_type(UNKNOWN) or TASK_TYPES[-1]


MOST_ITEMS: Final = 200
MOST_CHARACTERS: Final = 2_000
_TRUTHS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class ConfigValueError(EvenniaAIError):
    """The error for an invalid value on the config page. Its text completes "must be ..."."""


def parse_bool(value: Any) -> bool:
    """Parse a boolean, or a word such as "yes" that means true or false."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (found := _TRUTHS.get(value.strip().casefold())) is not None:
        return found
    raise ConfigValueError("true or false")


def parse_int(value: Any, *, least: int, most: int) -> int:
    """Parse a whole number between two bounds."""
    wanted = f"a whole number from {least} to {most}"
    if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigValueError(wanted)
    return value


def parse_line(value: Any) -> str:
    """Parse a text that must be a single line."""
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_CHARACTERS:
        raise ConfigValueError(f"a text of at most {MOST_CHARACTERS} characters")
    return " ".join(value.split())


def parse_lines(value: Any) -> tuple[str, ...]:
    """Parse a list of texts, or one text whose items are separated by commas."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or len(items) > MOST_ITEMS:
        raise ConfigValueError(f"a list of at most {MOST_ITEMS} texts")
    given = (item for item in items if not isinstance(item, str) or item.strip())
    return tuple(dict.fromkeys(map(parse_line, given)))


def parse_phrases(value: Any) -> tuple[str, ...]:
    """Parse a list of texts to search for in tasks. Each text must contain a word."""
    found = parse_lines(value)
    if not all(split_signs(one) for one in found):
        raise ConfigValueError("a list of texts with at least one word each")
    return found


def parse_page_name(value: Any) -> PageName:
    """Parse a page title. Without a namespace it belongs to the namespace Instructions."""
    try:
        return page_name(parse_line(value), default="Instructions")
    except TitleError as error:
        raise ConfigValueError("the title of a page") from error


def parse_page_names(value: Any) -> tuple[PageName, ...]:
    """Parse page titles, given as a list or as one text with commas."""
    return tuple(parse_page_name(one) for one in parse_lines(value))


MOST_TASK_TYPES: Final = 50

_BUDGET: Final = partial(parse_int, least=200, most=1_000_000)
PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "world": parse_line,
    "world_bible": parse_page_name,
    "core_instructions": parse_page_names,
    "query_starters": parse_phrases,
    "generative_keywords": parse_phrases,
    "stop_words": lambda value: frozenset(split_signs(" ".join(parse_lines(value)))),
    "max_depth": partial(parse_int, least=0, most=20),
    "fully_resolve": parse_bool,
    "most_entities": partial(parse_int, least=0, most=50),
    "linked_pages": partial(parse_int, least=0, most=50),
    "sources_per_entity": partial(parse_int, least=0, most=20),
    "talk_sections": parse_lines,
    "wikipedia": parse_bool,
    "budget_tokens": _BUDGET,
    "reserve_tokens": partial(parse_int, least=0, most=1_000_000),
}
"""The function that parses each field of the config page, by name of the field."""

# Metadata that any instruction page may have. The config page may have it too, so it is ignored
# there and not reported as an unknown rule.
_OF_ANY_PAGE: Final = frozenset(
    {
        *("id", "type", "applies_to", "task_type", "priority", "status", "canonical"),
        *("include_by_default", "keywords", "version", "author", "date"),
    }
)


def apply_config_page(rules: AssemblyRules, page: Page) -> tuple[AssemblyRules, tuple[str, ...]]:
    """Return the rules with the changes of the config page, and a warning per invalid value."""
    found: dict[str, Any] = {}
    warnings: list[str] = []
    for key, value in page.meta.fields.items():
        try:
            found |= _parse_field(key, value, rules)
        except ConfigValueError as error:
            warnings.append(f"{page.name}: {key} must be {error}; it is not used")
    changed = replace(rules, **found)
    if changed.limit_tokens <= 0:
        warnings.append(
            f"{page.name}: reserve_tokens must be less than budget_tokens; neither is used"
        )
        kept = {one: getattr(rules, one) for one in ("budget_tokens", "reserve_tokens")}
        changed = replace(changed, **kept)
    return changed, tuple(warnings)


def _parse_field(key: str, value: Any, rules: AssemblyRules) -> dict[str, Any]:
    """Parse one field of the config page and return its value under its name.

    Metadata that any page may have gives an empty result.
    """
    if key in _OF_ANY_PAGE:
        return {}
    if key == "task_types":
        return {key: _task_types(value, rules)}
    if (reader := PARSERS.get(key)) is None:
        known = ", ".join(sorted(one.name for one in fields(AssemblyRules)))
        raise ConfigValueError(f"one of the known fields, which are {known}")
    return {key: reader(value)}


def _task_types(value: Any, rules: AssemblyRules) -> tuple[TaskType, ...]:
    """Return the known task types with the changes of the config page, then its new types."""
    if not isinstance(value, Mapping) or len(value) > MOST_TASK_TYPES:
        raise ConfigValueError(f"at most {MOST_TASK_TYPES} types, each a key with its description")
    types = {one.key: one for one in rules.task_types}
    for key, changes in value.items():
        name = parse_line(key)
        if not isinstance(changes, Mapping):
            raise ConfigValueError(f"keys with a description each, and '{name}' has none")
        types[name] = _task_type(types.get(name, TaskType(key=name, description=name)), changes)
    return tuple(types.values())


def _task_type(known: TaskType, changes: Mapping[Any, Any]) -> TaskType:
    parsers: dict[str, Callable[[Any], Any]] = {
        "description": parse_line,
        "instructions": parse_page_names,
        "bypass": _bypass,
    }
    if unknown := [key for key in changes if key not in parsers]:
        raise ConfigValueError(
            f"types with only the fields {', '.join(parsers)}, but '{known.key}' has {unknown}"
        )
    return replace(known, **{key: parsers[key](value) for key, value in changes.items()})


def _bypass(value: Any) -> Bypass:
    """Parse when a task type gets no wiki pages. True means "always" and False means "never"."""
    for bypass in BYPASSES:
        if value == bypass:
            return bypass
    try:
        return "always" if parse_bool(value) else "never"
    except ConfigValueError as error:
        raise ConfigValueError(f"types whose bypass is one of {', '.join(BYPASSES)}") from error
