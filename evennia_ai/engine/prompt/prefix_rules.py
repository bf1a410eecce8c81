"""What may stand before the history: texts that stay the same whatever people say.

Providers cache a prompt from its first byte on, and models read what stands there as the game's own
word. So no text before the history may depend on what is said, or on the time. This file has the
rule, twice:

- When a builder saves a component, `check_before_history` refuses one that names such a value.
- When a prompt is composed, `restrict_claim` decides about every text that asks for a place before
  the history. In the layout `cache` a text that depends on what is said joins the dynamic message,
  behind the history. In the layout `classic` lore that is active because of what was said may stand
  there, as in SillyTavern; a text that repeats what was said is left out.

Whether a text depends on what is said follows from what authors wrote, never from the turn. Else
the text would come and go, and the bytes before the history with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from evennia_ai.engine.errors import ComponentValueError, TemplateError
from evennia_ai.engine.prompt.components import HISTORY_ID, PromptComponent
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


_SAID: Final = SAID_LAST | {_SPEAKER}
"""The values that come from what is said now: its words, and who says it."""


_SETTLED: Final = Slot[tuple[tuple[Claim, str, Layout, TokenCounter], Fragment]]("settled")


class Dependence(NamedTuple):
    """Why a text depends on what is said, such as "names {{lastMessage}}"."""

    reason: str
    repeats: bool
    """Whether the text may repeat what was said, or name who said it."""


BY_KEY: Final = Dependence("is active or not by what is said", repeats=False)


FILLED_IN: Final = Dependence("holds what the game knows of this moment", repeats=False)


@typed_frozen
class SpeechSources:
    """The outlets and variables whose values depend on what is said, with the reason."""

    outlets: Mapping[str, Dependence] = field(default_factory=dict)
    variables: Mapping[Variable, Dependence] = field(default_factory=dict)
    any_variable: Dependence | None = None
    """Set if such a text computes the name of a variable that it sets: it may be any."""

    def merged(self, other: "SpeechSources") -> "SpeechSources":
        """Return these sources and those of `other`."""
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
    """Return why the text of a template depends on what is said; None if it does not.

    Args:
        said: the outlets and variables that the text may read.
        fields: the fields of the card that depend on what is said, by the name of their value.
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


def field_dependences(fields: Fields) -> dict[str, Dependence]:
    """Return the fields of the card and the persona whose text depends on what is said."""
    found = {name: template_dependence(template) for name, template in fields.templates.items()}
    return {name: why for name, why in found.items() if why is not None}


def is_before_history(claim: Claim) -> bool:
    """True if a text with this claim is placed before the history."""
    return claim.depth is None and (claim.shared or claim).id < HISTORY_ID


def restrict_claim(claim: Claim, why: Dependence | None, *, layout: Layout) -> Claim | None:
    """Return the claim with the place that the text may have; None if it may have none.

    `why` says how the text depends on what is said.
    """
    if why is None or not is_before_history(claim):
        return claim
    if layout == "cache":
        return replace(claim, shared=DYNAMIC)
    return None if why.repeats else claim


def refuse_before_history(origin: str, why: Dependence) -> Verdict:
    """Return the verdict on a text that has no place in the layout `classic`."""
    return not_expanded(
        origin,
        f"{why.reason}, which changes with what is said, and its place is before the history;"
        " give it a depth, or use the layout cache, which puts it behind the history",
    )


def restrict_fragment(
    fragment: Fragment, why: Dependence | None, *, layout: Layout, counter: TokenCounter
) -> Fragment | Verdict:
    """Return the fragment where it may be placed, or the verdict that says why it is left out."""
    claim = restrict_claim(fragment.claim, why, layout=layout)
    if claim is fragment.claim or why is None:
        return fragment
    if claim is None:
        return refuse_before_history(fragment.claim.origin, why)
    memo, asked = fragment.message.memo, (fragment.claim, fragment.note, layout, counter)
    known = memo.get(_SETTLED)
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
    memo[_SETTLED] = asked, made
    return made


def restrict_fragments(
    made: Sequence[Fragment | Verdict],
    why: Mapping[int, Dependence],
    *,
    layout: Layout,
    counter: TokenCounter,
) -> list[Fragment | Verdict]:
    """Return what was made with each fragment where it may be placed; `why` is by index."""
    settled = [*made]
    for at, reason in why.items():
        one = made[at]
        if isinstance(one, Fragment):
            settled[at] = restrict_fragment(one, reason, layout=layout, counter=counter)
    return settled


def stable_values(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that a text may name which cannot move: not what is said, nor the time.

    It names the others as it was written. Such texts are formats and headings of a preset.
    """
    return {name: value for name, value in values.items() if name not in _SAID | CLOCKED}


def check_before_history(component: PromptComponent) -> None:
    """Refuse a component of a builder that names what is said now, or the time, before the history.

    A volatile component moves behind the history, and a disabled one is not in the prompt. Imported
    text is not refused: it moves when a prompt is composed (`restrict_claim`), and the report of
        its
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


def describe_dependence(text: str, *, trust: Trust = "imported") -> str:
    """Return what a report or a lint says about a text before the history; "" if it is settled."""
    try:
        why = template_dependence(compile_template(text, trust=trust))
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
