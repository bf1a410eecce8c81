#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ask a program the cases of the conformance kit for roleplay prompts, and report its answers.

The program is asked through an adapter: a command that reads one JSON object a line from standard
input and writes one JSON object a line to standard output (README.md). This file needs Python 3.11
and nothing else.

    python run.py --adapter "python adapters/evennia_ai.py"
"""

import argparse
import datetime
import fnmatch
import json
import queue
import re
import shlex
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

KIT = "1"
CASES = Path(__file__).resolve().parent / "cases"
LEVELS = {
    "0": "read and write",
    "1": "activation",
    "2": "placement",
    "3": "whole prompts",
    "4": "macros",
    "S": "safety",
}
STATUSES = ("agree", "differ", "unsupported", "broken")
NOTHING = object()
NO_TASK = "no adapter has the task"
RUBBISH_SECONDS = 2.0
"""How long the runner still waits for an answer after a line that is no answer."""

Case = Mapping[str, Any]
Output = Mapping[str, Any]


# -- cases -------------------------------------------------------------------------------------


def load_cases(folder: Path = CASES) -> list[dict[str, Any]]:
    """Return all cases in the order of the files, with every default filled in."""
    defaults = json.loads((folder / "defaults.json").read_text("utf-8"))
    cases = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            case = json.loads(line)
            case["input"] = _complete_input(case["task"], case["input"], defaults)
            if case["task"] == "lore":
                turns = case["expected"]["turns"]
                case["expected"] = {"turns": [{**defaults["lore_turn"], **one} for one in turns]}
            cases.append(case)
    return cases


def _complete_input(task: str, given: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    if task not in defaults:
        return given
    made: dict[str, Any] = _merge(defaults[task], given)
    if task != "macro":
        made.setdefault("turns", [len(made["history"])])
        made["injections"] = [{**defaults["injection"], **one} for one in made["injections"]]
        if not made.get("raw"):
            for book in made["books"]:
                entries = book["entries"].items()
                book["entries"] = {uid: {**defaults["entry"], **one} for uid, one in entries}
    return made


def _merge(default: Any, given: Any) -> Any:
    """Return `given` with missing members of objects from `default`.

    Lists are not merged, and an empty object stays empty.
    """
    if isinstance(default, dict) and isinstance(given, dict) and given:
        return {**default, **{key: _merge(default.get(key), given[key]) for key in given}}
    return given


def holds_for(case: Case, reference: str) -> bool:
    """True if the case's answer is that of this version of SillyTavern, or of the standard."""
    if not case["authority"].startswith("sillytavern"):
        return True
    until = case["until"] or reference
    return _version(case["since"]) <= _version(reference) <= _version(until)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


# -- checks ------------------------------------------------------------------------------------


class UnsupportedError(Exception):
    """An output lacks a member that a case asks for."""


def problems(case: Case, output: Output) -> list[str]:
    """Return how an output differs from what the case expects. Empty if it agrees.

    Raises:
        UnsupportedError: the output lacks a member that the case needs.
    """
    expected = case["expected"]
    if case["task"] == "macro":
        return _macro_problems(expected, output)
    if "error" in output and not {"error", "any_of"} & expected.keys():
        return [f"refused: {output['error']}"]
    found = list(unmet(output, {key: expected[key] for key in expected if key != "turns"}))
    turns = _need(output, "turns") if "turns" in expected else []
    wanted = expected.get("turns", ())
    if len(turns) != len(wanted) and "turns" in expected:
        return [*found, f"{len(turns)} turns instead of {len(wanted)}"]
    for number, (turn, right) in enumerate(zip(turns, wanted, strict=False)):
        if case["task"] == "lore":
            wrong = _lore_problems(turn, right, activation_only=case["level"] == "1")
        else:
            wrong = list(unmet({**output, "turns": [turn]}, right))
        found += [f"turn {number}: {one}" for one in wrong]
    return found


