"""A card's file -> the card and everything that came with it, whatever carries it.

The content decides what a file is, never its name. Whatever is given, the answer is a card or a
`FormatError` that says what is wrong, where, and which limit was passed; nothing is written and no
address is fetched. The one door to the disk of this room is the path that `load_card` may be given.

Assets are found at the addresses of Card V3: files beside the card (`embeded://`, and the spellings
in use), `data:` and `ccdefault:`. One that cannot be had stays in the card.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import Progress, ignore_progress, limit_notices, one_line
from evennia_ai.formats.cards import charx, png
from evennia_ai.formats.cards.card import Asset, Card, card_from_text
from evennia_ai.formats.cards.limits import (
    DEFAULT_LIMITS,
    CardLimits,
    as_text,
    check_strings,
    check_text,
    check_value,
    from_base64,
    from_percents,
    refuse,
)
from evennia_ai.formats.cards.png import AssetsBeside, Pictured, card_in_picture
from evennia_ai.formats.file_kinds import told_of_file

DEFAULT_ADDRESS: Final = "ccdefault:"
EMBEDDED: Final = "embeded://"  # sic: so the standard spells it
# Spellings for a file beside the card: the standard's, the correct one, that of PNG chunks.
_BESIDE: Final = (EMBEDDED, "embedded://", "__asset:")
_DATA: Final = re.compile(r"data:(?P<head>[^,]{0,200}),", re.IGNORECASE)
PICTURE_STARTS: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAsset:
    """An asset of a card; `content` is None where the file does not hold it."""

    asset: Asset
    content: bytes | None = None

    @property
    def resolved(self) -> bool:
        """Whether the asset's bytes came with the card."""
        return self.content is not None


# A path -> the file there, None where there is none; ValueError says why it cannot be had.
FileFinder = Callable[[str], bytes | None]


def stored_assets(
    assets: Sequence[Asset], *, beside: FileFinder | None, progress: Progress = ignore_progress
) -> tuple[tuple[StoredAsset, ...], tuple[str, ...]]:
    """Each asset with its bytes, and the notices about those that cannot be had.

    `beside` is None for a card that came without other files, where none can be missed.
    """
    found: list[StoredAsset] = []
    notices: list[str] = []
    for number, asset in enumerate(assets):
        progress("assets", number, len(assets))
        content: bytes | None = None
        try:
            content = _content(asset.uri, beside)
        except ValueError as error:
            uri = one_line(asset.uri[:60])
            notices.append(f"assets[{number}]: {uri} cannot be had: {error}; it is kept as it is")
        found.append(StoredAsset(asset=asset, content=content))
    progress("assets", len(assets), len(assets))
    return tuple(found), tuple(notices)


def path_beside(uri: str) -> str | None:
    """The path of a file beside the card that an address names, None for other addresses."""
    for prefix in _BESIDE:
        if uri.startswith(prefix):
            return uri[len(prefix) :]
    return None


def icon_of(assets: Iterable[StoredAsset]) -> bytes | None:
    """The main icon's picture, None where the card's file does not hold one."""
    icons = [each for each in assets if each.asset.type == "icon"]
    named = [each for each in icons if each.asset.name == "main"]
    for icon in (*named, *icons):
        if icon.content is not None and icon.content.startswith(PICTURE_STARTS):
            return icon.content
    return None


def _content(uri: str, beside: FileFinder | None) -> bytes | None:
    path = path_beside(uri)
    if path is not None and beside is not None:
        content = beside(path)
        if content is None:
            raise ValueError("the file does not hold it")
        return content
    data = _DATA.match(uri)
    if data is None:
        return None
    if data["head"].lower().endswith(";base64"):
        return from_base64(uri[data.end() :].encode())[0]
    return from_percents(uri[data.end() :])


Carrier = Literal["json", "png", "apng", "charx"]
# Where an archive of ours keeps a picture that no asset names.
PICTURE_MEMBERS: Final = ("assets/icon/images/main.png", "assets/icon/images/main.jpeg")

# WEBP, GIF, BMP and AVIF begin so: what a site makes of a card's picture, without the card.
_OTHER_PICTURES: Final = (b"RIFF", b"GIF8", b"BM", b"\x00\x00\x00")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of the archive the card came in, card.json excepted."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CardImport:
    """What came out of a card's file.

    `picture` is the PNG file the card came in, or the picture of its main icon. `members` are kept
    for the export. The card's `notices` tell of the file too.
    """

    card: Card
    carrier: Carrier
    assets: tuple[StoredAsset, ...] = ()
    picture: bytes | None = None
    members: tuple[StoredFile, ...] = ()

    @property
    def raw(self) -> Mapping[str, Any]:
        """The file's own JSON value."""
        return self.card.source

    @property
    def notices(self) -> tuple[str, ...]:
        """What whoever imports the card should know."""
        return self.card.notices


