"""A file with an edit -> ProposedEdit: some of the keys of a scenario, and what they mean here.

Unknown keys and wrong values are errors that name their path. Paths count from the file's folder.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from evennia_ai.errors import FormatError, TemplateError
from evennia_ai.foreign.documents import check_plain, read_document
from evennia_ai.lorebook.rules import PRESETS, ActivationRules, read_rules
from evennia_ai.minds.edits import ProposedEdit
from evennia_ai.prompt.blocks import BlocksMode
from evennia_ai.prompt.components import ALLOWS, NO_GRANTS, Grants, PromptComponent
from evennia_ai.prompt.expansion import Layout
from evennia_ai.prompt.messages import Trust
from evennia_ai.prompt.notes import AuthorsNote, Notes
from evennia_ai.prompt.templates.template import compile_template
from evennia_ai.scenario.parts import COPIED, Files, NoteRow, read_components
from evennia_ai.scenario.tables import Rows, listed, one_of, read_row, text_at, wrong

KIND: Final = "edit"


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The keys of an edit."""

    components: Rows = None
    card: Any = None
    lorebooks: Rows = None
    notes: Rows = None
    settings: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    lore: Any = None
    layout: Layout | None = None
    blocks: BlocksMode | None = None
    card_grants: Rows = None


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
    file = read_row(_File, data, path="")
    keys = [one.name for one in fields(_File)]
    if all(getattr(file, key) is None for key in keys):
        raise FormatError(KIND, f"changes nothing; name one of {', '.join(keys)}")
    settings = read_row(_Settings, file.settings or {}, path="settings")
    rows = listed(file.components, path="components")
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
        card=None if file.card is None else files.card(file.card),
        grants=_grants(settings),
        books=files.books(None, listed(file.lorebooks, path="lorebooks"), rules="evennia_ai"),
        notes=None if file.notes is None else Notes(_notes(file.notes)),
        rules=_lore(settings),
        blocks=settings.blocks,
        layout=settings.layout,
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


def _grants(settings: _Settings) -> Grants | None:
    if settings.card_grants is None:
        return None
    rows = listed(settings.card_grants, path="settings.card_grants")
    return frozenset(one_of(path, text_at(path, row), tuple(ALLOWS)) for path, row in rows)


def _notes(given: list[Any]) -> tuple[AuthorsNote, ...]:
    return tuple(_note(path, row) for path, row in listed(given, path="notes"))


def _note(path: str, row: Any) -> AuthorsNote:
    read = read_row(NoteRow, row, path=path)
    _check_text(read.content, trust="builder", where=f"{path}: the author's note")
    return AuthorsNote(**asdict(read))


def _lore(settings: _Settings) -> dict[str, Any]:
    """The rules of lore that the edit names; a preset names all that it sets."""
    given = settings.lore
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise wrong("settings.lore", given, "a mapping")
    read: ActivationRules = read_rules(given)
    preset = PRESETS[read.rules] if "rules" in given else {}
    return {name: getattr(read, name) for name in (*preset, *given)}
