"""`evennia-ai compose`: prompts from scenario files, from requests, or from lines of input."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from evennia_ai.cli.output import is_terminal, refusal, refuse, write_json, write_lines
from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.execution_request import ExecutionRequest
from evennia_ai.engine.foreign.documents import MAX_BYTES, decode_text, read_json
from evennia_ai.engine.history.turn.sending import storable_messages
from evennia_ai.engine.lorebook.book import names_of
from evennia_ai.engine.prompt.messages import messages_sha256
from evennia_ai.engine.prompt.report import (
    Report,
    explain_lines,
    find_message,
    make_report,
    origins_meant,
    trace_lines,
)
from evennia_ai.formats.scenario import (
    ComposedTurn,
    composed_turns,
    read_scenario_file,
    result_of,
    run_scenario,
)

STANDARD_INPUT: Final = "line"
MAX_REQUEST_BYTES: Final = 256 * 1024 * 1024
"""The most bytes of a request, which holds whole lorebooks with all fields of their entries."""


class _Composed(NamedTuple):
    """The composed turns of a file."""

    turns: Sequence[ComposedTurn]
    several: bool = False
    """True if the file is a scenario with a list of turns, even of one turn."""
    sha256: str = ""
    """The hash of the messages to send, only for the file of a request."""


def read_scenario(path: Path) -> _Composed:
    """Compose the scenario in a file."""
    scenario = read_scenario_file(path)
    return _Composed(list(composed_turns(scenario)), several=scenario.several)


def read_request(path: Path) -> _Composed:
    """Compose the execution request in a file, as `ai/request` wrote it."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_REQUEST_BYTES + 1)
    except OSError as error:
        raise FormatError("request", f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_REQUEST_BYTES:
        raise FormatError("request", f"{path}: has more than {MAX_REQUEST_BYTES} bytes")
    request = ExecutionRequest.from_json(content, where=str(path))
    made = request.composed()
    sha256 = messages_sha256(storable_messages(made.prompt.messages))
    return _Composed([ComposedTurn(inputs=request.inputs, made=made)], sha256=sha256)


def compose_files(
    paths: Sequence[Path],
    *,
    as_json: bool,
    item: str | None,
    read: Callable[[Path], _Composed] = read_scenario,
) -> int:
    """Compose and print each file. A file with an error is reported, and the others are printed."""
    status = 0
    for path in paths:
        try:
            composed = read(path)
            explained = _explained(composed.turns, item)
            if as_json:
                _print_json(composed, explained, indent=2 if len(paths) == 1 else None)
            else:
                _print_text(path, composed, explained, titled=len(paths) > 1)
        except (EvenniaAIError, RecursionError) as error:
            status = refuse(_placed(error, path))
    return status


def compose_lines(source: BinaryIO) -> int:
    """Read one scenario from each line and print one result for each, which may be an error."""
    for number, line in enumerate(_lines(source), start=1):
        write_json(_answer(line, number))
    return 0


def _answer(line: bytes | None, number: int) -> Any:
    """Return the result or the error for one line. `line` is None if it was too long."""
    where = f"{STANDARD_INPUT} {number}"
    try:
        if line is None:
            raise FormatError("scenario", f"{where}: is longer than {MAX_BYTES} bytes")
        text = decode_text(line, kind="scenario", where=where)
        return run_scenario(read_json(text, kind="scenario", where=where))
    except (EvenniaAIError, RecursionError) as error:
        return refusal(error)


def _lines(source: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines of `source` without their ends, or None for a line that is too long."""
    while line := source.readline(MAX_BYTES + 2):
        if len(line) > MAX_BYTES and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = source.readline(MAX_BYTES)
            yield None
        else:
            yield line.rstrip(b"\r\n")


def _placed(error: EvenniaAIError | RecursionError, path: Path) -> EvenniaAIError | str:
    """Return the error with the path of its file, unless its text begins with the path."""
    text = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return text if text.startswith(str(path)) else f"{path}: {text}"


def _explained(turns: Sequence[ComposedTurn], item: str | None) -> list[list[str]]:
    """Return what each turn says about `item`. FormatError if no turn knows it."""
    if item is None:
        return []
    names = names_of(book for turn in turns[:1] for book in turn.inputs.books)
    reports = [_report(turns, index) for index in range(len(turns))]
    lines = [explain_lines(report, item, names=names) for report in reports]
    if reports and not any(_knows(report, item, names) for report in reports):
        raise FormatError("item", " ".join(lines[-1]))
    return lines


def _knows(report: Report, item: str, names: Mapping[str, str]) -> bool:
    is_message = find_message(report, item) is not None
    return is_message or len(origins_meant(report, item, names=names)) == 1


def _report(turns: Sequence[ComposedTurn], index: int) -> Report:
    older = turns[index - 1].made.prompt.sent if index else None
    return make_report(turns[index].made.prompt, older=older)


def _print_json(
    composed: _Composed, explained: Sequence[Sequence[str]], *, indent: int | None
) -> None:
    results = [result_of(turn) for turn in composed.turns]
    for result, lines in zip(results, explained, strict=False):
        result["explained"] = list(lines)
    if composed.sha256:
        results[0]["sha256"] = composed.sha256
    write_json({"turns": results} if composed.several else results[0], indent=indent)


def _print_text(
    path: Path, composed: _Composed, explained: Sequence[Sequence[str]], *, titled: bool
) -> None:
    turns = composed.turns
    for index in range(len(turns)):
        heads = [f"{path}"] if titled and index == 0 else []
        if composed.sha256:
            heads.append(f"sha256 {composed.sha256}")
        if len(turns) > 1:
            heads.append(f"turn {index + 1} of {len(turns)}")
        if explained:
            write_lines([*heads, *explained[index], ""])
        elif is_terminal():
            from evennia_ai.cli.terminal import show_trace

            show_trace(_report(turns, index), heads=heads)
        else:
            write_lines([*heads, *trace_lines(_report(turns, index)), ""])


def standard_input() -> BinaryIO:
    """Return standard input as a stream of bytes."""
    return sys.stdin.buffer
