"""A card -> a Card V3 file: JSON, PNG or CHARX, losing nothing that the carrier can hold.

The file's own JSON is what is written, upgraded to V3, with the time of the export. Addresses of
assets are left alone, unless the carrier changes and another address is where the bytes then are.

What was changed in a card is written into its own JSON value; all else stays as it was. Beside the
V3 card stands its V2 copy for programs that know no better (Card V3, "Backfilling"): it says what
it is, has no decorators, which V2 would read aloud, and none of V3's own fields. The main icon of a
PNG file is the file itself, which `ccdefault:` stands for (Card V3, `assets`); in an archive it is
a file like others, and a program finds it by the address in `assets` alone.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final, Literal

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.decorators import read_decorators
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
    path_beside,
)
from evennia_ai.formats.cards.png import Keyword, with_cards
from evennia_ai.formats.cards.upgrade import upgraded

Object = Mapping[str, Any]


def in_archive(value: Object, path: str) -> Object:
    """The card's JSON value for an archive with its picture at `path`.

    The picture is named as the main icon, unless the card has an icon of its own.
    """
    assets = value["data"].get("assets", [])
    icons = [asset for asset in assets if _is_icon(asset)]
    if not all(map(_is_the_picture, icons)):
        return value
    address, ext = EMBEDDED + path, path.rpartition(".")[2]
    if icons:
        return _with_main(value, {"uri": address, "ext": ext}, _is_the_picture)
    icon = {"type": "icon", "uri": address, "name": "main", "ext": ext}
    return _with_assets(value, [*assets, icon])


def in_picture(value: Object, picture: bytes, stored: Iterable[StoredAsset]) -> Object:
    """The card's JSON value for a PNG file of this picture: an icon that shows it is the file."""
    shown = {each.asset.uri for each in stored if shows(each, picture)}
    return _with_main(value, {"uri": DEFAULT_ADDRESS}, lambda asset: asset["uri"] in shown)


def shows(stored: StoredAsset, picture: bytes) -> bool:
    """Whether an asset is an icon in a file of its own, and that file is this picture."""
    is_file = path_beside(stored.asset.uri) is not None
    return is_file and stored.asset.type == "icon" and stored.content == picture


def _is_the_picture(asset: Object) -> bool:
    return asset["uri"] == DEFAULT_ADDRESS or path_beside(asset["uri"]) in PICTURE_MEMBERS


def _with_main(value: Object, fields: Object, is_meant: Callable[[Object], bool]) -> Object:
    """The card with these fields in the main one of the icons that are meant, else the first."""
    assets = list(value["data"].get("assets", []))
    meant = [at for at, asset in enumerate(assets) if _is_icon(asset) and is_meant(asset)]
    if not meant:
        return value
    at = next((at for at in meant if assets[at].get("name") == "main"), meant[0])
    assets[at] = {**assets[at], **fields}
    return _with_assets(value, assets)


def _is_icon(asset: Any) -> bool:
    """True for an icon that can be read; a file may have other things among its assets."""
    return (
        isinstance(asset, dict)
        and asset.get("type") == "icon"
        and isinstance(asset.get("uri"), str)
    )


def _with_assets(value: Object, assets: list[Any]) -> Object:
    return {**value, "data": {**value["data"], "assets": assets}}


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


def backfilled(card: Mapping[str, Any]) -> dict[str, Any]:
    """The V2 copy of a V3 card's JSON value."""
    data = {name: value for name, value in card["data"].items() if name not in _V3_ONLY}
    notes = data["creator_notes"]
    is_said = isinstance(notes, str) and notes.strip()
    data["creator_notes"] = f"{NOTICE}\n\n{notes}" if is_said else NOTICE
    book = data.get("character_book")
    if isinstance(book, dict) and isinstance(book.get("entries"), list):
        entries = [_plain_entry(entry) for entry in book["entries"]]
        data["character_book"] = {**book, "entries": entries}
    return {**card, **_SPEC, "data": data}


