"""Templates: the text of a component or an entry, compiled once and rendered with values.

The trust in a text decides its language. Imported text (cards, lore, presets) only has macros
(`macros.py`). They are parsed once and expanded in a single pass: the result of a macro is never
expanded again, and an unknown macro stays as written. Text of builders and authors may also use
logic in the syntax of Jinja2. `syntax` checks it against a short list when the text is saved, and
Jinja2 renders it. Text without logic never reaches Jinja2, and text of players is never a template.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import filterfalse
from typing import Any, Final, NamedTuple, TypeVar

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
    Chunk,
    Chunks,
    Computed,
    Roll,
    Run,
    Special,
    TimeMacro,
    Value,
    VariableMacro,
    join_chunks,
    nested_chunks,
    work_of,
)
from evennia_ai.engine.prompt.templates.logic import CheckedLogic, compile_logic
from evennia_ai.engine.prompt.templates.macros import MAX_MACROS, count_macros, split_macros
from evennia_ai.engine.prompt.templates.value_names import CLOCK, OUTLET
from evennia_ai.engine.prompt.templates.variables import CHANGING, ONLY_SET, Variable, Variables
from evennia_ai.engine.prompt.templates.work import COPIED_A_UNIT, MAX_FILLED, TEXT_WORK, Meter

K = TypeVar("K")
# A text of up to this many chunks is joined first and its length is checked afterwards, which is
# faster. More chunks could make a huge text, so their lengths are added up before joining.
_FEW: Final = 16


def macro_indexes(chunks: Chunks) -> tuple[int, ...]:
    """Return the indexes of the chunks that are macros, not literal texts."""
    return tuple([at for at, chunk in enumerate(chunks) if not isinstance(chunk, str)])


def _fill_within_limit(chunks: Chunks, texts: list[str]) -> str:
    """Return the text with only the values that fit. The other names stay as written."""
    written = [p.written if isinstance(p, Value) else t for p, t in zip(chunks, texts, strict=True)]
    room = MAX_FILLED - sum(map(len, written))
    for index, text in enumerate(texts):
        grown = len(text) - len(written[index])
        if grown <= room:
            room -= grown
            written[index] = text
    return "".join(written)


MAX_SOURCE: Final = 50_000
"""The longest text of a builder or an author, in characters."""


class Uses(NamedTuple):
    """The values, random macros and variables that a text uses."""

    names: tuple[str, ...] = ()
    """The names of the values that the text reads, each once."""
    rolls: bool = False
    """True if the text has random macros."""
    rolls_each_turn: bool = False
    """True if the text has random macros whose result changes in each turn."""
    is_special: bool = False
    """True if the text has macros other than names and dice."""
    reads: frozenset[Variable] = frozenset()
    """The variables that the text reads, except those whose names contain macros."""
    sets: frozenset[Variable] = frozenset()
    """The variables that the text sets, except those whose names contain macros."""
    computes_names: bool = False
    """True if the name of a variable in the text contains macros."""
    has_variables: bool = False
    """True if the text reads or sets variables."""


_NAMES_ALONE: Final = frozenset({str, Value})


def uses_of(chunks: Sequence[Chunk]) -> Uses:
    """Return the values, random macros and variables that these chunks and inner chunks use."""
    if _NAMES_ALONE.issuperset(map(type, chunks)):  # most texts have no macros
        named = [chunk.name for chunk in chunks if isinstance(chunk, Value)]
        return Uses(tuple(dict.fromkeys(named)))
    names: dict[str, None] = {}
    dice: set[str] = set()
    special: list[Special] = []
    has_special = any(isinstance(chunk, SPECIAL) for chunk in chunks)
    for chunk in nested_chunks(chunks) if has_special else chunks:
        if isinstance(chunk, Value):
            names[chunk.name] = None
        elif isinstance(chunk, (Roll, Computed)):
            dice.add(chunk.name)
        elif isinstance(chunk, TimeMacro):
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
        has_variables=any(isinstance(chunk, VariableMacro) for chunk in special),
        **_variables([chunk for chunk in special if isinstance(chunk, VariableMacro)]),
    )


def _variables(changes: Sequence[VariableMacro]) -> dict[str, Any]:
    named = [(change.operation, change.variable) for change in changes]
    return {
        "reads": frozenset(name for operation, name in named if name and operation not in ONLY_SET),
        "sets": frozenset(name for operation, name in named if name and operation in CHANGING),
        "computes_names": any(name is None for _, name in named),
    }


@typed_frozen
class Template:
    """The text of a component or entry, compiled and ready to be rendered with values."""

    source: str
    uses: Uses = Uses()
    """The values, random macros and variables that the text uses."""
    chunks: Chunks = ()
    macros: tuple[int, ...] = ()
    """The indexes of the chunks that are macros."""
    logic: CheckedLogic | None = None
    is_checked: bool = False
    """True if a value that does not fit raises an error. If False, its name stays as written."""
    seed: str = ""
    """The hash of the text, which decides its random numbers; "" without random macros."""
    work: int = 0
    """The work of the macros and the logic, not counting the lengths of values."""

    # Only lore entries are serialised with templates, and lore is imported text. So the source is
    # enough to make the template again.
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
            values: The values that the text may name.
            dice: The random numbers for `random`, `pick` and `roll`.
            meter: The limit of work that all texts of a turn share. Without a meter, the text has a
                limit of its own, and imported text that exceeds it stays as written.
            variables: The variables of earlier texts. Variables that this text sets are added to
                them. None starts without variables.
            kept: The form of the values that is stored in variables, if it differs from `values`.

        Raises:
            TemplateError: the text cannot be rendered.
            OutOfWorkError: the text needs more work than the meter has left.
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
        """Expand a text that has only names and dice. A name without a value stays as written."""
        texts: list[Any] = [*self.chunks]
        for at in self.macros:
            macro = texts[at]
            if isinstance(macro, Value):
                texts[at] = values.get(macro.name, macro.written)
            else:
                texts[at] = ROLLERS[macro.name](macro.arguments, (self.seed, macro.place), dice)
        is_long = len(texts) > _FEW and sum(map(len, texts)) > MAX_FILLED
        text = "" if is_long else "".join(texts)
        if is_long or len(text) > MAX_FILLED:
            if self.is_checked:
                raise TemplateError(
                    f"makes more than {MAX_FILLED} characters; name its values less often"
                )
            text = _fill_within_limit(self.chunks, texts)
        meter.pay(len(text) // COPIED_A_UNIT)
        return text

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values that the text reads."""
        return self.uses.names

    @property
    def rolls(self) -> bool:
        """True if the text has random macros."""
        return self.uses.rolls

    @property
    def reads(self) -> bool:
        """True if the rendered text may differ from its source."""
        return self.logic is not None or self.chunks not in ((), (self.source,))

    @property
    def hidden_keys(self) -> tuple[str, ...]:
        """The texts of `{{hidden_key:...}}`, which only recursive scanning sees (Card V3)."""
        return tuple(
            chunk.arguments[0]
            for chunk in self.chunks
            if isinstance(chunk, Roll) and chunk.name == HIDDEN_KEY
        )

    def unknown(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names that the text reads but `values` lacks. They stay as written."""
        missing = tuple(filterfalse(values.__contains__, self.uses.names))
        return missing and tuple([name for name in missing if not name.startswith(OUTLET)])


def fill_each(
    templates: Mapping[K, Template], values: Mapping[str, str], dice: Dice, meter: Meter
) -> dict[K, str]:
    """Expand texts in which lore searches keys. If no work is left, they stay as written."""
    made: dict[K, str] = {}
    for key, template in templates.items():
        try:
            made[key] = template.render(values, dice, meter=meter)
        except TemplateError:
            made[key] = template.source
    return made


MOST_COMPILED: Final = 1_024
"""The number of compiled texts in the cache. Many NPCs have components with the same text."""
LONG_SOURCE: Final = 20_000
"""Texts with more characters have a smaller cache of their own, to limit the memory."""
MOST_LONG_COMPILED: Final = 64
"""The number of long compiled texts in the cache, enough for the cards and presets in use."""


def compile_template(source: str, *, trust: Trust) -> Template:
    """Compile a text. Equal texts share the result.

    Raises:
        TemplateError: the text is not a valid template, or uses syntax that is not allowed.
            Imported text and player text never raise it.
    """
    if trust == "imported" and "{{" not in source and "<" not in source and "\\" not in source:
        # Most imported texts have no macros. They skip the cache: the entries of a single book
        # would evict everything else from it.
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
        if imported:  # imports refuse such a text, so do not expand a stored one
            return Template(source=source, chunks=(source,))
        raise TemplateError(
            f"has {count} macros, and {MAX_MACROS} are the limit; split it into several"
        )
    text = split_macros(source, imported=imported)
    if imported or not (text.foreign or "{%" in source or "{#" in source):
        uses = uses_of(text.chunks)
        return Template(
            source=source,
            uses=uses,
            chunks=text.chunks,
            macros=macro_indexes(text.chunks),
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
    """Expand the macros of an imported text. Unknown names stay as written."""
    if count_macros(text) > MAX_MACROS:
        return text
    chunks = split_macros(text, imported=False).chunks
    uses = uses_of(chunks)
    template = Template(
        source=text,
        uses=uses,
        chunks=chunks,
        macros=macro_indexes(chunks),
        seed=_seed(text, uses),
        work=TEXT_WORK + work_of(chunks),
    )
    return template.render(values, dice)


_known_template: Final = lru_cache(maxsize=MOST_COMPILED)(_compiled)
_known_long: Final = lru_cache(maxsize=MOST_LONG_COMPILED)(_compiled)
