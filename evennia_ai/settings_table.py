"""The table of settings: the name, default, id of the check and wanted value of each.

Data alone: `evennia_ai.conf` reads the settings and judges them by it. A setting keeps its id, and
is a line of docs/settings.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evennia_ai.prompt.expansion import LAYOUTS
from evennia_ai.prompt.staying import BLOCKS_MODES
from evennia_ai.setting_values import (
    GAME_LORE,
    PREFIX,
    TIME_SUFFIXES,
    are_names_or_paths,
    are_paths,
    call_limits,
    card_limits,
    compaction,
    is_address_or_empty,
    is_line,
    is_log_mode,
    is_seconds,
    is_some_seconds,
    is_text,
    knowledge_wikis,
    lore_rules,
    lorekeeper,
    memory,
    model_profiles,
    model_roles,
    problem_of,
    reads,
    tracing,
    whole_number,
    writing_limits,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: `field` is its name in lower case without the prefix.

    `wanted` ends the sentence "It must be ...". `problem` says what is wrong with a value, where
    that takes more than `wanted`. `alias` is another name of its environment variable.
    """

    id: str
    field: str
    default: object
    wanted: str
    accepts: Callable[[Any], bool]
    from_environment: bool = False
    alias: str = ""
    problem: Callable[[Any], str] | None = None

    @property
    def name(self) -> str:
        """The name in the game's settings."""
        return PREFIX + self.field.upper()


