"""A checked syntax tree as functions that write the text, step by step, within what it may cost.

Jinja2 reads the syntax and nothing else: none of its own code runs when a template is rendered.
`allowed.py` has refused what is not known here.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, cast

from jinja2 import nodes

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.operations import (
    CHARACTERS_A_STEP,
    COMPARISONS,
    FILTERS,
    LENIENT_TESTS,
    TESTS,
    Missing,
    Spending,
    added,
    as_text,
    item,
    items,
    negated,
    subtracted,
)
from evennia_ai.engine.prompt.templates.value_names import name_of

VALUE_LENGTH: Final = 20  # what a loop over a value is taken for: values are names and the like
_FILTER_STEPS: Final = 10


class Filled(NamedTuple):
    """The value of a name that stands in the place of a macro: made where it is written."""

    text: Callable[[Spending], str]


Writer = Callable[[Spending], None]
Expression = Callable[[Spending], object]


def writer(body: Iterable[nodes.Node]) -> Writer:
    """What writes these statements."""
    parts = [part for node in body for part in _statement(node)]

    def write(run: Spending) -> None:
        for part in parts:
            part(run)

    return write


def cost(node: nodes.Node) -> int:
    """How many parts a rendering goes through at most; loops count as often as they run."""
    if isinstance(node, nodes.For):
        again = 1 + sum(map(cost, node.body)) + (cost(node.test) if node.test else 0)
        return 1 + cost(node.iter) + max(1, _turns(node.iter)) * again + sum(map(cost, node.else_))
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        return 1 + len(node.value) // CHARACTERS_A_STEP
    inner = sum(map(cost, node.iter_child_nodes()))
    return inner + (_FILTER_STEPS if isinstance(node, nodes.Filter | nodes.Test) else 1)


def _turns(sequence: nodes.Node) -> int:
    """How often a loop over `sequence`, which was checked, runs."""
    if isinstance(sequence, nodes.List | nodes.Tuple):
        return len(sequence.items)
    if isinstance(sequence, nodes.Call):
        return len(_written_range(sequence))
    return VALUE_LENGTH


def _written_range(node: nodes.Call) -> range:
    """The numbers of a `range(...)` that was checked."""
    return range(*[cast(nodes.Const, one).value for one in node.args])


def _statement(node: nodes.Node) -> list[Writer]:
    if isinstance(node, nodes.If):
        return [_condition(node)]
    if isinstance(node, nodes.For):
        return [_loop(node)]
    return [_written(child) for child in cast(nodes.Output, node).nodes]


def _written(node: nodes.Expr) -> Writer:
    line, price = node.lineno, cost(node)
    if isinstance(node, nodes.TemplateData):
        text = node.data

        def write_text(run: Spending) -> None:
            run.spend(1)
            run.write(text)

        return write_text
    value = _value(node)

    def write_value(run: Spending) -> None:
        run.line = line
        run.spend(price)
        found = value(run)
        run.write(found.text(run) if type(found) is Filled else as_text(found, run))

    return write_value


def _condition(node: nodes.If) -> Writer:
    branches = [
        (one.lineno, cost(one.test), _value(one.test), writer(one.body))
        for one in (node, *node.elif_)
    ]
    otherwise = writer(node.else_)

    def write(run: Spending) -> None:
        for line, price, test, body in branches:
            run.line = line
            run.spend(price)
            if test(run):
                return body(run)
        return otherwise(run)

    return write


def _loop(node: nodes.For) -> Writer:
    line, price = node.lineno, cost(node.iter)
    sequence, bind = _value(node.iter), _binding(node.target)
    kept, body, otherwise = _kept(node), writer(node.body), writer(node.else_)
    names = [name.name for name in _targets(node.target)]

    def write(run: Spending) -> None:
        run.line = line
        run.spend(price)
        found = items(sequence(run), "a loop")
        around = run.loop, [(name, run.names.get(name, _ABSENT)) for name in names]
        found = kept(found, bind, run)
        for index, one in enumerate(found):
            run.spend(1)
            if isinstance(one, str):
                run.make(1)
            run.loop = index, len(found)
            bind(one, run)
            body(run)
        run.loop = around[0]
        for name, before in around[1]:
            if before is _ABSENT:
                run.names.pop(name, None)
            else:
                run.names[name] = before
        if not found:
            otherwise(run)

    return write


_ABSENT: Final = object()
_Bind = Callable[[object, Spending], None]
_Keep = Callable[..., "str | list[object] | tuple[object, ...] | range"]


def _kept(node: nodes.For) -> _Keep:
    """What a loop goes over: all of it, or what its own `if` keeps."""
    if node.test is None:
        return lambda found, bind, run: found
    price, test = cost(node.test), _value(node.test)

    def keep(found: Iterable[object], bind: _Bind, run: Spending) -> list[object]:
        chosen = []
        for one in found:
            run.spend(1 + price)
            run.make(2)
            bind(one, run)
            if test(run):
                chosen.append(one)
        return chosen

    return keep


def _targets(target: nodes.Node) -> Iterable[nodes.Name]:
    return [target] if isinstance(target, nodes.Name) else target.find_all(nodes.Name)


def _binding(target: nodes.Node) -> _Bind:
    if isinstance(target, nodes.Name):
        name = target.name

        def bind_one(value: object, run: Spending) -> None:
            run.names[name] = value

        return bind_one
    binds = [_binding(one) for one in cast(nodes.Tuple, target).items]

    def bind_each(value: object, run: Spending) -> None:
        found = items(value, "a loop over several names")
        if len(found) != len(binds):
            raise TemplateError(
                f"the loop has {len(binds)} names, and what it runs over has {len(found)} items"
            )
        for bind, one in zip(binds, found, strict=True):
            bind(one, run)

    return bind_each


def _value(node: nodes.Node) -> Expression:
    """What gives the value of an expression; TemplateError where there is none."""
    value = _perhaps(node)
    if type(node) not in _MAY_MISS:
        return value

    def strict(run: Spending) -> object:
        found = value(run)
        if isinstance(found, Missing):
            raise TemplateError(found.problem)
        return found

    return strict


def _perhaps(node: nodes.Node) -> Expression:
    """What gives the value of an expression, Missing where there is none."""
    return _EXPRESSIONS[type(node)](node)


def _const(node: nodes.Const) -> Expression:
    value = node.value
    return lambda run: value


def _name(node: nodes.Name) -> Expression:
    name, missing = node.name, Missing(f"'{node.name}' is undefined")
    known = name_of(name)
    if known == name:
        return lambda run: run.names.get(name, missing)
    return lambda run: run.names.get(name, run.names.get(known, missing))


def _several(node: nodes.List | nodes.Tuple) -> Expression:
    values = [_value(one) for one in node.items]
    kind = list if isinstance(node, nodes.List) else tuple

    def several(run: Spending) -> object:
        run.make(2 * len(values))
        return kind([value(run) for value in values])

    return several


def _comparison(node: nodes.Compare) -> Expression:
    first = _value(node.expr)
    others = [(COMPARISONS[operand.op], _value(operand.expr)) for operand in node.ops]

    def compared(run: Spending) -> bool:
        left = first(run)
        for compare, value in others:
            right = value(run)
            if not compare(left, right, run):
                return False
            left = right
        return True

    return compared


def _and(node: nodes.And) -> Expression:
    left, right = _value(node.left), _perhaps(node.right)
    return lambda run: left(run) and right(run)


def _or(node: nodes.Or) -> Expression:
    left, right = _value(node.left), _perhaps(node.right)
    return lambda run: left(run) or right(run)


def _not(node: nodes.Not) -> Expression:
    value = _value(node.node)
    return lambda run: not value(run)


def _neg(node: nodes.Neg) -> Expression:
    value = _value(node.node)
    return lambda run: negated(value(run))


def _add(node: nodes.Add) -> Expression:
    left, right = _value(node.left), _value(node.right)
    return lambda run: added(left(run), right(run), run)


def _sub(node: nodes.Sub) -> Expression:
    left, right = _value(node.left), _value(node.right)
    return lambda run: subtracted(left(run), right(run), run)


def _choice(node: nodes.CondExpr) -> Expression:
    test, chosen = _value(node.test), _perhaps(node.expr1)
    missing = Missing("the condition in it is false and there is no else")
    otherwise = _perhaps(node.expr2) if node.expr2 is not None else lambda run: missing
    return lambda run: chosen(run) if test(run) else otherwise(run)


def _item(node: nodes.Getitem) -> Expression:
    value, index = _value(node.node), _value(node.arg)
    return lambda run: item(value(run), index(run), run)


def _loop_state(node: nodes.Getattr) -> Expression:
    return _LOOP[node.attr]


def _range(node: nodes.Call) -> Expression:
    numbers = _written_range(node)
    return lambda run: numbers


def _filter(node: nodes.Filter) -> Expression:
    change, subject = FILTERS[node.name], cast(nodes.Node, node.node)
    value = _perhaps(subject) if node.name in ("default", "d") else _value(subject)
    if not node.args:
        return lambda run: change(value(run), run)
    argument = _value(node.args[0])
    return lambda run: change(value(run), run, argument(run))


def _test(node: nodes.Test) -> Expression:
    holds = TESTS[node.name]
    value = _perhaps(node.node) if node.name in LENIENT_TESTS else _value(node.node)
    if not node.args:
        return lambda run: holds(value(run), run)
    argument = _value(node.args[0])
    return lambda run: holds(value(run), run, argument(run))


_LOOP: Final[Mapping[str, Expression]] = {
    "index": lambda run: run.loop[0] + 1,
    "index0": lambda run: run.loop[0],
    "first": lambda run: run.loop[0] == 0,
    "last": lambda run: run.loop[0] + 1 == run.loop[1],
    "length": lambda run: run.loop[1],
}
_MAY_MISS: Final = frozenset(
    {nodes.Name, nodes.Getitem, nodes.CondExpr, nodes.And, nodes.Or, nodes.Filter}
)
_EXPRESSIONS: Final[Mapping[type[nodes.Node], Callable[..., Expression]]] = {
    nodes.Const: _const,
    nodes.Name: _name,
    nodes.List: _several,
    nodes.Tuple: _several,
    nodes.Compare: _comparison,
    nodes.And: _and,
    nodes.Or: _or,
    nodes.Not: _not,
    nodes.Neg: _neg,
    nodes.Add: _add,
    nodes.Sub: _sub,
    nodes.CondExpr: _choice,
    nodes.Getitem: _item,
    nodes.Getattr: _loop_state,
    nodes.Call: _range,
    nodes.Filter: _filter,
    nodes.Test: _test,
}
