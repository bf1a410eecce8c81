"""A file with an edit -> ProposedEdit: some of the keys of a scenario, and what they mean here.

Unknown keys and wrong values are errors that name their path. Paths count from the file's folder.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from evennia_ai.errors import FormatError, TemplateError
from evennia_ai.foreign.documents import read_document
from evennia_ai.foreign.strict_json import check_plain
from evennia_ai.lorebook.rules import PRESETS, ActivationRules, read_rules
from evennia_ai.minds.edits import ProposedEdit
from evennia_ai.prompt.components import ALLOWS, NO_GRANTS, Grants, PromptComponent, Trust
from evennia_ai.prompt.expansion import LAYOUTS
from evennia_ai.prompt.messages import TEXT_ROLES
from evennia_ai.prompt.notes import NOTE_MODES, AuthorsNote, Notes
from evennia_ai.prompt.persisted import BLOCKS_MODES, BlocksMode
from evennia_ai.prompt.templates.template import compile_template
from evennia_ai.scenario.parts import COPIED, Files, read_components
from evennia_ai.scenario.tables import Table, one_of, text_at, wrong

KIND: Final = "edit"
KEYS: Final = ("components", "card", "lorebooks", "notes", "settings")
SETTINGS: Final = ("lore", "layout", "blocks", "card_grants")


def read_edit_file(path: Path) -> ProposedEdit:
    """The edit in a YAML or JSON file; its paths count from the file's folder.

    FormatError: it cannot be read as an edit.
    """
    data = read_document(path, kind=KIND)
    try:
        return read_edit({} if data is None else data, folder=path.parent)
    except FormatError as error:
        shown = error.message if error.message.startswith(str(path)) else f"{path}: {error.message}"
        raise FormatError(KIND, shown) from error


def read_edit(data: object, *, folder: Path) -> ProposedEdit:
    """The edit that `data` describes; `folder` is where its paths count from."""
    check_plain(data, kind=KIND, where="the edit")
    table = Table(data, path="", known=KEYS)
    if not any(table.has(key) for key in KEYS):
        raise FormatError(KIND, f"changes nothing; name one of {', '.join(KEYS)}")
    settings = Table(table.data.get("settings") or {}, path="settings", known=SETTINGS)
    rows = table.rows("components")
    components = tuple(map(_of_a_builder, read_components(rows), (row for _, row in rows)))
    for component, (path, _) in zip(components, rows, strict=True):
        where = f"{path}: component '{component.key}'"
        _check_text(component.content, trust=component.trust, where=where)
    files = Files(folder, card_grants=NO_GRANTS)
    return ProposedEdit(
        components=components,
        fields={
            component.key: {name: row[name] for name in COPIED if name in row}
            for component, (_, row) in zip(components, rows, strict=True)
        },
        card=files.card(table.data["card"]) if table.has("card") else None,
        grants=_grants(settings),
        books=files.books(None, table.rows("lorebooks"), rules="evennia_ai"),
        notes=Notes(_notes(table)) if table.has("notes") else None,
        rules=_lore(settings),
        blocks=_blocks(settings),
        layout=settings.choice("layout", LAYOUTS, "cache") if settings.has("layout") else None,
        notices=tuple(notice for notice in files.notices if not notice.startswith("the card has")),
    )


def _of_a_builder(component: PromptComponent, row: Mapping[str, Any]) -> PromptComponent:
    """The component as a builder of the game would make it."""
    return component if "trust" in row else component.changed(trust="builder")


def _check_text(text: str, *, trust: Trust, where: str) -> None:
    """FormatError: the game would refuse this text of a component or a note when it is saved."""
    try:
        compile_template(text, trust=trust)
    except TemplateError as error:
        raise FormatError(KIND, f"{where}: {error}") from error


def _grants(settings: Table) -> Grants | None:
    if not settings.has("card_grants"):
        return None
    rows = settings.rows("card_grants")
    return frozenset(one_of(path, text_at(path, row), tuple(ALLOWS)) for path, row in rows)


def _blocks(settings: Table) -> BlocksMode | None:
    return settings.choice("blocks", BLOCKS_MODES, "latest") if settings.has("blocks") else None


def _notes(table: Table) -> tuple[AuthorsNote, ...]:
    return tuple(_note(path, row) for path, row in table.rows("notes"))


def _note(path: str, row: Any) -> AuthorsNote:
    note = Table(row, path=path, known=("content", "depth", "role", "every", "mode"))
    content = note.text("content")
    _check_text(content, trust="builder", where=f"{path}: the author's note")
    return AuthorsNote(
        content=content,
        depth=note.depth("depth", 4),
        role=note.choice("role", TEXT_ROLES, "system"),
        every=note.whole("every", 1),
        mode=note.choice("mode", NOTE_MODES, "floating"),
    )


def _lore(settings: Table) -> dict[str, Any]:
    """The rules of lore that the edit names; a preset names all that it sets."""
    given = settings.data.get("lore")
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise wrong(settings.at("lore"), given, "a mapping")
    read: ActivationRules = read_rules(given)
    preset = PRESETS[read.rules] if "rules" in given else {}
    return {name: getattr(read, name) for name in (*preset, *given)}
