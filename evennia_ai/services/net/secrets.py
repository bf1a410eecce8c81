"""Secret texts that are never shown, and masks that remove them from servers' responses.

A `SecretText` is a key or a password that no print, log, traceback or pickle shows. The owner of a
server gets the key with each request, and could make an NPC say it. So a response is masked before
anything else reads it. The key is found in many forms: as it is, reversed, in other case, with
separators, with doubled letters, in ROT13, base64, base32, hexadecimal, escapes or character codes.
Each part of `PIECE` letters and digits is masked too. A cipher that the server's owner invents is
not found, but the owner knows the key anyway.

The cost is linear in the length of the text. The result does not depend on how a stream splits the
text.
"""

import base64
import codecs
import hmac
import re
import unicodedata
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NoReturn
from urllib.parse import quote

MASK: Final = "***"
PIECE: Final = 12
"""The fewest consecutive letters and digits of the key that are masked."""

LONG_KEY: Final = 16
KEY_WITH_DIGIT: Final = 8
"""The least length of a key that has a digit.

Shorter texts are words such as `anything`, which NPCs may say.
"""

QUOTED_CHARACTERS: Final = 200
"""The most characters of a server's words that an error quotes."""

QUOTED_FROM: Final = 16
"""How much longer than the quote the text may be from which it is taken. The rest is ignored."""

_LONG_TEXT: Final = 64
_OTHER: Final = re.compile(r"[^0-9A-Za-z]+")


class SecretText:
    """A secret text that only `reveal()` returns."""

    __slots__ = ("_text", "mask")

    def __init__(self, text: str = "") -> None:
        self._text = text
        self.mask: Final = KeyMask(text)

    def reveal(self) -> str:
        """Return the secret itself, for the one call that sends it."""
        return self._text

    def fits_a_header(self) -> bool:
        """True if the text can be sent in a header: printable ASCII without spaces."""
        return all("!" <= letter <= "~" for letter in self._text)

    def mask_in(self, text: str) -> str:
        """Return `text` with the secret masked.

        If the secret is long, its other forms are masked too.
        """
        plain = text.replace(self._text, MASK) if self._text else text
        return self.mask.mask_text(plain)

    def quote(self, words: str, *, most: int = QUOTED_CHARACTERS) -> str:
        """Return a server's words on one short line, with the secret masked."""
        looked_at = words[
            : 2 * QUOTED_FROM * most
        ]  # More text than the quote needs, so that a key at its end is complete.
        shown = self.mask_in(looked_at)[: QUOTED_FROM * most]
        line = " ".join(shown.split())
        return "".join(letter for letter in line if letter.isprintable())[:most]

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SecretText):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "SecretText(***)" if self._text else "SecretText()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is never stored: keep it in the environment")


class KeyMask:
    """A mask for one key in a server's responses. A key that is too short is not masked."""

    __slots__ = ("_pieces",)

    def __init__(self, key: str) -> None:
        forms = {_letters(form) for form in _forms(key)} if _is_key(key) else set()
        self._pieces = _Pieces(forms, size=min(PIECE, len(_letters(key)))) if forms else None

    def mask_text(self, text: str) -> str:
        """Return `text` with every part of the key replaced."""
        if self._pieces is None or not self._pieces.stand_in(_letters(text)):
            return text
        stream = self.stream()
        return stream.feed(text) + stream.finish()

    def stream(self) -> "MaskedStream":
        """Return a new mask for a text that arrives in fragments."""
        return MaskedStream(self._pieces)


