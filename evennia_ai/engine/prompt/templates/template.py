"""Templates: a component's or an entry's text, compiled once, rendered over plain values.

Trust decides the language. Imported text (cards, lore, presets) knows macros alone (`macros.py`):
they are split out once and filled in a single pass, a macro's result is never expanded again, an
unknown macro stays as it is written. Builders' and authors' text may have the syntax of Jinja2 as
well, beside the same macros. `allowed` checks its tree against a short list when it is saved, and
Jinja2 renders what passes. Text without logic never reaches Jinja, and player text is never a
template.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar, cast

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.foreign.fields import plain_form
from evennia_ai.engine.prompt.dice import Dice, seed_of
from evennia_ai.engine.prompt.memo import typed_frozen
from evennia_ai.engine.prompt.messages import Trust
from evennia_ai.engine.prompt.templates.chunks import (
    HIDDEN_KEY,
    ROLLED,
    ROLLED_EACH_TURN,
    ROLLERS,
    SPECIAL,
    Change,
    Choice,
    Chunk,
    Chunks,
    Computed,
    Moment,
    Plain,
    Roll,
    Run,
    Special,
    Value,
    inside,
    joined,
    work_of,
)
from evennia_ai.engine.prompt.templates.logic import CheckedLogic, compile_logic
from evennia_ai.engine.prompt.templates.macros import MAX_MACROS, count_macros, split_macros
from evennia_ai.engine.prompt.templates.value_names import CLOCK, OUTLET
from evennia_ai.engine.prompt.templates.variables import Variable, Variables
from evennia_ai.engine.prompt.templates.work import COPIED_A_UNIT, MAX_FILLED, TEXT_WORK, Meter

K = TypeVar("K")
_LOGIC: Final = re.compile(r"\{[%#]")
# As many chunks are joined first and counted then, which is quicker; more could make too much.
_FEW: Final = 16


def filled(chunks: tuple[Plain, ...], *, values: Mapping[str, str], dice: Dice, seed: str) -> str:
    """The chunks as text; a name without a value stays as it was written.

    TooLongError: names that stand in it many times make more than MAX_FILLED characters.
    """
    texts = [
        chunk
        if isinstance(chunk, str)
        else values.get(chunk.name, chunk.written)
        if isinstance(chunk, Value)
        else ROLLERS[chunk.name](chunk.argument, (seed, chunk.place), dice)
        for chunk in chunks
    ]
    if len(texts) > _FEW and sum(map(len, texts)) > MAX_FILLED:
        raise TooLongError(_within(chunks, texts))
    text = "".join(texts)
    if len(text) > MAX_FILLED:
        raise TooLongError(_within(chunks, texts))
    return text


class TooLongError(Exception):
    """Filled in, a text would have more than MAX_FILLED characters.

    `shortened` is that text with the names left as they are written which find no room in it.
    """

    def __init__(self, shortened: str) -> None:
        self.shortened = shortened
        super().__init__(f"makes more than {MAX_FILLED} characters")


def _within(chunks: tuple[Plain, ...], texts: list[str]) -> str:
    written = [p.written if isinstance(p, Value) else t for p, t in zip(chunks, texts, strict=True)]
    room = MAX_FILLED - sum(map(len, written))
    for index, text in enumerate(texts):
        grown = len(text) - len(written[index])
        if grown <= room:
            room -= grown
            written[index] = text
    return "".join(written)


MAX_SOURCE: Final = 50_000
"""Characters that a builder's or an author's text may have: more than most models can read."""


class Uses(NamedTuple):
    """What the chunks of a text depend on, and what they leave to the texts behind it."""

    names: tuple[str, ...] = ()
    """Of the values it reads, each once."""
    rolls: bool = False
    """Whether it asks the dice."""
    rolls_each_turn: bool = False
    """Whether it asks dice that fall anew in each turn."""
    is_special: bool = False
    """Whether it has more than names and dice."""
    reads: frozenset[Variable] = frozenset()
    sets: frozenset[Variable] = frozenset()
    """The variables whose names are written in it."""
    computes_names: bool = False
    """Whether a variable in it has a name that is made of values."""
    has_variables: bool = False
    """Whether it reads or sets variables."""


_NAMES_ALONE: Final = frozenset({str, Value})


def uses_of(chunks: Sequence[Chunk]) -> Uses:
    """What these chunks, and those inside them, use."""
    if _NAMES_ALONE.issuperset(map(type, chunks)):  # in nearly all texts
        named = [chunk.name for chunk in chunks if isinstance(chunk, Value)]
        return Uses(tuple(dict.fromkeys(named)))
    names: dict[str, None] = {}
    dice: set[str] = set()
    special: list[Special] = []
    has_special = any(isinstance(chunk, SPECIAL) for chunk in chunks)
    for chunk in inside(chunks) if has_special else chunks:
        if isinstance(chunk, Value):
            names[chunk.name] = None
        elif isinstance(chunk, (Roll, Choice, Computed)):
            dice.add(chunk.name)
        elif isinstance(chunk, Moment):
            names[CLOCK] = None
        if has_special and isinstance(chunk, SPECIAL):
            special.append(chunk)
    rolled = dice & ROLLED
    if not special:
        return Uses(tuple(names), bool(rolled), bool(rolled & ROLLED_EACH_TURN))
    return Uses(
        names=tuple(names),
        rolls=bool(rolled),
        rolls_each_turn=bool(rolled & ROLLED_EACH_TURN),
        is_special=True,
        has_variables=any(isinstance(chunk, Change) for chunk in special),
        **_variables([chunk for chunk in special if isinstance(chunk, Change)]),
    )


def _variables(changes: Sequence[Change]) -> dict[str, Any]:
    named = [(change.operation, change.variable) for change in changes]
    return {
        "reads": frozenset(name for operation, name in named if name and operation != "set"),
        "sets": frozenset(name for operation, name in named if name and operation != "get"),
        "computes_names": any(name is None for _, name in named),
    }


@typed_frozen
class Template:
    """A compiled text and what it uses."""

    source: str
    uses: Uses = Uses()
    chunks: Chunks = ()
    logic: CheckedLogic | None = None
    is_checked: bool = False
    """Whether its author is told what does not fit; in imported text it stays as it is written."""
    seed: str = ""
    """What its dice are thrown for, "" without any: made once, however many dice there are."""
    work: int = 0
    """Units of work that are paid at first: all of its macros and logic, without the values."""

    # Only entries of lore have templates as values, and lore is imported text.
    __get_pydantic_core_schema__ = plain_form(
        lambda: str,
        written=lambda template: template.source,
        made=lambda source: compile_template(source, trust="imported"),
    )

    def render(
        self,
        values: Mapping[str, str],
        dice: Dice,
        *,
        meter: Meter | None = None,
        variables: Variables | None = None,
        kept: Mapping[str, str] | None = None,
    ) -> str:
        """Return the text for these values.

        Args:
            values: What it may name.
            dice: What its dice, `random` and `pick` fall by.
            meter: The work that the texts of one turn share. Without one the text is by itself:
                it has a limit of its own, and imported text that is too much stays as written.
            variables: What other texts set; they take what this one sets. Without them the text
                has its own.
            kept: The values that go into variables, where those are others.

        Raises:
            TemplateError: It cannot be rendered.
            OutOfWorkError: It needs more work than the meter has left.
        """
        paid = meter or Meter()
        try:
            paid.pay(self.work)
            if self.logic is None and not self.uses.is_special:
                return self._filled(values, dice, paid)
            if variables is None:
                variables = Variables(meter=paid)
            run = Run(values, dice, self.seed, variables, values if kept is None else kept, paid)
            return joined(self.chunks, run) if self.logic is None else self.logic.render(run)
        except TemplateError:
            if self.is_checked or meter is not None:
                raise
            return self.source

    def _filled(self, values: Mapping[str, str], dice: Dice, meter: Meter) -> str:
        try:
            chunks = cast(tuple[Plain, ...], self.chunks)  # nothing of it is special
            text = filled(chunks, values=values, dice=dice, seed=self.seed)
        except TooLongError as error:
            if self.is_checked:
                raise TemplateError(f"{error}; name its values less often") from error
            text = error.shortened
        meter.pay(len(text) // COPIED_A_UNIT)
        return text

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values it reads."""
        return self.uses.names

    @property
    def rolls(self) -> bool:
        """Whether it asks the dice."""
        return self.uses.rolls

    @property
    def reads(self) -> bool:
        """True if what it renders may be another text than its source."""
        return self.logic is not None or self.chunks not in ((), (self.source,))

    @property
    def hidden_keys(self) -> tuple[str, ...]:
        """What `{{hidden_key:...}}` in it holds: seen by recursive scanning alone (Card V3)."""
        return tuple(
            chunk.argument.strip()
            for chunk in self.chunks
            if isinstance(chunk, Roll) and chunk.name == HIDDEN_KEY
        )

    def unknown(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """Names this template reads that `values` does not have; they stay as written."""
        return tuple([n for n in self.names if n not in values and not n.startswith(OUTLET)])


def fill_each(
    templates: Mapping[K, Template], values: Mapping[str, str], dice: Dice, meter: Meter
) -> dict[K, str]:
    """Return texts filled in that are only searched; those beyond the meter stay as written."""
    made: dict[K, str] = {}
    for key, template in templates.items():
        try:
            made[key] = template.render(values, dice, meter=meter)
        except TemplateError:
            made[key] = template.source
    return made


MOST_COMPILED: Final = 1_024
"""Texts that are kept compiled for all who use them: components of many NPCs have the same."""
LONG_SOURCE: Final = 20_000
"""Characters of a text from which on few are kept compiled, so that what is kept has a bound."""
MOST_LONG_COMPILED: Final = 64
"""How many of those are kept: enough for the cards and presets that a game plays at one time."""


def compile_template(source: str, *, trust: Trust) -> Template:
    """`source` ready to render; equal texts share what is compiled.

    TemplateError: the text is no valid template, or uses what templates may not use. Imported
    text and player text never raise.
    """
    if trust == "imported" and "{{" not in source and "<" not in source:
        # Most have nothing to fill in, and those of one book would drive out all that is kept.
        return Template(source=source, chunks=(source,) if source else ())
    return (_known_long if len(source) > LONG_SOURCE else _known_template)(source, trust)


def _compiled(source: str, trust: Trust) -> Template:
    if trust == "player":
        return Template(source=source, chunks=(source,))
    imported = trust == "imported"
    if not imported and len(source) > MAX_SOURCE:
        raise TemplateError(
            f"has {len(source)} characters, and {MAX_SOURCE} are the limit; split it into several"
        )
    if (count := count_macros(source)) > MAX_MACROS:
        if imported:  # its import refuses it; what is stored all the same stays as it is written
            return Template(source=source, chunks=(source,))
        raise TemplateError(
            f"has {count} macros, and {MAX_MACROS} are the limit; split it into several"
        )
    text = split_macros(source, v1_names=imported)
    if imported or not (text.foreign or _LOGIC.search(source)):
        uses = uses_of(text.chunks)
        return Template(
            source=source,
            uses=uses,
            chunks=text.chunks,
            is_checked=not imported,
            seed=_seed(source, uses),
            work=TEXT_WORK + work_of(text.chunks),
        )
    logic = compile_logic(source)
    uses = uses_of(logic.macros)
    uses = uses._replace(names=tuple(dict.fromkeys((*logic.names, *uses.names))))
    return Template(
        source=source,
        uses=uses,
        logic=logic,
        is_checked=True,
        seed=_seed(source, uses),
        work=logic.work,
    )


def _seed(source: str, uses: Uses) -> str:
    return seed_of(source) if uses.rolls else ""


def expand_imported(text: str, *, values: Mapping[str, str], dice: Dice) -> str:
    """A text nobody vouches for, with its macros filled and other names as they are written."""
    if count_macros(text) > MAX_MACROS:
        return text
    chunks = split_macros(text, v1_names=False).chunks
    uses = uses_of(chunks)
    template = Template(
        source=text,
        uses=uses,
        chunks=chunks,
        seed=_seed(text, uses),
        work=TEXT_WORK + work_of(chunks),
    )
    return template.render(values, dice)


_known_template: Final = lru_cache(maxsize=MOST_COMPILED)(_compiled)
_known_long: Final = lru_cache(maxsize=MOST_LONG_COMPILED)(_compiled)
