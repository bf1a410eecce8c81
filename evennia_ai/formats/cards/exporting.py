"""Export a card as a Card V3 file: JSON, PNG or CHARX.

The export is the JSON of the card's own file, upgraded to V3, dated, and with the edits written
into it. Everything else is unchanged. An asset gets a new address only if its bytes move, because
the card is exported in another file format.

A PNG file may also hold a V2 copy for programs without V3 (Card V3, "Backfilling"). The copy
contains a note that says so. The copy has no decorators, because V2 programs would send them to the
model, and no V3 fields.

The main icon of a PNG file is the file itself, with the address `ccdefault:` (Card V3, `assets`).
In an archive the icon is an ordinary file, which programs find only by its address in `assets`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final, Literal

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.decorators import parse_decorators
from evennia_ai.formats.cards import charx, png
from evennia_ai.formats.cards.card import DATA_FIELDS, Card, read_card
from evennia_ai.formats.cards.charx import ascii_path, asset_path
from evennia_ai.formats.cards.limits import DEFAULT_LIMITS, CardLimits
from evennia_ai.formats.cards.loading import (
    DEFAULT_ADDRESS,
    EMBEDDED,
    PICTURE_MEMBERS,
    CardImport,
    StoredAsset,
    embedded_path,
)
from evennia_ai.formats.cards.png import Keyword, replace_cards
from evennia_ai.formats.cards.portrait import draw_portrait, is_portrait
from evennia_ai.formats.cards.upgrade import upgrade_card

Object = Mapping[str, Any]


NOTICE: Final = (
    "This is a Character Card V3, and you are reading its V2 copy: your program does not support"
    " V3, so parts of the character may be missing or work otherwise."
)
_SPEC: Final = {"spec": "chara_card_v2", "spec_version": "2.0"}
_V3_ONLY: Final = frozenset(
    {
        *("assets", "nickname", "creator_notes_multilingual", "source", "group_only_greetings"),
        *("creation_date", "modification_date"),
    }
)


_EMPTY: Final[Mapping[str, Any]] = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {"name": ""},
}

Form = Literal["json", "png", "charx"]
FORMS: Final[tuple[Form, ...]] = ("json", "png", "charx")
FORM_OF: Final[Mapping[str, Form]] = {
    "json": "json",
    "png": "png",
    "apng": "png",
    "charx": "charx",
}
"""The default export format, by the file format in which the card was imported."""


def dump_card(
    card: CardImport | Card,
    form: Form,
    *,
    picture: bytes | None = None,
    with_v2: bool = False,
    modified_at: int,
    limits: CardLimits = DEFAULT_LIMITS,
) -> bytes:
    """Return the bytes of a card's export in one of the formats JSON, PNG and CHARX.

    Args:
        picture: a PNG file that replaces the card's own picture.
        with_v2: add a V2 copy, which only PNG files can hold.
        modified_at: the time of the export in Unix seconds.

    Raises:
        FormatError: the export could not be read again, the picture is not a PNG file, or a V2 copy
            is wanted in a format other than PNG.
    """
    if with_v2 and form != "png":
        raise FormatError("card", f"card: only PNG files can hold a V2 copy, not {form}")
    given = card if isinstance(card, CardImport) else CardImport(card=card, carrier="json")
    value = card_as_v3(given.card, modified_at=modified_at)
    if form == "charx":
        return _build_archive(given, value, picture, limits=limits)
    if form == "png":
        return _build_picture(given, value, picture, with_v2=with_v2, limits=limits)
    lines = json_bytes(value, indent=2) + b"\n"
    # Indentation could push a large card over the size limit, so that it could not be imported
    # again. Such a card is written without indentation.
    return lines if len(lines) <= limits.text_bytes else json_bytes(value)


def card_as_v3(card: Card, *, modified_at: int) -> dict[str, Any]:
    """Return the JSON value of a card as V3, with its edits and the date of the export.

    Raises:
        FormatError: an edit made the card unreadable.
    """
    value = upgrade_card(edited_source(card))
    # a card that was made in the game gets its creation date at its first export
    if not card.source:
        value["data"].setdefault("creation_date", modified_at)
    value["data"]["modification_date"] = modified_at
    read_card(value)  # check that an import can read the edited card
    return value


def edited_source(card: Card) -> Mapping[str, Any]:
    """Return the JSON value of a card's file with the edited fields written into it.

    A card that was made in the game has no file, so all of its fields are written.
    """
    raw = card.source or _EMPTY
    before = read_card(raw)
    edited = {
        name: _field_as_json(name, value)
        for name in DATA_FIELDS
        if (value := getattr(card, name)) != getattr(before, name)
    }
    if not edited:
        return raw
    return {**raw, **edited} if before.spec == "v1" else {**raw, "data": {**raw["data"], **edited}}


def _field_as_json(name: str, value: Any) -> Any:
    if name == "assets":
        return [asdict(asset) for asset in value]
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def export_losses(card: CardImport, form: Form, *, picture: bytes | None = None) -> tuple[str, ...]:
    """Return a line for each part of a card that a file of a format cannot hold."""
    if form == "charx":
        return ()
    named = {embedded_path(stored.asset.uri) for stored in card.assets}
    shown = _png_picture(card) if form == "png" and picture is None else None
    lines = [
        f"asset {stored.asset.name} ({stored.asset.type}) is left out"
        for stored in card.assets
        if stored.resolved
        and embedded_path(stored.asset.uri) is not None
        and not (shown is not None and _is_icon_of(stored, shown))
    ]
    if form == "png" and _keeps_asset_chunks(card, picture):
        lines = []
    others = [each for each in card.members if each.path not in named and each.content != shown]
    if others:
        lines.append(f"other files of the archive ({len(others)}) are left out")
    is_kept = form == "png" and (picture is not None or _png_picture(card) is not None)
    if not is_kept and _is_worth_keeping(card.picture, card):
        lines.append("the picture is left out")
    return tuple(f"{line}: a file of the form {form} cannot hold it" for line in lines)


def json_bytes(value: Any, *, indent: int | None = None) -> bytes:
    """Encode a value as strict JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent).encode()


