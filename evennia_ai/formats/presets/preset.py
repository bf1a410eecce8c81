"""Preset: what a preset file of SillyTavern says, as values, with the file's own JSON beside.

A preset is a list of prompts and an order that says which of them are sent and where they stand.
Twelve of them are the application's own; eight of these are places for texts that come from
elsewhere: the card, the persona, lore, the history.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from evennia_ai.engine.prompt.assembly.rules import Names
from evennia_ai.engine.prompt.messages import Role

PromptPosition = Literal["relative", "in_chat"]
Generation = Literal["normal", "continue", "impersonate", "swipe", "regenerate", "quiet"]

KIND: Final = "preset"
DEFAULT_DEPTH: Final = 4
HISTORY: Final = "chatHistory"
MAIN: Final = "main"
JAILBREAK: Final = "jailbreak"
NEW_CHAT_TEXT: Final = "new_chat_prompt"
"""The member with the line above the history."""
ORDER_IN_USE: Final = 100001
"""The `character_id` of the one order that counts; nothing reads the others."""

OLD_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {MAIN: "main_prompt", "nsfw": "nsfw_prompt", JAILBREAK: "jailbreak_prompt"}
)
"""The members in which old files have the texts of own prompts, by identifier."""


class OwnPrompt(NamedTuple):
    """One of the application's own prompts: the component it becomes, and how it is called."""

    key: str
    name: str
    is_marker: bool = True
    content: str = ""
    enabled: bool = True


OWN: Final[Mapping[str, OwnPrompt]] = MappingProxyType(
    {
        MAIN: OwnPrompt(
            "card_system_prompt",
            "Main Prompt",
            is_marker=False,
            content=(
                "Write {{char}}'s next reply in a fictional chat between {{char}} and {{user}}."
            ),
        ),
        "worldInfoBefore": OwnPrompt("world_info_before", "World Info (before)"),
        "personaDescription": OwnPrompt("persona_description", "Persona Description"),
        "charDescription": OwnPrompt("char_description", "Char Description"),
        "charPersonality": OwnPrompt("char_personality", "Char Personality"),
        "scenario": OwnPrompt("scenario", "Scenario"),
        "enhanceDefinitions": OwnPrompt(
            "st_enhance_definitions", "Enhance Definitions", is_marker=False, enabled=False
        ),
        "nsfw": OwnPrompt("st_nsfw", "Auxiliary Prompt", is_marker=False),
        "worldInfoAfter": OwnPrompt("world_info_after", "World Info (after)"),
        "dialogueExamples": OwnPrompt("dialogue_examples", "Chat Examples"),
        HISTORY: OwnPrompt("conversation_history", "Chat History"),
        JAILBREAK: OwnPrompt("post_history_instructions", "Post-History Instructions", False),
    }
)
"""The application's own prompts by identifier, in their default order."""

TEXT_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "new_chat_prompt": "[Start a new Chat]",
        "new_group_chat_prompt": "",
        "new_example_chat_prompt": "[Example Chat]",
        "continue_nudge_prompt": "",
        "group_nudge_prompt": "",
        "impersonation_prompt": "",
        "send_if_empty": "",
        "wi_format": "{0}",
        "scenario_format": "[Circumstances and context of the dialogue: {{scenario}}]",
        "personality_format": "[{{char}}'s personality: {{personality}}]",
        "assistant_prefill": "",
        "assistant_impersonation": "",
        "human_sysprompt_message": "",
    }
)
"""The utility texts, as they are where a file has none."""

