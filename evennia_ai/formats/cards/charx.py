"""CHARX: a ZIP archive with the card in `card.json` at its root, read and written in memory.

`exporting` decides which files are in it.

The reader opens no archive inside the archive and takes the list of members only from the central
directory. It does not trust the sizes that the archive declares. Nothing is ever written to disk
under a member's name. Dangerous names are still refused, because an export passes them on to
programs that unpack the archive.
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
from evennia_ai.formats.cards.limits import RATIO_FROM, CardLimits, refuse_over_limit

MOST_CHARACTERS: Final = 1000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])\s*(?:[.:].*)?", re.I)
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_PLAIN: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME: Final = 60
# The folder for each suffix (Card V3, "CHARX"). Files with any other suffix go to `other`.
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
    "has the name of a device": lambda path: any(map(_DEVICE.fullmatch, path.split("/"))),
}


def path_problem(path: str) -> str:
    """Return why the name of an archive member is refused, "" for a valid name."""
    if len(path) > MOST_CHARACTERS:
        return f"has a name of more than {MOST_CHARACTERS} characters"
    return next((problem for problem, has in _PROBLEMS.items() if has(path)), "")


def asset_path(asset: Asset) -> str:
    """Return the path of an asset's file, in ASCII: `assets/{type}/{folder}/{name}.{ext}`."""
    suffix = _ascii_words(asset.ext.lower().lstrip("."), "bin")
    folder = _FOLDER_OF.get(suffix, "other")
    kind, name = _ascii_words(asset.type, "other"), _ascii_words(asset.name, "main")
    return f"assets/{kind}/{folder}/{name}.{suffix}"


def ascii_path(path: str) -> str:
    """Return a path in ASCII: other characters become `_`, and a hash keeps the path unique."""
    if path.isascii():
        return path
    digest = sha256(path.encode()).hexdigest()[:12]
    stem, dot, suffix = _NOT_ASCII.sub("_", path).rpartition(".")
    if not dot or "/" in suffix:
        return f"{stem}{dot}{suffix}-{digest}"
    return f"{stem}-{digest}.{suffix}"


def _ascii_words(text: str, default: str) -> str:
    """Return a text for paths: all characters except ASCII letters, digits and `-` become `_`.

    Return `default` if nothing usable remains.
    """
    made = _PLAIN.sub("_", text).strip("_")[:_LONGEST_NAME]
    return default if not made or _DEVICE.fullmatch(made) else made


CARD: Final = "card.json"
# the first bytes of a ZIP archive with members, and of an empty one
STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06")
JPEG_START: Final = b"\xff\xd8\xff"
_CHUNK: Final = 64 * 1024
_ENCRYPTED: Final = 0x1
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_LINK: Final = 0o120000
_KIND_OF_FILE: Final = 0o170000
# Signatures and sizes of ZIP records: the end of the central directory, its ZIP64 locator, a
# member.
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LONG_END: Final = b"PK\x06\x07"
_LONG_END_BYTES: Final = 20
_MEMBER: Final = b"PK\x01\x02"
# The exceptions that zipfile raises for broken archives.
_BROKEN: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, OSError, RuntimeError, ValueError, LookupError, OverflowError),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFiles:
    """The files of a CHARX archive except card.json, by name, and the JPEG picture before it.

    `jpeg` is empty if the archive has no picture before it.
    """

    members: Mapping[str, bytes]
    jpeg: bytes


def card_in_archive(content: bytes, *, limits: CardLimits) -> bytes:
    """Return the bytes of card.json in a CHARX archive.

    Raises:
        FormatError: the archive is broken, unsafe or over a limit.
    """
    with _open_archive(content, limits=limits) as (archive, infos):
        card = next(info for info in infos if info.filename == CARD)
        return _unpack_member(archive, card, left=limits.inflated_bytes, limits=limits)


def files_next_to_card(content: bytes, *, limits: CardLimits) -> ArchiveFiles:
    """Return the files of a CHARX archive except card.json.

    `card_in_archive` does not return them, so that memory need not hold the card and all files at
    once.

    Raises:
        FormatError: the archive is broken, unsafe or over a limit.
    """
    with _open_archive(content, limits=limits) as (archive, infos):
        start = min(info.header_offset for info in infos)
        jpeg = content[:start] if content.startswith(JPEG_START) else b""
        left = limits.inflated_bytes - len(jpeg)
        members: dict[str, bytes] = {}
        for info in infos:
            if info.filename != CARD:
                member = _unpack_member(archive, info, left=left, limits=limits)
                left -= len(member)
                members[info.filename] = member
    return ArchiveFiles(members=members, jpeg=jpeg)