def _plain_entry(entry: Any) -> Any:
    """An entry without decorators and without what V2 has no word for."""
    if not isinstance(entry, dict) or not isinstance(entry.get("content"), str):
        return entry
    plain = {name: value for name, value in entry.items() if name != "use_regex"}
    return {**plain, "content": read_decorators(entry["content"]).text}


_EMPTY: Final[Mapping[str, Any]] = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {"name": ""},
}


def source_of(card: Card) -> Mapping[str, Any]:
    """The card's own JSON value with the fields in which the card differs from it.

    A card that was made without a file gets all of its fields.
    """
    raw = card.source or _EMPTY
    before = read_card(raw)
    edited = {
        name: _as_json(name, value)
        for name in DATA_FIELDS
        if (value := getattr(card, name)) != getattr(before, name)
    }
    if not edited:
        return raw
    return {**raw, **edited} if before.spec == "v1" else {**raw, "data": {**raw["data"], **edited}}


def _as_json(name: str, value: Any) -> Any:
    """A field's value as JSON has it."""
    if name == "assets":
        return [asdict(asset) for asset in value]
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


Form = Literal["json", "png", "charx"]
FORMS: Final[tuple[Form, ...]] = ("json", "png", "charx")
FORM_OF: Final[Mapping[str, Form]] = {
    "json": "json",
    "png": "png",
    "apng": "png",
    "charx": "charx",
}
"""The form in which a card is written again that came in a carrier."""


def dump_card(
    card: CardImport | Card,
    form: Form,
    *,
    picture: bytes | None = None,
    with_v2: bool = False,
    modified_at: int,
    limits: CardLimits = DEFAULT_LIMITS,
) -> bytes:
    """The card as a file of this form; `modified_at` is the export's time in Unix seconds.

    `picture` (a PNG file) takes the place of the card's own. `with_v2` adds the copy for programs
    that know V2 only, which PNG alone has room for. FormatError: the card's book cannot be read,
    the picture is no PNG file, or a V2 copy is wanted elsewhere.
    """
    if with_v2 and form != "png":
        raise FormatError("card", f"card: a V2 copy stands beside V3 in PNG files, not in {form}")
    given = card if isinstance(card, CardImport) else CardImport(card=card, carrier="json")
    value = v3_of(given.card, modified_at=modified_at)
    if form == "json":
        return _readable(value, limits=limits)
    if form == "charx":
        return _archive(given, value, picture, limits=limits)
    return _picture(given, value, picture, with_v2=with_v2, limits=limits)


def v3_of(card: Card, *, modified_at: int) -> dict[str, Any]:
    """The card's own JSON value as V3, edits written into it, dated.

    A card that was made without a file is created with its first export.
    """
    value = upgraded(source_of(card))
    if not card.source:
        value["data"].setdefault("creation_date", modified_at)
    value["data"]["modification_date"] = modified_at
    read_card(value)  # what is written can be read again, whatever was edited
    return value


def left_out(card: CardImport, form: Form, *, picture: bytes | None = None) -> tuple[str, ...]:
    """What a file of this form does not hold of the card, a line each."""
    if form == "charx":
        return ()
    named = {path_beside(stored.asset.uri) for stored in card.assets}
    shown = _own_picture(card) if form == "png" and picture is None else None
    lines = [
        f"asset {stored.asset.name} ({stored.asset.type}) stays behind"
        for stored in card.assets
        if stored.resolved
        and path_beside(stored.asset.uri) is not None
        and not (shown is not None and shows(stored, shown))
    ]
    if form == "png" and _keeps_assets(card, picture):
        lines = []
    others = [each for each in card.members if each.path not in named and each.content != shown]
    if others:
        lines.append(f"other files of the archive ({len(others)}) stay behind")
    is_kept = form == "png" and (picture is not None or _own_picture(card) is not None)
    if not is_kept and _is_worth_keeping(card.picture, card):
        lines.append("the picture stays behind")
    return tuple(f"{line}: a file of the form {form} cannot hold it" for line in lines)


