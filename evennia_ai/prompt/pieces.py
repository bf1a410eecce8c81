"""Pieces: texts that want to be in the prompt, expanded and counted, and how they are made.

A piece is immutable and remembered by what made it: a component whose values did not change gives
the same piece, with its message, its tokens and its verdict, turn after turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal

from evennia_ai.prompt.components import DYNAMIC_ID, HISTORY_ID, PromptComponent
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.errors import TemplateError
from evennia_ai.prompt.messages import Block, Message, Part, Role
from evennia_ai.prompt.template import Template, compile_template
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Verdict

Layout = Literal["cache", "classic"]


class Tier(IntEnum):
    """The order in which pieces are admitted under the budget; inside a tier priority decides."""

    REQUIRED = 0
    RESERVED = 1
    FLEXIBLE = 2
    MATCHED = 3
    YIELDING = 4  # dialogue examples: they go before any history goes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A message that several pieces share, each standing apart in it."""

    key: str
    id: int
    role: Role
    block: Block
    separator: str


DYNAMIC: Final = Joint(
    key="dynamic_context", id=DYNAMIC_ID, role="user", block="dynamic", separator="\n\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One expanded text.

    `depth` is None for a piece at its ID; else it stands in the history, counted from the newest
    message, or from the oldest where `from_oldest`. `joint` is the message it shares, None for
    one of its own. `fits` is the verdict the budget gives when it is kept.
    """

    origin: str
    id: int
    key: str
    message: Message
    tokens: int
    fits: Verdict
    depth: int | None = None
    from_oldest: bool = False
    order: int = 100
    joint: Joint | None = None
    tier: Tier = Tier.FLEXIBLE
    priority: int = 100
    revision: int = 0


def make_piece(
    text: str,
    *,
    origin: str,
    id: int,
    key: str,
    role: Role,
    counter: TokenCounter,
    depth: int | None = None,
    from_oldest: bool = False,
    order: int = 100,
    joint: Joint | None = None,
    tier: Tier = Tier.FLEXIBLE,
    priority: int = 100,
    revision: int = 0,
    note: str = "",
    cause: str | None = None,
) -> Piece:
    """`text` as a piece with its message, counted with `counter`.

    `note` joins the reason of its verdict; a piece of a joint costs its text and a separator, the
    joint's message is counted apart.
    """
    injected = depth is not None
    message = Message(
        role=role,
        content=text,
        block="history" if injected else "ordered",
        injected=injected,
        parts=(Part(origin=origin, start=0, end=len(text), revision=revision),),
    )
    tokens = counter.count(text) + 1 if joint else message.tokens(counter)
    reason = f"fits; {note}" if note else "fits"
    return Piece(
        origin=origin,
        id=id,
        key=key,
        message=message,
        tokens=tokens,
        fits=Verdict(
            stage="budget", item=origin, kept=True, reason=reason, tokens=tokens, cause=cause
        ),
        depth=depth,
        from_oldest=from_oldest,
        order=order,
        joint=joint,
        tier=tier,
        priority=priority,
        revision=revision,
    )


class CompiledComponent:
    """A component with its template compiled; remembers what it gave last."""

    __slots__ = ("_last", "_problem", "component", "origin", "template", "tier")

    def __init__(self, component: PromptComponent, *, tier: Tier = Tier.FLEXIBLE) -> None:
        self.component = component
        self.origin = f"component:{component.key}"
        self.tier = Tier.REQUIRED if component.required else tier
        self.template: Template | None = None
        self._problem: TemplateError | None = None
        self._last: tuple[object, Piece | Verdict] | None = None
        try:
            self.template = compile_template(component.content, trust=component.trust)
        except TemplateError as error:
            self._problem = error

    def expand(
        self, values: Mapping[str, str], *, dice: Dice, counter: TokenCounter, layout: Layout
    ) -> Piece | Verdict:
        """The piece for these values, or the verdict that says why there is none."""
        template = self.template
        if template is None:
            return self._no(f"template error: {self._problem}")
        seen = (
            [values.get(name) for name in template.names],
            dice if template.rolls else None,
            counter,
            layout,
        )
        last = self._last
        if last is not None and last[0] == seen:
            return last[1]
        made = self._expand(template, values, dice, counter, layout)
        self._last = (seen, made)
        return made

    def _expand(
        self,
        template: Template,
        values: Mapping[str, str],
        dice: Dice,
        counter: TokenCounter,
        layout: Layout,
    ) -> Piece | Verdict:
        component = self.component
        if not component.enabled:
            return self._no("disabled")
        try:
            text = template.render(values, dice)
        except TemplateError as error:
            return self._no(f"template error: {error}")
        if not text.strip():
            return self._no("empty")
        in_history = component.placement == "history"
        moved = moves_behind_history(component, layout)
        unknown = template.unknown(values)
        return make_piece(
            text,
            origin=self.origin,
            id=component.id,
            key=component.key,
            role=component.role,
            counter=counter,
            depth=component.injection_depth if in_history else None,
            order=component.injection_order,
            joint=DYNAMIC if moved else None,
            tier=self.tier,
            priority=component.priority,
            revision=component.revision,
            note=f"left as written: {', '.join(unknown)}" if unknown else "",
        )

    def _no(self, reason: str) -> Verdict:
        return Verdict(stage="expand", item=self.origin, kept=False, reason=reason)


def moves_behind_history(component: PromptComponent, layout: Layout) -> bool:
    """Whether a component leaves its ID for the dynamic message, to keep the head unchanged."""
    volatile = component.volatile and component.placement == "ordered"
    return volatile and layout == "cache" and component.id < HISTORY_ID
