"""The SillyTavern preset as a dataclass, which keeps the JSON of its file.

A preset is a list of prompts with an order, which decides which prompts are sent and where. Twelve
prompts are SillyTavern's own. Eight of these are markers: placeholders for texts of the card, the
persona, lore and the history.
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
"""The member of a preset file that holds the line above the history."""
ORDER_IN_USE: Final = 100001
"""The `character_id` of the order that SillyTavern uses; it ignores orders with other ids."""

OLD_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {MAIN: "main_prompt", "nsfw": "nsfw_prompt", JAILBREAK: "jailbreak_prompt"}
)
"""Maps identifiers of SillyTavern's own prompts to the outdated members with their texts."""


class OwnPrompt(NamedTuple):
    """One of SillyTavern's own prompts: the key of its component, and its defaults."""

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
"""SillyTavern's own prompts by identifier, in their default order."""

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
        "scenario_format": "",
        "personality_format": "",
        "assistant_prefill": "",
        "assistant_impersonation": "",
        "human_sysprompt_message": "",
    }
)
"""The default values of a preset's utility texts, such as the heading above examples."""

SENT_TEXTS: Final = (
    *(NEW_CHAT_TEXT, "new_example_chat_prompt", "send_if_empty", "wi_format", "scenario_format"),
    "personality_format",
)
"""The utility texts of a preset that this package can put into a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetPrompt:
    """One prompt of a preset."""

    identifier: str
    key: str
    """The key of the component that is made from the prompt."""
    name: str = ""
    content: str = ""
    role: Role = "system"
    is_marker: bool = False
    """True for a placeholder whose text comes from the card, the persona, lore or the history."""
    position: PromptPosition = "relative"
    depth: int = DEFAULT_DEPTH
    """The number of chat messages after the prompt.

    As with the injection order, only prompts with the position `in_chat` use it.
    """
    injection_order: int = 100
    triggers: tuple[str, ...] = ()
    """The kinds of generation for which the prompt is sent; empty for all kinds."""
    forbids_overrides: bool = False
    """True if a card may not replace the prompt's text."""
    is_in_file: bool = True
    """False for new prompts, and for SillyTavern's own prompts that the file lacks."""

    def changed(self, **fields: Any) -> "PresetPrompt":
        """Return a copy with these fields replaced."""
        return replace(self, **fields)


class OrderItem(NamedTuple):
    """One line of a preset's order: the identifier of a prompt, and if it is switched on."""

    identifier: str
    enabled: bool


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A SillyTavern preset.

    `source` is the JSON of the file as read; edits change only the other fields.
    """

    name: str
    prompts: tuple[PresetPrompt, ...]
    """The prompts in the order of the file, then SillyTavern's own prompts that the file lacks."""
    order: tuple[OrderItem, ...]
    """The order in which prompts are sent, without lines for unknown prompts."""
    texts: Mapping[str, str] = field(default_factory=lambda: TEXT_DEFAULTS)
    """The utility texts, such as the heading above examples, by their names in the file."""
    names: Names | None = None
    """How messages name their speakers.

    None adds names only if more than two speakers take part.
    """
    squash: bool = False
    source: Mapping[str, Any] = field(default_factory=dict)
    """The JSON value of the file without secrets, on which an export is based."""
    secrets: tuple[str, ...] = ()
    """The paths of secrets that were removed from the file."""
    notices: tuple[str, ...] = ()

    @cached_property
    def by_identifier(self) -> Mapping[str, PresetPrompt]:
        """The prompts by identifier; if several share an identifier, the first one."""
        found: dict[str, PresetPrompt] = {}
        for prompt in self.prompts:
            found.setdefault(prompt.identifier, prompt)
        return found

    @cached_property
    def switches(self) -> Mapping[str, bool]:
        """The identifier of each prompt in the order, with True if the prompt is switched on."""
        return dict(self.order)

    def is_on(self, identifier: str) -> bool:
        """True if the prompt with this identifier is in the order and switched on."""
        return self.switches.get(identifier, False)

    def changed(self, **fields: Any) -> "Preset":
        """Return a copy with these fields replaced."""
        return replace(self, **fields)


def body_of(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object in a preset file that holds `prompts` and `prompt_order`.

    It is the whole file, or the member `data` in an export of the prompt manager.
    """
    inner = source.get("data")
    is_export = "prompts" not in source and isinstance(inner, Mapping) and "prompts" in inner
    return inner if is_export and isinstance(inner, Mapping) else source


def prompts_in(source: Mapping[str, Any]) -> list[Any]:
    """Return the prompts of a preset file as raw JSON values."""
    listed = body_of(source).get("prompts")
    return listed if isinstance(listed, list) else []


def order_in(source: Mapping[str, Any]) -> list[Any] | None:
    """Return the raw lines of the order that SillyTavern uses, None if a file has no order.

    An export of the prompt manager has a single flat order instead of a list of orders.
    """
    listed = body_of(source).get("prompt_order")
    if not isinstance(listed, list):
        return None
    if is_list_of_items(listed):
        return listed
    order = next((one.get("order") for one in listed if is_order_in_use(one)), None)
    return order if isinstance(order, list) else None


def is_list_of_items(listed: list[Any]) -> bool:
    """True if `prompt_order` in a file is one order, False if it is a list of orders."""
    return any(isinstance(one, Mapping) and "identifier" in one for one in listed)


def is_order_in_use(one: Any) -> bool:
    """True if an item of a list of orders is the order that SillyTavern uses."""
    return isinstance(one, Mapping) and str(one.get("character_id")) == str(ORDER_IN_USE)
