"""Render the result of a scenario as the short lines that golden cases contain."""

from pathlib import Path
from typing import Any

from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.prompt.components import STATIC_IDS
from evennia_ai.formats.scenario import run_scenario


def shown(given: dict[str, Any]) -> dict[str, Any]:
    """Return the lines of a result: messages, verdicts and notices of each turn, or the error."""
    try:
        result = run_scenario(given, folder=Path("scenarios"))
    except EvenniaAIError as error:
        kind = error.kind if isinstance(error, FormatError) else type(error).__name__
        return {"kind": kind, "error": str(error)}
    if "turns" in result:
        return {"turns": [_shown(turn) for turn in result["turns"]]}
    return _shown(result)


def _shown(result: dict[str, Any]) -> dict[str, Any]:
    expected = {
        "messages": [_message(message) for message in result["messages"]],
        "verdicts": [
            _verdict(v) for v in result["verdicts"] if not _is_about_an_empty_component(v)
        ],
    }
    if result["notices"]:
        expected["notices"] = result["notices"]
    return expected


def _message(message: dict[str, Any]) -> str:
    """Return a message as `block role name: content`; a `+` marks an injected message."""
    block = message["block"] + "+" * message["injected"]
    speaker = f" {message['name']}" if message["name"] else ""
    return f"{block} {message['role']}{speaker}: {message['content']}"


def _verdict(verdict: dict[str, Any]) -> str:
    decided = "kept" if verdict["kept"] else "left out"
    return f"{verdict['stage']} {verdict['item']}: {decided}: {verdict['reason']}"


def _is_about_an_empty_component(verdict: dict[str, Any]) -> bool:
    """True if a verdict says that a static component is empty, as in most cases."""
    is_static = verdict["item"].removeprefix("component:") in STATIC_IDS
    return is_static and verdict["reason"] == "empty"
