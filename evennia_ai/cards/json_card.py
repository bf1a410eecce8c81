"""Reading cards: JSON of V3, V2 and V1 into one view, with a notice on every doubt.

A card that cannot be read raises and changes nothing. No address in a card is ever fetched. What
carries the JSON, a file, a picture or an archive, is for `evennia_ai.cards.loading`.
"""

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

from evennia_ai.cards.card import _CONTROL, DEFAULT_ASSETS, MAX_CHAR, Asset, Card, Spec
from evennia_ai.errors import FormatError
from evennia_ai.foreign.documents import (
    ListOf,
    as_format_error,
    check_plain,
    one_line,
    parse_json,
)
from evennia_ai.prompt.components import MAX_CONTENT

WHERE: Final = "card"
NEWEST_VERSION: Final = 3.0
MAX_LANGUAGES: Final = 500
V1_FIELDS: Final = (
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
)


def _version(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise PydanticCustomError("version", "must be text")


def _few_languages(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > MAX_LANGUAGES:
        raise PydanticCustomError("languages", f"must have {MAX_LANGUAGES} languages at most")
    return value


Text = Annotated[str, Field(max_length=MAX_CONTENT)]
Version = Annotated[str, PlainValidator(_version)]
Languages = Annotated[dict[str, Text], BeforeValidator(_few_languages)]


class _Asset(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    type: str
    uri: str
    name: str
    ext: str


class _Data(BaseModel):
    """What is read of a card's data; other fields stay in the file's own JSON.

    Texts may be null, which real files have and which counts as empty.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    name: Text
    nickname: Text | None = None
    description: Text | None = None
    personality: Text | None = None
    scenario: Text | None = None
    first_mes: Text | None = None
    mes_example: Text | None = None
    system_prompt: Text | None = None
    post_history_instructions: Text | None = None
    alternate_greetings: ListOf[Text] | None = None
    group_only_greetings: ListOf[Text] | None = None
    creator_notes: Text | None = None
    creator_notes_multilingual: Languages | None = None
    creator: str | None = None
    character_version: Version | None = None
    tags: ListOf[str] | None = None
    assets: ListOf[_Asset] | None = None
    character_book: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None


def card_from_text(text: str) -> Card:
    """The card in a JSON text; strict JSON, a byte order mark is allowed."""
    data, notices = parse_json(text, kind="card", where=WHERE)
    return _card(data, list(notices))


def read_card(data: Any) -> Card:
    """The card that a file's JSON value is; FormatError names the path of what is wrong."""
    check_plain(data, kind="card", where=WHERE)
    return _card(data, [])


def _card(raw: Any, notices: list[str]) -> Card:
    if not isinstance(raw, dict):
        raise FormatError("card", f"{WHERE}: must be an object")
    spec = _spec(raw)
    data, where = (raw, WHERE) if spec == "v1" else (raw.get("data"), f"{WHERE}.data")
    if not isinstance(data, dict):
        raise FormatError("card", f"{where}: must be an object")
    try:
        read = _Data.model_validate(data)
    except ValidationError as error:
        raise as_format_error(error, kind="card", where=where) from error
    notices += _doubts(data, read)
    version = _spec_version(raw, spec, notices)
    texts = {name: getattr(read, name) or "" for name in _TEXTS}
    return Card(
        name=_name(read.name, notices),
        **texts,
        alternate_greetings=tuple(read.alternate_greetings or ()),
        group_only_greetings=tuple(read.group_only_greetings or ()),
        creator_notes_multilingual=read.creator_notes_multilingual or {},
        tags=tuple(read.tags or ()),
        assets=_assets(read.assets, notices),
        character_book=read.character_book,
        extensions=read.extensions or {},
        spec=spec,
        spec_version=version,
        source=raw,
        notices=tuple(dict.fromkeys(notices)),
    )


# Fields of the view that are one text each and may be missing.
_TEXTS: Final = (
    "nickname",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "system_prompt",
    "post_history_instructions",
    "creator_notes",
    "creator",
    "character_version",
)


# Members that stay in the file's own JSON alone: their type, and what it is called.
_KEPT: Final[Mapping[str, tuple[type[Any] | UnionType, str]]] = {
    "creation_date": (int | float, "number"),
    "modification_date": (int | float, "number"),
    "source": (list, "list"),
}


def _doubts(data: Mapping[str, Any], read: _Data) -> Iterator[str]:
    """A notice on each value that is read as another one, or that the standard would not have."""
    for name in _Data.model_fields:
        if name in data and data[name] is None:
            yield f"{name} is null: taken as {'empty' if name in _TEXTS else 'missing'}"
    if isinstance(data.get("character_version"), int | float):
        yield "character_version is a number: taken as the text it is written as"
    for name, (wanted, called) in _KEPT.items():
        value = data.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, wanted)):
            yield f"{name} is no {called}: it is kept as it is"
    if isinstance((read.character_book or {}).get("entries"), dict):
        yield "character_book.entries is an object: its members are read as a list"
    world = (read.extensions or {}).get("world")
    if isinstance(world, str) and world.strip() and read.character_book is None:
        named = f"extensions.world names a lorebook ('{one_line(world)[:60]}')"
        yield f"{named} that is not in the card: import it too"


def _spec(raw: Mapping[str, Any]) -> Spec:
    """Which version a card is: by its `spec`, or as V1 by its fields at the top."""
    spec = raw.get("spec")
    if spec == "chara_card_v3":
        return "chara_card_v3"
    if spec == "chara_card_v2":
        return "chara_card_v2"
    if spec is not None:
        shown = one_line(repr(spec))[:60]
        raise FormatError(
            "card",
            f"{WHERE}.spec: must be chara_card_v3 or chara_card_v2, not {shown}{_as_book(raw)}",
        )
    there = [name for name in V1_FIELDS if name in raw]
    if "name" in there and len(there) > 1:
        return "v1"
    fields = ", ".join(V1_FIELDS)
    raise FormatError(
        "card", f"{WHERE}: has neither a `spec` nor the fields of V1 ({fields}){_as_book(raw)}"
    )


def _as_book(raw: Mapping[str, Any]) -> str:
    """A hint for whoever took a lorebook for a card."""
    if raw.get("spec") == "lorebook_v3" or isinstance(raw.get("entries"), dict | list):
        return "; it looks like a lorebook, which is imported as that"
    return ""


def _spec_version(raw: Mapping[str, Any], spec: Spec, notices: list[str]) -> str:
    if spec == "v1":
        return "1.0"
    version = raw.get("spec_version")
    if not isinstance(version, str):
        notices.append("spec_version is no text")
    shown = one_line(str(version))[:40]
    try:
        number = float(shown)
    except ValueError:
        notices.append(f"spec_version '{shown}' is no number: taken for an older one")
        return shown
    if not number <= NEWEST_VERSION:
        notices.append(f"spec_version {shown} is newer than {NEWEST_VERSION}: read as far as known")
    return shown


def _name(written: str, notices: list[str]) -> str:
    """The name in one line without control characters."""
    name = _CONTROL.sub(" ", written).strip()[:MAX_CHAR]
    if not name:
        notices.append("name is empty")
    elif name != written:
        notices.append("name: control characters, blanks around it or its end were cut off")
    return name


def _assets(read: list[_Asset] | None, notices: list[str]) -> tuple[Asset, ...]:
    if read is None:
        return DEFAULT_ASSETS
    icons = [asset.name for asset in read if asset.type == "icon"]
    if icons and icons.count("main") != 1:
        notices.append(f"assets: one icon must be named main, {icons.count('main')} are")
    backgrounds = [asset.name for asset in read if asset.type == "background"]
    if backgrounds.count("main") > 1:
        notices.append(f"assets: one background may be named main, {backgrounds.count('main')} are")
    return tuple(Asset(type=a.type, uri=a.uri, name=a.name, ext=a.ext) for a in read)
