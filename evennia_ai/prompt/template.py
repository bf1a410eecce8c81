"""Templates: a component's or an entry's text, compiled once, rendered over plain values.

Trust decides the language. Imported text (cards, lore) knows the card standard's macros alone.
Builders' and authors' text may be Jinja2 as well, in an immutable sandbox and only after its
syntax tree was checked, because the sandbox by itself does not stop nested loops, huge strings or
method calls. Text without logic never reaches Jinja. Player text is never a template.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from evennia_ai.prompt import macros
from evennia_ai.prompt.components import Trust
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.logic import CheckedLogic, compile_logic


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled text. `names` are the values it reads; `rolls` says whether it asks the dice."""

    source: str
    names: tuple[str, ...]
    rolls: bool
    pieces: tuple[macros.Piece, ...]
    logic: CheckedLogic | None = None

    def render(self, values: Mapping[str, str], dice: Dice) -> str:
        """The text for these values; TemplateError where builders' logic cannot be rendered."""
        if self.logic is not None:
            return self.logic.render(values)
        return macros.fill(self.pieces, values=values, dice=dice, source=self.source)

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
    text = macros.split(source, v1_names=imported)
    if not imported and (text.foreign or "{%" in source or "{#" in source):
        compiled = compile_logic(source)
        return Template(source, compiled.names, False, (), compiled)
    names = dict.fromkeys(p.name for p in text.pieces if isinstance(p, macros.Value))
    rolls = any(isinstance(p, macros.Roll) and p.name in macros.ROLLED for p in text.pieces)
    return Template(source, tuple(names), rolls, text.pieces)
