"""Read tool calls that a model wrote as text: in JSON, in Python or in Gemma's format.

Only literals are read; nothing is evaluated. Each reader returns the name and the arguments as the
model wrote them, and where the call ends in the text. The caller checks them.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

MOST_PYTHON_CHARACTERS: Final = 10_000
"""The longest value in Python format that is parsed. Parsing longer ones takes too much memory."""

NAME: Final = r"[A-Za-z_][\w.-]{0,80}"
NAMES: Final = ("name", "tool", "tool_name", "function", "function_name")
ARGUMENTS: Final = ("arguments", "parameters", "args", "input", "params", "tool_input")
WRAPPERS: Final = ("tool_calls", "function_calls", "tool_call", "function_call", "function")
"""Names of JSON members that contain whole calls. NAMES and ARGUMENTS are members of one call."""

_BESIDE: Final = frozenset({"id", "type", "call_id", "index", *NAMES})
_COLON: Final = re.compile(rf"call:({NAME})(?=\{{)", re.IGNORECASE)
_PYTHON: Final = re.compile(rf"(?:\w{{1,40}}\s{{0,4}}=\s{{0,4}})?{NAME}\(")
_BRACKET: Final = re.compile(r"[\"'\\()\[\]{}]")
_KEY: Final = re.compile(r"\s*[\"']?([\w-]{1,80})[\"']?\s*[:=]\s*")
_QUOTED: Final = re.compile(r"(<escape>|<\|\"\|>)(.*?)\1", re.DOTALL | re.IGNORECASE)
_BARE_VALUE: Final = re.compile(r"[^,{}\[\]]*")
_NEXT: Final = re.compile(r"\s*([,}])")
_LITERALS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "none": None}
# Small models do not escape line breaks in strings, so `strict` is off.
_DECODER: Final = json.JSONDecoder(strict=False)
_UNREADABLE: Final = (SyntaxError, LookupError, ValueError, TypeError, RecursionError, MemoryError)

Offered = Mapping[str, Sequence[str]]
"""The tools that a model may call. Each name has the names of the parameters, in order."""

Call = tuple[str, Any]
"""The name and the arguments of a call, as the model wrote them."""


def known_name(name: str, offered: Offered) -> str:
    """Return the offered tool that the model means, or "" if there is none.

    The model may write the name in other case, or with a module before it (`functions.look`).
    """
    wanted = name.strip().casefold()
    for one in (wanted, wanted.rpartition(".")[2], wanted.rpartition(".")[0]):
        near = [tool for tool in offered if tool.casefold() == one]
        if len(near) == 1:
            return near[0]
    return ""


def json_at(text: str, at: int) -> tuple[Any, int] | None:
    """Return the JSON or Python value that begins with the bracket at `at`, and where it ends.

    Return None if the value cannot be read.
    """
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        end = balanced_end(text[: at + MOST_PYTHON_CHARACTERS], at)
    if not end:
        return None
    try:
        return _python_value(ast.parse(text[at:end], mode="eval").body), end
    except _UNREADABLE:
        return None


def calls_in(value: Any, offered: Offered) -> list[Call]:
    """Return the tool calls in a JSON value. Empty if the value contains no calls."""
    if isinstance(value, list):
        return [call for one in value for call in calls_in(one, offered)]
    if not isinstance(value, dict):
        return []
    wrapped = next(
        (value[key] for key in WRAPPERS if isinstance(value.get(key), list | dict)), None
    )
    if wrapped is not None:
        return calls_in(wrapped, offered)
    name = next((value[key] for key in NAMES if isinstance(value.get(key), str)), "")
    given = next((key for key in ARGUMENTS if key in value), None)
    if name and given is not None:
        return [(name, {} if value[given] is None else value[given])]
    if name and ("name" not in value or known_name(name, offered)):
        return [(name, {key: one for key, one in value.items() if key not in _BESIDE})]
    # Some models write {"tool name": {arguments}}.
    named = [(key, one) for key, one in value.items() if isinstance(one, dict)]
    return named if len(value) == len(named) == 1 and known_name(named[0][0], offered) else []


def is_python(text: str, at: int) -> bool:
    """True if a call in Python or Gemma format begins at `at`."""
    return bool(_PYTHON.match(text, at) or _COLON.match(text, at))


def python_at(text: str, at: int, offered: Offered) -> tuple[Call, int] | None:
    """Return the Python call that begins at `at`, such as `look(at="boat")`, and where it ends.

    The call may be inside `print()`. Positional arguments get the names of the tool's parameters,
    in order. Return None if the call cannot be read.

    Arguments without names get the names of the offered tool's parameters, in order.
    """
    begun = _PYTHON.match(text, at)
    if begun is None:
        return None
    end = balanced_end(text[: at + MOST_PYTHON_CHARACTERS], begun.end() - 1)
    if not end:
        return None
    try:
        (statement,) = ast.parse(text[at:end].strip()).body
        value = getattr(statement, "value", None)
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "print":
            (value,) = value.args
        if not isinstance(value, ast.Call):
            return None
        name = ast.unparse(value.func)
        pairs = [*zip(offered.get(known_name(name, offered), ()), value.args, strict=False)]
        pairs += [(one.arg, one.value) for one in value.keywords if one.arg]
        return (name, {key: _python_value(one) for key, one in pairs}), end
    except _UNREADABLE:
        return None


def colon_at(text: str, at: int) -> tuple[Call, int] | None:
    """Return the Gemma call that begins at `at`, such as `call:look{at:boat}`, and its end."""
    begun = _COLON.match(text, at)
    if begun is None:
        return None
    at = begun.end()
    try:
        value, end = _DECODER.raw_decode(text, at)
        return (begun[1], value), end
    except (ValueError, RecursionError):
        at += 1
    found: dict[str, Any] = {}
    while key := _KEY.match(text, at):
        at = key.end()
        if quoted := _QUOTED.match(text, at):
            found[key[1]], at = quoted[2], quoted.end()
        else:
            try:
                found[key[1]], at = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                bare = _BARE_VALUE.match(text, at)
                # The pattern also matches an empty text, so there is always a match.
                assert bare is not None
                found[key[1]], at = bare[0].strip(" \t\n'"), bare.end()
        follows = _NEXT.match(text, at)
        if follows is None or follows[1] == "}":
            return ((begun[1], found), follows.end()) if follows else None
        at = follows.end()
    return None


def value_of(written: str) -> Any:
    """Return the value of a parameter: the parsed JSON if the text is valid JSON, else the text."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


def balanced_end(text: str, at: int) -> int:
    """Return where the bracket that opens at `at` is closed, or 0 if it is never closed."""
    depth, quote = 0, ""
    while mark := _BRACKET.search(text, at):
        at, sign = mark.end(), mark[0]
        if sign == "\\":
            at += 1
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        else:
            depth += 1 if sign in "([{" else -1
            if depth <= 0:
                return at
    return 0


def _python_value(node: ast.expr | None) -> Any:
    if isinstance(node, ast.Name):
        return _LITERALS[node.id.casefold()]
    if isinstance(node, ast.List | ast.Tuple):
        return [_python_value(one) for one in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_python_value(key)): _python_value(value) for key, value in pairs}
    return ast.literal_eval(node or "")
