"""The character card as a dataclass, and the parser that reads it from JSON of V1, V2 or V3.

Fields have the names of Card V3. The parser neither expands macros nor shortens text, and `source`
keeps the JSON of the file, so an export loses nothing. A card that cannot be read raises
`FormatError`; each smaller problem becomes a notice. Addresses in a card are never fetched.
`evennia_ai.formats.cards.loading` extracts the JSON from files, pictures and archives.
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
from evennia_ai.formats.file_kinds import describe_value, is_card_v1

Spec = Literal["chara_card_v3", "chara_card_v2", "v1"]
WHERE: Final = "card"
DEFAULT_USER: Final = "User"
MAX_CHAR: Final = 200
MAX_LANGUAGES: Final = 500
NEWEST_VERSION: Final = 3.0
V1_FIELDS: Final = (
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def _parse_version(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise PydanticCustomError("version", "must be text")


def _check_language_count(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > MAX_LANGUAGES:
        raise PydanticCustomError("languages", f"must have {MAX_LANGUAGES} languages at most")
    return value


@dataclass(frozen=True, slots=True)
class _ReadAs:
    """An annotation of a field: the type that the field has in files."""

    form: Any


Text = Annotated[str, Field(max_length=MAX_CONTENT)]
Texts = Annotated[tuple[str, ...], _ReadAs(ListOf[Text])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A picture or another file that belongs to a card; its address `uri` is never fetched."""

    type: str
    uri: str
    name: str
    ext: str


def _model_for(form: type, *, without: Collection[str] = ()) -> type[BaseModel]:
    """Create the pydantic model that reads the fields of a dataclass from JSON.

    The model ignores other members. A field with a default may be null, because real files write
    null there.
    """
    hints = get_type_hints(form, include_extras=True)
    members: dict[str, Any] = {}
    for one in fields(form):
        if one.name not in without:
            notes = (note.form for note in get_args(hints[one.name]) if isinstance(note, _ReadAs))
            read_as = next(notes, hints[one.name])
            is_required = one.default is MISSING and one.default_factory is MISSING
            members[one.name] = (read_as, ...) if is_required else (read_as | None, None)
    return create_model(form.__name__, __config__=ConfigDict(strict=True, frozen=True), **members)


