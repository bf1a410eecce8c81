"""What the syntax of a template with logic may hold: told when it is saved, with the line.

Whatever passes here is known to `evaluation.py`, which bounds it again, because the lengths of
values are known only when it is rendered. A name that this check trusts (`range`,
`loop`) cannot be given another meaning by the template.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from jinja2 import nodes

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.operations import (
    FILTERS,
    TAKE_NOTHING,
    TESTS,
    TESTS_OF_TWO,
)
from evennia_ai.engine.prompt.templates.value_names import name_of

MAX_RANGE: Final = 100
MAX_LOOP_DEPTH: Final = 2
MAX_NESTING: Final = 50  # deeper than that neither Jinja nor Python can be trusted to go
MAX_SEPARATOR: Final = 20
_LOOP_WORDS: Final = ("index", "index0", "first", "last", "length")
_TRUSTED: Final = frozenset({"range", "loop"})
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What stands around a part of the syntax tree."""

    loops: tuple[nodes.For, ...] = ()
    bound: frozenset[str] = frozenset()
    """The names that the loops around give."""
    in_loop: bool = False
    """Whether `loop` means something here."""


def names_in(tree: nodes.Template) -> tuple[str, ...]:
    """The names of the values it reads; TemplateError for what a template may not hold."""
    names: set[str] = set()
    _check(tree, _Around(), names, level=0)
    return tuple(sorted(names))


def _check(node: nodes.Node, around: _Around, names: set[str], *, level: int) -> None:
    if level > MAX_NESTING:
        raise TemplateError(f"is nested deeper than {MAX_NESTING} levels", line=node.lineno)
    if not isinstance(node, _ALLOWED):
        what = _WORDS.get(type(node), type(node).__name__)
        raise TemplateError(f"{what} is not allowed in templates", line=node.lineno)
    if isinstance(node, nodes.For):
        _check_loop(node, around, names, level=level + 1)
    elif isinstance(node, nodes.Getattr):
        _check_loop_state(node, around)
    elif isinstance(node, nodes.Call):
        _check_range(node)
    elif isinstance(node, nodes.Name):
        _check_name(node, around, names)
    else:
        if type(node) in _CHECKS:
            _CHECKS[type(node)](node)
        for child in node.iter_child_nodes():
            _check(child, around, names, level=level + 1)


def _check_name(node: nodes.Name, around: _Around, names: set[str]) -> None:
    if node.name in _TRUSTED:
        uses = "range(3)" if node.name == "range" else "loop.index"
        raise TemplateError(
            f"{node.name} is no value; it is written as in {uses}", line=node.lineno
        )
    if node.name not in around.bound:
        names.add(name_of(node.name))


def _check_constant(node: nodes.Const) -> None:
    text = node.value
    if isinstance(text, str) and ("\0" in text or any("\ud800" <= c <= "\udfff" for c in text)):
        raise TemplateError(
            "a text in it has a null character or half a letter (\\0, \\ud800 to \\udfff);"
            " take it out",
            line=node.lineno,
        )


def _check_item(node: nodes.Getitem) -> None:
    if isinstance(node.arg, nodes.Const) and type(node.arg.value) is not int:
        raise TemplateError(
            "[...] takes a whole number: values are plain texts, and have letters by number",
            line=node.lineno,
        )


def _check_test(node: nodes.Test) -> None:
    if node.name not in TESTS:
        allowed = ", ".join(sorted(name for name in TESTS if name.isalpha()))
        raise TemplateError(
            f"test {_cut(node.name)} is not allowed; {allowed} are", line=node.lineno
        )
    wanted = 1 if node.name in TESTS_OF_TWO else 0
    plain = not node.kwargs and not node.dyn_args and not node.dyn_kwargs
    if not plain or len(node.args) != wanted:
        takes = "one value" if wanted else "nothing"
        raise TemplateError(f"test {node.name} takes {takes} behind it", line=node.lineno)


