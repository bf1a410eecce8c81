"""Rules: everything about an assembly that a game may choose.

The settings of the game give one value of this; its page Instructions:Config may change each field
by its name (`config_page.py`).
"""

from dataclasses import dataclass
from typing import Final

from evennia_ai.knowledge.assembly.task_types import TASK_TYPES, UNKNOWN, TaskType
from evennia_ai.knowledge.titles import PageName
from evennia_ai.text.words import COMMON_WORDS

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
    """How a package is assembled.

    `max_depth` is how many hops of `requires` are followed, all of them where `fully_resolve` is
    set. `linked_pages` are shown for all entities together, `sources_per_entity` for each. With
    `wikipedia` the introductions of its articles are asked for; whether that may be is for the
    driver to say. What is assembled has at most `budget_tokens` less `reserve_tokens`.
    """

    world: str = ""
    world_bible: PageName = WORLD_BIBLE
    core_instructions: tuple[PageName, ...] = CORE_INSTRUCTIONS
    task_types: tuple[TaskType, ...] = TASK_TYPES
    query_starters: tuple[str, ...] = QUERY_STARTERS
    generative_keywords: tuple[str, ...] = GENERATIVE_KEYWORDS
    stop_words: frozenset[str] = COMMON_WORDS
    max_depth: int = 2
    fully_resolve: bool = False
    most_entities: int = 8
    linked_pages: int = 5
    sources_per_entity: int = 2
    talk_sections: tuple[str, ...] = ("Reliability Assessment", "Bias Analysis", "Editorial Notes")
    wikipedia: bool = False
    budget_tokens: int = 6000
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