def json_bytes(value: Any, *, indent: int | None = None) -> bytes:
    """Strict JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent).encode()


def _readable(value: Any, *, limits: CardLimits) -> bytes:
    """The JSON file, in lines where it can then still be read again."""
    lines = json_bytes(value, indent=2) + b"\n"
    return lines if len(lines) <= limits.text_bytes else json_bytes(value)


def _picture(
    card: CardImport,
    value: Mapping[str, Any],
    picture: bytes | None,
    *,
    with_v2: bool,
    limits: CardLimits,
) -> bytes:
    own = _own_picture(card)
    if picture is None and own is not None:
        value = in_picture(value, own, card.assets)
    texts: list[tuple[Keyword, bytes]] = [("ccv3", json_bytes(value))]
    if with_v2:
        texts.append(("chara", json_bytes(backfilled(value))))
    return with_cards(
        picture or own or png.blank_picture(),
        texts,
        keep_assets=_keeps_assets(card, picture),
        limits=limits,
    )


def _own_picture(card: CardImport) -> bytes | None:
    """The card's picture where it can stand in a PNG file."""
    return card.picture if _is_png(card.picture) else None


def _is_png(picture: bytes | None) -> bool:
    return picture is not None and picture.startswith(png.SIGNATURE)


def _keeps_assets(card: CardImport, picture: bytes | None) -> bool:
    """Whether the asset chunks of a picture are the card's own."""
    return picture is None and card.carrier in ("png", "apng")


def _is_worth_keeping(picture: bytes | None, card: CardImport) -> bool:
    """Whether a picture is one that somebody made, and no asset holds it."""
    is_made = picture is not None and png.BLANK_PIXELS not in picture
    return is_made and all(stored.content != picture for stored in card.assets)


def _archive(
    card: CardImport, value: Mapping[str, Any], picture: bytes | None, *, limits: CardLimits
) -> bytes:
    files, addresses = _files(card)
    value = _readdressed(value, addresses)
    found = picture or card.picture
    if found is not None and _is_worth_keeping(found, card):
        is_png = _is_png(found)
        bare = with_cards(found, (), keep_assets=False, limits=limits) if is_png else found
        path = PICTURE_MEMBERS[not is_png]
        files = {**files, path: bare} if picture else {path: bare, **files}
        value = in_archive(value, path)
    return charx.archive_of(((charx.CARD, json_bytes(value)), *files.items()))


def _files(card: CardImport) -> tuple[dict[str, bytes], dict[str, str]]:
    """The card's files under names that CHARX allows, and the new addresses of those that moved.

    Members keep their names where these are ASCII; what stood beside a picture gets one.
    """
    files = {ascii_path(member.path): member.content for member in card.members}
    addresses: dict[str, str] = {}
    for stored in card.assets:
        path = path_beside(stored.asset.uri)
        if path is None or stored.content is None:
            continue
        there = ascii_path(path)
        if there not in files:
            there = _free(asset_path(stored.asset), files, stored.content)
            files[there] = stored.content
        if there != path:
            addresses[stored.asset.uri] = EMBEDDED + there
    return files, addresses


def _free(path: str, taken: Mapping[str, bytes], content: bytes) -> str:
    """The path, with a number where another file or the picture has it."""
    stem, _, suffix = path.rpartition(".")
    free, number = path, 2
    while taken.get(free, content) != content or free in PICTURE_MEMBERS:
        free, number = f"{stem}-{number}.{suffix}", number + 1
    return free


def _readdressed(value: Mapping[str, Any], addresses: Mapping[str, str]) -> Mapping[str, Any]:
    """The card where assets that moved have their new addresses."""
    if not addresses:
        return value
    assets = [
        {**asset, "uri": addresses[asset["uri"]]}
        if isinstance(asset, dict) and asset.get("uri") in addresses
        else asset
        for asset in value["data"].get("assets", ())
    ]
    return {**value, "data": {**value["data"], "assets": assets}}
