"""What may stand before the history: texts that stay the same whatever people say.

Providers cache a prompt from its first byte on, and models read what stands there as the game's own
word. So no text before the history may depend on what is said, or on the time. This file has the
rule, twice:

- When a builder saves a component, `check_settled` refuses one that names such a value.
- When a prompt is composed, `settle_claim` decides about every text that asks for a place before
  the history. In the layout `cache` a text that depends on what is said joins the dynamic message,
  behind the history. In the layout `classic` lore that is active because of what was said may stand
  there, as in SillyTavern; a text that repeats what was said is left out.

Whether a text depends on what is said follows from what authors wrote, never from the turn. Else
the text would come and go, and the bytes before the history with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from evennia_ai.engine.errors import ComponentValueError, TemplateError
from evennia_ai.engine.prompt.compiled import DYNAMIC, CompiledComponent, Fields, Layout
from evennia_ai.engine.prompt.components import HISTORY_ID, PromptComponent
from evennia_ai.engine.prompt.memo import Slot, typed_frozen
from evennia_ai.engine.prompt.messages import Trust
from evennia_ai.engine.prompt.pieces import Claim, Piece, make_piece
from evennia_ai.engine.prompt.templates.template import Template, compile_template
from evennia_ai.engine.prompt.templates.value_names import CLOCKED, OUTLET, SAID_LAST, SPELT
from evennia_ai.engine.prompt.templates.variables import Variable
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict, not_expanded

_SPEAKER: Final = "speaker"
_SAID: Final = SAID_LAST | {_SPEAKER}
"""The values that come from what is said now: its words, and who says it."""
_SETTLED: Final = Slot[tuple[tuple[Claim, str, Layout, TokenCounter], Piece]]("settled")


class Unsettled(NamedTuple):
    """Why a text depends on what is said, such as "names {{lastMessage}}"."""

    reason: str
    repeats: bool
    """Whether the text may repeat what was said, or name who said it."""


BY_KEY: Final = Unsettled("is active or not by what is said", repeats=False)
FILLED_IN: Final = Unsettled("holds what the game knows of this moment", repeats=False)


@typed_frozen
class SaidSources:
    """The outlets and variables whose values depend on what is said, with the reason."""

    outlets: Mapping[str, Unsettled] = field(default_factory=dict)
    variables: Mapping[Variable, Unsettled] = field(default_factory=dict)
    any_variable: Unsettled | None = None
    """Set if such a text computes the name of a variable that it sets: it may be any."""

    def merged(self, other: "SaidSources") -> "SaidSources":
        """Return these sources and those of `other`."""
        return SaidSources(
            outlets={**self.outlets, **other.outlets},
            variables={**self.variables, **other.variables},
            any_variable=self.any_variable or other.any_variable,
        )


NOTHING_SAID: Final = SaidSources()


def unsettled_template(
    template: Template,
    said: SaidSources = NOTHING_SAID,
    *,
    fields: Mapping[str, Unsettled] = MappingProxyType({}),
) -> Unsettled | None:
    """Return why the text of a template depends on what is said; None if it does not.

    Args:
        said: the outlets and variables that the text may read.
        fields: the fields of the card that depend on what is said, by the name of their value.
    """
    found: list[Unsettled] = []
    for name in template.names:
        if name in _SAID:
            return Unsettled(f"names {_macro(name)}", repeats=True)
        if name in CLOCKED:
            found.append(Unsettled(f"names {_macro(name)}", repeats=False))
        elif name in fields:
            reason = f"names {_macro(name)}, which {fields[name].reason}"
            found.append(Unsettled(reason, fields[name].repeats))
        elif (outlet := name.removeprefix(OUTLET)) != name and outlet in said.outlets:
            of = said.outlets[outlet]
            found.append(Unsettled(f"names {_macro(name)}, where an entry {of.reason}", of.repeats))
    uses = template.uses
    if (said.variables or said.any_variable) and (uses.reads or uses.computes_names):
        names = said.variables.keys() if uses.computes_names else said.variables.keys() & uses.reads
        for variable in sorted(names):
            of = said.variables[variable]
            found.append(Unsettled(f"reads the variable {variable}: {of.reason}", of.repeats))
        if said.any_variable is not None:
            found.append(said.any_variable)
    return max(found, key=lambda one: one.repeats, default=None)


def unsettled_fields(fields: Fields) -> dict[str, Unsettled]:
    """Return the fields of the card and the persona whose text depends on what is said."""
    found = {name: unsettled_template(template) for name, template in fields.templates.items()}
    return {name: why for name, why in found.items() if why is not None}


class UnsettledComponents(NamedTuple):
    """Which components depend on what is said, by index, and what they hand on to notes."""

    members: Mapping[int, Unsettled]
    said: SaidSources
    fields: Mapping[str, Unsettled]


def unsettled_components(
    members: Iterable[CompiledComponent], fields: Fields, lore: SaidSources
) -> UnsettledComponents:
    """Return which of the components depend on what is said, in the order of the prompt.

    `lore` are the outlets and variables that lore hands to them. A component that depends on what
    is said hands this on to each variable that it sets.
    """
    found: dict[int, Unsettled] = {}
    said, of_fields = lore, unsettled_fields(fields)
    for index, member in enumerate(members):
        if not member.component.enabled or member.template is None:
            continue
        why = unsettled_template(member.template, said, fields=of_fields)
        if why is None:
            continue
        found[index] = why
        uses = member.template.uses
        # Text that nobody vouches for hands its variables to its kind alone, inside the history.
        if not member.component.is_contained and (uses.sets or uses.computes_names):
            handed = Unsettled(f"component {member.component.key} {why.reason}", why.repeats)
            own = SaidSources(
                variables=dict.fromkeys(uses.sets, handed),
                any_variable=handed if uses.computes_names else None,
            )
            said = said.merged(own)
    return UnsettledComponents(found, said, of_fields)


def stands_before_history(claim: Claim) -> bool:
    """True if a text with this claim is placed before the history."""
    return claim.depth is None and (claim.joint or claim).id < HISTORY_ID


def settle_claim(claim: Claim, why: Unsettled | None, *, layout: Layout) -> Claim | None:
    """Return the claim with the place that the text may have; None if it may have none.

    `why` says how the text depends on what is said.
    """
    if why is None or not stands_before_history(claim):
        return claim
    if layout == "cache":
        return replace(claim, joint=DYNAMIC)
    return None if why.repeats else claim


def refused_before_history(origin: str, why: Unsettled) -> Verdict:
    """Return the verdict on a text that has no place in the layout `classic`."""
    return not_expanded(
        origin,
        f"{why.reason}, which changes with what is said, and its place is before the history;"
        " give it a depth, or use the layout cache, which puts it behind the history",
    )


def settle_piece(
    piece: Piece, why: Unsettled | None, *, layout: Layout, counter: TokenCounter
) -> Piece | Verdict:
    """Return the piece where it may be placed, or the verdict that says why it is left out."""
    claim = settle_claim(piece.claim, why, layout=layout)
    if claim is piece.claim or why is None:
        return piece
    if claim is None:
        return refused_before_history(piece.claim.origin, why)
    memo, asked = piece.message.memo, (piece.claim, piece.note, layout, counter)
    known = memo.get(_SETTLED)
    if known is not None and known[0] == asked:
        return known[1]
    made = make_piece(
        piece.message.content,
        claim,
        counter=counter,
        note="; ".join(filter(None, (piece.note, why.reason))),
        cause=piece.cause,
        breaks=piece.breaks,
    )
    memo[_SETTLED] = asked, made
    return made


def settle_pieces(
    made: Sequence[Piece | Verdict],
    why: Mapping[int, Unsettled],
    *,
    layout: Layout,
    counter: TokenCounter,
) -> list[Piece | Verdict]:
    """Return what was made with each piece where it may be placed; `why` is by index."""
    settled = [*made]
    for at, reason in why.items():
        one = made[at]
        if isinstance(one, Piece):
            settled[at] = settle_piece(one, reason, layout=layout, counter=counter)
    return settled


def without_said(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that a text may name which cannot move: not what is said, nor the time.

    It names the others as it was written. Such texts are formats and headings of a preset.
    """
    return {name: value for name, value in values.items() if name not in _SAID | CLOCKED}