# Card V3, `assets`: a card without the field has this icon, which is the picture of its file.
DEFAULT_ASSETS: Final = (Asset(type="icon", uri="ccdefault:", name="main", ext="png"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A character card.

    `spec` is the version of the file. `character_book` is the raw book or None;
    `evennia_ai.formats.lorebooks.books.read_book` parses it. `notices` are for the builder who
    imports the card.
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
        Mapping[str, str],
        _ReadAs(Annotated[dict[str, Text], BeforeValidator(_check_language_count)]),
    ] = field(default_factory=dict)
    creator: str = ""
    character_version: Annotated[str, PlainValidator(_parse_version)] = ""
    tags: Annotated[tuple[str, ...], _ReadAs(ListOf[str])] = ()
    assets: Annotated[tuple[Asset, ...], _ReadAs(ListOf[_model_for(Asset)])] = DEFAULT_ASSETS
    character_book: Annotated[Mapping[str, Any] | None, _ReadAs(dict[str, Any])] = None
    extensions: Annotated[Mapping[str, Any], _ReadAs(dict[str, Any])] = field(default_factory=dict)
    spec: Spec = "chara_card_v3"
    spec_version: str = "3.0"
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    notices: tuple[str, ...] = ()

    @property
    def char(self) -> str:
        """The value of the macro `{{char}}`: the nickname, or the name of a card without one.

        It is always one line of at most `MAX_CHAR` characters, because it is inserted into other
        texts.
        """
        return _CONTROL.sub(" ", self.nickname).strip()[:MAX_CHAR].rstrip() or self.name


_ABOUT_THE_FILE: Final = frozenset({"spec", "spec_version", "source", "notices"})
DATA_FIELDS: Final = tuple(one.name for one in fields(Card) if one.name not in _ABOUT_THE_FILE)
"""The members that Card V3 defines for the object `data`."""
_TEXTS: Final = frozenset(one.name for one in fields(Card) if one.default == "")
_DATA: Final = _model_for(Card, without=_ABOUT_THE_FILE)
_ASSET: Final = TypeAdapter(_model_for(Asset))


def macro_values(card: Card | None, *, user: str = "") -> dict[str, str]:
    """Return the values of the macros `{{user}}` and `{{char}}`; without a card only `user`."""
    values = {"user": user or DEFAULT_USER}
    if card is not None:
        values["char"] = card.char
    return values


def greetings(card: Card, *, group: bool = False) -> tuple[str, ...]:
    """Return the greetings of a card that a builder can choose from, as written.

    These are the first message and its alternates. In a group, the greetings for groups follow.
    """
    extra = card.group_only_greetings if group else ()
    return (card.first_mes, *card.alternate_greetings, *extra)


def texts_with_macros(card: Card) -> tuple[str, ...]:
    """Return the card's texts in which macros are expanded, as written."""
    depth_prompt = card.extensions.get("depth_prompt")
    prompt = depth_prompt.get("prompt") if isinstance(depth_prompt, dict) else None
    return (
        *(card.description, card.personality, card.scenario, card.mes_example),
        *(card.system_prompt, card.post_history_instructions, creator_notes_for(card)),
        *([prompt] if isinstance(prompt, str) else []),
        *greetings(card, group=True),
    )


def greeting(card: Card, *, index: int = 0, group: bool = False) -> str:
    """Return a greeting of a card as written; 0 is the first message, n the n-th alternate.

    Raises:
        FormatError: the card has no greeting with this index.
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
    """Return a greeting as the character's first message, with its macros expanded.

    Args:
        meter: limits the work of expanding; several greetings may share one. A greeting that
            exceeds the limit stays as written.

    Returns:
        The message, or None if the greeting is empty.

    Raises:
        FormatError: the card has no greeting with this index.
    """
    text = compile_template(greeting(card, index=index, group=group), trust="imported")
    [content] = fill_each({index: text}, values, dice, meter or Meter()).values()
    return said("assistant", content, name=card.name) if content.strip() else None


def creator_notes_for(card: Card, language: str = "en") -> str:
    """Return the creator's notes for readers of a language (`de` and `de-AT` count as the same).

    `creator_notes` are the English notes unless the multilingual notes have English ones. A
    language for which the card has no notes gets the English notes.
    """
    known = {
        _primary_language(name): text for name, text in card.creator_notes_multilingual.items()
    }
    known.setdefault("en", card.creator_notes)
    return known.get(_primary_language(language), known["en"])


def _primary_language(tag: str) -> str:
    return tag.replace("_", "-").partition("-")[0].lower()


def card_from_text(text: str) -> Card:
    """Parse a card from strict JSON, which may begin with a byte order mark.

    Raises:
        FormatError: the card cannot be read; the message names the path of the wrong value.
    """
    data, notices = parse_json(text, kind="card", where=WHERE)
    return _build_card(data, list(notices))


def read_card(data: Any) -> Card:
    """Parse a card from the JSON value of its file.

    Raises:
        FormatError: the card cannot be read; the message names the path of the wrong value.
    """
    check_plain(data, kind="card", where=WHERE)
    return _build_card(data, [])


def _build_card(raw: Any, notices: list[str]) -> Card:
    """Build the card from checked JSON, and append notices about it.

    Importers see the notices in the order in which the steps append them.
    """
    if not isinstance(raw, dict):
        problem = describe_value(raw, wanted="card") or "must be an object"
        raise FormatError("card", f"{WHERE}: {problem}")
    spec = _detect_spec(raw)
    data, where = (raw, WHERE) if spec == "v1" else (raw.get("data"), f"{WHERE}.data")
    if not isinstance(data, dict):
        raise FormatError("card", f"{where}: must be an object")
    read = _read_fields({**data, **_repair_lists(data, notices)}, where, notices)
    notices += _list_doubts(data, read)
    if data is not raw and "character_book" in raw and not data.get("character_book"):
        notices.append("character_book is outside data and is ignored: move it into data")
    given = {name: value for name, value in read.items() if value is not None}
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    check_macros(_macro_texts(read, where), kind="card")
    version = _read_spec_version(raw, spec, notices)
    name = _CONTROL.sub(" ", read["name"]).strip()[:MAX_CHAR]
    if not name:
        notices.append("name is empty")
    elif name != read["name"]:
        notices.append("name: control characters, blanks around it or its end were cut off")
    if "assets" in lists:
        lists["assets"] = _build_assets(lists["assets"], notices)
    return Card(
        **{**given, **lists, "name": name},
        spec=spec,
        spec_version=version,
        source=raw,
        notices=tuple(dict.fromkeys(notices)),
    )


# A card is refused if one of these texts of a prompt is too long. A card without another field is
# still usable, so an error in another field only causes a notice.
_BOUNDED: Final = frozenset(
    {
        *("description", "personality", "scenario", "first_mes", "mes_example"),
        *("system_prompt", "post_history_instructions"),
    }
)
_LISTS_OF_TEXTS: Final = ("alternate_greetings", "group_only_greetings", "tags")


def _repair_lists(data: Mapping[str, Any], notices: list[str]) -> dict[str, Any]:
    """Return a dict of repaired lists by field name, for card fields with a wrong type."""
    repaired: dict[str, Any] = {}
    for name in _LISTS_OF_TEXTS:
        value = data.get(name)
        if isinstance(value, str):
            parts = value.split(",") if name == "tags" else [value]
            repaired[name] = [part.strip() for part in parts if part.strip()]
            notices.append(f"{name} is a single text: read as a list of {len(repaired[name])}")
        elif isinstance(value, list) and not all(isinstance(item, str) for item in value):
            repaired[name] = [item for item in value if isinstance(item, str)]
            lost = len(value) - len(repaired[name])
            notices.append(f"{name}: {lost} of {len(value)} are not text and are left out")
    if isinstance(assets := data.get("assets"), list):
        good = [one for one in assets if _ASSET.validator.isinstance_python(one)]
        if len(good) < len(assets):
            repaired["assets"] = good
            lost = len(assets) - len(good)
            notices.append(f"assets: {lost} of {len(assets)} cannot be read and are left out")
    return repaired


def _read_fields(data: dict[str, Any], where: str, notices: list[str]) -> dict[str, Any]:
    """Return a dict of a card's fields by name; one that cannot be read becomes a notice.

    Raises:
        FormatError: the name cannot be read, or a text of the prompt is too long.
    """
    try:
        return vars(_DATA.model_validate(data))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    for one in problems:
        name = str(one["loc"][0])
        is_refused = name == "name" or (name in _BOUNDED and one["type"] == "string_too_long")
        if not is_refused and data.pop(name, None) is not None:
            _, problem = place_and_problem(one)
            notices.append(f"{name} {problem}: it is ignored, and kept for the export")
    try:
        return vars(_DATA.model_validate(data))
    except ValidationError as error:
        raise to_format_error(error, kind="card", where=where) from error


def _macro_texts(read: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every card field that may contain macros."""
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


# Members of a V3 card that are no fields of `Card`, so only `source` keeps them. The values are the
# type that V3 requires and its name in notices.
_KEPT: Final[Mapping[str, tuple[type[Any] | UnionType, str]]] = {
    "creation_date": (int | float, "number"),
    "modification_date": (int | float, "number"),
    "source": (list, "list"),
}


def _list_doubts(data: Mapping[str, Any], read: Mapping[str, Any]) -> Iterator[str]:
    """Yield a notice for each field that was changed on reading or that Card V3 forbids.

    Null in place of a book, tags or assets gets no notice, because many tools write it.
    """
    for name in DATA_FIELDS:
        if name in data and data[name] is None and name in _TEXTS:
            yield f"{name} is null: read as empty"
    if type(data.get("character_version")) in (int, float):
        yield "character_version is a number: read as text"
    for name, (wanted, called) in _KEPT.items():
        value = data.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, wanted)):
            yield f"{name} is not a {called}: it is kept for the export"
    entries = (read["character_book"] or {}).get("entries", [])
    if isinstance(entries, dict):
        yield "character_book.entries is an object: its members are read as a list"
    elif read["character_book"] == {} or not isinstance(entries, list):
        yield "character_book has no list of entries: it is read as empty"
    world = (read["extensions"] or {}).get("world")
    if isinstance(world, str) and world.strip() and read["character_book"] is None:
        named = f"extensions.world names a lorebook ('{one_line(world)[:60]}')"
        yield f"{named} that is not in the card: import it too"


