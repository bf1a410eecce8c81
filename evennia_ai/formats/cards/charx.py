"""CHARX: a ZIP archive with the card in `card.json` at its root, read and written in memory.

No archive inside an archive is opened. Members come from the central directory alone; sizes that
the archive declares are not believed. Nothing is ever written under a member's name; one is still
refused where a program that unpacks the archive could be led astray: an export hands it on.
"""

import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from typing import Final, NoReturn

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.formats.cards.card import Asset
from evennia_ai.formats.cards.limits import RATIO_FROM, CardLimits, refuse

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


CARD: Final = "card.json"
STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06")  # an archive with members, and without
JPEG_START: Final = b"\xff\xd8\xff"
_PIECE: Final = 64 * 1024
_ENCRYPTED: Final = 0x1
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_LINK: Final = 0o120000
_KIND_OF_FILE: Final = 0o170000
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LONG_END: Final = b"PK\x06\x07"
_LONG_END_BYTES: Final = 20
_MEMBER: Final = b"PK\x01\x02"
# What zipfile raises for archives that are broken in one way or another.
_BROKEN: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, OSError, RuntimeError, ValueError, LookupError, OverflowError),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFiles:
    """What an archive holds beside card.json: files by name, and the JPEG before it, if any."""

    members: Mapping[str, bytes]
    jpeg: bytes


def card_in_archive(content: bytes, *, limits: CardLimits) -> bytes:
    """The bytes of card.json in a CHARX archive; FormatError where it cannot be trusted."""
    with _opened(content, limits=limits) as (archive, infos):
        card = next(info for info in infos if info.filename == CARD)
        return _unpacked(archive, card, left=limits.inflated_bytes, limits=limits)


def beside_card(content: bytes, *, limits: CardLimits) -> ArchiveFiles:
    """The other files of a CHARX archive, all together within the limits.

    They are read apart from the card, so that not everything is in memory at once.
    """
    with _opened(content, limits=limits) as (archive, infos):
        start = min(info.header_offset for info in infos)
        jpeg = content[:start] if content.startswith(JPEG_START) else b""
        left = limits.inflated_bytes - len(jpeg)
        members: dict[str, bytes] = {}
        for info in infos:
            if info.filename != CARD:
                member = _unpacked(archive, info, left=left, limits=limits)
                left -= len(member)
                members[info.filename] = member
    return ArchiveFiles(members=members, jpeg=jpeg)


@contextmanager
def _opened(
    content: bytes, *, limits: CardLimits
) -> Iterator[tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]]:
    """The archive and its members but for folders, all of which can be trusted by their heads."""
    _check_directory(content, limits=limits)
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
            _check_members(infos, limits=limits)
            yield archive, infos
    except _BROKEN as error:
        what = one_line(str(error)) or type(error).__name__
        raise FormatError("card", f"card: the archive cannot be read ({what})") from error


def archive_of(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A CHARX archive of these files; equal files make equal bytes."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files:
            info = zipfile.ZipInfo(name)  # dated 1980, so that the clock has no part in it
            info.create_system, info.external_attr = 3, 0o644 << 16  # Unix, on every system
            info.compress_type = _method(content)
            archive.writestr(info, content)
    return made.getvalue()


def _check_directory(content: bytes, *, limits: CardLimits) -> None:
    """Refuse a directory of too many members before zipfile makes an object of each."""
    end = content.rfind(_END)
    if end < 0 or end + _END_BYTES > len(content):
        is_jpeg = content.startswith(JPEG_START)
        where = "no ZIP archive behind the JPEG picture" if is_jpeg else "no ZIP archive"
        raise FormatError("card", f"card: {where}, or one that is cut off; get it again")
    (directory_bytes,) = struct.unpack_from("<I", content, end + 12)
    is_long = content[max(end - _LONG_END_BYTES, 0) :].startswith(_LONG_END)
    start = 0 if is_long else max(end - directory_bytes, 0)
    if (there := content.count(_MEMBER, start, end)) > limits.members:
        refuse(f"the archive has {there} members", limit="members", most=limits.members)


def _check_members(infos: list[zipfile.ZipInfo], *, limits: CardLimits) -> None:
    """FormatError for a member that no honest archive has, and for a missing card."""
    for info in infos:
        if problem := _problem(info):
            raise FormatError("card", f"card: member '{one_line(info.filename)[:80]}' {problem}")
    times = Counter(info.filename for info in infos)
    name, most = max(times.items(), key=lambda item: item[1], default=("", 0))
    if most > 1:
        raise FormatError(
            "card", f"card: member '{one_line(name)[:80]}' is there {most} times; leave one"
        )
    if CARD not in times:
        raise FormatError("card", f"card: the archive has no {CARD} at its root")
    declared = sum(info.file_size for info in infos if info.filename != CARD)
    if declared > limits.inflated_bytes:
        _too_much(f"{declared} bytes", limits=limits)


def _problem(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted; CHARX archives are not"
    if info.compress_type not in _METHODS:
        return "is packed in a way that is not supported; use deflate"
    if (info.external_attr >> 16) & _KIND_OF_FILE == _LINK:
        return "is a symbolic link"
    return problem_of(info.orig_filename)


def _unpacked(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, *, left: int, limits: CardLimits
) -> bytes:
    pieces: list[bytes] = []
    length = 0
    densest = max(RATIO_FROM, limits.ratio * info.compress_size)
    with archive.open(info) as packed:
        while piece := packed.read(_PIECE):
            pieces.append(piece)
            length += len(piece)
            if length > left:
                _too_much("more bytes", limits=limits)
            if info.filename == CARD and length > limits.text_bytes:
                refuse(f"{CARD} is too large", limit="text_bytes", most=limits.text_bytes)
            if length > densest:
                name = one_line(info.filename)[:80]
                refuse(f"member '{name}' unpacks too far", limit="ratio", most=limits.ratio)
    return b"".join(pieces)


def _too_much(there: str, *, limits: CardLimits) -> NoReturn:
    most = limits.inflated_bytes
    refuse(f"the archive unpacks to {there}", limit="inflated_bytes", most=most)


def _method(content: bytes) -> int:
    """Packed where that saves something and does not look like an archive made to explode."""
    packed = len(zlib.compress(content, 1))
    return zipfile.ZIP_DEFLATED if packed < len(content) < 50 * packed else zipfile.ZIP_STORED