@contextmanager
def _open_archive(
    content: bytes, *, limits: CardLimits
) -> Iterator[tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]]:
    """Open a CHARX archive whose directory passes all checks.

    Yield the archive and its members without folders.
    """
    _check_directory(content, limits=limits)
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
            _check_members(infos, limits=limits)
            yield archive, infos
    except _BROKEN as error:
        what = one_line(str(error)) or type(error).__name__
        raise FormatError("card", f"card: the archive cannot be read ({what})") from error


def _check_directory(content: bytes, *, limits: CardLimits) -> None:
    """Refuse an archive with too many members before zipfile creates an object for each of them."""
    end = content.rfind(_END)
    if end < 0 or end + _END_BYTES > len(content):
        is_jpeg = content.startswith(JPEG_START)
        where = "no ZIP archive after the JPEG picture" if is_jpeg else "no ZIP archive"
        raise FormatError("card", f"card: {where}, or one that is cut off; download it again")
    (directory_bytes,) = struct.unpack_from("<I", content, end + 12)
    is_long = content[max(end - _LONG_END_BYTES, 0) :].startswith(_LONG_END)
    # Each member has one signature in the archive's directory. In a ZIP64 archive, the size of the
    # directory is in another record, which is not read here. Then the signatures of the whole file
    # are counted. Packed content may contain such bytes by chance. The count is then too high, so
    # the check is only stricter.
    start = 0 if is_long else max(end - directory_bytes, 0)
    if (there := content.count(_MEMBER, start, end)) > limits.members:
        refuse_over_limit(f"the archive has {there} members", limit="members", most=limits.members)


def _check_members(infos: list[zipfile.ZipInfo], *, limits: CardLimits) -> None:
    """Refuse members that a valid CHARX archive never has, and an archive without a card."""
    for info in infos:
        if problem := _member_problem(info):
            raise FormatError("card", f"card: member '{one_line(info.filename)[:80]}' {problem}")
    times = Counter(info.filename for info in infos)
    name, most = max(times.items(), key=lambda item: item[1], default=("", 0))
    if most > 1:
        raise FormatError(
            "card", f"card: member '{one_line(name)[:80]}' is there {most} times; keep only one"
        )
    if CARD not in times:
        raise FormatError("card", f"card: the archive has no {CARD} at its root")
    declared = sum(info.file_size for info in infos if info.filename != CARD)
    if declared > limits.inflated_bytes:
        _refuse_size(f"{declared} bytes", limits=limits)


def _member_problem(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted, which CHARX does not allow"
    if info.compress_type not in _METHODS:
        return "uses an unsupported compression; use deflate"
    if (info.external_attr >> 16) & _KIND_OF_FILE == _LINK:
        return "is a symbolic link"
    return path_problem(
        info.orig_filename
    )  # zipfile cuts `filename` at a NUL, so check the original name


def _unpack_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, *, left: int, limits: CardLimits
) -> bytes:
    """Unpack an archive member piece by piece, so that an archive bomb stops at a limit.

    Args:
        left: the number of bytes that may still be unpacked from the archive.
    """
    chunks: list[bytes] = []
    length = 0
    most_unpacked = max(RATIO_FROM, limits.ratio * info.compress_size)
    with archive.open(info) as packed:
        while chunk := packed.read(_CHUNK):
            chunks.append(chunk)
            length += len(chunk)
            if length > left:
                _refuse_size("too many bytes", limits=limits)
            if info.filename == CARD and length > limits.text_bytes:
                refuse_over_limit(
                    f"{CARD} is too large", limit="text_bytes", most=limits.text_bytes
                )
            if length > most_unpacked:
                name = one_line(info.filename)[:80]
                refuse_over_limit(
                    f"member '{name}' unpacks to too many times its size",
                    limit="ratio",
                    most=limits.ratio,
                )
    return b"".join(chunks)


def _refuse_size(size: str, *, limits: CardLimits) -> NoReturn:
    most = limits.inflated_bytes
    refuse_over_limit(f"the archive unpacks to {size}", limit="inflated_bytes", most=most)


def build_archive(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Build a CHARX archive from files given by name; equal files give equal bytes."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files:
            # ZipInfo's default date is always 1980, so equal files give equal bytes
            info = zipfile.ZipInfo(name)
            # the same values on every system: made by Unix, file mode 0644
            info.create_system, info.external_attr = 3, 0o644 << 16
            # Highly compressible content is stored without compression, because readers would take
            # it for an archive bomb.
            packed = len(zlib.compress(content, 1))
            is_worth_it = packed < len(content) < 50 * packed
            info.compress_type = zipfile.ZIP_DEFLATED if is_worth_it else zipfile.ZIP_STORED
            archive.writestr(info, content)
    return made.getvalue()