def check_settled(component: PromptComponent) -> None:
    """Refuse a component of a builder that names what is said now, or the time, before the history.

    A volatile component moves behind the history, and a disabled one is not in the prompt. Imported
    text is not refused: it moves when a prompt is composed (`settle_claim`), and the report of its
    import says so.

    Raises:
        ComponentValueError: says which names the text may not have, and what to do.
    """
    c = component
    if not c.enabled or c.volatile or c.placement == "history" or c.id >= HISTORY_ID:
        return
    if c.trust == "imported":
        return
    found = [name for name in _names_in(c) if name in _SAID | CLOCKED]
    if found:
        raise ComponentValueError(
            "content",
            c.content,
            f"without {' and '.join(map(_macro, found))}, because '{c.key}' (ID {c.id}) stands"
            " before the history, which begins alike in every turn; give it a place behind the"
            f" history (an ID from {HISTORY_ID + 1} on), a depth in it, or make it volatile first",
        )


def unsettled_sentence(text: str, *, trust: Trust = "imported") -> str:
    """Return what a report or a lint says about a text before the history; "" if it is settled."""
    try:
        why = unsettled_template(compile_template(text, trust=trust))
    except TemplateError:  # reported where the text is checked
        return ""
    if why is None:
        return ""
    in_classic = "it is left out" if why.repeats else "it stays where it is"
    return (
        f"{why.reason}, which changes with every message: in the layout cache it stands behind the"
        f" history, in the message of the moment's facts; in the layout classic {in_classic}"
    )


def _macro(name: str) -> str:
    return f"{{{{{SPELT.get(name, name).removesuffix('::')}}}}}"


def _names_in(component: PromptComponent) -> tuple[str, ...]:
    """The names of values in its text; none if it is no template, which is reported elsewhere."""
    try:
        return compile_template(component.content, trust=component.trust).names
    except TemplateError:
        return ()
