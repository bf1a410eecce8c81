"""`ai/tools`: what an NPC may do beside answering, shown and chosen."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from evennia_ai.commands.strict import CommandError
from evennia_ai.game.senses.presence import NPC
from evennia_ai.game.tools.registry import Choice, choice_of, chosen, registry
from evennia_ai.game.tools.tool import Tool
from evennia_ai.text.columns import hanging

NONE: Final = "none"
_BETWEEN: Final = re.compile(r"[\s,]+")
_SIGN: Final = re.compile(r"([+-])\s+")
MOST_WORDS: Final = 50


def tools_lines(npc: NPC) -> list[str]:
    """Which tools an NPC has and which there are, one line each."""
    choice = choice_of(npc)
    lines = [f"What {npc.key} may do beside answering:", *_lines(choice.has)]
    lines += [f"  {name} - is no tool of the game any more" for name in choice.gone]
    if choice.others:
        lines += ["What it could be given:", *_lines(choice.others)]
    lines += [f"Left out: {problem}" for problem in registry().problems]
    return [shown for line in lines for shown in hanging(line)]


def tools_chosen(npc: NPC, text: str, *, by: str) -> str:
    """Give an NPC the tools that `text` means; what it has then, in one line."""
    words = [word for word in _BETWEEN.split(_SIGN.sub(r"\1", text.lower())) if word]
    now = choice_of(npc)
    names = _wanted([*_names(now.has), *now.gone], words)
    choice = chosen(npc, names, by=by)
    return f"{npc.key} may {_listed(choice)} beside answering."


def _wanted(has: Sequence[str], words: Sequence[str]) -> list[str]:
    """The names that words such as `say, give` or `+give, -say` mean, `has` being those before."""
    changes = [word for word in words if word[:1] in "+-"]
    if not words or len(words) > MOST_WORDS:
        raise CommandError(
            f"Name up to {MOST_WORDS} tools, or '{NONE}' for none at all. Nothing was changed."
        )
    if changes and len(changes) < len(words):
        raise CommandError(
            "Name all the tools it is to have, or changes with + and - alone. Nothing was changed."
        )
    if not changes:
        return [] if words == [NONE] else [_known(word) for word in words]
    gone = [word[1:].strip() for word in changes if word[0] == "-"]
    for name in gone:
        if name not in has:
            raise CommandError(f"It has no tool '{name}'. Nothing was changed.")
    added = [_known(word[1:].strip()) for word in changes if word[0] == "+"]
    return [name for name in has if name not in gone] + added


def _known(name: str) -> str:
    """The name, which must be that of a tool there is."""
    tools = registry().tools
    if name in tools:
        return name
    near = get_close_matches(name, tools, n=1)
    meant = f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(sorted(tools))}."
    raise CommandError(f"There is no tool '{name}'{meant} Nothing was changed.")


def _lines(tools: Sequence[Tool]) -> list[str]:
    if not tools:
        return ["  nothing"]
    return [f"  {_marked(tool)} - {' '.join(tool.description.split())}" for tool in tools]


def _marked(tool: Tool) -> str:
    return f"{tool.name} (dangerous)" if tool.dangerous else tool.name


def _names(tools: Sequence[Tool]) -> list[str]:
    return [tool.name for tool in tools]


def _listed(choice: Choice) -> str:
    return ", ".join([*_names(choice.has), *choice.gone]) or "do nothing"
