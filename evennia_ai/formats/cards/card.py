"""A character card as values, whatever version its file was, and how it is read of JSON.

Card V3's words are kept. Nothing is expanded or cut here: the texts are as the file has them, and
`source` is the file's own JSON, so that an export loses nothing. A card that cannot be read raises
and changes nothing; each doubt is a notice. No address in a card is ever fetched. What carries the
JSON, a file, a picture or an archive, is for `evennia_ai.formats.cards.loading`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticCustomError

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import ListOf, check_plain, one_line, parse_json
from evennia_ai.engine.foreign.fields import place_and_problem, to_format_error
from evennia_ai.engine.prompt.components import MAX_CONTENT
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.messages import Message, said
from evennia_ai.engine.prompt.templates.macros import check_macros
from evennia_ai.engine.prompt.templates.template import compile_template, fill_each
from evennia_ai.engine.prompt.templates.work import Meter
from evennia_ai.formats.file_kinds import told_of

Spec = Literal["chara_card_v3", "chara_card_v2", "v1"]
DEFAULT_USER: Final = "User"
MAX_CHAR: Final = 200
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


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


@dataclass(frozen=True, slots=True)
class _Read:
    """What a field is read as, where that is not the type it has."""

    form: Any


Text = Annotated[str, Field(max_length=MAX_CONTENT)]
Texts = Annotated[tuple[str, ...], _Read(ListOf[Text])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A picture or other file that belongs to the card; `uri` is never fetched."""

    type: str
    uri: str
    name: str
    ext: str


def _form_of(form: type, *, without: Collection[str] = ()) -> type[BaseModel]:
    """What is read of a mapping that becomes this dataclass; other members are left alone.

    Where a field may be missing it may be null, which real files have.
    """
    hints = get_type_hints(form, include_extras=True)
    doors: dict[str, Any] = {}
    for one in fields(form):
        if one.name not in without:
            said = (read.form for read in get_args(hints[one.name]) if isinstance(read, _Read))
            read = next(said, hints[one.name])
            is_asked = one.default is MISSING and one.default_factory is MISSING
            doors[one.name] = (read, ...) if is_asked else (read | None, None)
    return create_model(form.__name__, __config__=ConfigDict(strict=True, frozen=True), **doors)


