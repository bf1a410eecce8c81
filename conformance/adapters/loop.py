# SPDX-License-Identifier: MIT
"""Read requests from standard input and write answers: what every adapter in Python shares."""

import json
import sys
from collections.abc import Callable
from typing import Any

Answer = Callable[[dict[str, Any]], dict[str, Any] | str]


def serve(name: str, version: str, answers: dict[str, Answer]) -> None:
    """Answer requests until the input ends.

    Args:
        name: the name of the program.
        version: its version.
        answers: for each task a function of the case's input. It returns the output, or a text
            that says why the program cannot do what the case asks.
    """
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        request = json.loads(line)
        if request["task"] == "hello":
            said: dict[str, Any] = {"name": name, "version": version, "tasks": list(answers)}
        else:
            said = _answer(answers[request["task"]], request["input"])
        out.write(json.dumps({"id": request["id"], **said}) + "\n")
        out.flush()


def _answer(answer: Answer, given: dict[str, Any]) -> dict[str, Any]:
    try:
        made = answer(given)
    except Exception as error:  # one case must not end the adapter
        return {"error": f"{type(error).__name__}: {error}"}
    return {"unsupported": made} if isinstance(made, str) else {"output": made}