SENT_TEXTS: Final = (
    *(NEW_CHAT_TEXT, "new_example_chat_prompt", "send_if_empty", "wi_format", "scenario_format"),
    "personality_format",
)
"""The utility texts that stand in prompts here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetPrompt:
    """One prompt of a preset."""

    identifier: str
    key: str
    """The key of the component that it becomes."""
    name: str = ""
    content: str = ""
    role: Role = "system"
    is_marker: bool = False
    """Whether it is a place, whose text comes from elsewhere."""
    position: PromptPosition = "relative"
    depth: int = DEFAULT_DEPTH
    """Messages that follow it; counts with the position `in_chat` alone, as does the order."""
    injection_order: int = 100
    triggers: tuple[str, ...] = ()
    """The kinds of generation it is sent for; none: all of them."""
    forbids_overrides: bool = False
    """Whether a card may not replace it."""
    is_in_file: bool = True
    """False for one of the application's own that the file does not have, and for a new one."""

    def changed(self, **fields: Any) -> "PresetPrompt":
        """A copy with `fields` replaced."""
        return replace(self, **fields)


class OrderItem(NamedTuple):
    """One line of the order: a prompt, and whether it is switched on."""

    identifier: str
    enabled: bool


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A preset; what is changed in it is changed here, and `source` stays as it was read."""

    name: str
    prompts: tuple[PresetPrompt, ...]
    """All prompts in the order of the file, then those of the application's own that it lacks."""
    order: tuple[OrderItem, ...]
    """The order in use, without items that name no prompt."""
    texts: Mapping[str, str] = field(default_factory=lambda: TEXT_DEFAULTS)
    """The utility texts by their names in the file."""
    names: Names | None = None
    """Where speakers are named; None: where more than two speak, and nowhere else."""
    squash: bool = False
    quotes: bool = False
    source: Mapping[str, Any] = field(default_factory=dict)
    """The file's own JSON value without secrets, which export writes again."""
    secrets: tuple[str, ...] = ()
    """Where the file had secrets: their names, with the way to them."""
    notices: tuple[str, ...] = ()

    @cached_property
    def by_identifier(self) -> Mapping[str, PresetPrompt]:
        """The prompts by identifier; of doubles the first counts."""
        found: dict[str, PresetPrompt] = {}
        for prompt in self.prompts:
            found.setdefault(prompt.identifier, prompt)
        return found

    @cached_property
    def switches(self) -> Mapping[str, bool]:
        """Whether each prompt that the order names is on, by identifier, in its order."""
        return dict(self.order)

    @cached_property
    def is_of_1_13(self) -> bool:
        """Whether the file was written by SillyTavern 1.13 or newer: earlier ones have no order."""
        prompts = prompts_in(self.source)
        return any(isinstance(one, Mapping) and "injection_order" in one for one in prompts)

    def is_on(self, identifier: str) -> bool:
        """Whether the order names this prompt and has it switched on."""
        return self.switches.get(identifier, False)

    def changed(self, **fields: Any) -> "Preset":
        """A copy with `fields` replaced."""
        return replace(self, **fields)


def body_of(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where `prompts` and `prompt_order` stand: the file itself, or the `data` of an export of the
    prompt manager.
    """
    inner = source.get("data")
    is_export = "prompts" not in source and isinstance(inner, Mapping) and "prompts" in inner
    return inner if is_export and isinstance(inner, Mapping) else source


def prompts_in(source: Mapping[str, Any]) -> list[Any]:
    """The listed prompts of a file as they are written."""
    listed = body_of(source).get("prompts")
    return listed if isinstance(listed, list) else []


def order_in(source: Mapping[str, Any]) -> list[Any] | None:
    """The items of the order in use as they are written, None where the file has none.

    An export of the prompt manager has a flat list of them.
    """
    listed = body_of(source).get("prompt_order")
    if not isinstance(listed, list):
        return None
    if is_list_of_items(listed):
        return listed
    order = next((one.get("order") for one in listed if is_order_in_use(one)), None)
    return order if isinstance(order, list) else None


def is_list_of_items(listed: list[Any]) -> bool:
    """Whether this is a flat order and not a list of orders."""
    return any(isinstance(one, Mapping) and "identifier" in one for one in listed)


def is_order_in_use(one: Any) -> bool:
    """Whether this is the order that counts, of a list of orders."""
    return isinstance(one, Mapping) and str(one.get("character_id")) == str(ORDER_IN_USE)
