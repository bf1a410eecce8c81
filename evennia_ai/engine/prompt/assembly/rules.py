"""The assembly rules: how the texts of a prompt become messages.

The defaults are this engine's own way. `rules: sillytavern` does what SillyTavern 1.19 does with
its default settings. Each rule can be overridden. A scenario has its rules in `settings.assembly`,
a game in the setting `EVENNIA_AI_ASSEMBLY`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from evennia_ai.engine.foreign.fields import Must, check_settings

AssemblyPreset = Literal["evennia_ai", "sillytavern"]
Ties = Literal["id", "role"]
ExamplesForm = Literal["text", "messages"]
Names = Literal["field", "content", "none"]
HistoryCut = Literal["steps", "messages"]

WHERE: Final = "settings.assembly"
MAX_TEXT: Final = 20_000
LORE: Final = "{0}"
"""The placeholder for the lore in `lore_format`."""

NEW_CHAT: Final = "new_chat"
GROUP_NUDGE: Final = "group_nudge"
ALONE: Final = frozenset({NEW_CHAT, GROUP_NUDGE})
"""The keys of components that are never joined with others: lines around the history."""

_Text = Annotated[str, Field(max_length=MAX_TEXT)]
_LoreFormat = Annotated[
    str,
    Field(max_length=MAX_TEXT),
    Must(
        f"text of at most {MAX_TEXT} characters with {LORE} in it, or empty",
        lambda text: not text.strip() or LORE in text,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyRules:
    """The rules by which texts of a prompt become messages. The defaults are this engine's own."""

    ties: Ties = "id"
    """How texts with the same depth and order are sorted. `id`: by registry ID, each text as a
    separate message. `role`: first assistant, then user, then system; inside a role components by
    ID, then notes, the card's depth prompt, the persona, lore. With `role`, texts with the same
    depth, order and role become one message."""
    examples: ExamplesForm = "text"
    """The form of example dialogue of cards and lore. `text`: one message. `messages`: one message
    for each turn of a speaker, of role system, named `example_user` or `example_assistant`."""
    example_heading: _Text = ""
    """The line above each block of examples, if `examples` is `messages`
    (`new_example_chat_prompt`)."""
    pin_examples: bool = False
    """If True and tokens are short, history messages are left out before examples are."""
    scenario_format: _Text = ""
    """The text around the component `scenario`, with `{{scenario}}` as its placeholder. Empty: no
    text around it."""
    personality_format: _Text = ""
    """The text around the component `char_personality`, with `{{personality}}` as its placeholder.
    Empty: no text around it."""
    lore_format: _LoreFormat = ""
    """The text around the lore at each place before the history, with `{0}` as its placeholder
    (`wi_format`). Empty: no text around it."""
    names: Names = "field"
    """Where speakers' names go. `field`: into the field `name`. `content`: before the text of users
    and of the character, as `Name: `. `none`: nowhere."""
    quote_user: bool = False
    """If True, messages of users are put in double quotes (`wrap_in_quotes`)."""
    stand_in: _Text = ""
    """A message of role user that ends a history in which the character spoke last
    (`send_if_empty`). Empty: no such message."""
    history_cut: HistoryCut = "steps"
    """How a full history is cut. `messages`: each turn keeps all messages that fit. `steps`: the
    history is cut to a percentage of its room (`BudgetRules.keep_percent`)."""
    squash: bool = False
    """If True, neighbouring system messages without a name become one message, joined by line
    feeds. The components in `ALONE` and the headings of examples stay separate
    (`squash_system_messages`)."""

    @property
    def changed(self) -> dict[str, Any]:
        """The names and values of the rules that differ from the defaults."""
        return {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != one.default
        }

    def with_ties_of(self, preset: AssemblyPreset) -> "AssemblyRules":
        """Return a copy of these rules with the rule `ties` of a preset."""
        return replace(self, ties=PRESETS[preset].ties)


PLAIN: Final = AssemblyRules()
"""The rules of this engine's own assembly, with which a turn needs no extra work."""
PRESETS: Final[Mapping[AssemblyPreset, AssemblyRules]] = MappingProxyType(
    {
        "evennia_ai": PLAIN,
        "sillytavern": AssemblyRules(
            ties="role",
            examples="messages",
            example_heading="[Example Chat]",
            names="none",
            history_cut="messages",
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAssembly(AssemblyRules):
    """The assembly rules as written in settings: a preset, and overrides of single rules."""

    rules: AssemblyPreset = "evennia_ai"


def read_assembly(
    data: Any,
    *,
    lore_rules: AssemblyPreset = "evennia_ai",
    file_rules: AssemblyRules | None = None,
    where: str = WHERE,
) -> AssemblyRules:
    """Read the assembly rules from a mapping: a preset, then overrides of single rules.

    Args:
        data: The mapping.
        lore_rules: The preset of lore. It decides the rule `ties` if the mapping names no preset.
        file_rules: The rules of a preset file. They replace the named preset, except for `ties`.
        where: The place of the mapping, for errors.

    Raises:
        FormatError: a rule is unknown or has a value that it cannot have.
    """
    data = check_settings(WrittenAssembly, data, kind="scenario", where=where)
    if file_rules is not None:
        preset = file_rules.with_ties_of(data["rules"]) if "rules" in data else file_rules
    else:
        preset = PRESETS[data["rules"]] if "rules" in data else PLAIN.with_ties_of(lore_rules)
    own = {name: value for name, value in data.items() if name != "rules"}
    return assembly_rules(replace(preset, **own).changed)


def assembly_rules(changed: Mapping[str, Any]) -> AssemblyRules:
    """Return the assembly rules with these changes to the defaults, by name of the rule."""
    return AssemblyRules(**changed) if changed else PLAIN