def _macro_problems(expected: Mapping[str, Any], output: Output) -> list[str]:
    text = _need(output, "output")
    found = []
    matches = re.fullmatch(expected.get("pattern", r"(?!)"), str(text), re.DOTALL)
    if text != expected["output"] and not matches:
        found.append(_same(text, expected["output"]))
    variables = {"local": {}, "global": {}, **output.get("variables", {})}
    right = expected.get("variables", {"local": {}, "global": {}})
    if variables != right:
        found.append("variables: " + _same(variables, right))
    return found


def _lore_problems(
    turn: Output, right: Mapping[str, Any], *, activation_only: bool
) -> Iterable[str]:
    """Yield the members that differ. Level 1 compares only what the adapter gives."""
    _need(turn, "activated")
    for name, value in right.items():
        empty = value if activation_only else type(value)()
        if (found := turn.get(name, empty)) != value:
            yield f"{name}: {_same(found, value)}"


def unmet(output: Output, expected: Mapping[str, Any]) -> Iterator[str]:
    """Yield the expectations on a card or on its first turn that an output does not meet."""
    if "error" in output and not {"error", "any_of"} & expected.keys():
        yield f"refused: {output['error']}"
        return
    for name, wanted in expected.items():
        wrong = CHECKS[name](output, wanted, expected)
        if wrong:
            yield f"{name}: {wrong}"


def _need(output: Output, name: str) -> Any:
    if name not in output:
        raise UnsupportedError(f"the adapter gives no '{name}'")
    return output[name]


def _turn(output: Output) -> Output:
    first: Output = _need(output, "turns")[0]
    return first


def _active(output: Output) -> Mapping[str, str]:
    active: Mapping[str, str] = _need(_turn(output), "active")
    return active


def _prompt(output: Output) -> str:
    return "\n".join(message["content"] for message in _need(_turn(output), "messages"))


def _texts(output: Output) -> list[str]:
    return [_need(turn, "text") for turn in _need(output, "turns")]


def _same(found: object, wanted: object) -> str:
    return "" if found == wanted else f"{found!r} instead of {wanted!r}"


def _listed(wrong: Iterable[object]) -> str:
    return ", ".join(map(repr, wrong))


def _check_active(output: Output, wanted: list[str], expected: Mapping[str, Any]) -> str:
    active = set(_active(output))
    exact = expected.get("activated_exact", True)
    well = active == set(wanted) if exact else active >= set(wanted)
    return "" if well else f"{sorted(active)} instead of {sorted(wanted)}"


def _check_content(output: Output, wanted: Mapping[str, str], _: object) -> str:
    active = _active(output)
    wrong = {name: active.get(name) for name in wanted if active.get(name) != wanted[name]}
    return repr(wrong) if wrong else ""


def _check_history(output: Output, wanted: Sequence[Mapping[str, Any]], _: object) -> str:
    """Compare the history one message at a time. A wanted role of null matches any role."""
    found = _need(_turn(output), "history")
    shown = [(one["role"], one["content"], bool(one.get("injected"))) for one in found]
    roles = [one["role"] for one in wanted]
    if len(shown) == len(wanted):
        roles = [role or there[0] for role, there in zip(roles, shown, strict=True)]
    right = [
        (role, one["content"], one.get("injected", False))
        for role, one in zip(roles, wanted, strict=True)
    ]
    return _same(shown, right)


def _check_decorators(
    output: Output, wanted: Mapping[str, Mapping[str, Any]], _expected: object
) -> str:
    for name, rule in wanted.items():
        found = _need(_turn(output), "decorators").get(name, [])
        if found != rule.get("effective", found):
            return f"{name}: {_same(found, rule['effective'])}"
        if {one for one, _values in found} & set(rule.get("not_effective", ())):
            return f"{name}: {found} with one that must not count"
    return ""


def _check_order(output: Output, wanted: list[str], _: object) -> str:
    places = [_prompt(output).find(text) for text in wanted]
    well = -1 not in places and places == sorted(places)
    return "" if well else f"the texts begin at {places}"


def _check_encodable(output: Output, _wanted: object, _expected: object) -> str:
    try:
        _prompt(output).encode()
    except UnicodeEncodeError as error:
        return str(error)
    return ""


