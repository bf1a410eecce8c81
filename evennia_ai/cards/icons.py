"""The main icon of a card, where the card's picture is what it shows.

In a PNG file the picture is the file itself, which `ccdefault:` stands for (Card V3, `assets`). In
an archive it is a file like others, and a program finds it by the address in `assets` alone.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evennia_ai.cards.assets import DEFAULT_ADDRESS, EMBEDDED, StoredAsset, path_beside
from evennia_ai.cards.loading import PICTURE_MEMBERS

Object = Mapping[str, Any]


def in_archive(value: Object, path: str) -> Object:
    """The card's JSON value for an archive with its picture at `path`.

    The picture is named as the main icon, unless the card has an icon of its own.
    """
    assets = value["data"].get("assets", [])
    icons = [asset for asset in assets if asset["type"] == "icon"]
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
    meant = [at for at, asset in enumerate(assets) if asset["type"] == "icon" and is_meant(asset)]
    if not meant:
        return value
    at = next((at for at in meant if assets[at]["name"] == "main"), meant[0])
    assets[at] = {**assets[at], **fields}
    return _with_assets(value, assets)


def _with_assets(value: Object, assets: list[Any]) -> Object:
    return {**value, "data": {**value["data"], "assets": assets}}