def _png_picture(card: CardImport) -> bytes | None:
    return card.picture if _is_png(card.picture) else None


def _is_png(picture: bytes | None) -> bool:
    return picture is not None and picture.startswith(png.SIGNATURE)


def _is_icon_of(stored: StoredAsset, picture: bytes) -> bool:
    """True if the asset is an icon and its embedded file is this picture."""
    is_file = embedded_path(stored.asset.uri) is not None
    return is_file and stored.asset.type == "icon" and stored.content == picture


def _keeps_asset_chunks(card: CardImport, picture: bytes | None) -> bool:
    """True if an export keeps the asset chunks of the picture that a card was imported from.

    A replacement picture has none of these chunks.
    """
    return picture is None and card.carrier in ("png", "apng")


def _is_worth_keeping(picture: bytes | None, card: CardImport) -> bool:
    """True if a card's picture was not drawn from its name and no asset contains it."""
    is_given = picture is not None and not is_portrait(picture, card.card.name)
    return is_given and all(stored.content != picture for stored in card.assets)


def _build_picture(
    card: CardImport,
    value: Object,
    picture: bytes | None,
    *,
    with_v2: bool,
    limits: CardLimits,
) -> bytes:
    own = _png_picture(card)
    if picture is None and own is not None:
        shown = {each.asset.uri for each in card.assets if _is_icon_of(each, own)}
        value = _with_main_icon(
            value, {"uri": DEFAULT_ADDRESS}, lambda asset: asset["uri"] in shown
        )
    texts: list[tuple[Keyword, bytes]] = [("ccv3", json_bytes(value))]
    if with_v2:
        texts.append(("chara", json_bytes(v2_copy(value))))
    return replace_cards(
        picture or own or draw_portrait(card.card.name),
        texts,
        keep_assets=_keeps_asset_chunks(card, picture),
        limits=limits,
    )


def v2_copy(card: Object) -> dict[str, Any]:
    """Return the V2 copy of a V3 card's JSON value."""
    data = {name: value for name, value in card["data"].items() if name not in _V3_ONLY}
    notes = data["creator_notes"]
    has_notes = isinstance(notes, str) and notes.strip()
    data["creator_notes"] = f"{NOTICE}\n\n{notes}" if has_notes else NOTICE
    book = data.get("character_book")
    if isinstance(book, dict) and isinstance(book.get("entries"), list):
        entries = []
        for entry in book["entries"]:
            if isinstance(entry, dict) and isinstance(entry.get("content"), str):
                plain = {name: value for name, value in entry.items() if name != "use_regex"}
                entries.append({**plain, "content": parse_decorators(entry["content"]).text})
            else:
                entries.append(entry)
        data["character_book"] = {**book, "entries": entries}
    return {**card, **_SPEC, "data": data}


