"""Names of files inside an archive: which are refused, and which we give.

Nothing is written under such a name here; a name is still refused where a program that unpacks the
archive could be led astray, because an export hands it on.
"""

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final

from evennia_ai.cards.card import Asset

MOST_CHARACTERS: Final = 1000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])\s*(?:[.:].*)?", re.I)
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_PLAIN: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME: Final = 60
# Folder of a file by its suffix (Card V3, "CHARX"); any other suffix is `other`.
_FOLDERS: Final = {
    "images": ("png", "jpg", "jpeg", "webp", "gif", "avif", "apng", "bmp", "svg"),
    "audio": ("mp3", "ogg", "wav", "flac", "m4a", "opus"),
    "video": ("mp4", "webm", "mkv", "mov"),
    "l2d": ("moc3", "model3", "motion3"),
    "3d": ("glb", "gltf", "vrm", "mmd", "pmx", "obj", "fbx"),
    "ai": ("safetensors", "ckpt", "onnx", "pt", "gguf"),
    "fonts": ("ttf", "otf", "woff", "woff2"),
    "code": ("js", "lua", "py", "ts"),
}
_FOLDER_OF: Final = {suffix: folder for folder, known in _FOLDERS.items() for suffix in known}


_PROBLEMS: Final[Mapping[str, Callable[[str], object]]] = {
    "has control characters in its name": _CONTROL.search,
    "has a backslash in its name; members use /": lambda path: "\\" in path,
    "has an absolute path": lambda path: path.startswith("/") or _DRIVE.match(path),
    "leads out of the archive": lambda path: ".." in path.split("/"),
    "is called like a device": lambda path: any(map(_DEVICE.fullmatch, path.split("/"))),
}


def problem_of(path: str) -> str:
    """Why a member's name is refused, "" where it is not."""
    if len(path) > MOST_CHARACTERS:
        return f"has a name of more than {MOST_CHARACTERS} characters"
    return next((problem for problem, has in _PROBLEMS.items() if has(path)), "")


def asset_path(asset: Asset) -> str:
    """Where an asset's file belongs: `assets/{type}/{folder}/{name}.{ext}`, ASCII only."""
    suffix = _plain(asset.ext.lower().lstrip("."), "bin")
    folder = _FOLDER_OF.get(suffix, "other")
    return f"assets/{_plain(asset.type, 'other')}/{folder}/{_plain(asset.name, 'main')}.{suffix}"


def ascii_path(path: str) -> str:
    """The path in ASCII: what is not becomes `_`, and a part of its digest tells it apart."""
    if path.isascii():
        return path
    digest = sha256(path.encode()).hexdigest()[:12]
    stem, dot, suffix = _NOT_ASCII.sub("_", path).rpartition(".")
    if not dot or "/" in suffix:
        return f"{stem}{dot}{suffix}-{digest}"
    return f"{stem}-{digest}.{suffix}"


def _plain(text: str, default: str) -> str:
    """ASCII letters, digits, `_` and `-` of a text."""
    made = _PLAIN.sub("_", text).strip("_")[:_LONGEST_NAME]
    return default if not made or _DEVICE.fullmatch(made) else made
