"""Logic in builders' texts: conditions, comparisons and filters in the syntax of Jinja2.

When a text is saved, `syntax` refuses most of Jinja2's syntax. Jinja2 renders what is allowed.
This module refuses texts that are too long to parse. It also replaces each macro that Jinja2
cannot parse, such as `{{roll:d6}}`, by a generated name whose value is the result of the macro. If
a text contains something that is neither a macro nor an expression, the error says how to write
it.
"""

import re
import traceback
from collections.abc import Container, Generator, Iterator
from typing import Final, cast

from jinja2 import StrictUndefined, Undefined, UndefinedError, nodes
from jinja2 import Template as JinjaTemplate
from jinja2.exceptions import TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.chunks import (
    Chunk,
    Run,
    Trim,
    Value,
    join_chunks,
    trim_line_breaks,
    work_of,
)
from evennia_ai.engine.prompt.templates.macros import block_remarks, split_chunks
from evennia_ai.engine.prompt.templates.syntax import (
    TEMPLATE_FILTERS,
    TEMPLATE_TESTS,
    check_syntax,
    count_passes,
)
from evennia_ai.engine.prompt.templates.value_names import KNOWN_NAMES, OUTLET
from evennia_ai.engine.prompt.templates.work import (
    COPIED_A_UNIT,
    LOGIC_WORK,
    MAX_FILLED,
    NODE_WORK,
    PASSED_A_UNIT,
    PLACED_MACRO_WORK,
    OutOfWorkError,
)

MAX_WORDS: Final = 500
"""The most tokens (names, numbers, strings, operators) in all `{{ }}` and `{% %}` of a text."""
MAX_BRACKETS: Final = 20
MAX_DIGITS: Final = 18
MAX_NAME: Final = 100
MAX_SOUGHT: Final = 99
"""The longest text, in characters, that `in` may look for in another text.

Python finds such a short text in one pass. For a longer text, the time may grow with the product of
both lengths."""
_MAX_PROBLEM: Final = 200
_SILENT: Final = frozenset(
    {"data", "whitespace", "raw_begin", "raw_end"}
    | {"comment", "comment_begin", "comment_end"}
    | {"linecomment", "linecomment_begin", "linecomment_end"}
)


def _is_in(sought: object, found_in: Container[object]) -> bool:
    """True if a text contains another one, or a list has it as an item.

    Raises:
        TemplateError: the text to search for is too long.
    """
    if isinstance(sought, Undefined):
        str(sought)  # raises Jinja2's error about an undefined value
    if isinstance(found_in, str) and isinstance(sought, str) and len(sought) > MAX_SOUGHT:
        raise TemplateError(f"'in' looks for at most {MAX_SOUGHT} characters; compare with ==")
    return sought in found_in


def _make_environment() -> ImmutableSandboxedEnvironment:
    # Jinja2's optimizer is off, because it needs a tenth of a second to find that a chain of
    # filters is not constant.
    environment = ImmutableSandboxedEnvironment(
        keep_trailing_newline=True, undefined=StrictUndefined, optimized=False
    )
    environment.globals = {}
    environment.filters = {name: environment.filters[name] for name in TEMPLATE_FILTERS}
    environment.tests = {name: environment.tests[name] for name in TEMPLATE_TESTS} | {"in": _is_in}
    return environment


_ENVIRONMENT: Final = _make_environment()


class _BoundSearches(NodeTransformer):
    """A visitor that replaces each `in` of a template by `_is_in`, which limits its work."""

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802 - Jinja2 defines the name
        self.generic_visit(node)
        [operand] = node.ops
        if operand.op not in ("in", "notin"):
            return node
        found = nodes.Test(node.expr, "in", [operand.expr], [], None, None, lineno=node.lineno)
        return found if operand.op == "in" else nodes.Not(found, lineno=node.lineno)