def _build_archive(
    card: CardImport, value: Object, picture: bytes | None, *, limits: CardLimits
) -> bytes:
    files, addresses = _archive_files(card)
    if addresses:
        assets = [
            {**asset, "uri": addresses[asset["uri"]]}
            if isinstance(asset, dict)
            and isinstance(asset.get("uri"), str)
            and asset["uri"] in addresses
            else asset
            for asset in _assets(value)
        ]
        value = _with_assets(value, assets)
    found = picture or card.picture
    if found is not None and _is_worth_keeping(found, card):
        is_png = _is_png(found)
        bare = replace_cards(found, (), keep_assets=False, limits=limits) if is_png else found
        path = PICTURE_MEMBERS[not is_png]
        files = {**files, path: bare} if picture else {path: bare, **files}
        value = _with_archived_icon(value, path)
    return charx.build_archive(((charx.CARD, json_bytes(value)), *files.items()))


def _with_archived_icon(value: Object, path: str) -> Object:
    """Return the card with the picture at `path` as its main icon, unless it has another icon."""
    assets = _assets(value)
    icons = [asset for asset in assets if _is_icon(asset)]
    if not all(map(_is_picture_itself, icons)):
        return value
    address, ext = EMBEDDED + path, path.rpartition(".")[2]
    if icons:
        return _with_main_icon(value, {"uri": address, "ext": ext}, _is_picture_itself)
    icon = {"type": "icon", "uri": address, "name": "main", "ext": ext}
    return _with_assets(value, [*assets, icon])


def _is_picture_itself(asset: Object) -> bool:
    return asset["uri"] == DEFAULT_ADDRESS or embedded_path(asset["uri"]) in PICTURE_MEMBERS


def _is_icon(asset: Any) -> bool:
    """True if a JSON value in a card's list of assets is a readable icon."""
    return (
        isinstance(asset, dict)
        and asset.get("type") == "icon"
        and isinstance(asset.get("uri"), str)
    )


def _with_main_icon(value: Object, fields: Object, matches: Callable[[Object], bool]) -> Object:
    """Return the card with `fields` written into the first icon for which `matches` is true.

    An icon named "main" is preferred to the first one.
    """
    assets = list(_assets(value))
    found = [at for at, asset in enumerate(assets) if _is_icon(asset) and matches(asset)]
    if not found:
        return value
    at = next((at for at in found if assets[at].get("name") == "main"), found[0])
    assets[at] = {**assets[at], **fields}
    return _with_assets(value, assets)


def _assets(value: Object) -> list[Any]:
    """Return the list of assets in a card's JSON; empty if there is no list."""
    assets = value["data"].get("assets")
    return assets if isinstance(assets, list) else []


def _with_assets(value: Object, assets: list[Any]) -> Object:
    """Return a card's JSON with other assets; a value that is not a list stays unchanged."""
    if not isinstance(value["data"].get("assets", []), list):
        return value
    return {**value, "data": {**value["data"], "assets": assets}}


def _archive_files(card: CardImport) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the card's files by their path in the CHARX archive, and the changed asset addresses.

    The second dict maps each old address of an asset to its new address.

    Archive members with ASCII names keep their names; files from a picture's chunks get a path.
    """
    files = {ascii_path(member.path): member.content for member in card.members}
    addresses: dict[str, str] = {}
    for stored in card.assets:
        path = embedded_path(stored.asset.uri)
        if path is None or stored.content is None:
            continue
        archived = ascii_path(path)
        if archived not in files:
            archived = wanted = asset_path(stored.asset)
            stem, _, suffix = wanted.rpartition(".")
            number = 2
            # Append numbers to the asset's path until no other file has it. Files with equal
            # content share a path. The paths in PICTURE_MEMBERS are reserved.
            while (
                files.get(archived, stored.content) != stored.content or archived in PICTURE_MEMBERS
            ):
                archived, number = f"{stem}-{number}.{suffix}", number + 1
            files[archived] = stored.content
        if archived != path:
            addresses[stored.asset.uri] = EMBEDDED + archived
    return files, addresses
