"""How a prompt is put together where it need not be as ours are: the rules of an assembly.

By default everything is as this engine does it. `rules: sillytavern` sets what SillyTavern 1.12
does with its own settings untouched; each rule can be overridden alone. `settings.assembly` of a
scenario and `EVENNIA_AI_ASSEMBLY` of a game are read here.
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
"""What stands for the lore in `lore_format`."""

NEW_CHAT: Final = "new_chat"
GROUP_NUDGE: Final = "group_nudge"
ALONE: Final = frozenset({NEW_CHAT, GROUP_NUDGE})
"""The keys of components whose messages are never squashed: the lines around the history."""

_Text = Annotated[str, Field(max_length=MAX_TEXT)]
_Format = Annotated[
    Annotated[str, Field(max_length=MAX_TEXT)] | None,
    Must(f"text of at most {MAX_TEXT} characters, or null"),
]
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
    """How a prompt is put together; the defaults are this engine's own way."""

    ties: Ties = "id"
    """Who stands first at one depth and order. `id`: by registry ID, each text a message of its
    own. `role`: assistant above user above system, in a role components by ID, then notes, the
    card's depth prompt, the persona, lore; those of one depth, order and role are one message."""
    examples: ExamplesForm = "text"
    """`messages`: example dialogue of card and lore is one message for each turn somebody speaks,
    of role system, named `example_user` or `example_assistant`."""
    example_heading: _Text = ""
    """With `messages`: what stands above each block of examples (`new_example_chat_prompt`)."""
    pin_examples: bool = False
    """Where room is short, examples go in before the history."""
    scenario_format: _Format = None
    """What stands around the component `scenario`, which is `{{scenario}}` in it; null: nothing
    does; empty: the component is left out."""
    personality_format: _Format = None
    """The same for the component `char_personality`, `{{personality}}` in it."""
    lore_format: _LoreFormat = ""
    """What stands around the lore of one place before the history, which is `{0}` in it
    (`wi_format`); empty: nothing does."""
    names: Names = "field"
    """Where speakers are named in the history: in the message's `name`, as `Name: ` before what
    users and the character said, or nowhere."""
    quote_user: bool = False
    """What users said stands in double quotes (`wrap_in_quotes`)."""
    stand_in: _Text = ""
    """A message of role user that ends the history where the character spoke last
    (`send_if_empty`); empty: none does."""
    history_cut: HistoryCut = "steps"
    """`messages`: a full history keeps all messages that fit, each turn anew."""
    squash: bool = False
    """Neighbouring system messages without a name are one, joined by a line feed, but for those of
    `ALONE` and the headings of examples (`squash_system_messages`)."""

    @property
    def changed(self) -> dict[str, Any]:
        """The rules that are not as they are by default, by name."""
        return {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != one.default
        }

    def with_ties_of(self, preset: AssemblyPreset) -> "AssemblyRules":
        """These rules with the ties of a preset."""
        return replace(self, ties=PRESETS[preset].ties)


PLAIN: Final = AssemblyRules()
"""This engine's own way, which costs a turn nothing."""
PRESETS: Final[Mapping[AssemblyPreset, AssemblyRules]] = MappingProxyType(
    {
        "evennia_ai": PLAIN,
        "sillytavern": AssemblyRules(
            ties="role",
            examples="messages",
            example_heading="[Example Chat]",
            scenario_format="[Circumstances and context of the dialogue: {{scenario}}]",
            personality_format="[{{char}}'s personality: {{personality}}]",
            names="none",
            history_cut="messages",
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAssembly(AssemblyRules):
    """The rules as they may be written: a preset, and what is otherwise than in it."""

    rules: AssemblyPreset = "evennia_ai"


def read_assembly(
    data: Any,
    *,
    lore_rules: AssemblyPreset = "evennia_ai",
    file_rules: AssemblyRules | None = None,
    where: str = WHERE,
) -> AssemblyRules:
    """The rules that a mapping asks for: a preset, then overrides.

    Where it names no preset, those of lore decide the ties. `file_rules` are those of a preset
    file: they stand for the named ones, of which the ties alone count then. FormatError: an unknown
    rule, or a value that it cannot have.
    """
    data = check_settings(WrittenAssembly, data, kind="scenario", where=where)
    if file_rules is not None:
        preset = file_rules.with_ties_of(data["rules"]) if "rules" in data else file_rules
    else:
        preset = PRESETS[data["rules"]] if "rules" in data else PLAIN.with_ties_of(lore_rules)
    own = {name: value for name, value in data.items() if name != "rules"}
    return assembly_rules(replace(preset, **own).changed)


def assembly_rules(changed: Mapping[str, Any]) -> AssemblyRules:
    """The rules that are otherwise than by default in these alone, as `AssemblyRules.changed`."""
    return AssemblyRules(**changed) if changed else PLAIN
