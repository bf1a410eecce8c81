"""The syntax that a template with logic may use, checked when a builder saves it.

The list of allowed syntax is so short that Jinja2 can render the template safely. It has no loops,
no calls, no arithmetic, and no access to parts of a value. So the time of a rendering is at most
proportional to the length of the template times the lengths of its values. No template can reach a
method, a class or an attribute.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from jinja2 import nodes

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.value_names import name_of

MAX_NESTING: Final = 50  # deeper trees may exceed the recursion limit of Python
TEMPLATE_FILTERS: Final[Mapping[str, int]] = {
    "upper": 0,
    "lower": 0,
    "capitalize": 0,
    "trim": 0,
    "length": 0,
    "default": 1,
}
"""The allowed filters, each with the most arguments that it takes."""
TEMPLATE_TESTS: Final = ("defined", "undefined")
_ALLOWED: Final[tuple[type[nodes.Node], ...]] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.CondExpr,
    nodes.Name,
    nodes.Const,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Filter,
    nodes.Test,
)
_ONE_AFTER_ANOTHER: Final = "write the values one after the other"
_NO_CALCULATION: Final = "templates do not calculate; write the result"
_PLAIN_TEXTS: Final = "values are plain texts without parts; write the name of the value"
_IN_PLACE: Final = "write its text at that place"
# By kind of refused syntax: its name in error messages, and what to use instead
_REFUSED: Final[Mapping[type[nodes.Node], tuple[str, str]]] = {
    nodes.For: ("a loop ({% for %})", "write each case out, with {% if %} where it depends"),
    nodes.Assign: ("{% set %}", "write {{setvar::name::value}}"),
    nodes.AssignBlock: ("{% set %}", "write {{setvar::name::value}}"),
    nodes.List: ("a list", "lists are allowed after 'in' only"),
    nodes.Tuple: ("a list", "lists are allowed after 'in' only"),
    nodes.Dict: ("a dictionary", "write conditions with {% if %}"),
    nodes.Add: ("+", _ONE_AFTER_ANOTHER),
    nodes.Concat: ("~", _ONE_AFTER_ANOTHER),
    nodes.Sub: ("-", _NO_CALCULATION),
    nodes.Neg: ("-", _NO_CALCULATION),
    nodes.Pos: ("+", _NO_CALCULATION),
    nodes.Mul: ("*", _NO_CALCULATION),
    nodes.Pow: ("**", _NO_CALCULATION),
    nodes.Div: ("/", _NO_CALCULATION),
    nodes.FloorDiv: ("//", _NO_CALCULATION),
    nodes.Mod: ("%", _NO_CALCULATION),
    nodes.Getattr: ("a dot after a value", _PLAIN_TEXTS),
    nodes.Getitem: ("[...] after a value", _PLAIN_TEXTS),
    nodes.Call: ("a call with (...)", "write a filter, as in {{ user | upper }}"),
    nodes.Macro: ("{% macro %}", _IN_PLACE),
    nodes.CallBlock: ("{% call %}", _IN_PLACE),
    nodes.Block: ("{% block %}", _IN_PLACE),
    nodes.Import: ("{% import %}", _IN_PLACE),
    nodes.FromImport: ("{% import %}", _IN_PLACE),
    nodes.Include: ("{% include %}", _IN_PLACE),
    nodes.Extends: ("{% extends %}", _IN_PLACE),
    nodes.With: ("{% with %}", "write {{setvar::name::value}}"),
    nodes.FilterBlock: ("{% filter %}", "write the filter after each value"),
}
_OTHERWISE: Final = "write names, conditions, comparisons and filters"


def check_syntax(tree: nodes.Template) -> tuple[str, ...]:
    """Check the syntax of a template and return the sorted names of the values that it reads.

    Names in the tree are changed to the spelling of values: `CHAR` becomes `char`.

    Raises:
        TemplateError: the template uses syntax that is not on the list. The error names the line,
            the syntax, and what to write instead.
    """
    _check(tree, level=0)
    return tuple(sorted({node.name for node in tree.find_all(nodes.Name)}))


def count_passes(tree: nodes.Template) -> Counter[str]:
    """Return how often a rendering reads each value at most, by the name of the value.

    Each filter and each comparison reads the values below it once.
    """
    operations = tree.find_all((nodes.Filter, nodes.Compare))
    return Counter(name.name for node in operations for name in node.find_all(nodes.Name))


def _check(node: nodes.Node, *, level: int) -> None:
    if level > MAX_NESTING:
        raise TemplateError(f"is nested deeper than {MAX_NESTING} levels", line=node.lineno)
    if not isinstance(node, _ALLOWED):
        what, instead = _REFUSED.get(type(node), (type(node).__name__, _OTHERWISE))
        raise TemplateError(f"{what} is not allowed in templates; {instead}", line=node.lineno)
    if isinstance(node, nodes.Name):
        _check_name(node)
    elif isinstance(node, nodes.Const):
        _check_constant(node)
    elif isinstance(node, nodes.Filter):
        _check_filter(node)
    elif isinstance(node, nodes.Test):
        _check_test(node)
    elif isinstance(node, nodes.Compare) and len(node.ops) > 1:
        raise TemplateError(
            "more than one comparison in a row is not allowed; join them with 'and'",
            line=node.lineno,
        )
    for child in _children(node):
        _check(child, level=level + 1)


def _children(node: nodes.Node) -> Iterable[nodes.Node]:
    """Return the nodes directly below a node; for a list after `in`, its items."""
    match node:
        case nodes.Operand(
            op="in" | "notin", expr=nodes.List(items=items) | nodes.Tuple(items=items)
        ):
            return items
    return node.iter_child_nodes()


def _check_name(node: nodes.Name) -> None:
    # In Jinja2, `self` has a special meaning. Python normalises letters outside ASCII, so that two
    # different spellings would be the same name. Refuse both.
    if node.name == "self" or not node.name.isascii():
        raise TemplateError(
            f"{_cut(node.name)} cannot be the name of a value; use letters from a to z, digits"
            " and _",
            line=node.lineno,
        )
    node.name = name_of(node.name)


def _check_constant(node: nodes.Const) -> None:
    value = node.value
    if isinstance(value, float):
        raise TemplateError("a number with a point is not allowed", line=node.lineno)
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value)):
        raise TemplateError(
            "a text in it has a null character or half a letter (\\0, \\ud800 to \\udfff);"
            " take it out",
            line=node.lineno,
        )


def _check_filter(node: nodes.Filter) -> None:
    if node.name not in TEMPLATE_FILTERS:
        raise TemplateError(
            f"filter {_cut(node.name)} is not allowed; use one of {', '.join(TEMPLATE_FILTERS)}",
            line=node.lineno,
        )
    most = TEMPLATE_FILTERS[node.name]
    if len(node.args) > most or node.kwargs or node.dyn_args or node.dyn_kwargs:
        takes = "one argument at most" if most else "no argument"
        raise TemplateError(f"filter {node.name} takes {takes}", line=node.lineno)


def _check_test(node: nodes.Test) -> None:
    if node.name not in TEMPLATE_TESTS:
        raise TemplateError(
            f"test {_cut(node.name)} is not allowed; use 'is defined', 'is undefined', or a"
            " comparison such as ==",
            line=node.lineno,
        )
    if node.args or node.kwargs or node.dyn_args or node.dyn_kwargs:
        raise TemplateError(f"test {node.name} takes no argument", line=node.lineno)


def _cut(word: str) -> str:
    return word if len(word) <= 30 else word[:30] + "..."