class MaskedStream:
    """A mask for a text that arrives in fragments. It releases text as early as is safe.

    It holds back letters and digits, and the characters before them, while they may begin a part of
    the key.
    """

    __slots__ = ("_before", "_in_key", "_pieces", "_waiting")

    def __init__(self, pieces: "_Pieces | None") -> None:
        self._pieces = pieces
        self._waiting: deque[_Letter] = deque()
        self._before: list[
            str
        ] = []  # Other characters that arrived after the last letter or digit.
        self._in_key = False

    def feed(self, text: str) -> str:
        """Add a fragment, and return the text that is now safe to show."""
        pieces = self._pieces
        if pieces is None:
            return text
        out: list[str] = []
        for one in self._after_what_is_sure(text, pieces, out):
            written = one
            for letter in _letters_of(one):
                self._waiting.append(_Letter(letter, "".join(self._before), written))
                self._before, written = [], ""
                if len(self._waiting) == pieces.size:
                    self._mark(pieces)
                    self._give(out)
            if written:
                self._before.append(written)
        for _ in range(len(self._waiting) - self._undecided(pieces)):
            self._give(out)
        if not self._waiting:
            out += self._before
            self._before = []
        return "".join(out)

    def _after_what_is_sure(self, text: str, pieces: "_Pieces", out: list[str]) -> str:
        """Release text that cannot contain or begin a part of the key, and return what is left."""
        waiting = "".join(letter.letter for letter in self._waiting)
        if len(text) < _LONG_TEXT or pieces.stand_in(waiting + _letters(text)):
            return text
        at, left = len(text), pieces.size - 1
        while at and left > 0:
            at -= 1
            left -= len(_letters_of(text[at]))
        if left > 0:
            return text
        out += (self.finish(), text[:at])
        self._in_key = False
        return text[at:]

    def finish(self) -> str:
        """Return the text still held back, masked, at the end of the stream."""
        out: list[str] = []
        while self._waiting:
            self._give(out)
        out += self._before
        self._before = []
        return "".join(out)

    def _mark(self, pieces: "_Pieces") -> None:
        """Mark the held letters for replacement if they are a part of the key."""
        if "".join(letter.letter for letter in self._waiting) in pieces.all:
            for letter in self._waiting:
                letter.is_key = True

    def _undecided(self, pieces: "_Pieces") -> int:
        """Return how many of the newest letters may be the start of a part of the key."""
        newest = "".join(letter.letter for letter in self._waiting)
        return next((n for n in range(len(newest), 0, -1) if newest[-n:] in pieces.starts), 0)

    def _give(self, out: list[str]) -> None:
        letter = self._waiting.popleft()
        if not letter.is_key:
            out += (letter.before, letter.written)
        elif not self._in_key:
            out += (letter.before, MASK)
        self._in_key = letter.is_key


class _Letter:
    """One letter or digit: its normalized form, its original, and the characters before it."""

    __slots__ = ("before", "is_key", "letter", "written")

    def __init__(self, letter: str, before: str, written: str) -> None:
        self.letter = letter
        self.before = before
        self.written = written
        self.is_key = False


class _Pieces:
    """All parts with `size` letters of all forms of a key."""

    __slots__ = ("_halves", "all", "size", "starts")

    def __init__(self, forms: Collection[str], *, size: int) -> None:
        self.size = size
        self.all = frozenset(_runs(forms, size))
        self.starts = frozenset(one[:n] for one in self.all for n in range(1, size))
        self._halves = frozenset(_runs(forms, size // 2))

    def stand_in(self, letters: str) -> bool:
        """True if the letters contain a part of the key.

        Each part of the key contains a complete half that begins at a multiple of its length. So
        most texts need few comparisons.
        """
        size, half = self.size, self.size // 2
        if not any(letters[at : at + half] in self._halves for at in range(0, len(letters), half)):
            return False
        return any(letters[at : at + size] in self.all for at in range(len(letters) - size + 1))


def _runs(forms: Iterable[str], size: int) -> Iterator[str]:
    for form in forms:
        for at in range(len(form) - size + 1):
            yield form[at : at + size]


def _is_key(key: str) -> bool:
    has_digit = any(one.isdigit() for one in key)
    is_long = len(key) >= (KEY_WITH_DIGIT if has_digit else LONG_KEY)
    return is_long and len(_letters(key)) >= KEY_WITH_DIGIT


def _letters(text: str) -> str:
    """Return only the letters and digits of a text, in lower case and with look-alikes as ASCII."""
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return _OTHER.sub("", plain).lower()


def _letters_of(one: str) -> str:
    if one.isascii():
        return one.lower() if one.isalnum() else ""
    return _letters(one)


def _forms(key: str) -> Iterator[str]:
    """Yield all forms of the key that are masked, each also reversed."""
    for way in (key, key[::-1]):
        for form in _written_forms(way):
            yield form
            yield form[::-1]


def _written_forms(key: str) -> Iterator[str]:
    code = key.encode()
    yield key
    yield codecs.encode(key, "rot13")
    yield "".join(one * 2 for one in key)
    yield quote(key, safe="")
    yield code.hex()
    yield "".join(f"x{one:02x}" for one in code)
    yield "".join(f"0x{one:02x}" for one in code)
    yield "".join(f"u{one:04x}" for one in code)
    yield "".join(map(str, code))
    yield "".join(f"{one:08b}" for one in code)
    yield base64.b32encode(code).decode().rstrip("=")[:-1]
    yield from _in_base64(code)


def _in_base64(code: bytes) -> Iterator[str]:
    """Yield the key in both base64 alphabets, at each of the three offsets inside a longer text."""
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            written = encode(bytes(before) + code).decode().rstrip("=")
            ends_inside = (before + len(code)) % 3
            yield written[(0, 2, 3)[before] : -1 if ends_inside else None]
            if not before:
                yield written
