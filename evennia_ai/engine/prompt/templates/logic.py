"""Logic in builders' texts: Jinja2 parses it, our own code checks its tree and renders it.

What may stand in it is in `allowed`, how it is rendered within limits of steps and characters in
`evaluation`; here is what is too much to be read at all. Macros between it (`{{roll:d6}}`) are no
syntax of Jinja2: it reads a name in the place of each, whose value is what the macro gives there
and then. What is neither is told with the way it is written here.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateSyntaxError

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.allowed import names_in
from evennia_ai.engine.prompt.templates.chunks import (
    Chunk,
    Chunks,
    Noop,
    Run,
    Trim,
    Value,
    joined,
    without_breaks,
    work_of,
)
from evennia_ai.engine.prompt.templates.evaluation import Filled, cost, writer
from evennia_ai.engine.prompt.templates.macros import block_remarks, pieces
from evennia_ai.engine.prompt.templates.operations import MAX_STEPS, Spending
from evennia_ai.engine.prompt.templates.value_names import KNOWN_NAMES, OUTLET
from evennia_ai.engine.prompt.templates.work import OutOfWorkError

MAX_WORDS: Final = 500
"""Names, numbers, texts and signs inside its `{{ }}` and `{% %}`."""
MAX_BRACKETS: Final = 20
MAX_DIGITS: Final = 18
MAX_NAME: Final = 100
_MAX_PROBLEM: Final = 200
_SILENT: Final = frozenset(
    {"data", "whitespace", "raw_begin", "raw_end"}
    | {"comment", "comment_begin", "comment_end"}
    | {"linecomment", "linecomment_begin", "linecomment_end"}
)
_ENVIRONMENT: Final = Environment(keep_trailing_newline=True)  # noqa: S701 prompts are no HTML


class _Placed(NamedTuple):
    """A macro, and the work that filling it takes."""

    chunk: Chunk
    work: int


_PLACED_MACRO_WORK: Final = 60  # a macro in a loop costs about twice what one in plain text does


class CheckedLogic:
    """A compiled and checked template with logic; `macros` are those that stand in it."""

    __slots__ = ("_placed", "_write", "macros", "names")

    def __init__(self, tree: nodes.Template, placed: dict[str, _Placed]) -> None:
        self._placed = placed
        self.macros: Chunks = tuple(one.chunk for one in placed.values())
        self.names = tuple(name for name in names_in(tree) if name not in placed)
        if cost(tree) > MAX_STEPS:
            raise TemplateError(
                f"may take more than {MAX_STEPS} steps; make its loops shorter, or what is in them"
            )
        self._write = writer(tree.body)

    def render(self, run: Run) -> str:
        """The text; TemplateError with the line for an unknown name and for what cannot be done."""
        trims: list[int] = []
        noops: list[int] = []
        spending = Spending({**run.values, **self._macros(run, trims, noops)}, run.meter)
        try:
            self._write(spending)
        except OutOfWorkError as error:
            raise OutOfWorkError(line=spending.line) from error
        except TemplateError as error:
            problem = f"cannot be rendered: {error.problem}"
            raise TemplateError(problem, line=spending.line) from error
        written = spending.written
        return "".join(without_breaks(written, trims, noops) if trims else written)

    def _macros(self, run: Run, trims: list[int], noops: list[int]) -> dict[str, object]:
        """What the names stand for that were put in the places of macros."""

        def of(macro: _Placed) -> Filled:
            def text(spending: Spending) -> str:
                run.meter.pay(macro.work)
                if isinstance(macro.chunk, Trim):
                    trims.append(len(spending.written))
                elif isinstance(macro.chunk, Noop):
                    noops.append(len(spending.written))
                return joined((macro.chunk,), run)

            return Filled(text)

        return {name: of(macro) for name, macro in self._placed.items()}


def compile_logic(source: str) -> CheckedLogic:
    """The template; TemplateError with the line for bad syntax and for what is not allowed."""
    source = _without_block_remarks(source)
    named, placed = _without_macros(source)
    try:
        _check_size(named)
        return CheckedLogic(_ENVIRONMENT.parse(named), placed)
    except TemplateSyntaxError as error:
        problem = _meant(named) or (error.message or "bad syntax")[:_MAX_PROBLEM]
        raise TemplateError(problem, line=error.lineno) from error
    except TemplateError as error:
        if meant := _meant(named):
            raise TemplateError(meant, line=error.line) from error
        raise
    except RecursionError as error:
        raise TemplateError("is nested too deeply; take some of it out") from error


# What is not looked through for macros: how it begins, and how each kind of it ends.
_OPENING: Final = re.compile(r"(\{%-?\s*raw\s*-?%\})|(\{#)|(\{%)")
_CLOSINGS: Final = (
    (1, re.compile(r"\{%-?\s*endraw\s*-?%\}")),
    (2, re.compile(r"#\}")),
    (3, re.compile(r"%\}")),
)


def _statements(source: str) -> Iterator[tuple[int, int]]:
    """Yield where each statement, comment and raw text of Jinja2 begins and ends.

    A kind that is not closed once is not looked for again: thousands of openings without an end
    take one walk through the text, and not one walk each.
    """
    unclosed: set[int] = set()
    at = 0
    while opened := _OPENING.search(source, at):
        at = opened.start() + 1
        for kind, closing in _CLOSINGS:
            # A raw text without an end counts as the statement that begins it.
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
    """The text with a comment of Jinja2 in the place of each `{{//}} ... {{///}}`.

    Statements in a remark say nothing. The comment is as long and has as many lines, so that
    errors and dice keep their places.
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


