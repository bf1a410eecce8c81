"""Generate hostile templates, and measure what reading and rendering them costs.

    python -m tests.engine.prompt.templates.hostile_templates SEED COUNT

The program tries COUNT templates of this seed with limited memory and time. It prints one line of
JSON: how many templates were refused and rendered, the most expensive ones, and failures. Counts of
calls and bytes are the same on every machine; seconds differ (docs/extend/benchmarks.md).
"""

import json
import random
import re
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.templates.template import Template, compile_template

MIB = 1024 * 1024
SECONDS_OF_PROCESSOR = 300
LONGEST = 60_000
DICE = Dice(turn="1", conversation="1")
VALUES = {
    "user": "Anna",
    "char": "Oren",
    "speaker": "Ben",
    "empty": "",
    "many": "so it is " * 300,
    "grows": "\u0390\ufb03" * 1_500,  # each becomes three letters in upper case
    "emoji": "\U0001f409" * 30_000,
    "other": "\U0001f409" * 29_999 + "x",
}
# Matches an object's address or representation, which no rendered text may contain.
TELLTALE = re.compile(r"0x[0-9a-f]{6}|<[^>]*(?:function|class|object|method|range|Undefined)")
TAME_FILTERS = ["upper", "lower", "capitalize", "trim", "default", "length", "default(user)"]
FILTERS = [
    *(*TAME_FILTERS, "title", "join", "first", "last", "sort", "unique", "count", "d"),
    *("center(2000000000)", "format(1)", "replace('n','nnnn')"),
    *("indent(2000000000)", "wordwrap(1)", "batch(2000000000,'x')", "slice(2000000000)"),
    *("tojson", "pprint", "xmlattr", "urlize", "escape", "e", "safe", "list", "map"),
    *("map('upper')", "map(attribute='format')", "select", "reject", "groupby('upper')"),
    *("attr('format')", "dictsort", "sum", "min", "max", "round(2000000000)", "random"),
    *("reverse", "string", "truncate(9)", "wordcount", "int", "float", "filesizeformat"),
    *("striptags", "forceescape", "items", "trim(many)", "trim(emoji)"),
    *("join('12345678901234567890')", "join(many)", "sort(true)", "sort(attribute='upper')"),
    *("unique(true)", "default(emoji)", "default(range)"),
]
TESTS = [
    *("odd", "even", "defined", "undefined", "none", "string", "number", "lower", "upper"),
    *("sequence", "iterable", "mapping", "callable", "filter", "test", "escaped"),
    *("divisibleby(0)", "divisibleby(3)", "sameas(user)", "in(many)", "eq(emoji)", "boolean"),
    *("integer", "float", "true", "false"),
]
NAMES = [*VALUES, "x", "y", "range", "loop", "self", "nobody"]
FUNCTIONS = ["lipsum(99)", "cycler('a')", "joiner(',')", "namespace(a=1)", "dict(a=1)", "range"]
PARTS = [".upper", ".format", ".__class__", "['format']", "['__class__']", "[x]", "[0]", "[-1]"]
PARTS += [".format(1)", ".__init__.__globals__", "[user]", "[9999999999]", "[:9]", "()", "[1.5]"]
CONSTANTS = [
    *("0", "1", "7", "1.5", "true", "none", "9" * 17, "9" * 5_000, "1e308", "0b" + "1" * 5_000),
    *(
        "'a'",
        "'ab' 'cd'",
        "'%2000000000d'",
        "'{0.__class__}'",
        "'{:>2000000000}'",
        "'" + "z" * 999 + "'",
    ),
    *("'\\ud800'", "'\\0'", "'\\N{DRAGON}'", "{'a': 1}", "{}", "[]", "()", "range(100)"),
    *("range(1, 100, 2)", "range(10**9)", "range(1, 2, 0)", "range()", "loop.index", "loop.last"),
]
SIGNS = ["==", "!=", "<", ">=", "in", "not in", "and", "or"]
WILD_SIGNS = ["+", "-", "*", "**", "%", "//", "/", "~", "<<", "is", "=", ","]


