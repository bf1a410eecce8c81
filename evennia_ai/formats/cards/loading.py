"""Load a card and everything that comes with it from a JSON, PNG, APNG or CHARX file.

The content of a file decides its format, never its name. The result is a card or a `FormatError`
that says what is wrong and where. Nothing is written and no address is fetched. Only `load_card`
reads from disk, and only the path it is given.

Assets have the kinds of addresses that Card V3 defines: files that come with the card (`embeded://`
and other spellings in use), `data:` and `ccdefault:`. An asset whose file is missing stays in the
card.
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
    check_strings,
    check_text,
    check_value,
    decode_base64,
    decode_percents,
    decode_utf8,
    refuse_over_limit,
)
from evennia_ai.formats.cards.png import EmbeddedAssets, card_in_picture
from evennia_ai.formats.file_kinds import describe_file

DEFAULT_ADDRESS: Final = "ccdefault:"
# Card V3 itself spells the word with one "d".
EMBEDDED: Final = "embeded://"
# Prefixes for embedded files: the one of Card V3, its correct spelling, and the one of PNG chunks.
_EMBEDDED_PREFIXES: Final = (EMBEDDED, "embedded://", "__asset:")
_DATA: Final = re.compile(r"data:(?P<head>[^,]{0,200}),", re.IGNORECASE)
PICTURE_STARTS: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAsset:
    """An asset of a card with its bytes.

    `content` is None if the card's file does not contain the asset.
    """

    asset: Asset
    content: bytes | None = None

    @property
    def resolved(self) -> bool:
        """True if the asset's bytes came with the card."""
        return self.content is not None


FileFinder = Callable[[str], bytes | None]
"""A function that returns the file at a path, or None if there is none.

It raises ValueError if the file cannot be read.
"""


def resolve_assets(
    assets: Sequence[Asset], *, find_file: FileFinder | None, progress: Progress = ignore_progress
) -> tuple[tuple[StoredAsset, ...], tuple[str, ...]]:
    """Return a card's assets with their bytes, as far as the bytes came with the card.

    Args:
        find_file: finds embedded files. None if the card's file cannot contain files; then no
            notice reports missing ones.

    Returns:
        All assets, and a notice for each one that cannot be read.
    """
    found: list[StoredAsset] = []
    notices: list[str] = []
    for number, asset in enumerate(assets):
        progress("assets", number, len(assets))
        content: bytes | None = None
        try:
            content = _asset_content(asset.uri, find_file)
        except ValueError as error:
            uri = one_line(asset.uri[:60])
            notices.append(
                f"assets[{number}]: {uri} cannot be loaded: {error}; the asset stays in the card"
            )
        found.append(StoredAsset(asset=asset, content=content))
    progress("assets", len(assets), len(assets))
    return tuple(found), tuple(notices)


def embedded_path(uri: str) -> str | None:
    """Return the path of the embedded file at an address, None for other kinds of addresses."""
    for prefix in _EMBEDDED_PREFIXES:
        if uri.startswith(prefix):
            return uri[len(prefix) :]
    return None


def main_icon(assets: Iterable[StoredAsset]) -> bytes | None:
    """Return the first PNG or JPEG picture among the icons; icons named main come first."""
    icons = [each for each in assets if each.asset.type == "icon"]
    named = [each for each in icons if each.asset.name == "main"]
    for icon in (*named, *icons):
        if icon.content is not None and icon.content.startswith(PICTURE_STARTS):
            return icon.content
    return None


def _asset_content(uri: str, find_file: FileFinder | None) -> bytes | None:
    path = embedded_path(uri)
    if path is not None and find_file is not None:
        content = find_file(path)
        if content is None:
            raise ValueError("the file does not contain it")
        return content
    data = _DATA.match(uri)
    if data is None:
        return None
    if data["head"].lower().endswith(";base64"):
        return decode_base64(uri[data.end() :].encode())[0]
    return decode_percents(uri[data.end() :])


Carrier = Literal["json", "png", "apng", "charx"]
PICTURE_MEMBERS: Final = ("assets/icon/images/main.png", "assets/icon/images/main.jpeg")
"""The paths at which exported archives store a picture that no asset refers to."""