def _detect_spec(raw: Mapping[str, Any]) -> Spec:
    """Return a card's version: its `spec`, or V1 if its fields are at the top level."""
    spec = raw.get("spec")
    if spec == "chara_card_v3":
        return "chara_card_v3"
    if spec == "chara_card_v2":
        return "chara_card_v2"
    if spec is None and is_card_v1(raw):
        return "v1"
    if other_kind := describe_value(raw, wanted="card"):
        raise FormatError("card", f"{WHERE}: {other_kind}")
    if spec is not None:
        shown = one_line(repr(spec))[:60]
        raise FormatError(
            "card",
            f"{WHERE}.spec: must be chara_card_v3 or chara_card_v2, not {shown}",
        )
    fields = ", ".join(V1_FIELDS)
    raise FormatError("card", f"{WHERE}: has neither a `spec` nor the fields of V1 ({fields})")


def _read_spec_version(raw: Mapping[str, Any], spec: Spec, notices: list[str]) -> str:
    if spec == "v1":
        return "1.0"
    version = raw.get("spec_version")
    if not isinstance(version, str):
        notices.append("spec_version is not text")
    shown = one_line(str(version))[:40]
    try:
        number = float(shown)
    except ValueError:
        notices.append(f"spec_version '{shown}' is not a number: read as an older version")
        return shown
    if (
        not number <= NEWEST_VERSION
    ):  # written with `not`, because NaN compares as False and must be reported
        notices.append(
            f"spec_version {shown} is newer than {NEWEST_VERSION}: unknown parts are only kept"
        )
    return shown


def _build_assets(read: Sequence[Any], notices: list[str]) -> tuple[Asset, ...]:
    assets = tuple(Asset(**vars(one)) for one in read)
    icons = [asset.name for asset in assets if asset.type == "icon"]
    if icons and icons.count("main") != 1:
        notices.append(f"assets: one icon must be named main, {icons.count('main')} are")
    backgrounds = [asset.name for asset in assets if asset.type == "background"]
    if backgrounds.count("main") > 1:
        notices.append(f"assets: one background may be named main, {backgrounds.count('main')} are")
    return assets