def _check_any(output: Output, wanted: list[Mapping[str, Any]], _: object) -> str:
    failed = [list(unmet(output, some)) for some in wanted]
    return "" if [] in failed else f"none of them holds: {failed}"


def _check_messages(output: Output, wanted: list[Mapping[str, Any]], _: object) -> str:
    found = _need(_turn(output), "messages")
    plain = [{key: one[key] for key in one if one[key] is not None} for one in found]
    for number, (one, right) in enumerate(zip(plain, wanted, strict=False)):
        if one != right:
            return f"message {number}: {_same(one, right)}"
    return _same(len(plain), len(wanted)) and f"{len(plain)} messages instead of {len(wanted)}"


def value_at(value: Any, pointer: str) -> Any:
    """Return the value that a JSON pointer names, or `NOTHING`."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            return NOTHING
    return value


def _pointers(
    member: str, holds: Callable[[Any, Any], bool]
) -> Callable[[Output, Any, object], str]:
    """Return a check of JSON pointers into every card that the adapter wrote as `member`."""

    def check(output: Output, wanted: Mapping[str, Any], _: object) -> str:
        written = _need(output, member)
        cards = written if isinstance(written, list) else [written]
        wrong = [
            f"{pointer} is {_shown(value_at(card, pointer))} instead of {value!r}"
            for card in cards
            for pointer, value in wanted.items()
            if not holds(value_at(card, pointer), value)
        ]
        return "; ".join(wrong) if cards else "no card was written"

    return check


def _shown(value: object) -> str:
    return "missing" if value is NOTHING else repr(value)


def _equal(found: object, wanted: object) -> bool:
    """True if two JSON values are equal; true is not 1."""
    return _plain(found) == _plain(wanted) if found is not NOTHING else False


def _plain(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _simple(name: str) -> Callable[[Output, Any, object], str]:
    return lambda output, wanted, _: _same(_need(output, name), wanted)


def _lacking(items: Iterable[str], found: Any) -> str:
    return _listed(one for one in items if one not in found)


def _holding(items: Iterable[str], found: Any) -> str:
    return _listed(one for one in items if one in found)


# For each kind of expectation, a function of the output, the wanted value and all expectations
# that returns what is wrong, or "".
CHECKS: dict[str, Callable[[Output, Any, Mapping[str, Any]], str]] = {
    "error": lambda o, _w, _: "" if "error" in o else "it was accepted",
    "no_error": lambda o, _w, _: o.get("error", ""),
    "any_of": _check_any,
    "activated": _check_active,
    "activated_exact": lambda _o, _w, _: "",
    "not_activated": lambda o, wanted, _: _holding(wanted, _active(o)),
    "content": _check_content,
    "decorators": _check_decorators,
    "history": _check_history,
    "messages": _check_messages,
    "prompt_contains": lambda o, wanted, _: _lacking(wanted, _prompt(o)),
    "prompt_absent": lambda o, wanted, _: _holding(wanted, _prompt(o)),
    "prompt_count": lambda o, w, _: _same({text: _prompt(o).count(text) for text in w}, w),
    "prompt_order": _check_order,
    "prompt_encodable": _check_encodable,
    "roles": lambda o, w, _: _same([m["role"] for m in _need(_turn(o), "messages")], w),
    "text": lambda o, wanted, _: _same(set(_texts(o)), {wanted}),
    "text_absent": lambda o, w, _: _listed(x for x in w if any(x in text for text in _texts(o))),
    "text_one_of": lambda o, wanted, _: _listed(set(_texts(o)) - set(wanted)),
    "text_endswith": lambda o, w, _: _listed(x for x in _texts(o) if not x.endswith(w)),
    "distinct_min": lambda o, w, _: "" if len(set(_texts(o))) >= w else "too few",
    "distinct_max": lambda o, w, _: "" if len(set(_texts(o))) <= w else "too many",
    "name": _simple("name"),
    "assets": _simple("assets"),
    "creator_notes": _simple("creator_notes"),
    "greetings": _simple("greetings"),
    "entry_count": _simple("entry_count"),
    "greetings_include": lambda o, w, _: _lacking(w, _need(o, "greetings")),
    "greetings_exclude": lambda o, w, _: _holding(w, _need(o, "greetings")),
    "export": _pointers("written", _equal),
    "export_absent": lambda o, w, _: _listed(
        pointer for pointer in w if value_at(_need(o, "written"), pointer) is not NOTHING
    ),
    "export_startswith": _pointers("written", lambda found, wanted: found[: len(wanted)] == wanted),
    "export_number_range": _pointers("written", lambda found, w: w[0] <= found <= w[1]),
    "export_v2": _pointers("v2", _equal),
    "export_v2_contains": _pointers("v2", lambda found, wanted: wanted in found),
    "warnings_min": lambda o, w, _: "" if len(_need(o, "notices")) >= w else "too few",
    "warnings_max": lambda o, w, _: "" if len(_need(o, "notices")) <= w else repr(o["notices"]),
}


# -- adapters ----------------------------------------------------------------------------------


class BrokenAdapterError(Exception):
    """An adapter did not answer: it ended, was silent too long, or wrote something else."""


class Adapter:
    """A running adapter. It is started again after it ended or was silent too long."""

    def __init__(self, command: str, *, timeout: float, starts: int) -> None:
        self.command = command
        self.rubbish: list[str] = []
        self._timeout = timeout
        self._starts = starts
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._errors: deque[str] = deque(maxlen=5)
        self.hello = self._ask_hello()
        self.tasks = frozenset(self.hello.get("tasks", ()))

    def _ask_hello(self) -> Mapping[str, Any]:
        # Programs may need long for their first answer.
        answer = self._answer({"id": "hello", "task": "hello", "kit": KIT}, 4 * self._timeout)
        if not isinstance(answer.get("tasks"), list):
            raise BrokenAdapterError(f"its answer to hello has no list 'tasks': {answer}")
        return answer

    def ask(self, case: Case) -> Mapping[str, Any]:
        """Return the answer to a case: an object with `output`, `unsupported` or `error`.

        Raises:
            BrokenAdapterError: there is no answer.
        """
        request = {"id": case["id"], "task": case["task"], "input": case["input"]}
        return self._answer(request, self._timeout)

    def _answer(self, request: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        if self._process is None:
            self._start()
            if request["id"] != "hello":
                self._ask_hello()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, OSError):
            raise self._ended() from None
        until = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self.stop()
                raise BrokenAdapterError(f"no answer in {seconds:g} seconds") from None
            if line is None:
                raise self._ended()
            answer = _object(line)
            if answer is not None and answer.get("id") == request["id"]:
                return answer
            self.rubbish.append(line.rstrip("\n")[:200])
            until = min(until, time.monotonic() + RUBBISH_SECONDS)

    def _start(self) -> None:
        if not self._starts:
            raise BrokenAdapterError("not asked: the adapter was started too often")
        self._starts -= 1
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user names the command
                shlex.split(self.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            self._starts = 0
            raise BrokenAdapterError(f"cannot be started: {error}") from None
        self._lines, self._errors = queue.Queue(), deque(maxlen=5)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        threading.Thread(
            target=_read, args=(self._process.stdout, self._lines.put), daemon=True
        ).start()
        threading.Thread(
            target=_read, args=(self._process.stderr, self._errors.append), daemon=True
        ).start()

    def _ended(self) -> BrokenAdapterError:
        assert self._process is not None
        code = self._process.wait()
        self._process = None
        said = " ".join(line.strip() for line in self._errors if line)
        return BrokenAdapterError(f"it ended with code {code}" + (f": {said}" if said else ""))

    def stop(self) -> None:
        """Close the adapter's input, and kill its process if it has not ended a second later."""
        if self._process is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                assert self._process.stdin is not None
                self._process.stdin.close()
                self._process.wait(1)
            self._process.kill()
            self._process.wait()
            self._process = None


