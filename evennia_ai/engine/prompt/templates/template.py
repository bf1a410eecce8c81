"""Templates: the text of a component or an entry, compiled once and rendered over plain values.

Trust decides the language. Imported text (cards, lore, presets) only has macros (`macros.py`). They
are split out once and filled in by a single pass: the result of a macro is never expanded again,
and an unknown macro stays as written. Text of builders and authors may also have the syntax of
Jinja2. `syntax` checks it against a short list when it is saved, and Jinja2 renders it. Text
without logic never reaches Jinja2, and player text is never a template.
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
    join_chunks,
    nested_chunks,
    work_of,
)
from evennia_ai.engine.prompt.templates.logic import CheckedLogic, compile_logic
from evennia_ai.engine.prompt.templates.macros import MAX_MACROS, count_macros, split_macros
from evennia_ai.engine.prompt.templates.value_names import CLOCK, OUTLET
from evennia_ai.engine.prompt.templates.variables import Variable, Variables
from evennia_ai.engine.prompt.templates.work import COPIED_A_UNIT, MAX_FILLED, TEXT_WORK, Meter

K = TypeVar("K")
_LOGIC: Final = re.compile(r"\{[%#]")
# Up to this many chunks are joined before their length is checked, which is faster. More of them
# could make too large a text.
_FEW: Final = 16


def fill_chunks(
    chunks: tuple[Plain, ...], *, values: Mapping[str, str], dice: Dice, seed: str
) -> str:
    """Return the chunks as text. A name without a value stays as written.

    Raises:
        TooLongError: repeated names make more than MAX_FILLED characters.
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
    """A text that would have more than MAX_FILLED characters.

    `shortened` is that text, in which names whose values do not fit stay as written.
    """

    def __init__(self, shortened: str) -> None:
        self.shortened = shortened
        super().__init__(f"makes more than {MAX_FILLED} characters")


def _within(chunks: tuple[Plain, ...], texts: list[str]) -> str:
    """Return the text with the values that fit, and other names as written."""
    written = [p.written if isinstance(p, Value) else t for p, t in zip(chunks, texts, strict=True)]
    room = MAX_FILLED - sum(map(len, written))
    for index, text in enumerate(texts):
        grown = len(text) - len(written[index])
        if grown <= room:
            room -= grown
            written[index] = text
    return "".join(written)


MAX_SOURCE: Final = 50_000
"""The longest text of a builder or an author, in characters: more than most models can read."""


class Uses(NamedTuple):
    """The values, dice and variables that the chunks of a text use."""

    names: tuple[str, ...] = ()
    """The names of the values that it reads, each once."""
    rolls: bool = False
    """True if it rolls dice."""
    rolls_each_turn: bool = False
    """True if it rolls dice that fall again in each turn."""
    is_special: bool = False
    """True if it has more than names and dice."""
    reads: frozenset[Variable] = frozenset()
    """The variables that it reads, as far as their names are written in it."""
    sets: frozenset[Variable] = frozenset()
    """The variables that it sets, as far as their names are written in it."""
    computes_names: bool = False
    """True if the name of a variable in it is made from values."""
    has_variables: bool = False
    """True if it reads or sets variables."""


_NAMES_ALONE: Final = frozenset({str, Value})


def uses_of(chunks: Sequence[Chunk]) -> Uses:
    """Return the values, dice and variables that these chunks, and those inside them, use."""
    if _NAMES_ALONE.issuperset(map(type, chunks)):  # in nearly all texts
        named = [chunk.name for chunk in chunks if isinstance(chunk, Value)]
        return Uses(tuple(dict.fromkeys(named)))
    names: dict[str, None] = {}
    dice: set[str] = set()
    special: list[Special] = []
    has_special = any(isinstance(chunk, SPECIAL) for chunk in chunks)
    for chunk in nested_chunks(chunks) if has_special else chunks:
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
    """A compiled text."""

    source: str
    uses: Uses = Uses()
    """The values, dice and variables that it uses."""
    chunks: Chunks = ()
    logic: CheckedLogic | None = None
    is_checked: bool = False
    """True if its author gets an error for what does not fit. Imported text stays as written."""
    seed: str = ""
    """The hash of the text for its dice, "" without dice. It is computed only once."""
    work: int = 0
    """The units of work for its macros and logic, without the values."""

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
        """Render the text.

        Args:
            values: The values that it may name.
            dice: The dice of `random`, `pick` and `roll`.
            meter: The work that the texts of one turn share. Without one, the text has a limit of
                its own, and imported text that is too expensive stays as written.
            variables: The variables of other texts, which also take those of this one. Without
                them, the text has its own.
            kept: The values that go into variables, if they differ.

        Raises:
            TemplateError: it cannot be rendered.
            OutOfWorkError: it needs more work than the meter has left.
        """
        paid = meter or Meter()
        try:
            paid.pay(self.work)
            if self.logic is None and not self.uses.is_special:
                return self._filled(values, dice, paid)
            if variables is None:
                variables = Variables(meter=paid)
            run = Run(values, dice, self.seed, variables, values if kept is None else kept, paid)
            return join_chunks(self.chunks, run) if self.logic is None else self.logic.render(run)
        except TemplateError:
            if self.is_checked or meter is not None:
                raise
            return self.source

    def _filled(self, values: Mapping[str, str], dice: Dice, meter: Meter) -> str:
        try:
            chunks = cast(tuple[Plain, ...], self.chunks)  # nothing of it is special
            text = fill_chunks(chunks, values=values, dice=dice, seed=self.seed)
        except TooLongError as error:
            if self.is_checked:
                raise TemplateError(f"{error}; name its values less often") from error
            text = error.shortened
        meter.pay(len(text) // COPIED_A_UNIT)
        return text

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values that it reads."""
        return self.uses.names

    @property
    def rolls(self) -> bool:
        """True if it rolls dice."""
        return self.uses.rolls

    @property
    def reads(self) -> bool:
        """True if the rendered text may differ from its source."""
        return self.logic is not None or self.chunks not in ((), (self.source,))

    @property
    def hidden_keys(self) -> tuple[str, ...]:
        """The texts of `{{hidden_key:...}}`, which only recursive scanning sees (Card V3)."""
        return tuple(
            chunk.argument.strip()
            for chunk in self.chunks
            if isinstance(chunk, Roll) and chunk.name == HIDDEN_KEY
        )

    def unknown(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names that it reads and `values` does not have. They stay as written."""
        return tuple([n for n in self.names if n not in values and not n.startswith(OUTLET)])


def fill_each(
    templates: Mapping[K, Template], values: Mapping[str, str], dice: Dice, meter: Meter
) -> dict[K, str]:
    """Return texts filled in for searching. Texts for which no work is left stay as written."""
    made: dict[K, str] = {}
    for key, template in templates.items():
        try:
            made[key] = template.render(values, dice, meter=meter)
        except TemplateError:
            made[key] = template.source
    return made


MOST_COMPILED: Final = 1_024
"""The number of texts that are kept compiled. Components of many NPCs have the same text."""
LONG_SOURCE: Final = 20_000
"""Few texts of at least this many characters are kept compiled, to limit the memory."""
MOST_LONG_COMPILED: Final = 64
"""The number of these: enough for the cards and presets that a game plays at one time."""


def compile_template(source: str, *, trust: Trust) -> Template:
    """Compile a text. Equal texts share the result.

    Raises:
        TemplateError: the text is not a valid template, or uses syntax that is not allowed.
            Imported text and player text never raise it.
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
    """Return imported text with its macros filled in and unknown names as written."""
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
