"""Prefix rules: a text before the history may not depend on what is said in the chat.

Providers cache the beginning of a prompt, and models read the texts there as the game's own words.
So no text before the history may change with what is said, or with the time. Two functions enforce
that:

- `check_before_history` refuses a component that a builder wants to save with such a value.
- `restrict_claim` decides about every text when a prompt is composed. In the layout `cache`, a text
  that depends on what is said moves to the dynamic message, after the history. In the layout
  `classic`, lore that is active because of what was said keeps its place, as in SillyTavern, but a
  text that repeats what was said is left out.

The decision depends only on what authors wrote, never on the turn. Otherwise a text could appear in
one turn and not in the next, which would break the cached prefix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from evennia_ai.engine.errors import ComponentValueError, TemplateError
from evennia_ai.engine.prompt.components import HISTORY_ID, PromptComponent
from evennia_ai.engine.prompt.conditions import Condition, passing_fact
from evennia_ai.engine.prompt.filling import Fields
from evennia_ai.engine.prompt.fragments import DYNAMIC, Claim, Fragment, Layout, make_fragment
from evennia_ai.engine.prompt.memo import Slot, typed_frozen
from evennia_ai.engine.prompt.messages import Trust
from evennia_ai.engine.prompt.templates.template import Template, compile_template
from evennia_ai.engine.prompt.templates.value_names import CLOCKED, OUTLET, SAID_LAST, SPELT
from evennia_ai.engine.prompt.templates.variables import Variable
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict, not_expanded

_SPEAKER: Final = "speaker"


_SAID: Final = SAID_LAST | {_SPEAKER}  # values with words of people or with the speaker's name


# A cache in the memo of a message: the inputs of a move, and the message's fragment at the allowed
# place to which it was moved.
_MOVED: Final = Slot[tuple[tuple[Claim, str, Layout, TokenCounter], Fragment]]("moved")


class Dependence(NamedTuple):
    """Why a text depends on what is said in the chat, such as "names {{lastMessage}}"."""

    reason: str
    repeats: bool
    """True if the text may repeat what was said, or name the speaker."""


BY_KEY: Final = Dependence("is active or not by what is said", repeats=False)


FILLED_IN: Final = Dependence("holds what the game knows of this moment", repeats=False)


@typed_frozen
class SpeechSources:
    """The outlets and variables whose contents depend on what is said, each with the reason."""

    outlets: Mapping[str, Dependence] = field(default_factory=dict)
    variables: Mapping[Variable, Dependence] = field(default_factory=dict)
    any_variable: Dependence | None = None
    """Set if a text that depends on what is said sets a variable whose name it computes. Then any
    variable may depend on what is said.
    """

    def merged(self, other: "SpeechSources") -> "SpeechSources":
        """Return the outlets and variables of both objects."""
        return SpeechSources(
            outlets={**self.outlets, **other.outlets},
            variables={**self.variables, **other.variables},
            any_variable=self.any_variable or other.any_variable,
        )


NO_SOURCES: Final = SpeechSources()


def template_dependence(
    template: Template,
    said: SpeechSources = NO_SOURCES,
    *,
    fields: Mapping[str, Dependence] = MappingProxyType({}),
) -> Dependence | None:
    """Return why the text of a template depends on what is said in the chat, or None.

    Args:
        template: The template of the text.
        said: The outlets and variables that depend on what is said.
        fields: The fields of the card that depend on what is said, by the name of their value.
    """
    found: list[Dependence] = []
    for name in template.names:
        if name in _SAID:
            return Dependence(f"names {_macro(name)}", repeats=True)
        if name in CLOCKED:
            found.append(Dependence(f"names {_macro(name)}", repeats=False))
        elif name in fields:
            reason = f"names {_macro(name)}, which {fields[name].reason}"
            found.append(Dependence(reason, fields[name].repeats))
        elif (outlet := name.removeprefix(OUTLET)) != name and outlet in said.outlets:
            of = said.outlets[outlet]
            found.append(
                Dependence(f"names {_macro(name)}, where an entry {of.reason}", of.repeats)
            )
    uses = template.uses
    if (said.variables or said.any_variable) and (uses.reads or uses.computes_names):
        names = said.variables.keys() if uses.computes_names else said.variables.keys() & uses.reads
        for variable in sorted(names):
            of = said.variables[variable]
            found.append(Dependence(f"reads the variable {variable}: {of.reason}", of.repeats))
        if said.any_variable is not None:
            found.append(said.any_variable)
    return max(found, key=lambda one: one.repeats, default=None)


def conditions_dependence(conditions: tuple[Condition, ...]) -> Dependence | None:
    """Return why a text with these conditions depends on the moment; None if it does not.

    Conditions on facts that are the same in every turn, such as the room, make no difference.
    """
    passing = passing_fact(conditions)
    return Dependence(f"is active or not by {passing}", repeats=False) if passing else None


def field_dependences(fields: Fields) -> dict[str, Dependence]:
    """Return why fields of the card or persona depend on what is said, by their value's name."""
    found = {name: template_dependence(template) for name, template in fields.templates.items()}
    return {name: why for name, why in found.items() if why is not None}