def _read(stream: IO[str], put: Callable[[Any], None]) -> None:
    for line in stream:
        put(line)
    put(None)


def _object(line: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def ask_all(adapters: Sequence[Adapter], cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Ask each case of the first adapter that has its task. Return the results in their order.

    The adapters answer at the same time, each one case after the other.
    """
    shares: dict[Adapter | None, list[Case]] = {one: [] for one in (*adapters, None)}
    for case in cases:
        able = (one for one in adapters if case["task"] in one.tasks)
        shares[next(able, None)].append(case)
    with ThreadPoolExecutor(len(shares)) as pool:
        judged = pool.map(_judge_all, shares.keys(), shares.values())
        found = {result["id"]: result for results in judged for result in results}
    return [found[case["id"]] for case in cases]


def _judge_all(adapter: Adapter | None, cases: Sequence[Case]) -> list[dict[str, Any]]:
    results = []
    for case in cases:
        if adapter is None:
            status, why = "unsupported", f"{NO_TASK} '{case['task']}'"
        else:
            status, why = _judge(adapter, case)
        kept = {key: case[key] for key in ("id", "level", "features", "authority")}
        results.append({**kept, "status": status, "why": why})
    return results


def _judge(adapter: Adapter, case: Case) -> tuple[str, str]:
    try:
        answer = adapter.ask(case)
    except BrokenAdapterError as error:
        return "broken", str(error)
    if "unsupported" in answer:
        return "unsupported", str(answer["unsupported"])
    if not isinstance(answer.get("output"), dict):
        return "broken", str(answer.get("error", "the answer has no object 'output'"))
    try:
        wrong = problems(case, answer["output"])
    except UnsupportedError as error:
        return "unsupported", str(error)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        return "broken", f"the output has another form than the kit asks: {error!r}"
    return ("differ", "; ".join(wrong)) if wrong else ("agree", "")


# -- reports -----------------------------------------------------------------------------------


def counts_by(results: Iterable[Mapping[str, Any]], key: str) -> dict[str, Counter[str]]:
    """Count the statuses of the results by one of their members. A list counts each item."""
    counts: dict[str, Counter[str]] = {}
    for result in results:
        values = result[key] if isinstance(result[key], list) else [result[key]]
        for value in values:
            counts.setdefault(value, Counter())[result["status"]] += 1
    return counts


def percent(counts: Mapping[str, int]) -> float | None:
    """Return the share of the answered cases that agree, rounded down to 0.1; None without any."""
    asked = sum(counts.get(status, 0) for status in ("agree", "differ", "broken"))
    return counts.get("agree", 0) * 1000 // asked / 10 if asked else None


def render_table(counts: Mapping[str, Mapping[str, int]], title: str) -> str:
    """Return counts as a table: a row for each group, a column for each status."""
    width = max(len(title), *map(len, counts), 0) if counts else len(title)
    lines = [f"{title:<{width}}" + "".join(f"{one:>13}" for one in (*STATUSES, "share"))]
    for name, row in counts.items():
        share = percent(row)
        cells = [*(str(row.get(status, 0)) for status in STATUSES)]
        cells.append("-" if share is None else f"{share:.1f} %")
        lines.append(f"{name:<{width}}" + "".join(f"{cell:>13}" for cell in cells))
    return "\n".join(lines)


def render_badge(levels: Mapping[str, Mapping[str, int]]) -> str:
    """Return an SVG picture with the share of each level."""
    label, parts = "roleplay prompts", []
    for level, row in levels.items():
        share = percent(row)
        if share is not None:
            parts.append(f"{level} {int(share)}%")
    text = " · ".join(parts) or "nothing asked"
    left, right = 7 * len(label) + 12, 7 * len(text) + 12
    middle, start = left + right / 2, left / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img"'
        f' aria-label="{label}: {text}"><title>{label}: {text}</title>'
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="#0a6a8a"/>'
        '<g fill="#fff" font-family="Verdana,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{start}" y="14">{label}</text><text x="{middle}" y="14">{text}</text>'
        "</g></svg>\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kit. Return 0, or 1 if an adapter was broken, or 2 if none could be started."""
    options = _parser().parse_args(arguments)
    cases = [case for case in load_cases() if _is_wanted(case, options)]
    adapters = []
    for command in options.adapter:
        try:
            adapters.append(Adapter(command, timeout=options.timeout, starts=options.starts))
        except BrokenAdapterError as error:
            print(f"adapter '{command}': {error}", file=sys.stderr)
            return 2
    began = time.monotonic()
    try:
        results = ask_all(adapters, cases)
    finally:
        for adapter in adapters:
            adapter.stop()
    hello = [adapter.hello for adapter in adapters]
    for one in hello:
        print(f"{one.get('name', '?')} {one.get('version', '')}: {', '.join(one['tasks'])}")
    print(f"{len(cases)} cases in {time.monotonic() - began:.0f} seconds\n")
    report = make_report(results, hello, reference=options.reference)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    if options.badge:
        options.badge.write_text(render_badge(report["levels"]), "utf-8")
    print_report(report, adapters, features=options.features, show=options.show)
    return int(any(one["status"] == "broken" for one in results))


def make_report(
    results: Sequence[Mapping[str, Any]], hello: Sequence[Mapping[str, Any]], *, reference: str
) -> dict[str, Any]:
    """Return the report of a run as JSON values. Cases that agree are only counted."""
    return {
        "kit": KIT,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "reference": reference,
        "adapters": list(hello),
        "levels": dict(sorted(counts_by(results, "level").items())),
        "authorities": dict(sorted(counts_by(results, "authority").items())),
        "features": dict(sorted(counts_by(results, "features").items())),
        "cases": {
            one["id"]: {"status": one["status"], "why": one["why"]}
            for one in results
            if one["status"] != "agree" and not one["why"].startswith(NO_TASK)
        },
    }


def print_report(
    report: Mapping[str, Any], adapters: Sequence[Adapter], *, features: bool, show: int
) -> None:
    """Print the tables of a report, then some differences, then lines that are no answers."""
    named = {f"{level} {LEVELS[level]}": row for level, row in report["levels"].items()}
    print(render_table(named, "level"))
    print("\n" + render_table(report["authorities"], "authority"))
    if features:
        print("\n" + render_table(report["features"], "feature"))
    cases = report["cases"].items()
    differing = [(name, one) for name, one in cases if one["status"] != "unsupported"]
    for name, one in differing[:show]:
        print(f"\n{name} ({one['status']}): {one['why'][:1000]}")
    if len(differing) > show:
        print(f"\n{len(differing) - show} more differ; --show {len(differing)} prints them all")
    for adapter in adapters:
        if adapter.rubbish:
            print(
                f"\nadapter '{adapter.command}' wrote {len(adapter.rubbish)} lines that are no"
                f" answers; the first: {adapter.rubbish[0]!r}"
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--adapter", action="append", required=True, help="the command of an adapter; repeatable")
    add("--level", action="append", choices=LEVELS, help="only cases of this level; repeatable")
    add("--feature", help="only cases with this feature")
    add("--id", default="*", help="only cases whose id matches, such as 'lore/keys/*'")
    add("--reference", default="1.19.0", help="the version of SillyTavern (default: 1.19.0)")
    add("--timeout", type=float, default=30, help="seconds to wait for an answer (default: 30)")
    add("--starts", type=int, default=10, help="how often an adapter is started (default: 10)")
    add("--show", type=int, default=5, help="how many differences are printed (default: 5)")
    add("--features", action="store_true", help="print the counts of each feature")
    add("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add("--badge", type=Path, metavar="FILE", help="write a badge as SVG")
    return parser


def _is_wanted(case: Case, options: argparse.Namespace) -> bool:
    return (
        (not options.level or case["level"] in options.level)
        and (not options.feature or options.feature in case["features"])
        and fnmatch.fnmatchcase(case["id"], options.id)
        and holds_for(case, options.reference)
    )


if __name__ == "__main__":
    raise SystemExit(main())
