"""Templates: a component's or an entry's text, compiled once, rendered over plain values.

Trust decides the language. Imported text (cards, lore) knows the card standard's macros alone.
Builders' and authors' text may have the syntax of Jinja2 as well: its tree is checked, and our own
code renders it within limits of steps and characters. Text without logic never reaches Jinja.
Player text is never a template.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evennia_ai.errors import TemplateError
from evennia_ai.prompt import macros
from evennia_ai.prompt.components import Trust
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.logic import CheckedLogic, compile_logic

MAX_SOURCE: Final = 50_000
"""Characters that a builder's or an author's text may have: more than most models can read."""


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled text. `names` are the values it reads; `rolls` says whether it asks the dice."""

    source: str
    names: tuple[str, ...]
    rolls: bool
    pieces: tuple[macros.Piece, ...]
    logic: CheckedLogic | None = None
    told: bool = False
    """Whether its author is told what does not fit; in imported text it stays as it is written."""

    def render(self, values: Mapping[str, str], dice: Dice) -> str:
        """The text for these values; TemplateError where a builder's text cannot be rendered."""
        if self.logic is not None:
            return self.logic.render(values)
        try:
            return macros.fill(self.pieces, values=values, dice=dice, source=self.source)
        except macros.TooLongError as error:
            if self.told:
                raise TemplateError(f"{error}; name its values less often") from error
            return error.shortened

    @property
    def reads(self) -> bool:
        """Whether its text depends on anything but itself."""
        return bool(self.names) or self.rolls or self.logic is not None

    @property
    def differs_by_turn(self) -> bool:
        """Whether it says who speaks or rolls anew each turn."""
        if any(name == "speaker" or name.startswith(macros.OUTLET) for name in self.names):
            return True
        return any(
            isinstance(piece, macros.Roll) and piece.name in macros.ROLLED_EACH_TURN
            for piece in self.pieces
        )

    @property
    def hidden_keys(self) -> tuple[str, ...]:
        """What `{{hidden_key:...}}` in it holds: seen by recursive scanning alone (Card V3)."""
        return tuple(
            piece.argument.strip()
            for piece in self.pieces
            if isinstance(piece, macros.Roll) and piece.name == macros.HIDDEN_KEY
        )

    def unknown(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """Names this template reads that `values` does not have; they stay as written."""
        return tuple([n for n in self.names if n not in values and not n.startswith(macros.OUTLET)])


def compile_template(source: str, *, trust: Trust) -> Template:
    """`source` ready to render.

    TemplateError: the text is no valid template, or uses what templates may not use. Imported
    text and player text never raise.
    """
    if trust == "player":
        return Template(source, (), False, (source,))
    imported = trust == "imported"
    if not imported and len(source) > MAX_SOURCE:
        raise TemplateError(
            f"has {len(source)} characters, and {MAX_SOURCE} are the limit; split it into several"
        )
    text = macros.split(source, v1_names=imported)
    if not imported and (text.foreign or "{%" in source or "{#" in source):
        compiled = compile_logic(source)
        return Template(source, compiled.names, False, (), compiled)
    names = dict.fromkeys(p.name for p in text.pieces if isinstance(p, macros.Value))
    rolls = any(isinstance(p, macros.Roll) and p.name in macros.ROLLED for p in text.pieces)
    return Template(source, tuple(names), rolls, text.pieces, told=not imported)
