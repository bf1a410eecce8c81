"""Logic in builders' texts: Jinja2 parses it, our own code checks its tree and renders it.

What may stand in it is in `allowed`, how it is rendered within limits of steps and characters in
`evaluation`; here is what is too much to be read at all.
"""

from collections.abc import Mapping
from typing import Final

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateSyntaxError

from evennia_ai.errors import TemplateError
from evennia_ai.prompt.templates.allowed import names_in
from evennia_ai.prompt.templates.evaluation import cost, writer
from evennia_ai.prompt.templates.operations import MAX_STEPS, Spending

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


class CheckedLogic:
    """A compiled and checked template with logic."""

    __slots__ = ("_write", "names")

    def __init__(self, tree: nodes.Template) -> None:
        self.names = names_in(tree)
        if cost(tree) > MAX_STEPS:
            raise TemplateError(
                f"may take more than {MAX_STEPS} steps; make its loops shorter, or what is in them"
            )
        self._write = writer(tree.body)

    def render(self, values: Mapping[str, str]) -> str:
        """The text; TemplateError with the line for an unknown name and for what cannot be done."""
        run = Spending(dict(values))
        try:
            self._write(run)
        except TemplateError as error:
            raise TemplateError(f"cannot be rendered: {error.problem}", line=run.line) from error
        return "".join(run.written)


def compile_logic(source: str) -> CheckedLogic:
    """The template; TemplateError with the line for bad syntax and for what is not allowed."""
    try:
        _check_size(source)
        tree = _ENVIRONMENT.parse(source)
    except TemplateSyntaxError as error:
        problem = (error.message or "bad syntax")[:_MAX_PROBLEM]
        raise TemplateError(problem, line=error.lineno) from error
    except RecursionError as error:
        raise TemplateError("is nested too deeply; take some of it out") from error
    return CheckedLogic(tree)


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