class CheckedLogic:
    """A template with logic, checked and compiled by Jinja2."""

    __slots__ = ("_passes", "_placed", "_template", "macros", "names", "work")

    def __init__(self, tree: nodes.Template, placed: dict[str, Chunk]) -> None:
        self._placed = placed
        self.macros = tuple(placed.values())
        """The macros in the template."""
        self.names = tuple(name for name in check_syntax(tree) if name not in placed)
        """The names of the values that the template reads outside macros."""
        nodes_below = sum(1 for _ in tree.find_all(nodes.Node))
        of_macros = PLACED_MACRO_WORK * len(placed) + work_of(self.macros)
        self.work = LOGIC_WORK + NODE_WORK * nodes_below + of_macros
        """The units of work of a rendering, not counting the lengths of values."""
        self._passes = count_passes(tree)
        code = _ENVIRONMENT.compile(_BoundSearches().visit(tree))
        self._template = JinjaTemplate.from_code(_ENVIRONMENT, code, {})

    def render(self, run: Run) -> str:
        """Render the template.

        Raises:
            TemplateError: the template reads a name without a value, compares a text with a number,
                or makes too much text. The error names the line.
            OutOfWorkError: the template needs more work than the turn has left.
        """
        read = {name: run.values[name] for name in self.names if name in run.values}
        passed = sum(len(read.get(name, "")) * times for name, times in self._passes.items())
        run.meter.pay(passed // PASSED_A_UNIT)
        made = _Made(run)
        macros = {name: _MacroValue(chunk, made) for name, chunk in self._placed.items()}
        context = self._template.new_context({**read, **macros}, shared=True)
        texts = cast(Generator[str, None, None], self._template.root_render_func(context))
        try:
            for text in texts:
                made.texts.append(text)
                made.length += len(text)
                # raised inside the template's code, so that the traceback shows the line
                if made.length > MAX_FILLED:
                    texts.throw(TemplateError(f"makes more than {MAX_FILLED} characters"))
        except OutOfWorkError as error:
            raise OutOfWorkError(line=self._line_of(error)) from error
        except (TemplateError, UndefinedError, TypeError) as error:
            problem = error.problem if isinstance(error, TemplateError) else str(error)
            if isinstance(error, TypeError):
                problem = "it has a number where a text is needed; write texts in quotes"
            raise TemplateError(
                f"cannot be rendered: {problem}", line=self._line_of(error)
            ) from error
        run.meter.pay(made.length // COPIED_A_UNIT)
        if not made.trims:
            return "".join(made.texts)
        return "".join(trim_line_breaks(made.texts, made.trims))

    def _line_of(self, error: Exception) -> int | None:
        """Return the line of the template at which rendering failed; None if it is not known."""
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_globals is self._template.root_render_func.__globals__:
                return self._template.get_corresponding_lineno(line)
        return None


class _Made:
    """The text rendered so far, and the places of `trim` macros in it."""

    __slots__ = ("length", "run", "texts", "trims")

    def __init__(self, run: Run) -> None:
        self.run = run
        self.texts: list[str] = []
        self.length = 0
        self.trims: list[int] = []


class _MacroValue:
    """The value that replaces a macro. The macro is expanded when Jinja2 renders the value."""

    __slots__ = ("_chunk", "_made")

    def __init__(self, chunk: Chunk, made: _Made) -> None:
        self._chunk = chunk
        self._made = made

    def __str__(self) -> str:
        if isinstance(self._chunk, Trim):
            self._made.trims.append(len(self._made.texts))
        return join_chunks((self._chunk,), self._made.run)


def compile_logic(source: str) -> CheckedLogic:
    """Compile a template with logic.

    Raises:
        TemplateError: the syntax is wrong or not allowed. The error names the line.
    """
    source = _without_block_remarks(source)
    named, placed = _without_macros(source)
    try:
        _check_size(named)
        return CheckedLogic(_ENVIRONMENT.parse(named), placed)
    except TemplateSyntaxError as error:
        problem = _suggest_form(named) or (error.message or "bad syntax")[:_MAX_PROBLEM]
        raise TemplateError(problem, line=error.lineno) from error
    except TemplateError as error:
        if meant := _suggest_form(named):
            raise TemplateError(meant, line=error.line) from error
        raise
    except RecursionError as error:
        raise TemplateError("is nested too deeply; take some of it out") from error


# A pattern for the start of a range in which no macros are searched (raw text, comment, statement),
# with one group for each kind, and patterns for the end of each kind
_OPENING: Final = re.compile(r"(\{%-?\s*raw\s*-?%\})|(\{#)|(\{%)")
_CLOSINGS: Final = (
    (1, re.compile(r"\{%-?\s*endraw\s*-?%\}")),
    (2, re.compile(r"#\}")),
    (3, re.compile(r"%\}")),
)


def _statements(source: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each raw text, comment and statement of Jinja2.

    If no end of one kind is found once, that kind is not searched again. So thousands of openings
    without an end take only one pass through the text.
    """
    unclosed: set[int] = set()
    at = 0
    while opened := _OPENING.search(source, at):
        at = opened.start() + 1
        for kind, closing in _CLOSINGS:
            # Without `{% endraw %}`, only the statement `{% raw %}` itself is skipped.
            if kind in unclosed or not (opened[kind] or (kind == 3 and opened[1])):
                continue
            closed = closing.search(source, opened.end(kind) if opened[kind] else at + 1)
            if closed is None:
                unclosed.add(kind)
            else:
                yield opened.start(), closed.end()
                at = closed.end()
                break


def _without_block_remarks(source: str) -> str:
    """Return the template with each remark `{{//}} ... {{///}}` as a Jinja2 comment.

    Jinja2 ignores comments, so statements such as `{% if %}` in a remark have no effect. Each
    comment has the length and the line breaks of its remark. Errors report line numbers, and the
    seed of a dice roll contains the offset of its macro, so neither may move.
    """
    if "{{" not in source or "/" not in source:
        return source
    seen = source
    for start, end in _statements(source):
        if not source.startswith("{%", start) or _RAW.match(source, start):
            seen = seen[:start] + " " * (end - start) + seen[end:]
    for start, end in block_remarks(seen):
        hidden = re.sub(r"[^\n]", " ", source[start + 2 : end - 2])
        source = f"{source[:start]}{{#{hidden}#}}{source[end:]}"
    return source


_RAW: Final = re.compile(r"\{%-?\s*raw\b")


def _without_macros(source: str) -> tuple[str, dict[str, Chunk]]:
    """Return the text with a generated name in place of each macro, and the macros by that name."""
    name = "macro_"
    while name in source:
        name += "_"
    placed: dict[str, Chunk] = {}
    made: list[str] = []
    done = 0
    for start, end in [*_statements(source), (len(source),) * 2]:
        for written, chunk in split_chunks(source[done:start], place=done):
            made.append(_jinja_source(written, chunk, placed, name))
        made.append(source[start:end])
        done = end
    return "".join(made), placed


def _jinja_source(written: str, chunk: Chunk, placed: dict[str, Chunk], name: str) -> str:
    """Return the text that Jinja2 parses in place of a chunk, and add its macro to `placed`."""
    if chunk == written:  # a text or an expression that Jinja2 can parse
        return written
    if isinstance(chunk, Value) and not chunk.name.startswith(OUTLET):
        return f"{{{{{chunk.name}}}}}" if chunk.name in KNOWN_NAMES else written
    placed[f"{name}{len(placed)}"] = chunk
    lines = "\n" * written.count("\n")  # keeps the line numbers in errors right
    return f"{{{{{name}{len(placed) - 1}{lines}}}}}"


# How to write each macro correctly, for error messages
_FORMS: Final = {
    **{
        f"{what}{kind}var": f"{{{{{what}{kind}var::name::value}}}}"
        for what in ("set", "add")
        for kind in ("", "global")
    },
    **{
        f"{what}{kind}var": f"{{{{{what}{kind}var::name}}}}"
        for what in ("get", "inc", "dec")
        for kind in ("", "global")
    },
    "random": "{{random::one::another}}",
    "pick": "{{pick::one::another}}",
    "roll": "{{roll:d6}}",
    "outlet": "{{outlet::name}}",
    "reverse": "{{reverse:text}}",
}
# Matches the start of a macro of another program, such as Handlebars. No expression of Jinja2
# starts like this, so the error message can suggest the right form.
_FOREIGN: Final = re.compile(
    r"\{\{\s*(?:([#/^>])\s*(\w*)|(\w+)(?:\s*::?|[ \t]+(?!is\b|in\b|if\b|not\b|and\b|or\b)[\w'\"]))"
)
_CONDITIONS: Final = frozenset({"if", "else", "unless", "each", "with"})


def _suggest_form(named: str) -> str:
    """Return advice for an error message on how to write a wrong macro; "" without advice.

    In `named`, generated names already replace all known macros.
    """
    done, outside = 0, []
    for start, end in _statements(named):
        outside.append(named[done:start])
        done = end
    found = _FOREIGN.search("".join((*outside, named[done:])))
    if found is None:
        return ""
    sign, name, plain = found.group(1, 2, 3)
    name = (name if sign else plain).lower()
    written = " ".join(found[0].split())[:40]
    if name in _CONDITIONS:
        way = "a condition is written {% if name == 'value' %}...{% endif %}"
    elif name in _FORMS:
        way = f"it is written {_FORMS[name]}, with its braces closed"
    else:
        way = "to send it as written, put it between {% raw %} and {% endraw %}"
    return f"'{written}' is neither a macro that is known here nor an expression of Jinja2: {way}"


def _check_size(source: str) -> None:
    """Check that a template is short enough to parse. Jinja2 itself has no limits."""
    words = depth = 0
    for line, kind, written in _ENVIRONMENT.lex(source):
        if kind in _SILENT:
            continue
        words += 1
        if words > MAX_WORDS:
            raise TemplateError(
                f"has more than {MAX_WORDS} words and signs in its {{{{ }}}} and {{% %}};"
                " split it into several components",
                line=line,
            )
        _check_word(kind, written, line)
        depth += _opened(kind, written)
        if depth > MAX_BRACKETS:
            raise TemplateError(
                f"its brackets are nested deeper than {MAX_BRACKETS} levels", line=line
            )


def _check_word(kind: str, written: str, line: int) -> None:
    if kind in ("integer", "float") and len(written) > MAX_DIGITS:
        raise TemplateError(f"a number has more than {MAX_DIGITS} digits", line=line)
    if kind == "name" and len(written) > MAX_NAME:
        raise TemplateError(f"a name has more than {MAX_NAME} characters", line=line)


def _opened(kind: str, written: str) -> int:
    if kind != "operator":
        return 0
    return (written in ("(", "[", "{")) - (written in (")", "]", "}"))
