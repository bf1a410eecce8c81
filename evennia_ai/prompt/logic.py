"""Builders' templates with logic: Jinja2, immutable sandbox, syntax tree checked first.

What the check refuses is what the sandbox lets through (measured: nested loops of 100,000 hang the
server, `'a' * 2e9` takes gigabytes, a method of an object in the values runs).
"""

from collections.abc import Mapping
from typing import Final

from jinja2 import StrictUndefined, nodes
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.exceptions import TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evennia_ai.prompt.errors import TemplateError

MAX_RANGE: Final = 100
MAX_LOOP_DEPTH: Final = 2
MAX_NESTING: Final = 50  # deeper than that neither Jinja nor Python can be trusted to go
MAX_OUTPUT: Final = 200_000
MAX_STEPS: Final = 200_000
"""Parts of a template that one rendering may go through: some 20 ms of the game's thread."""
VALUE_LENGTH: Final = 200  # what a loop over a value is taken for: values are names and the like
FILTER_STEPS: Final = 10
CHARACTERS_A_STEP: Final = 20
MAX_SEPARATOR: Final = 20
FILTERS: Final = frozenset(
    {"upper", "lower", "title", "capitalize", "trim", "default", "d", "join"}
    | {"length", "count", "first", "last", "sort", "unique"}
)
_ALLOWED: Final[tuple[type[nodes.Node], ...]] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.CondExpr,
    nodes.For,
    nodes.Name,
    nodes.Const,
    nodes.List,
    nodes.Tuple,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Neg,
    nodes.Add,
    nodes.Sub,
    nodes.Filter,
    nodes.Test,
    nodes.Getitem,
    nodes.Getattr,
    nodes.Call,
    nodes.Keyword,
)
_WORDS: Final[Mapping[type[nodes.Node], str]] = {
    nodes.Mul: "* (it can make huge texts)",
    nodes.Pow: "** (it can make huge numbers)",
    nodes.Mod: "% (it can make huge texts)",
    nodes.Concat: "~ (write the values one after the other)",
    nodes.Macro: "macro",
    nodes.CallBlock: "call",
    nodes.Import: "import",
    nodes.FromImport: "import",
    nodes.Include: "include",
    nodes.Extends: "extends",
    nodes.FilterBlock: "filter blocks",
    nodes.Assign: "set (a few lines of it can double a text without end)",
    nodes.AssignBlock: "set",
}


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["*", "**", "%"])


_ENVIRONMENT: Final = _Environment(
    undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True
)
_ENVIRONMENT.globals = {"range": _ENVIRONMENT.globals["range"]}  # the others name functions


