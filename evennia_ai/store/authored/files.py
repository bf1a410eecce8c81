"""Store the files of cards, presets and lorebooks. Each file is stored once and never changes."""

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Final

from evennia_ai.engine.errors import NotStoredError
from evennia_ai.models import SourceFile
from evennia_ai.store.core.authoring import checked_source

MOST_CHARACTERS: Final = 32_000_000
"""The total number of characters of texts that are cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthoredFile:
    """A file: its bytes, its format (json, png, apng or charx), and the JSON text in it."""

    content: bytes
    carrier: str
    source: str


def json_file(source: str) -> AuthoredFile:
    """Return a JSON text as a file."""
    return AuthoredFile(content=source.encode(), carrier="json", source=source)


def check_file(file: AuthoredFile, *, what: str, most: int, setting: str) -> str:
    """Check a file before it is stored. Any thread may do this.

    Args:
        what: The owner of the file, for errors.
        most: The most characters that the text may have.
        setting: The name of the setting that allows `most`, for errors.

    Returns:
        The hash of the file.

    Raises:
        FormatError: the text is not a strict JSON object, or it is too long.
    """
    text_digest = checked_source(file.source, what=what, most=most, setting=setting)
    return text_digest if file.carrier == "json" else sha256(file.content).hexdigest()


def store_file(file: AuthoredFile, digest: str) -> None:
    """Store a checked file, unless it is stored already.

    Call this inside the transaction of the change.
    """
    content = b"" if file.carrier == "json" else file.content
    SourceFile.objects.get_or_create(
        sha256=digest,
        defaults={"carrier": file.carrier, "content": content, "source": file.source},
    )
    _texts.put(digest, file.source)


def read_file(digest: str) -> AuthoredFile:
    """Return the file with this hash.

    Raises:
        NotStoredError: no file has this hash.
    """
    row = SourceFile.objects.filter(sha256=digest).first()
    if row is None:
        raise NotStoredError("file", digest)
    if row.carrier == "json":
        return json_file(row.source)
    return AuthoredFile(content=bytes(row.content), carrier=row.carrier, source=row.source)


def read_text(digest: str) -> str:
    """Return the JSON text of the file with this hash.

    Raises:
        NotStoredError: no file has this hash.
    """
    text = _texts.get(digest)
    if text is None:
        text = SourceFile.objects.filter(sha256=digest).values_list("source", flat=True).first()
        if text is None:
            raise NotStoredError("file", digest)
        _texts.put(digest, text)
    return text


class _Texts:
    """A cache of texts, by the hashes of their files.

    The texts that were added first are removed first.
    """

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def get(self, digest: str) -> str | None:
        return self._texts.get(digest)

    def put(self, digest: str, text: str) -> None:
        with self._lock:
            self._characters += len(text) - len(self._texts.pop(digest, ""))
            self._texts[digest] = text
            while self._characters > MOST_CHARACTERS and len(self._texts) > 1:
                _, dropped = self._texts.popitem(last=False)
                self._characters -= len(dropped)


_texts: Final = _Texts()
