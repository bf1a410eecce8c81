"""Components: the texts of a prompt with their places, and the table of static components.

The registry ID of a component is its position. Static components have fixed IDs from the first
migration on. A builder's components take free IDs between them. The engine's own pluggable
components (card fields and the lore around them) have IDs that are multiples of 10.

A grant allows a text from outside, such as a card, a special place or role. Without a grant, such a
text is placed only inside the history, in the role user, and at the top of the history if it has no
depth. A grant is only ever given by a builder, by its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field

from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.foreign.fields import Must, field_checker, find_wrong_field
from evennia_ai.engine.prompt.conditions import are_conditions
from evennia_ai.engine.prompt.memo import typed_frozen
from evennia_ai.engine.prompt.messages import DepthCounts, Role, Trust

Placement = Literal["ordered", "history"]

HISTORY_ID: Final = 5000
DYNAMIC_ID: Final = 5500
EVENT_ID: Final = 6000
TOOL_ID: Final = 7000
MAX_ID: Final = 9999
MAX_DEPTH: Final = 10**9
MAX_CONTENT: Final = 200_000
DEFAULT_ORDER: Final = 100
CONTAINED_PRIORITY: Final = 50
"""The budget priority of untrusted texts. It is lower than the 100 of a game's own texts, so that
untrusted texts cannot displace them."""

_Key = Annotated[
    str,
    Field(pattern=r"^[a-z][a-z0-9_]{0,63}$"),
    Must("a slug: a small letter, then small letters, digits or _, at most 64"),
]
Order = Annotated[int, Field(ge=-(10**9), le=10**9)]
MAX_WHEN: Final = 1000
When = Annotated[
    str,
    Field(max_length=MAX_WHEN),
    Must(
        f"empty, or conditions of at most {MAX_WHEN} characters, such as"
        " time.hour >= 18; npc.tags has_any tired",
        are_conditions,
    ),
]
"""Conditions of a component or a note, as builders type them (`parse_conditions`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The range in which a component, a lorebook or a knowledge base applies, such as a zone.

    A scope of the kind faction or player may have lorebooks, but no components. The scope of a
    conversation only has knowledge bases.
    """

    kind: Literal["game", "zone", "room", "npc", "faction", "player", "conversation"] = "game"
    ref: str = ""
    """The identifier inside the kind: "" for the game, the tag of a zone or a faction, the database
    id of a room, an NPC, a player's character or a conversation."""

    def __str__(self) -> str:
        return self.kind if self.kind == "game" else f"{self.kind}:{self.ref}"


GAME: Final = Scope()


def of_npc(ref: str) -> Scope:
    """Return the scope that contains only the NPC with this database id."""
    return Scope(kind="npc", ref=ref)


# The scopes of components, from wide to narrow. If several scopes have a component of one key, the
# narrowest scope applies.
SCOPE_RANK: Final[Mapping[str, int]] = MappingProxyType({"game": 0, "zone": 1, "room": 2, "npc": 3})


@typed_frozen
class PromptComponent:
    """One text of the prompt, with its place, its role and the rules for its use.

    Raises:
        ComponentValueError: a field has an invalid value. The error names the first such field.
    """

    id: Annotated[int, Field(ge=0, le=MAX_ID)]
    key: _Key
    name: Annotated[str, Field(max_length=200)] = ""
    description: Annotated[str, Field(max_length=2000)] = ""
    content: Annotated[str, Field(max_length=MAX_CONTENT)] = ""
    role: Role = "system"
    enabled: bool = True
    is_static: bool = False
    injection_depth: Annotated[int, Field(ge=0, le=MAX_DEPTH)] = 0
    """N > 0: the text is placed in the history, with N messages after it. 0: the component has a
    normal place, unless `placement` is "history". Then it is placed after the newest message (Card
    V3, `@@depth 0`)."""
    injection_order: Order = DEFAULT_ORDER
    """The order among texts at one depth, low values first."""
    depth_counts: DepthCounts = "messages"
    placement: Placement = "ordered"
    volatile: bool = False
    """True if the text changes from turn to turn."""
    trust: Trust = "builder"
    priority: Order = 100
    """The rank of the text when the token budget is short: high priorities are kept. It does not
    change the place of the text.
    """
    required: bool = False
    when: When = ""
    """Conditions on facts of the game. The text is only in a prompt while all are met."""
    scope: Scope = GAME
    revision: int = 0
    """The number of the stored version; 0 for a component that was never stored."""

    def __post_init__(self) -> None:
        if not _are_allowed(_values(self)) and (wrong := find_wrong_field(self)):
            field, wanted = wrong
            raise ComponentValueError(field, getattr(self, field), wanted)
        if self.scope.kind not in SCOPE_RANK:
            wanted = f"of the kind {', '.join(SCOPE_RANK)}; only lorebooks have others"
            raise ComponentValueError("scope", str(self.scope), wanted)
        if self.when and self.is_static and self.id in PLACES:
            wanted = "empty, because this component is a place for other texts"
            raise ComponentValueError("when", self.when, wanted)
        if self.injection_depth > 0:  # a component with a depth is always placed in the history
            object.__setattr__(self, "placement", "history")

    @property
    def is_contained(self) -> bool:
        """True if the text is not trusted, so it may only be in the history, in the role user."""
        if self.trust == "player":
            return True
        stands_there = self.placement == "history" and self.role == "user"
        return self.trust == "imported" and stands_there and self.priority <= CONTAINED_PRIORITY

    def changed(self, **fields: Any) -> "PromptComponent":
        """Return a copy of the component with some fields replaced. The new values are checked.

        `injection_depth=0` without `placement` takes the component out of the history and places
        it by its ID again.
        """
        if fields.get("injection_depth") == 0 and "placement" not in fields:
            fields["placement"] = "ordered"
        return replace(self, **fields)


_values, _are_allowed = field_checker(PromptComponent)


def depth_in_words(depth: int | None) -> str:
    """Return an injection depth as a builder enters it. None is "normal"."""
    if depth is None:
        return "normal"
    return {0: "bottom", MAX_DEPTH: "top"}.get(depth, str(depth))


def is_plain_int(value: object) -> bool:
    """True if `value` is an integer and not a boolean, although Python's booleans are integers."""
    return isinstance(value, int) and not isinstance(value, bool)


def _static(
    component_id: int, key: str, name: str, description: str, **fields: Any
) -> PromptComponent:
    return PromptComponent(
        id=component_id, key=key, name=name, description=description, is_static=True, **fields
    )


STATIC_COMPONENTS: Final[tuple[PromptComponent, ...]] = (
    _static(0, "system_prompt", "System prompt", "The game's own rules.", required=True),
    _static(1000, "character_context", "Character context", "Who the NPC is, by its builder."),
    _static(
        1500,
        "entity_context",
        "Entity context",
        "What the NPC knows of the people present.",
        volatile=True,
    ),
    # The next two components repeat the words of players. Their role is user, so that the model
    # never reads such words as instructions of the system.
    _static(
        2000,
        "semantic_memories",
        "Semantic memories",
        "Memories that were found.",
        role="user",
        volatile=True,
    ),
    _static(
        3000,
        "context_buffer",
        "Context buffer",
        "What happened around the NPC.",
        role="user",
        volatile=True,
    ),
    _static(4000, "goals", "Goals", "What the NPC wants."),
    _static(
        HISTORY_ID,
        "conversation_history",
        "Conversation history",
        "The place of the history and of texts injected by depth.",
    ),
    _static(
        DYNAMIC_ID,
        "dynamic_context",
        "Dynamic context",
        "The place of the facts of this request.",
        role="user",
    ),
    _static(
        EVENT_ID, "pending_event", "Pending event", "The event that the NPC answers.", role="user"
    ),
    _static(TOOL_ID, "tool_result", "Tool result", "Results of tools in this turn.", role="tool"),
)
PLACES: Final = frozenset({HISTORY_ID, DYNAMIC_ID, EVENT_ID, TOOL_ID})
"""The IDs of static components that only mark places for other texts. They cannot be moved."""

STATIC_IDS: Final[Mapping[str, int]] = MappingProxyType({c.key: c.id for c in STATIC_COMPONENTS})

# The registry IDs of the engine's components for card fields and for lore next to them, by key
PLUGGABLE_IDS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "card_system_prompt": 10,
        "world_info_before": 910,
        "persona_description": 1010,
        "char_description": 1020,
        "char_personality": 1030,
        "scenario": 1040,
        "world_info_after": 1050,
        "dialogue_examples": 1060,
        "post_history_instructions": 5010,
    }
)


Grant = Literal[
    "fields", "system_prompt", "after_history", "positions", "roles", "lore_budget", "regex"
]
Grants = frozenset[Grant]

NO_GRANTS: Final[Grants] = frozenset()
ALL_GRANTS: Final[Grants] = frozenset(get_args(Grant))

# What each grant allows, in the order in which commands and pages show grants.
ALLOWS: Final[dict[Grant, str]] = {
    "fields": (
        "its description, personality, scenario and examples are placed before the history, and"
        " the NPC has its name"
    ),
    "system_prompt": "its system prompt is placed after the game's own rules",
    "after_history": "its post-history instructions are placed after the history",
    "positions": "its lore is placed where it asks to be, also outside the history",
    "roles": "its lore and its depth prompt may have the role system or assistant",
    "lore_budget": "its lore has the budget that it asks for, and entries may ignore the budget",
    "regex": "its regex scripts change what models and players read, never what is recorded",
}


def in_order(grants: Grants) -> tuple[Grant, ...]:
    """Sort grants into the order in which commands and pages show them."""
    return tuple(grant for grant in ALLOWS if grant in grants)