class CheckedLogic:
    """A compiled and checked Jinja2 template."""

    __slots__ = ("_template", "names")

    def __init__(self, source: str, names: tuple[str, ...]) -> None:
        self.names = names
        self._template = _ENVIRONMENT.from_string(source)

    def render(self, values: Mapping[str, str]) -> str:
        """The text; TemplateError for an unknown name, a failing expression, too much output."""
        out: list[str] = []
        room = MAX_OUTPUT
        try:
            for piece in self._template.generate(dict(values)):
                out.append(piece)
                room -= len(piece)
                if room < 0:
                    raise TemplateError(f"makes more than {MAX_OUTPUT} characters")
        except (JinjaError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise TemplateError(f"cannot be rendered: {error}") from error
        return "".join(out)


def compile_logic(source: str) -> CheckedLogic:
    """The template; TemplateError with the line for bad syntax and for what is not allowed."""
    try:
        tree = _ENVIRONMENT.parse(source)
    except TemplateSyntaxError as error:
        raise TemplateError(error.message or "bad syntax", line=error.lineno) from error
    except RecursionError as error:
        raise TemplateError("is nested too deeply") from error
    _check(tree, loops=(), level=0)
    if _steps(tree) > MAX_STEPS:
        raise TemplateError(
            f"may take more than {MAX_STEPS} steps; make its loops shorter, or what is in them"
        )
    return CheckedLogic(source, tuple(sorted(find_undeclared_variables(tree) - {"range"})))


def _check(node: nodes.Node, *, loops: tuple[nodes.For, ...], level: int) -> None:
    if level > MAX_NESTING:
        raise TemplateError(f"is nested deeper than {MAX_NESTING} levels", line=node.lineno)
    if not isinstance(node, _ALLOWED):
        what = _WORDS.get(type(node), type(node).__name__)
        raise TemplateError(f"{what} is not allowed in templates", line=node.lineno)
    if isinstance(node, nodes.For):
        loops = (*loops, node)
        _check_loop(node, loops)
    elif isinstance(node, nodes.Filter):
        _check_filter(node)
    elif isinstance(node, nodes.Getattr) and not _is_loop_name(node):
        raise TemplateError(
            f".{node.attr} is not allowed: values are plain texts", line=node.lineno
        )
    elif isinstance(node, nodes.Call):
        _check_call(node)
    for child in node.iter_child_nodes():
        _check(child, loops=loops, level=level + 1)


def _check_filter(node: nodes.Filter) -> None:
    if node.name not in FILTERS:
        allowed = ", ".join(sorted(FILTERS))
        raise TemplateError(f"filter {node.name} is not allowed; {allowed} are", line=node.lineno)
    if len(node.args) > 1 or node.kwargs or node.dyn_args or node.dyn_kwargs:
        raise TemplateError(f"filter {node.name} takes one argument at most", line=node.lineno)
    if node.name == "join" and not _joins_little(node):
        raise TemplateError(
            f"join takes a text of at most {MAX_SEPARATOR} characters, and no other join"
            " (each can multiply the text)",
            line=node.lineno,
        )


def _joins_little(node: nodes.Filter) -> bool:
    written = all(
        isinstance(a, nodes.Const) and isinstance(a.value, str) and len(a.value) <= MAX_SEPARATOR
        for a in node.args
    )
    return written and not any(inner.name == "join" for inner in node.find_all(nodes.Filter))


def _check_loop(node: nodes.For, loops: tuple[nodes.For, ...]) -> None:
    if len(loops) > MAX_LOOP_DEPTH:
        raise TemplateError(f"loops may be {MAX_LOOP_DEPTH} deep at most", line=node.lineno)
    if node.recursive:
        raise TemplateError("recursive loops are not allowed", line=node.lineno)
    if sum(not _is_written_out(loop.iter) for loop in loops) > 1:
        raise TemplateError(
            "of nested loops only one may run over a value, the other over range or a list",
            line=node.lineno,
        )


def _steps(node: nodes.Node) -> int:
    """How many parts a rendering goes through at most; loops count as often as they run."""
    inner = sum(_steps(child) for child in node.iter_child_nodes())
    if isinstance(node, nodes.For):
        return 1 + max(1, _turns(node.iter)) * (1 + inner)
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        return 1 + len(node.value) // CHARACTERS_A_STEP
    return inner + (FILTER_STEPS if isinstance(node, nodes.Filter) else 1)


def _turns(sequence: nodes.Node) -> int:
    """How often a loop over `sequence`, which was checked, runs."""
    if isinstance(sequence, nodes.List | nodes.Tuple):
        return len(sequence.items)
    if isinstance(sequence, nodes.Call):
        written = (int(n.value) for n in sequence.args if isinstance(n, nodes.Const))
        return max(written, default=0)
    return VALUE_LENGTH


def _is_written_out(sequence: nodes.Node) -> bool:
    return isinstance(sequence, nodes.Call | nodes.List | nodes.Tuple)


def _is_loop_name(node: nodes.Getattr) -> bool:
    return (
        isinstance(node.node, nodes.Name)
        and node.node.name == "loop"
        and node.attr in {"index", "index0", "first", "last", "length"}
    )


def _check_call(node: nodes.Call) -> None:
    called = node.node
    if not (isinstance(called, nodes.Name) and called.name == "range"):
        raise TemplateError("calls are not allowed, except range", line=node.lineno)
    plain = not node.kwargs and not node.dyn_args and not node.dyn_kwargs
    small = all(
        isinstance(a, nodes.Const) and isinstance(a.value, int) and abs(a.value) <= MAX_RANGE
        for a in node.args
    )
    if not (plain and small):
        raise TemplateError(
            f"range takes whole numbers written out, up to {MAX_RANGE}", line=node.lineno
        )