class Maker:
    """A generator of random templates from a seed.

    A tame template only uses allowed syntax, but much of it.
    """

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._tame = True

    def template(self) -> str:
        """Return the next random template."""
        self._tame = self._dice.random() < 0.6
        shapes = [self._any, self._any, self._repeated, self._deep, self._chain]
        shapes += [] if self._tame else [self._loops]
        source = "{# #}" + self._dice.choice(shapes)()
        if not self._tame and self._dice.random() < 0.2:
            place, length = self._dice.randrange(len(source)), self._dice.randrange(9)
            source = (
                source[:place]
                + self._one(["{{", "%}", "(", "'", "\\", "\0"])
                + source[place + length :]
            )
        return source

    def _one(self, of: list[str]) -> str:
        return self._dice.choice(of)

    def _many(self, part: str, times: int) -> str:
        return part * min(times, LONGEST // len(part) + 1)

    def _any(self) -> str:
        return self._statement(3)

    def _loops(self) -> str:
        """Return a loop inside a loop, both over long values."""
        inner = self._one(["range(100)", "range(33)", "many", "emoji", "x", "[x, x, x]", "grows"])
        outer = self._one(
            ["range(100)", "range(70)", "[emoji, other]", f"[[{'x, ' * 40}]]", "'ab'"]
        )
        body = f"{{% for y in {inner} %}}{self._statement(1)}{{% endfor %}}"
        return f"{{% for x in {outer} %}}{body}{{% endfor %}}"

    def _repeated(self) -> str:
        times = self._dice.choice([5, 40, 120, 3_000])
        part = self._statement(1)
        return self._many(part, times)

    def _deep(self) -> str:
        depth = self._dice.choice([10, 45, 300, 3_000])
        before, after = self._dice.choice(
            [
                *(("(", ")"), ("[", "]"), ("not ", ""), ("-", ""), ("", "|upper"), ("", "[0]")),
                *(("", ".a"), ("1 + ", ""), ("1 if ", " else 1"), ("", " if 1 else 2")),
                *(("", " < 2"), ("", " is odd"), ("", "|default(emoji)"), ("[1, ", "]")),
                ("", " + emoji"),
            ]
        )
        return "{{ " + before * depth + self._value(0) + after * depth + " }}"

    def _chain(self) -> str:
        count = self._dice.choice([50, 90, 3_000])
        test = self._value(1)
        more = self._many(f"{{% elif {test} %}}{self._statement(0)}", count)
        return f"{{% if empty %}}{more}{{% endif %}}"

    def _statement(self, depth: int) -> str:
        makers: list[Callable[[int], str]] = [self._text, self._shown, self._shown]
        if depth:
            makers += [self._if, self._both]
            makers += [] if self._tame else [self._for, self._wild]
        return self._dice.choice(makers)(depth)

    def _text(self, depth: int) -> str:
        return self._one(["text ", "\n", "{{user}}", "{{emoji}}", "{{many}}", "{{random:a,b}}"])

    def _shown(self, depth: int) -> str:
        return f"{{{{ {self._value(3)} }}}}"

    def _both(self, depth: int) -> str:
        return self._statement(depth - 1) + self._statement(depth - 1)

    def _if(self, depth: int) -> str:
        inner = self._statement(depth - 1)
        return f"{{% if {self._value(2)} %}}{inner}{{% else %}}{inner}{{% endif %}}"

    def _for(self, depth: int) -> str:
        target = self._one(
            ["x", "x", "x, y"] + ([] if self._tame else ["range", "loop", "x.y", "true"])
        )
        over = self._one(["range(100)", "emoji", "many", "[[1, 2], [3, 4]]", self._value(2)])
        end = self._one(["", " if x", "" if self._tame else " recursive"])
        return f"{{% for {target} in {over}{end} %}}{self._statement(depth - 1)}{{% endfor %}}"

    def _wild(self, depth: int) -> str:
        inner, value = self._statement(depth - 1), self._value(1)
        return self._one(
            [
                f"{{% set x = {value} %}}{inner}",
                f"{{% set x %}}{inner}{{% endset %}}",
                f"{{% macro f(a={value}) %}}{inner}{{{{ f() }}}}{{% endmacro %}}{{{{ f() }}}}",
                f"{{% call range({value}) %}}{inner}{{% endcall %}}",
                f"{{% filter upper %}}{inner}{{% endfilter %}}",
                f"{{% with x = {value} %}}{inner}{{% endwith %}}",
                f"{{% include {value} %}}",
                f"{{% import {value} as x %}}{inner}",
                f"{{% block b %}}{inner}{{% endblock %}}",
                f"{{% raw %}}{inner}{{% endraw %}}",
                f"{{% for range in [{value}] %}}{{{{ range(9) }}}}{{% endfor %}}",
                f"{{% for x in [{value}] recursive %}}{{{{ loop([x]) }}}}{{% endfor %}}",
            ]
        )

    def _value(self, depth: int) -> str:
        if not depth:
            known = [*VALUES, "nobody"] if self._tame else NAMES
            constants = ["1", "7", "'ab'", "true"] if self._tame else CONSTANTS
            return self._one(known) if self._dice.random() < 0.6 else self._one(constants)
        left, right = self._value(depth - 1), self._value(depth - 1)
        return self._dice.choice([self._worked, self._joined, self._listed, self._plain])(
            left, right
        )

    def _plain(self, left: str, right: str) -> str:
        return left

    def _worked(self, left: str, right: str) -> str:
        if self._tame:
            return f"({left})|{self._one(TAME_FILTERS)}"
        made = [f"({left})|{self._one(FILTERS)}", f"({left} is {self._one(TESTS)})"]
        return self._one([*made, left + self._one(PARTS), self._one(FUNCTIONS)])

    def _joined(self, left: str, right: str) -> str:
        sign = self._one(SIGNS if self._tame else SIGNS + WILD_SIGNS)
        return f"({left} {sign} {right})"

    def _listed(self, left: str, right: str) -> str:
        listed = f"[{', '.join([left] * self._dice.choice([1, 2, 30]))}, {right}]"
        return f"({right} in {listed})" if self._tame else listed


def try_template(source: str) -> dict[str, Any]:
    """Compile and render a template; return its outcome and its costs."""
    told: dict[str, Any] = {"outcome": "rendered"}
    started = time.process_time()
    try:
        template = compile_template(source, trust="builder")
    except TemplateError as error:
        told |= {"outcome": "refused", "problem": str(error)}
    told["read_seconds"] = time.process_time() - started
    if told["outcome"] == "refused":
        return told
    told["render_seconds"] = _seconds_of_rendering(template)
    told["render_calls"] = _calls_of_rendering(template)
    tracemalloc.start()
    try:
        text = template.render(VALUES, DICE)
        if found := TELLTALE.search(text):
            told |= {"outcome": "wrong", "problem": f"tells {found[0]}"}
    except TemplateError as error:
        told |= {"outcome": "stopped", "problem": str(error)}
    finally:
        told["render_bytes"] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return told


def _seconds_of_rendering(template: Template) -> float:
    started = time.process_time()
    with suppress(TemplateError):
        template.render(VALUES, DICE)
    return time.process_time() - started


def _calls_of_rendering(template: Template) -> int:
    """Return how many Python and C functions one rendering calls."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with suppress(TemplateError):
            template.render(VALUES, DICE)
    finally:
        sys.setprofile(None)
    return calls


def _limit_the_process() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * resource.getpagesize() + 64 * MIB
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_OF_PROCESSOR, SECONDS_OF_PROCESSOR))


def main() -> None:
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    maker = Maker(seed)
    _limit_the_process()
    outcomes: dict[str, int] = {}
    costs = ("read_seconds", "render_seconds", "render_calls", "render_bytes")
    worst: dict[str, tuple[float, str]] = dict.fromkeys(costs, (0, ""))
    wrong: list[str] = []
    for _ in range(count):
        source = maker.template()
        try:
            told = try_template(source)
        # any other exception is a failure, because authors must only see a `TemplateError`
        except Exception as error:
            told = {"outcome": "wrong", "problem": repr(error)[:200]}
        outcomes[told["outcome"]] = outcomes.get(told["outcome"], 0) + 1
        if told["outcome"] == "wrong" or len(told.get("problem", "")) > 400:
            wrong.append(f"{source[:300]} -> {told['problem']}")
        for what, (most, _) in worst.items():
            if told.get(what, 0) > most:
                worst[what] = (told[what], source[:300])
    print(json.dumps({"outcomes": outcomes, "worst": worst, "wrong": wrong[:5]}))


if __name__ == "__main__":
    main()