def is_before_history(claim: Claim) -> bool:
    """True if a text that asks for this place is put before the history."""
    return claim.depth is None and (claim.shared or claim).id < HISTORY_ID


def restrict_claim(claim: Claim, why: Dependence | None, *, layout: Layout) -> Claim | None:
    """Return a text's claim with an allowed place; None if no place is allowed.

    Args:
        claim: The place that the text asks for.
        why: The reason why the text depends on what is said; None if it does not.
        layout: The layout of the prompt.
    """
    if why is None or not is_before_history(claim):
        return claim
    if layout == "cache":
        return replace(claim, shared=DYNAMIC)
    return None if why.repeats else claim


def refuse_before_history(origin: str, why: Dependence) -> Verdict:
    """Return the verdict that a text is left out, because it may not be before the history."""
    return not_expanded(
        origin,
        f"{why.reason}, which changes with what is said, and its place is before the history;"
        " give it a depth, or use the layout cache, which moves it after the history",
    )


def restrict_fragment(
    fragment: Fragment, why: Dependence | None, *, layout: Layout, counter: TokenCounter
) -> Fragment | Verdict:
    """Return the fragment at an allowed place, or the verdict that no place is allowed."""
    claim = restrict_claim(fragment.claim, why, layout=layout)
    if claim is fragment.claim or why is None:
        return fragment
    if claim is None:
        return refuse_before_history(fragment.claim.origin, why)
    memo, asked = fragment.message.memo, (fragment.claim, fragment.note, layout, counter)
    known = memo.get(_MOVED)
    if known is not None and known[0] == asked:
        return known[1]
    made = make_fragment(
        fragment.message.content,
        claim,
        counter=counter,
        note="; ".join(filter(None, (fragment.note, why.reason))),
        cause=fragment.cause,
        breaks=fragment.breaks,
    )
    memo[_MOVED] = asked, made
    return made


def restrict_fragments(
    made: Sequence[Fragment | Verdict],
    why: Mapping[int, Dependence],
    *,
    layout: Layout,
    counter: TokenCounter,
) -> Sequence[Fragment | Verdict]:
    """Return the fragments and verdicts, with each fragment moved to an allowed place.

    Args:
        made: The fragments and verdicts.
        why: For each fragment that depends on what is said, the reason, by index in `made`.
        layout: The layout of the prompt.
        counter: The counter for tokens.
    """
    if not why:
        return made
    restricted = [*made]
    for at, reason in why.items():
        one = made[at]
        if isinstance(one, Fragment):
            restricted[at] = restrict_fragment(one, reason, layout=layout, counter=counter)
    return restricted


def stable_values(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that texts before the history may name: no last messages, no time.

    Formats and headings of presets are expanded with these values. Other names in them stay as
    written.
    """
    return {name: value for name, value in values.items() if name not in _SAID | CLOCKED}


def check_before_history(component: PromptComponent) -> None:
    """Check that a component before the history does not name the last messages or the time.

    Components that are volatile (they move after the history) or disabled are always accepted.
    Imported text is accepted, too: it moves when a prompt is composed (`restrict_claim`), and the
    report of its import says so.

    Raises:
        ComponentValueError: the component uses such a value. The error says which one and what to
            do.
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
            f"without {' and '.join(map(_macro, found))}, because '{c.key}' (ID {c.id}) is placed"
            " before the history, which must begin alike in every turn; give it a place after the"
            f" history (an ID from {HISTORY_ID + 1} on), a depth in it, or make it volatile first",
        )


def describe_dependence(text: str, *, trust: Trust = "imported") -> str:
    """Return a warning if a text for a place before the history depends on what is said.

    Returns "" if it does not.
    """
    try:
        why = template_dependence(compile_template(text, trust=trust))
    except TemplateError:  # another check reports the error
        return ""
    if why is None:
        return ""
    in_classic = "it is left out" if why.repeats else "it stays where it is"
    return (
        f"{why.reason}, which changes with every message: in the layout cache it is placed after"
        f" the history, in the dynamic message; in the layout classic {in_classic}"
    )


def _macro(name: str) -> str:
    return f"{{{{{SPELT.get(name, name).removesuffix('::')}}}}}"


def _names_in(component: PromptComponent) -> tuple[str, ...]:
    """Return the names of values in a component's text; none if its template is invalid.

    Another check reports an invalid template.
    """
    try:
        return compile_template(component.content, trust=component.trust).names
    except TemplateError:
        return ()
