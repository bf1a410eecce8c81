"""Plain portraits: a PNG picture with the initials of a name, for a card without a picture.

The same name always gives the same bytes. Letters without a drawing here, such as those of other
scripts, are replaced by a plain figure.
"""

import struct
import unicodedata
import zlib
from colorsys import hls_to_rgb
from typing import Final

from evennia_ai.formats.cards.png import build_picture, encode_chunk

WIDTH: Final = 400
HEIGHT: Final = 600
_DOT: Final = 22
"""The size in pixels of one dot of a letter."""
_COLUMNS: Final = 5
_LETTERS: Final = {
    letter: rows.split()
    for letter, rows in {
        "A": ".###. #...# #...# ##### #...# #...# #...#",
        "B": "####. #...# #...# ####. #...# #...# ####.",
        "C": ".###. #...# #.... #.... #.... #...# .###.",
        "D": "####. #...# #...# #...# #...# #...# ####.",
        "E": "##### #.... #.... ####. #.... #.... #####",
        "F": "##### #.... #.... ####. #.... #.... #....",
        "G": ".###. #...# #.... #.### #...# #...# .###.",
        "H": "#...# #...# #...# ##### #...# #...# #...#",
        "I": ".###. ..#.. ..#.. ..#.. ..#.. ..#.. .###.",
        "J": "..### ...#. ...#. ...#. ...#. #..#. .##..",
        "K": "#...# #..#. #.#.. ##... #.#.. #..#. #...#",
        "L": "#.... #.... #.... #.... #.... #.... #####",
        "M": "#...# ##.## #.#.# #.#.# #...# #...# #...#",
        "N": "#...# ##..# #.#.# #.#.# #..## #...# #...#",
        "O": ".###. #...# #...# #...# #...# #...# .###.",
        "P": "####. #...# #...# ####. #.... #.... #....",
        "Q": ".###. #...# #...# #...# #.#.# #..#. .##.#",
        "R": "####. #...# #...# ####. #.#.. #..#. #...#",
        "S": ".#### #.... #.... .###. ....# ....# ####.",
        "T": "##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#..",
        "U": "#...# #...# #...# #...# #...# #...# .###.",
        "V": "#...# #...# #...# #...# #...# .#.#. ..#..",
        "W": "#...# #...# #...# #.#.# #.#.# ##.## #...#",
        "X": "#...# #...# .#.#. ..#.. .#.#. #...# #...#",
        "Y": "#...# #...# .#.#. ..#.. ..#.. ..#.. ..#..",
        "Z": "##### ....# ...#. ..#.. .#... #.... #####",
    }.items()
}
_FIGURE: Final = ".###. .###. .###. ..#.. ##### ##### #####".split()  # noqa: SIM905 - a drawing


def draw_portrait(name: str) -> bytes:
    """Return a PNG picture with at most two initials of a name, on a colour that the name decides.

    It is a picture with a palette of two colours, so it is small and quick to make.
    """
    glyphs = [_LETTERS[one] for one in _initials(name)] or [_FIGURE]
    dots = [".".join(rows) for rows in zip(*glyphs, strict=True)]
    across = (_COLUMNS + 1) * len(glyphs) - 1
    left, top = (WIDTH - across * _DOT) // 2, (HEIGHT - len(dots) * _DOT) // 2
    empty = b"\x00" + bytes(WIDTH // 8)
    lines = [empty] * top
    for row in dots:
        bits = "0" * left + "".join(("1" if dot == "#" else "0") * _DOT for dot in row)
        lines += [b"\x00" + _packed(bits.ljust(WIDTH, "0"))] * _DOT
    lines += [empty] * (HEIGHT - len(lines))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 1, 3, 0, 0, 0)
    return build_picture(
        (
            encode_chunk(b"IHDR", header),
            encode_chunk(b"PLTE", _palette(name)),
            encode_chunk(b"IDAT", zlib.compress(b"".join(lines), 9)),
        )
    )


def is_portrait(picture: bytes, name: str) -> bool:
    """True if the pixels of a picture are those of the portrait for this name."""
    made = draw_portrait(name)
    start = made.index(b"PLTE")
    return made[start : -len(encode_chunk(b"IEND", b""))] in picture


def _initials(name: str) -> str:
    """Return the first letters of the first and the last word, without letters not in the font."""
    words = name.split()
    plain = (
        unicodedata.normalize("NFKD", word)[:1].upper() for word in (words[:1] + words[1:][-1:])
    )
    return "".join(letter for letter in plain if letter in _LETTERS)


def _palette(name: str) -> bytes:
    """Return the colours of background and letters."""
    hue = zlib.crc32(name.encode("utf-8", "replace")) % 360 / 360
    both = (hls_to_rgb(hue, 0.30, 0.35), hls_to_rgb(hue, 0.92, 0.45))
    return bytes(round(255 * part) for colour in both for part in colour)


def _packed(bits: str) -> bytes:
    return int(bits, 2).to_bytes(len(bits) // 8, "big")
