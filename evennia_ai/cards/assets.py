"""The bytes behind a card's assets, where the card's own file holds them.

Addresses of Card V3: files beside the card (`embeded://`, and the spellings in use), `data:` and
`ccdefault:`. Remote addresses are never fetched, and an asset that cannot be had stays in the card.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evennia_ai.cards.card import Asset
from evennia_ai.cards.limits import from_base64, from_percents
from evennia_ai.foreign.documents import Progress, one_line, silent

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
Beside = Callable[[str], bytes | None]


def stored_assets(
    assets: Sequence[Asset], *, beside: Beside | None, progress: Progress = silent
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


def _content(uri: str, beside: Beside | None) -> bytes | None:
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
