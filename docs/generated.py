"""Generate the reference from the code: settings, commands, components, scenario keys.

A page names such a part in a comment, `<!-- generated: settings -->`. Sphinx reads the page with
the Markdown of that part in its place. Evennia must be started before
the commands are asked for.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from dataclasses import fields as fields_of
from itertools import pairwise
from typing import Any, Final

from evennia_ai.engine.foreign.fields import describe_in_data, strict_model
from evennia_ai.engine.prompt.components import (
    ALLOWS,
    PLUGGABLE_IDS,
    STATIC_COMPONENTS,
    PromptComponent,
)
from evennia_ai.formats.scenario import parts, reading
from evennia_ai.services.settings.game import SETTINGS, Conf

_MARK: Final = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
FIRST_SETTINGS: Final = (
    *("base_url", "model", "context_tokens", "reply_tokens", "model_timeout_seconds"),
    *("limits", "fallback_line", "cooldown_seconds", "tools", "npc_typeclass"),
)
"""The ten settings that a game needs first, by their fields in `Conf`. All others are advanced."""
_SCENARIO_FORMS: Final[Mapping[str, type]] = {
    "The file": reading._File,
    "`settings`": reading.Settings,
    "An item of `lorebooks`": parts._BookRow,
    "An item of `notes`": reading._NoteRow,
    "`persona`": reading._PersonaRow,
    "An item of `turns`": reading._TurnRow,
    "An item of `history`": reading._MessageRow,
    "`event`": reading._EventRow,
}
"""The mappings that a scenario is made of, with the dataclasses that they are read into."""


def with_generated(source: str) -> str:
    """Return the page with each `<!-- generated: ... -->` replaced by the Markdown of that part.

    Raises:
        KeyError: A mark names no part.
    """
    return _MARK.sub(lambda found: PARTS[found[1]](), source)


def field_docs(form: type) -> dict[str, str]:
    """Return the docstrings below the fields of a dataclass, each on one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(form))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in pairwise(body.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def _first_settings() -> str:
    return _settings_table(FIRST_SETTINGS)


def _advanced_settings() -> str:
    return _settings_table([name for name in SETTINGS if name not in FIRST_SETTINGS])


def _settings_table(names: Sequence[str]) -> str:
    docs = field_docs(Conf)
    rows = [
        (
            f"`{SETTINGS[name].full_name}`",
            f"`{_written(SETTINGS[name].default)}`",
            docs[name],
            SETTINGS[name].id,
        )
        for name in names
    ]
    return _table(("setting", "default", "what it is", "check"), rows)


def _commands() -> str:
    from evennia_ai import AICmdSet

    commands = sorted(AICmdSet().commands, key=lambda command: str(command.key))
    return "\n\n".join(map(_command, commands))


def _command(command: Any) -> str:
    """Return a command's section: its switches, its lock, and its help as a player reads it."""
    help_text, _, more = textwrap.dedent(command.__doc__).strip("\n").partition("\n# subtopics\n")
    summary, _, rest = help_text.partition("\n")
    switches = ", ".join(f"`{name}`" for name in command.verbs if name)
    facts = [f"{summary}."]
    if command.aliases:
        facts.append(f"Other names: {', '.join(f'`{name.strip()}`' for name in command.aliases)}.")
    facts += [f"Switches: {switches or 'none'}.", f"Lock: `{command.locks}`."]
    parts = [f"## {str(command.key).strip()}", *facts, _fenced(rest)]
    for topic in more.split("\n## ")[1:]:
        name, _, text = topic.partition("\n")
        parts += [f"### {command.key}: {name}", f"`help {command.key}/{name}`", _fenced(text)]
    return "\n\n".join(parts)


def _fenced(text: str) -> str:
    return f"```text\n{text.strip(chr(10))}\n```"


def _components() -> str:
    static = [(str(one.id), f"`{one.key}`", one.role, one.description) for one in STATIC_COMPONENTS]
    pluggable = [(str(number), f"`{key}`") for key, number in PLUGGABLE_IDS.items()]
    grants = [(f"`{name}`", text) for name, text in ALLOWS.items()]
    return "\n\n".join(
        (
            "## Components of every game",
            _table(("ID", "key", "role", "what it holds"), static),
            "## Components of cards and lore",
            _table(("ID", "key"), pluggable),
            "## Fields of a component",
            _fields(PromptComponent),
            "## Grants",
            "What text from elsewhere may do once a builder grants it.",
            _table(("grant", "what it allows"), grants),
        )
    )


def _scenario_keys() -> str:
    return "\n\n".join(f"## {title}\n\n{_fields(form)}" for title, form in _SCENARIO_FORMS.items())


def _fields(form: type) -> str:
    """Return the table of a dataclass's fields: what each must be, its default, its text."""
    docs, known = field_docs(form), strict_model(form).model_fields
    rows = [
        (
            f"`{one.name}`",
            describe_in_data(known[one.name], None),
            _default(one),
            docs.get(one.name, ""),
        )
        for one in fields_of(form)
        if one.name in known
    ]
    if any(row[3] for row in rows):
        return _table(("key", "what it must be", "default", "what it is"), rows)
    return _table(("key", "what it must be", "default"), [row[:3] for row in rows])


def _default(field: Any) -> str:
    """Return a field's default as it is written in YAML, or "must be given"."""
    value = field.default
    if value is MISSING:
        return "must be given" if field.default_factory is MISSING else "empty"
    if value is None or value == "":
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _written(value: Any) -> str:
    """Return a setting's default as Python code with double quotes."""
    text = repr(value)
    return text.replace("'", '"') if '"' not in text else text


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    def lines() -> Iterator[str]:
        for row in (head, ("---",) * len(head), *rows):
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"

    return "\n".join(lines())


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "first_settings": _first_settings,
    "advanced_settings": _advanced_settings,
    "commands": _commands,
    "components": _components,
    "scenario_keys": _scenario_keys,
}
"""The generated parts, by the name that a page uses for them."""