# What a card without the field has (Card V3, `assets`).
DEFAULT_ASSETS: Final = (Asset(type="icon", uri="ccdefault:", name="main", ext="png"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A character card.

    `spec` is the version the file had. `character_book` is the raw book, None where there is
    none; `lorebook.formats.books.read_book` reads it. `notices` are for who imports the card.
    """

    name: Text
    nickname: Text = ""
    description: Text = ""
    personality: Text = ""
    scenario: Text = ""
    first_mes: Text = ""
    mes_example: Text = ""
    system_prompt: Text = ""
    post_history_instructions: Text = ""
    alternate_greetings: Texts = ()
    group_only_greetings: Texts = ()
    creator_notes: Text = ""
    creator_notes_multilingual: Annotated[
        Mapping[str, str], _Read(Annotated[dict[str, Text], BeforeValidator(_few_languages)])
    ] = field(default_factory=dict)
    creator: str = ""
    character_version: Annotated[str, PlainValidator(_version)] = ""
    tags: Annotated[tuple[str, ...], _Read(ListOf[str])] = ()
    assets: Annotated[tuple[Asset, ...], _Read(ListOf[_form_of(Asset)])] = DEFAULT_ASSETS
    character_book: Annotated[Mapping[str, Any] | None, _Read(dict[str, Any])] = None
    extensions: Annotated[Mapping[str, Any], _Read(dict[str, Any])] = field(default_factory=dict)
    spec: Spec = "chara_card_v3"
    spec_version: str = "3.0"
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    notices: tuple[str, ...] = ()

    @property
    def char(self) -> str:
        """What `{{char}}` stands for: the nickname, or the name where there is none.

        It stands in texts of others, so it is one line of bounded length whatever the file says.
        """
        return _CONTROL.sub(" ", self.nickname).strip()[:MAX_CHAR].rstrip() or self.name


_ABOUT_THE_FILE: Final = frozenset({"spec", "spec_version", "source", "notices"})
# The fields of the standard's data.
DATA_FIELDS: Final = tuple(one.name for one in fields(Card) if one.name not in _ABOUT_THE_FILE)
_TEXTS: Final = frozenset(one.name for one in fields(Card) if one.default == "")
_DATA: Final = _form_of(Card, without=_ABOUT_THE_FILE)
_ASSET: Final = TypeAdapter(_form_of(Asset))


def macro_values(card: Card | None, *, user: str = "") -> dict[str, str]:
    """The values that card and lore text may name; a user always has some name."""
    values = {"user": user or DEFAULT_USER}
    if card is not None:
        values["char"] = card.char
    return values


def greetings(card: Card, *, group: bool = False) -> tuple[str, ...]:
    """The greetings to choose from, as written: the first message, its alternates, and in a group
    those that are for groups only.
    """
    extra = card.group_only_greetings if group else ()
    return (card.first_mes, *card.alternate_greetings, *extra)


def texts_with_macros(card: Card) -> tuple[str, ...]:
    """Return the card's texts that are filled in, as they are written."""
    depth_prompt = card.extensions.get("depth_prompt")
    prompt = depth_prompt.get("prompt") if isinstance(depth_prompt, dict) else None
    return (
        *(card.description, card.personality, card.scenario, card.mes_example),
        *(card.system_prompt, card.post_history_instructions, notes_in(card)),
        *([prompt] if isinstance(prompt, str) else []),
        *greetings(card, group=True),
    )


def greeting(card: Card, *, index: int = 0, group: bool = False) -> str:
    """One greeting as written; 0 is the first message, n the n-th alternate.

    FormatError: the card has no greeting of this index.
    """
    known = greetings(card, group=group)
    if 0 <= index < len(known):
        return known[index]
    raise FormatError(
        "card", f"card {card.name}: has no greeting {index}; it has 0 to {len(known) - 1}"
    )


def opening_message(
    card: Card,
    *,
    index: int = 0,
    group: bool = False,
    values: Mapping[str, str],
    dice: Dice,
    meter: Meter | None = None,
) -> Message | None:
    """Return a greeting as the character's first message, macros expanded; None for an empty one.

    `meter` is the work that several greetings share. One that is too much stays as written.
    """
    text = compile_template(greeting(card, index=index, group=group), trust="imported")
    [content] = fill_each({index: text}, values, dice, meter or Meter()).values()
    return said("assistant", content, name=card.name) if content.strip() else None


def notes_in(card: Card, language: str = "en") -> str:
    """The creator's notes for a reader of `language` (`de` and `de-AT` are the same).

    `creator_notes` counts as English where the multilingual notes have none, and is what everybody
    reads whose language is not there.
    """
    known = {_language(name): text for name, text in card.creator_notes_multilingual.items()}
    known.setdefault("en", card.creator_notes)
    return known.get(_language(language), known["en"])


def _language(tag: str) -> str:
    return tag.replace("_", "-").partition("-")[0].lower()


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
        told = told_of(raw, wanted="card") or "must be an object"
        raise FormatError("card", f"{WHERE}: {told}")
    spec = _spec(raw)
    data, where = (raw, WHERE) if spec == "v1" else (raw.get("data"), f"{WHERE}.data")
    if not isinstance(data, dict):
        raise FormatError("card", f"{where}: must be an object")
    read = _read({**data, **_mended(data, notices)}, where, notices)
    notices += _doubts(data, read)
    if data is not raw and "character_book" in raw and not data.get("character_book"):
        notices.append(
            "character_book stands beside data, where nothing reads it: move it into data"
        )
    given = {name: value for name, value in read.items() if value is not None}
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    check_macros(_texts_in(read, where), kind="card")
    version = _spec_version(raw, spec, notices)
    name = _name(read["name"], notices)
    if "assets" in lists:
        lists["assets"] = _assets(lists["assets"], notices)
    return Card(
        **{**given, **lists, "name": name},
        spec=spec,
        spec_version=version,
        source=raw,
        notices=tuple(dict.fromkeys(notices)),
    )


# Fields that are no text of a prompt on its own: one that cannot be read is a notice.
_SPARED: Final = frozenset(
    {
        *("nickname", "alternate_greetings", "group_only_greetings", "creator_notes", "creator"),
        *("creator_notes_multilingual", "character_version", "tags", "assets", "character_book"),
        "extensions",
    }
)
_LISTS_OF_TEXTS: Final = ("alternate_greetings", "group_only_greetings", "tags")


def _mended(data: Mapping[str, Any], notices: list[str]) -> dict[str, Any]:
    """The lists of a card as they can be read: SillyTavern takes one text for a list of it."""
    mended: dict[str, Any] = {}
    for name in _LISTS_OF_TEXTS:
        value = data.get(name)
        if isinstance(value, str):
            parts = value.split(",") if name == "tags" else [value]
            mended[name] = [part.strip() for part in parts if part.strip()]
            notices.append(f"{name} is one text: taken as a list of {len(mended[name])}")
        elif isinstance(value, list) and not all(isinstance(item, str) for item in value):
            mended[name] = [item for item in value if isinstance(item, str)]
            left = len(value) - len(mended[name])
            notices.append(f"{name}: {left} of {len(value)} are no texts and are left out")
    if isinstance(assets := data.get("assets"), list):
        good = [one for one in assets if _ASSET.validator.isinstance_python(one)]
        if len(good) < len(assets):
            mended["assets"] = good
            left = len(assets) - len(good)
            notices.append(f"assets: {left} of {len(assets)} cannot be read and are left out")
    return mended


def _read(data: dict[str, Any], where: str, notices: list[str]) -> dict[str, Any]:
    """The members of `data`; an optional one that cannot be read is left out, with a notice."""
    try:
        return vars(_DATA.model_validate(data))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    for one in problems:
        name = str(one["loc"][0])
        if name in _SPARED and data.pop(name, None) is not None:
            _, problem = place_and_problem(one)
            notices.append(f"{name} {problem}: it is ignored, and kept for the export")
    try:
        return vars(_DATA.model_validate(data))
    except ValidationError as error:
        raise to_format_error(error, kind="card", where=where) from error


def _texts_in(read: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a card that may have macros, each with its path."""
    for name, value in read.items():
        if isinstance(value, str):
            yield f"{where}.{name}", value
        elif isinstance(value, list):
            for at, one in enumerate(value):
                if isinstance(one, str):
                    yield f"{where}.{name}[{at}]", one
    depth_prompt = (read["extensions"] or {}).get("depth_prompt")
    text = depth_prompt.get("prompt") if isinstance(depth_prompt, dict) else None
    if isinstance(text, str):
        yield f"{where}.extensions.depth_prompt.prompt", text


# Members that stay in the file's own JSON alone: their type, and what it is called.
_KEPT: Final[Mapping[str, tuple[type[Any] | UnionType, str]]] = {
    "creation_date": (int | float, "number"),
    "modification_date": (int | float, "number"),
    "source": (list, "list"),
}


def _doubts(data: Mapping[str, Any], read: Mapping[str, Any]) -> Iterator[str]:
    """A notice on each value that is read as another one, or that the standard would not have.

    Tools write null for no book, no tags and no assets: that says nothing.
    """
    for name in DATA_FIELDS:
        if name in data and data[name] is None and name in _TEXTS:
            yield f"{name} is null: taken as empty"
    if isinstance(data.get("character_version"), int | float):
        yield "character_version is a number: taken as the text it is written as"
    for name, (wanted, called) in _KEPT.items():
        value = data.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, wanted)):
            yield f"{name} is no {called}: it is kept as it is"
    entries = (read["character_book"] or {}).get("entries", [])
    if isinstance(entries, dict):
        yield "character_book.entries is an object: its members are read as a list"
    elif read["character_book"] == {} or not isinstance(entries, list):
        yield "character_book has no list of entries: it is taken as empty"
    world = (read["extensions"] or {}).get("world")
    if isinstance(world, str) and world.strip() and read["character_book"] is None:
        named = f"extensions.world names a lorebook ('{one_line(world)[:60]}')"
        yield f"{named} that is not in the card: import it too"


def _spec(raw: Mapping[str, Any]) -> Spec:
    """Which version a card is: by its `spec`, or as V1 by its fields at the top."""
    spec = raw.get("spec")
    if spec == "chara_card_v3":
        return "chara_card_v3"
    if spec == "chara_card_v2":
        return "chara_card_v2"
    there = [name for name in V1_FIELDS if name in raw]
    if spec is None and "name" in there and len(there) > 1:
        return "v1"
    if told := told_of(raw, wanted="card"):
        raise FormatError("card", f"{WHERE}: {told}")
    if spec is not None:
        shown = one_line(repr(spec))[:60]
        raise FormatError(
            "card",
            f"{WHERE}.spec: must be chara_card_v3 or chara_card_v2, not {shown}",
        )
    fields = ", ".join(V1_FIELDS)
    raise FormatError("card", f"{WHERE}: has neither a `spec` nor the fields of V1 ({fields})")


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


def _assets(read: Sequence[Any], notices: list[str]) -> tuple[Asset, ...]:
    assets = tuple(Asset(**vars(one)) for one in read)
    icons = [asset.name for asset in assets if asset.type == "icon"]
    if icons and icons.count("main") != 1:
        notices.append(f"assets: one icon must be named main, {icons.count('main')} are")
    backgrounds = [asset.name for asset in assets if asset.type == "background"]
    if backgrounds.count("main") > 1:
        notices.append(f"assets: one background may be named main, {backgrounds.count('main')} are")
    return assets