def _check_filter(node: nodes.Filter) -> None:
    if node.name not in FILTERS:
        allowed = ", ".join(sorted(FILTERS))
        raise TemplateError(
            f"filter {_cut(node.name)} is not allowed; {allowed} are", line=node.lineno
        )
    if len(node.args) > 1 or node.kwargs or node.dyn_args or node.dyn_kwargs:
        raise TemplateError(f"filter {node.name} takes one argument at most", line=node.lineno)
    if node.args and node.name in TAKE_NOTHING:
        raise TemplateError(f"filter {node.name} takes no argument", line=node.lineno)
    if node.name == "join" and not _joins_little(node):
        raise TemplateError(
            f"join takes a text of at most {MAX_SEPARATOR} characters, and no other join"
            " (each can multiply the text)",
            line=node.lineno,
        )


_CHECKS: Final[Mapping[type[nodes.Node], Callable[[Any], None]]] = {
    nodes.Const: _check_constant,
    nodes.Getitem: _check_item,
    nodes.Test: _check_test,
    nodes.Filter: _check_filter,
}


def _joins_little(node: nodes.Filter) -> bool:
    written = all(
        isinstance(a, nodes.Const) and isinstance(a.value, str) and len(a.value) <= MAX_SEPARATOR
        for a in node.args
    )
    return written and not any(inner.name == "join" for inner in node.find_all(nodes.Filter))


def _check_loop(node: nodes.For, around: _Around, names: set[str], *, level: int) -> None:
    loops = (*around.loops, node)
    if len(loops) > MAX_LOOP_DEPTH:
        raise TemplateError(f"loops may be {MAX_LOOP_DEPTH} deep at most", line=node.lineno)
    if node.recursive:
        raise TemplateError("recursive loops are not allowed", line=node.lineno)
    if sum(not _is_written_out(loop.iter) for loop in loops) > 1:
        raise TemplateError(
            "of nested loops only one may run over a value, the other over range or a list",
            line=node.lineno,
        )
    _check(node.iter, around, names, level=level)
    inner = replace(around, loops=loops, bound=around.bound | _bound_by(node))
    if node.test is not None:
        _check(node.test, replace(inner, in_loop=False), names, level=level)
    repeated = replace(inner, in_loop=True)
    for child in node.body:
        _check(child, repeated, names, level=level)
    for child in node.else_:
        _check(child, around, names, level=level)


def _bound_by(node: nodes.For) -> frozenset[str]:
    """The names that a loop gives; TemplateError where one is not for templates to give."""
    target = node.target
    found = [target] if isinstance(target, nodes.Name) else list(target.find_all(nodes.Name))
    for name in found:
        if name.name in _TRUSTED:
            raise TemplateError(
                f"{name.name} cannot be the name of a loop's item, because it means something"
                " else; choose another name",
                line=node.lineno,
            )
    return frozenset(name.name for name in found)


def _is_written_out(sequence: nodes.Node) -> bool:
    return isinstance(sequence, nodes.Call | nodes.List | nodes.Tuple)


def _check_loop_state(node: nodes.Getattr, around: _Around) -> None:
    if not (isinstance(node.node, nodes.Name) and node.node.name == "loop"):
        raise TemplateError(
            f".{_cut(node.attr)} is not allowed: values are plain texts", line=node.lineno
        )
    if node.attr not in _LOOP_WORDS:
        known = ", ".join(f"loop.{word}" for word in _LOOP_WORDS)
        raise TemplateError(f"loop.{_cut(node.attr)} is not known; {known} are", line=node.lineno)
    if not around.in_loop:
        raise TemplateError(
            f"loop.{node.attr} means something inside a loop alone", line=node.lineno
        )


def _check_range(node: nodes.Call) -> None:
    called = node.node
    if not (isinstance(called, nodes.Name) and called.name == "range"):
        raise TemplateError("calls are not allowed, except range", line=node.lineno)
    plain = not node.kwargs and not node.dyn_args and not node.dyn_kwargs
    small = all(
        isinstance(a, nodes.Const) and type(a.value) is int and a.value <= MAX_RANGE
        for a in node.args
    )
    if not (plain and small):
        raise TemplateError(
            f"range takes whole numbers written out, up to {MAX_RANGE}", line=node.lineno
        )
    if not 1 <= len(node.args) <= 3:
        raise TemplateError("range expected one to three whole numbers", line=node.lineno)
    if len(node.args) == 3 and cast(nodes.Const, node.args[2]).value == 0:
        raise TemplateError("range cannot go in steps of 0", line=node.lineno)


def _cut(word: str) -> str:
    return word if len(word) <= 30 else word[:30] + "..."
