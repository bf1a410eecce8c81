"""Secrets: texts that nothing shows, and masks that find one again in what a server sends back.

A `SecretText` is a key or a password that no print, log, traceback or pickle can show.

Whoever runs a server that is asked gets its key, and could have an NPC say it. As it stands,
backwards, in other letters, set apart, doubled, moved by thirteen, in base64, base32, hexadecimal,
escapes or numbers of characters it is replaced before anybody reads the reply; so is each piece of
`PIECE` letters and digits. A cipher of the server's own passes: the server knows the key anyway.
Linear in the length of a text, and the same whether it comes whole or in pieces.
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
"""How many letters and digits in a row of a form of the key are hidden."""

LONG_KEY: Final = 16
KEY_WITH_DIGIT: Final = 8
"""Shorter ones are words that stand for no key, such as `anything`, and may be said."""

QUOTED_CHARACTERS: Final = 200
"""How much of a server's own words an error quotes."""

QUOTED_FROM: Final = 16
"""Out of how many times as many characters they are taken; the rest is not looked at."""

_LONG_TEXT: Final = 64
_OTHER: Final = re.compile(r"[^0-9A-Za-z]+")


class SecretText:
    """A text that is only shown to who asks for it by `reveal()`."""

    __slots__ = ("_text", "mask")

    def __init__(self, text: str = "") -> None:
        self._text = text
        self.mask: Final = KeyMask(text)

    def reveal(self) -> str:
        """The text itself, for the one call that sends it."""
        return self._text

    def fits_a_header(self) -> bool:
        """True if it can be sent at all: printable ASCII without spaces."""
        return all("!" <= letter <= "~" for letter in self._text)

    def hidden_in(self, text: str) -> str:
        """`text` with the secret replaced, however short it is, and other forms of a long one."""
        plain = text.replace(self._text, MASK) if self._text else text
        return self.mask.masked(plain)

    def quoted(self, words: str, *, most: int = QUOTED_CHARACTERS) -> str:
        """A server's own words on one short line, without the secret; "" where it said nothing."""
        looked_at = words[: 2 * QUOTED_FROM * most]  # a key that is cut off is not among the rest
        shown = self.hidden_in(looked_at)[: QUOTED_FROM * most]
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
    """Hides one key in what a server sends; one that is no key hides nothing."""

    __slots__ = ("_pieces",)

    def __init__(self, key: str) -> None:
        forms = {_letters(form) for form in _forms(key)} if _is_key(key) else set()
        self._pieces = _Pieces(forms, size=min(PIECE, len(_letters(key)))) if forms else None

    def masked(self, text: str) -> str:
        """`text` with each piece of the key replaced."""
        if self._pieces is None or not self._pieces.stand_in(_letters(text)):
            return text
        stream = self.stream()
        return stream.fed(text) + stream.ended()

    def stream(self) -> "MaskedStream":
        """The same for a text that comes in pieces."""
        return MaskedStream(self._pieces)


class MaskedStream:
    """Gives out a text piece by piece as soon as it is sure that it is not the key's.

    Letters and digits wait with what stands before them, until no piece of the key can begin there.
    """

    __slots__ = ("_before", "_in_key", "_pieces", "_waiting")

    def __init__(self, pieces: "_Pieces | None") -> None:
        self._pieces = pieces
        self._waiting: deque[_Letter] = deque()
        self._before: list[str] = []  # what is no letter and no digit, in front of the next one
        self._in_key = False

    def fed(self, text: str) -> str:
        """What may be given out once this has come."""
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
        """Give out at once what no piece of the key stands in or could yet; the rest of `text`."""
        waiting = "".join(letter.letter for letter in self._waiting)
        if len(text) < _LONG_TEXT or pieces.stand_in(waiting + _letters(text)):
            return text
        at, left = len(text), pieces.size - 1
        while at and left > 0:
            at -= 1
            left -= len(_letters_of(text[at]))
        if left > 0:
            return text
        out += (self.ended(), text[:at])
        self._in_key = False
        return text[at:]

    def ended(self) -> str:
        """The rest."""
        out: list[str] = []
        while self._waiting:
            self._give(out)
        out += self._before
        self._before = []
        return "".join(out)

    def _mark(self, pieces: "_Pieces") -> None:
        """The letters that wait are the key's where they are a piece of it."""
        if "".join(letter.letter for letter in self._waiting) in pieces.all:
            for letter in self._waiting:
                letter.is_key = True

    def _undecided(self, pieces: "_Pieces") -> int:
        """How many of the newest letters may begin a piece of the key."""
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
    """A letter or digit as it is compared, as it was written, and what stands before it."""

    __slots__ = ("before", "is_key", "letter", "written")

    def __init__(self, letter: str, before: str, written: str) -> None:
        self.letter = letter
        self.before = before
        self.written = written
        self.is_key = False


class _Pieces:
    """The pieces of all forms of a key, each of `size` letters."""

    __slots__ = ("_halves", "all", "size", "starts")

    def __init__(self, forms: Collection[str], *, size: int) -> None:
        self.size = size
        self.all = frozenset(_runs(forms, size))
        self.starts = frozenset(one[:n] for one in self.all for n in range(1, size))
        self._halves = frozenset(_runs(forms, size // 2))

    def stand_in(self, letters: str) -> bool:
        """True if one of them is there; it would have a whole half at a multiple of its length."""
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
    """The letters and digits of a text in small letters; others as ours that they stand for."""
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return _OTHER.sub("", plain).lower()


def _letters_of(one: str) -> str:
    if one.isascii():
        return one.lower() if one.isalnum() else ""
    return _letters(one)


def _forms(key: str) -> Iterator[str]:
    """The key in every form in which it is known again."""
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
    """Both alphabets, at each of the three places where the key may stand in a longer text."""
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            written = encode(bytes(before) + code).decode().rstrip("=")
            ends_inside = (before + len(code)) % 3
            yield written[(0, 2, 3)[before] : -1 if ends_inside else None]
            if not before:
                yield written