# The ids of the checks are documented: a setting keeps its id.
SETTINGS: Final = (
    Setting(
        id="E001",
        field="base_url",
        default="",
        wanted='an http or https address without a name, a password or a query, or ""',
        accepts=is_address_or_empty,
        from_environment=True,
    ),
    Setting(
        id="E002",
        field="model",
        default="",
        wanted="the name of a model, as text",
        accepts=is_text,
        from_environment=True,
    ),
    Setting(
        id="E003",
        field="api_key_env",
        default="EVENNIA_AI_API_KEY",
        wanted="the name of an environment variable",
        accepts=lambda value: isinstance(value, str) and value.isidentifier(),
    ),
    Setting(
        id="E004",
        field="model_timeout_seconds",
        default=60.0,
        wanted="a number of seconds over 0",
        accepts=is_some_seconds,
    ),
    Setting(
        id="E005",
        field="context_tokens",
        default=8192,
        wanted="a whole number from 256 on",
        accepts=whole_number(256),
    ),
    Setting(
        id="E006",
        field="reply_tokens",
        default=400,
        wanted="a whole number from 1 on",
        accepts=whole_number(1),
    ),
    Setting(
        id="E007",
        field="layout",
        default="cache",
        wanted='"cache" or "classic"',
        accepts=lambda value: value in LAYOUTS,
    ),
    Setting(
        id="E008",
        field="max_concurrent_calls",
        default=4,
        wanted="a whole number from 1 to 1000",
        accepts=whole_number(1, 1000),
    ),
    Setting(
        id="E009",
        field="queue_limit",
        default=128,
        wanted="a whole number from 1 on",
        accepts=whole_number(1),
    ),
    Setting(
        id="E081",
        field="speaker_limit",
        default=8,
        wanted="a whole number from 1 on",
        accepts=whole_number(1),
    ),
    Setting(
        id="E010",
        field="hop_limit",
        default=3,
        wanted="a whole number, 0 or more",
        accepts=whole_number(0),
    ),
    Setting(
        id="E082",
        field="line_npcs",
        default=8,
        wanted="a whole number from 1 on",
        accepts=whole_number(1),
    ),
    Setting(
        id="E083",
        field="line_calls",
        default=32,
        wanted="a whole number from 1 on",
        accepts=whole_number(1),
    ),
    Setting(
        id="E011",
        field="cooldown_seconds",
        default=1.0,
        wanted="a number of seconds, 0 or more",
        accepts=is_seconds,
    ),
    Setting(
        id="E012",
        field="engagement_seconds",
        default=60.0,
        wanted="a number of seconds, 0 or more",
        accepts=is_seconds,
    ),
    Setting(
        id="E013",
        field="refresh_seconds",
        default=30.0,
        wanted="a number of seconds over 0",
        accepts=is_some_seconds,
    ),
    Setting(
        id="E014",
        field="fallback_line",
        default="I am lost in thought just now. Ask me again in a moment.",
        wanted="one line of text, at most 500 characters",
        accepts=is_line,
    ),
    Setting(
        id="E015",
        field="card_folder",
        default="world/cards",
        wanted="a folder; a relative one counts from the game's folder",
        accepts=lambda value: isinstance(value, str | Path) and bool(str(value)),
    ),
    Setting(
        id="E060",
        field="knowledge_folder",
        default="world/knowledge",
        wanted="a folder; a relative one counts from the game's folder",
        accepts=lambda value: isinstance(value, str | Path) and bool(str(value)),
    ),
    Setting(
        id="E016",
        field="max_source_characters",
        default=4_000_000,
        wanted="a whole number from 1000 on",
        accepts=whole_number(1000),
    ),
    Setting(
        id="E019",
        field="lore",
        default=GAME_LORE,
        wanted="a dictionary with rules of lore, as settings.lore of a scenario has them",
        accepts=reads(lore_rules),
        problem=problem_of(lore_rules),
    ),
    Setting(
        id="E020",
        field="lore_facts",
        default=[],
        wanted='a list of dotted paths of functions, such as ["world.facts.of_the_tide"]',
        accepts=are_paths,
    ),
    Setting(
        id="E021",
        field="card_limits",
        default={},
        wanted='a dictionary of limits, such as {"file_bytes": 8388608}',
        accepts=reads(card_limits),
        problem=problem_of(card_limits),
    ),
    Setting(
        id="E068",
        field="post_history_depth",
        default=4,
        wanted="a whole number of messages, 0 or more",
        accepts=whole_number(0),
    ),
    Setting(
        id="E022",
        field="keep_turn_days",
        default=0,
        wanted="a whole number of days, 0 to keep everything",
        accepts=whole_number(0),
    ),
    Setting(
        id="E023",
        field="summary_model",
        default="",
        wanted='the name of a model at the same address, or "" for the one that answers',
        accepts=is_text,
    ),
    Setting(
        id="E024",
        field="compaction",
        default={},
        wanted='a dictionary, such as {"by": "extract", "turn_percent": 90}',
        accepts=reads(compaction),
        problem=problem_of(compaction),
    ),
    Setting(
        id="E025",
        field="dynamic_block",
        default="latest",
        wanted='"latest", "on_change" or "all"',
        accepts=lambda value: value in BLOCKS_MODES,
    ),
    Setting(
        id="E026",
        field="profiles",
        default={},
        wanted='a dictionary of profiles, such as {"cheap": {"model": "a-small-model"}}',
        accepts=reads(model_profiles),
        problem=problem_of(model_profiles),
    ),
    Setting(
        id="E027",
        field="model_roles",
        default={},
        wanted='a dictionary, such as {"speaker": ["default", "cheap"], "decider": ["cheap"]}',
        accepts=reads(model_roles),
        problem=problem_of(model_roles),
    ),
    Setting(
        id="E036",
        field="hop_seconds",
        default=60.0,
        wanted="a number of seconds, 0 or more",
        accepts=is_seconds,
    ),
    Setting(
        id="E037",
        field="thinking_seconds",
        default=4.0,
        wanted="a number of seconds, 0 for never",
        accepts=is_seconds,
    ),
    Setting(
        id="E038",
        field="thinking_line",
        default="thinks it over.",
        wanted="one line of text, at most 500 characters",
        accepts=is_line,
    ),
    Setting(
        id="E042",
        field="limits",
        default={},
        wanted='a dictionary of limits, such as {"player": {"calls_per_minute": 12}}',
        accepts=reads(call_limits),
        problem=problem_of(call_limits),
    ),
    Setting(
        id="E043",
        field="limit_line",
        default="*raises a hand: enough talk for now.*",
        wanted="one line of text, at most 500 characters",
        accepts=is_line,
    ),
    Setting(
        id="E044",
        field="keep_call_days",
        default=30,
        wanted="a whole number of days from 1 on",
        accepts=whole_number(1),
    ),
    Setting(
        id="E045",
        field="log_llm_requests",
        default=False,
        wanted='True, False or "full"',
        accepts=is_log_mode,
        from_environment=True,
        alias="AI_LOG_LLM_REQUESTS",
    ),
    Setting(
        id="E046",
        field="metrics_port",
        default=0,
        wanted="the number of a port, 0 for none",
        accepts=whole_number(0, 65535),
    ),
    Setting(
        id="E047",
        field="traces",
        default={},
        wanted='a dictionary, such as {"to": "world.traces.exporter"}',
        accepts=reads(tracing),
        problem=problem_of(tracing),
    ),
    Setting(
        id="E048",
        field="memory",
        default={},
        wanted='a dictionary, such as {"most": 8, "share_percent": 5}',
        accepts=reads(memory),
        problem=problem_of(memory),
    ),
    Setting(
        id="E066",
        field="lorekeeper",
        default={},
        wanted='a dictionary, such as {"base": "harbour", "budget_tokens": 8000}',
        accepts=reads(lorekeeper),
        problem=problem_of(lorekeeper),
    ),
    Setting(
        id="E052",
        field="tools",
        default=[],
        wanted='a list of dotted paths of classes, such as ["world.tools.Ring"]',
        accepts=are_paths,
    ),
    Setting(
        id="E053",
        field="use_item",
        default="",
        wanted='the dotted path of a function, such as "world.tools.use", or ""',
        accepts=lambda value: value == "" or are_paths([value]),
    ),
    Setting(
        id="E070",
        field="writings",
        default={},
        wanted='a dictionary, such as {"characters": 1000, "most": 10, "a_day": 3}',
        accepts=reads(writing_limits),
        problem=problem_of(writing_limits),
    ),
    Setting(
        id="E055",
        field="tick_alone",
        default=False,
        wanted="True or False",
        accepts=lambda value: isinstance(value, bool),
    ),
    Setting(
        id="E056",
        field="knowledge_wikis",
        default={},
        wanted='a dictionary, such as {"harbour": {"api": "https://wiki.example/w/api.php"}}',
        accepts=reads(knowledge_wikis),
        problem=problem_of(knowledge_wikis),
    ),
    Setting(
        id="E057",
        field="knowledge_wikipedia",
        default="",
        wanted='an address such as "https://en.wikipedia.org/w/api.php", or "" for none',
        accepts=is_address_or_empty,
    ),
    Setting(
        id="E058",
        field="knowledge_vault",
        default=True,
        wanted="True or False",
        accepts=lambda value: isinstance(value, bool),
    ),
    Setting(
        id="E059",
        field="knowledge_budget",
        default={},
        wanted='a dictionary, such as {"calls": 10, "free": 5, "minutes": 30}',
        accepts=lambda value: isinstance(value, Mapping),
    ),
    Setting(
        id="E061",
        field="knowledge_embeddings",
        default=False,
        wanted="True or False",
        accepts=lambda value: isinstance(value, bool),
    ),
    Setting(
        id="E063",
        field="context_providers",
        default=[
            *("kb_meta_prompt", "speaker", "relation", "acquaintance", "shown"),
            *("place", "goals", "elsewhere"),
        ],
        wanted='a list of names and dotted paths, such as ["speaker", "world.context.weather"]',
        accepts=are_names_or_paths,
    ),
    Setting(
        id="E069",
        field="elsewhere_tokens",
        default=200,
        wanted="a whole number of tokens, 0 for nothing",
        accepts=whole_number(0),
    ),
    Setting(
        id="E064",
        field="time_suffix",
        default="",
        wanted='"real", "game" or "" for none',
        accepts=lambda value: value in TIME_SUFFIXES,
    ),
)
