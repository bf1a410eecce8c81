"""Portraits that are drawn from the name of a card."""

import struct
import zlib

import pytest

from evennia_ai.formats.cards.limits import DEFAULT_LIMITS
from evennia_ai.formats.cards.png import parse_chunks
from evennia_ai.formats.cards.portrait import HEIGHT, WIDTH, draw_portrait, is_portrait


def pixels_of(picture):
    """Return the colour, 0 or 1, of every pixel, row by row."""
    chunks, cut = parse_chunks(picture, limits=DEFAULT_LIMITS)
    assert cut == "" and all(chunk.is_sound(picture) for chunk in chunks)
    by_kind = {chunk.kind: chunk.data(picture) for chunk in chunks}
    assert struct.unpack(">IIBBBBB", by_kind[b"IHDR"]) == (WIDTH, HEIGHT, 1, 3, 0, 0, 0)
    assert len(by_kind[b"PLTE"]) == 6
    raw, size = zlib.decompress(by_kind[b"IDAT"]), WIDTH // 8 + 1
    rows = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert len(rows) == HEIGHT and all(row[0] == 0 for row in rows)
    return [f"{int.from_bytes(row[1:], 'big'):0{WIDTH}b}" for row in rows]


def letters_of(name):
    """Return the drawing of a portrait in characters, one for each dot."""
    drawn = [row for row in pixels_of(draw_portrait(name)) if "1" in row][::22]
    start = min(row.index("1") for row in drawn)
    return [row[start::22].rstrip("0").replace("0", ".").replace("1", "#") for row in drawn]


def test_portrait_shows_the_initials_of_the_first_and_the_last_word():
    assert letters_of("Oren")[0] == ".###"
    assert letters_of("Lili of the Tide")[0] == "#.....#####"
    assert letters_of("Lili of the Tide")[6] == "#####...#"


@pytest.mark.parametrize("name", ["", "  ", "美咲", "🦊", "12", "<script>"])
def test_portrait_shows_a_figure_when_the_name_has_no_drawn_letter(name):
    assert letters_of(name)[4] == "#####"


def test_portrait_is_the_same_for_the_same_name_only():
    assert draw_portrait("Anna") == draw_portrait("Anna") != draw_portrait("Adam")
    assert draw_portrait("Élodie")[-60:] == draw_portrait("Élodie")[-60:]
    assert is_portrait(draw_portrait("Anna"), "Anna")
    assert not is_portrait(draw_portrait("Anna"), "Adam")