# The first bytes of WEBP, GIF, BMP and AVIF. Websites convert card pictures to these formats, which
# removes the card, so the error message can explain it.
_OTHER_PICTURES: Final = (b"RIFF", b"GIF8", b"BM", b"\x00\x00\x00")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file in a card's archive, other than card.json."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CardImport:
    """A card with the contents of the file it was loaded from."""

    card: Card
    carrier: Carrier
    assets: tuple[StoredAsset, ...] = ()
    picture: bytes | None = None
    """The PNG file that contained the card, else the picture of its main icon."""
    members: tuple[StoredFile, ...] = ()
    """The archive's files that are kept for the export."""

    @property
    def raw(self) -> Mapping[str, Any]:
        """The JSON value of the card as it is in its file."""
        return self.card.source

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices on the card and on its file, for the builder who imports it."""
        return self.card.notices


def load_card(
    source: bytes | Path,
    *,
    limits: CardLimits = DEFAULT_LIMITS,
    progress: Progress = ignore_progress,
) -> CardImport:
    """Load the card in a file, given as a path or as its bytes.

    Raises:
        FormatError: the file has no card, or its card is broken, unsafe or over a limit. The
            message says what the file is instead, if that is known.
    """
    progress("card file", 0, 1)
    content = file_bytes(source, limits) if isinstance(source, Path) else source
    if len(content) > limits.file_bytes:
        refuse_over_limit(
            f"the file has {len(content)} bytes", limit="file_bytes", most=limits.file_bytes
        )
    load = _load_json
    if content.startswith(png.SIGNATURE):
        load = _load_picture
    elif content.startswith((*charx.STARTS, charx.JPEG_START)):
        load = _load_archive
    try:
        return load(content, limits, progress)
    except FormatError as error:
        if not content.strip() or not (other_kind := describe_file(content, wanted="card")):
            raise
        raise FormatError("card", f"card: {other_kind}") from error


def file_bytes(path: Path, limits: CardLimits) -> bytes:
    """Return the bytes of a card's file.

    Raises:
        FormatError: the file cannot be read or is over the limit.
    """
    try:
        # Read one byte more than the limit to detect larger files. A device reports no size and may
        # never end, so the size is not checked first.
        with path.open("rb") as file:
            content = file.read(limits.file_bytes + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise FormatError("card", f"card: cannot be read: {reason}") from error
    if len(content) > limits.file_bytes:
        refuse_over_limit("the file has too many bytes", limit="file_bytes", most=limits.file_bytes)
    return content


def _load_json(content: bytes, limits: CardLimits, progress: Progress) -> CardImport:
    if len(content) > limits.text_bytes:
        refuse_over_limit(
            f"the card has {len(content)} bytes", limit="text_bytes", most=limits.text_bytes
        )
    if not content.strip():
        raise FormatError("card", "card: the file is empty; download it again")
    if content.startswith(_OTHER_PICTURES):
        raise FormatError(
            "card",
            "card: this kind of picture cannot hold a card; use a PNG, a CHARX archive or JSON",
        )
    card = _parse_card(decode_utf8(content, where="card"), limits)
    progress("card file", 1, 1)
    assets, notices = resolve_assets(card.assets, find_file=None, progress=progress)
    return CardImport(
        card=_with_notices(card, notices), carrier="json", assets=assets, picture=main_icon(assets)
    )


def _load_picture(content: bytes, limits: CardLimits, progress: Progress) -> CardImport:
    found = card_in_picture(content, limits=limits)
    card = _parse_card(found.text, limits)
    progress("card file", 1, 1)
    # free the text, which may be large, before the assets need memory
    found = replace(found, text="")
    find_file = EmbeddedAssets(found.assets, content, limits=limits)
    assets, asset_notices = resolve_assets(card.assets, find_file=find_file, progress=progress)
    notices = list(found.notices)
    if (found.keyword == "ccv3") != (card.spec == "chara_card_v3"):
        notices.append(f"the chunk {found.keyword} holds a card of {card.spec}; it is read as that")
    return CardImport(
        card=_with_notices(card, (*notices, *asset_notices)),
        carrier="apng" if found.is_animated else "png",
        assets=assets,
        picture=content,
    )


def _load_archive(content: bytes, limits: CardLimits, progress: Progress) -> CardImport:
    written = charx.card_in_archive(content, limits=limits)
    card = _parse_card(decode_utf8(written, where=f"card: {charx.CARD}"), limits)
    progress("card file", 1, 1)
    found = charx.files_next_to_card(content, limits=limits)
    assets, notices = resolve_assets(card.assets, find_file=found.members.get, progress=progress)
    if card.spec != "chara_card_v3":
        notices = (f"{charx.CARD} holds a card of {card.spec}; it is read as that", *notices)
    unnamed = (found.members[name] for name in PICTURE_MEMBERS if name in found.members)
    return CardImport(
        card=_with_notices(card, notices),
        carrier="charx",
        assets=assets,
        picture=main_icon(assets) or next(unnamed, found.jpeg or None),
        members=tuple(
            StoredFile(path=path, content=member) for path, member in found.members.items()
        ),
    )


def _parse_card(text: str, limits: CardLimits) -> Card:
    check_text(text, limits=limits)
    card = card_from_text(text)
    check_value(card.source, limits=limits)
    # a text within the limit for strings cannot contain a longer string
    if len(text) > limits.string_characters:
        check_strings(card.source, limits=limits)
    return card


def _with_notices(card: Card, notices: tuple[str, ...]) -> Card:
    return replace(card, notices=limit_notices((*notices, *card.notices)))