def _without_macros(source: str) -> tuple[str, dict[str, _Placed]]:
    """The text with a name in the place of each macro, and which macro each name is for."""
    name = "macro_"
    while name in source:
        name += "_"
    placed: dict[str, _Placed] = {}
    made: list[str] = []
    done = 0
    for start, end in [*_statements(source), (len(source),) * 2]:
        for written, chunk in pieces(source[done:start], place=done):
            made.append(_named(written, chunk, placed, name))
        made.append(source[start:end])
        done = end
    return "".join(made), placed


def _named(written: str, chunk: Chunk, placed: dict[str, _Placed], name: str) -> str:
    """What Jinja2 reads in the place of a chunk."""
    if chunk == written:  # text, or an expression
        return written
    if isinstance(chunk, Value) and not chunk.name.startswith(OUTLET):
        return f"{{{{{chunk.name}}}}}" if chunk.name in KNOWN_NAMES else written
    placed[f"{name}{len(placed)}"] = _Placed(chunk, _PLACED_MACRO_WORK + work_of((chunk,)))
    lines = "\n" * written.count("\n")  # so that errors name the lines of the text
    return f"{{{{{name}{len(placed) - 1}{lines}}}}}"


# Macro -> how it is written.
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
# What begins like a macro of other programs and no expression of Jinja2 begins with.
_FOREIGN: Final = re.compile(
    r"\{\{\s*(?:([#/^>])\s*(\w*)|(\w+)(?:\s*::?|[ \t]+(?!is\b|in\b|if\b|not\b|and\b|or\b)[\w'\"]))"
)
_CONDITIONS: Final = frozenset({"if", "else", "unless", "each", "with"})


def _meant(named: str) -> str:
    """What an author may have meant who wrote a macro that is none, "" where there is no such.

    In the text names stand already for the macros that are known.
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
        way = "a condition is written {% if name == 'value' %}...{% endif %}, a loop {% for %}"
    elif name in _FORMS:
        way = f"it is written {_FORMS[name]}, with its braces closed"
    else:
        way = "to send it as it stands, put it between {% raw %} and {% endraw %}"
    return f"'{written}' is neither a macro that is known here nor an expression of Jinja2: {way}"


def _check_size(source: str) -> None:
    """Refuse what is too much to be read at all; Jinja2 itself takes whatever there is."""
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