def load_card(
    source: bytes | Path,
    *,
    limits: CardLimits = DEFAULT_LIMITS,
    progress: Progress = ignore_progress,
) -> CardImport:
    """The card in a file, or in a file's bytes; FormatError where there is none to be trusted."""
    progress("card file", 0, 1)
    content = file_bytes(source, limits) if isinstance(source, Path) else source
    if len(content) > limits.file_bytes:
        refuse(f"the file has {len(content)} bytes", limit="file_bytes", most=limits.file_bytes)
    read = _from_json
    if content.startswith(png.SIGNATURE):
        read = _from_picture
    elif content.startswith((*charx.STARTS, charx.JPEG_START)):
        read = _from_archive
    try:
        return read(content, limits, progress)
    except FormatError as error:
        if not content.strip() or not (told := told_of_file(content, wanted="card")):
            raise
        raise FormatError("card", f"card: {told}") from error


def file_bytes(path: Path, limits: CardLimits) -> bytes:
    """The bytes of a card's file; FormatError where it cannot be read, or is over the limit."""
    try:
        with path.open("rb") as file:  # a device has no size and may have no end
            content = file.read(limits.file_bytes + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise FormatError("card", f"card: cannot be read: {reason}") from error
    if len(content) > limits.file_bytes:
        refuse("the file has more bytes", limit="file_bytes", most=limits.file_bytes)
    return content


def _from_json(content: bytes, limits: CardLimits, progress: Progress) -> CardImport:
    if len(content) > limits.text_bytes:
        refuse(f"the card has {len(content)} bytes", limit="text_bytes", most=limits.text_bytes)
    if not content.strip():
        raise FormatError("card", "card: the file is empty; get it again")
    if content.startswith(_OTHER_PICTURES):
        raise FormatError(
            "card", "card: a picture of another kind; a card is in a PNG, a CHARX archive or JSON"
        )
    card = _card(as_text(content, where="card"), limits)
    progress("card file", 1, 1)
    assets, notices = stored_assets(card.assets, beside=None, progress=progress)
    return CardImport(
        card=_with_notices(card, notices), carrier="json", assets=assets, picture=icon_of(assets)
    )


def _from_picture(content: bytes, limits: CardLimits, progress: Progress) -> CardImport:
    found = card_in_picture(content, limits=limits)
    card = _card(found.text, limits)
    progress("card file", 1, 1)
    found = replace(found, text="")  # it may be large, and assets come next
    beside = AssetsBeside(found.assets, content, limits=limits)
    assets, notices = stored_assets(card.assets, beside=beside, progress=progress)
    return CardImport(
        card=_with_notices(card, (*found.notices, *_other_version(found, card), *notices)),
        carrier="apng" if found.is_animated else "png",
        assets=assets,
        picture=content,
    )


def _from_archive(content: bytes, limits: CardLimits, progress: Progress) -> CardImport:
    written = charx.card_in_archive(content, limits=limits)
    card = _card(as_text(written, where=f"card: {charx.CARD}"), limits)
    progress("card file", 1, 1)
    found = charx.beside_card(content, limits=limits)
    assets, notices = stored_assets(card.assets, beside=found.members.get, progress=progress)
    if card.spec != "chara_card_v3":
        notices = (f"{charx.CARD} holds a card of {card.spec}; it is read as that", *notices)
    unnamed = (found.members[name] for name in PICTURE_MEMBERS if name in found.members)
    return CardImport(
        card=_with_notices(card, notices),
        carrier="charx",
        assets=assets,
        picture=icon_of(assets) or next(unnamed, found.jpeg or None),
        members=tuple(
            StoredFile(path=path, content=member) for path, member in found.members.items()
        ),
    )


def _card(text: str, limits: CardLimits) -> Card:
    check_text(text, limits=limits)
    card = card_from_text(text)
    check_value(card.source, limits=limits)
    if len(text) > limits.string_characters:
        check_strings(card.source, limits=limits)
    return card


def _other_version(found: Pictured, card: Card) -> tuple[str, ...]:
    """A notice where a chunk holds a card of a version it is not for."""
    if (found.keyword == "ccv3") == (card.spec == "chara_card_v3"):
        return ()
    return (f"the chunk {found.keyword} holds a card of {card.spec}; it is read as that",)


def _with_notices(card: Card, notices: tuple[str, ...]) -> Card:
    return replace(card, notices=limit_notices((*notices, *card.notices)))
