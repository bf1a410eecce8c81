"""Check properties of card files and of the decorators at the start of lorebook entries.

A file is read as a card or refused with one line. A card can be exported in each form, and reading
the export gives the same card. Exactly the decorators are cut off an entry. A wrong checksum would
hide most of a mutated file, so files are also checked with corrected checksums. The property tests
use this module too.
"""

import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import MAX_NOTICES
from evennia_ai.engine.lorebook.decorators import MAX_KEYS, parse_decorators
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.components import character_book
from evennia_ai.formats.cards.exporting import FORMS, card_as_v3, dump_card, export_losses, v2_copy
from evennia_ai.formats.cards.loading import CardImport, load_card
from fuzz.lore_checks import Choices
from tests.formats.cards.builders import card_data, lore
from tests.formats.cards.carriers import (
    SIGNATURE,
    a_picture,
    an_archive,
    an_asset,
    as_json,
    international,
    packed,
    part,
    picture,
    text,
)

NOW: Final = 1_800_000_000
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
DEMO: Final = Path(__file__).parents[1] / "world" / "demo" / "cards"
# Fields of a card that describe its file, so they may change with the container.
_OF_THE_FILE: Final = frozenset(
    {"source", "notices", "spec", "spec_version", "assets", "character_book"}
)
_FIELDS: Final = tuple(each.name for each in fields(Card) if each.name not in _OF_THE_FILE)
_STRINGS: Final = ("Marta", "", "a\x1bb\nc", "\u2028\U0001f409", "{{char}} and {{user}}", None)
_OBJECTS: Final = ({}, {"a": [1, None, "x"]}, {"depth_prompt": {"prompt": "x", "depth": "4"}}, None)
_NAMES: Final = ("0", "7", "-1", "a\nb", "", "1e3", "18446744073709551616")
_ASSETS: Final = (
    None,
    [],
    [an_asset("ccdefault:")],
    [an_asset("embeded://assets/icon/images/main.png"), an_asset("__asset:0", type="x")],
    [an_asset("data:,a%2"), an_asset("data:;base64,*"), an_asset("embeded://../x\n", ext="\n")],
)
_CARD: Final = {
    **dict.fromkeys(("description", "nickname", "creator_notes", "system_prompt"), _STRINGS),
    **dict.fromkeys(("alternate_greetings", "group_only_greetings"), ([], ["Hello."], None)),
    **dict.fromkeys(("tags", "source"), ([], ["sea", "sea", ""], None)),
    "creator_notes_multilingual": ({}, {"de": "Hallo"}, None),
    "assets": _ASSETS,
    "extensions": _OBJECTS,
    "character_version": (1, 1.5, "1", None),
    "creation_date": (0, 1_700_000_000, -1, None),
}
_FLAGS: Final = (True, False, 0, 1, None)
HEADS: Final = (
    "@@depth 2\n@@role user\n\nThe gate.",
    "@@unknown x\n@@@position personality\n@@@depth 1\nA coin.",
    "\n \r\n@@activate\r@@additional_keys a, b,,c\r\n@@exclude_keys d\ntext\n@@depth 9",
    "@@\n@@@\n@@@@role user\n@@scan_depth -1\n@@depth 99999999999999999999\n",
    "@@activate\n@@dont_activate\n@@disable_ui_prompt a\n@@is_user_icon \x1b[2J",
    "no head\n@@depth 1",
)


_ENTRY: Final = {
    "content": HEADS,
    "keys": ([], ["coin", "/ga?te/i"], [""]),
    "key": ([], ["coin"], None),
    **dict.fromkeys(("enabled", "use_regex", "constant", "selective", "case_sensitive"), _FLAGS),
    **dict.fromkeys(("insertion_order", "priority", "probability"), (0, 1.5, "7", -3, None)),
    **dict.fromkeys(("id", "uid"), (0, "x", "a\nb", 1.5, 10**15, None)),
    "secondary_keys": ([], ["red"], "red, blue", None),
    "position": ("before_char", "elsewhere", 4, None),
    "extensions": ({}, {"position": 4, "depth": 2}, {"evennia_ai": {"npcs": ["Oren"]}}, None),
    "comment": _STRINGS,
}


def check_file(content: bytes) -> None:
    """Check that any bytes are refused in one line, or are a card that survives its exports."""
    try:
        found = load_card(content)
    except FormatError as error:
        is_one_line(error.message)
        return
    assert isinstance(found, CardImport)
    assert len(found.notices) <= MAX_NOTICES + 1, "more notices than anybody reads"
    for notice in found.notices:
        is_one_line(notice)
    _check_exports(found)


def check_picture(content: bytes) -> None:
    """Check a PNG file as it is, and with corrected checksums of its chunks."""
    content = content if content.startswith(SIGNATURE) else SIGNATURE + content
    check_file(content)
    check_file(with_sound_chunks(content))


def check_archive(content: bytes) -> None:
    """Check a CHARX file as it is, and with corrected checksums of its members."""
    check_file(content)
    check_file(with_sound_members(content))


def check_text(content: bytes) -> None:
    """Check a JSON text, or a card made from the bytes, in each container."""
    if content[:1] not in (b"{", b"\xef", b" "):
        content = as_json(chosen_card(Choices(content)))
    check_file(content)
    pictured, archived = picture(text("ccv3", content)), an_archive(False, {"card.json": content})
    assert _raw(content) == _raw(pictured) == _raw(archived), "the carriers disagree"


def check_decorators(content: bytes) -> None:
    """Check the decorators of an entry, and the V2 copy of a card with this entry."""
    written = content.decode("utf-8", "replace")
    read = parse_decorators(written)
    assert written.endswith(read.text), "the text after the decorators is another one"
    head = written[: len(written) - len(read.text)]
    lines = [line.strip() for line in re.split(r"\r\n|\r|\n", head)]
    assert all(not line or line.startswith("@@") for line in lines), "text was cut off"
    assert not read.text.lstrip().startswith("@@") or not head, "a decorator is left in the text"
    for name, values in read.decorators:
        assert re.fullmatch("[A-Za-z_]+", name), "a decorator has no name"
        assert len(values) <= MAX_KEYS
        assert all(value and value == value.strip() for value in values)
    for notice in read.notices:
        is_one_line(notice)
    assert parse_decorators(read.text).text == read.text, "decorators were left"
    card = card_data(character_book={"extensions": {}, "entries": [lore(written)]})
    copied = v2_copy(card)["data"]["character_book"]["entries"][0]
    assert copied["content"] == read.text


def chosen_card(choices: Choices) -> dict[str, Any]:
    """Make a card of any version from awkward values that the bytes choose."""
    spec = choices.of(("chara_card_v3", "chara_card_v2", None))
    data = {"name": choices.of(_STRINGS), **choices.fields(_CARD, most=8)}
    if choices.below(2):
        head = choices.fields({"extensions": _OBJECTS, "name": _STRINGS}, most=2)
        entries: Any = [choices.fields(_ENTRY, most=6) for _ in range(choices.below(4))]
        if choices.below(3) == 2:
            entries = {choices.of(_NAMES): entry for entry in entries}
        data["character_book"] = {**head, "entries": entries}
    if spec is None:
        return {"description": "", **data}
    stale = choices.fields({"name": _STRINGS, "first_mes": _STRINGS, "own": _OBJECTS}, most=2)
    version = choices.of(("3.0", "2.0", "9", 3, None, "x\n"))
    return {**stale, "spec": spec, "spec_version": version, "data": data}


def is_one_line(message: str) -> None:
    assert not CONTROL.search(message), "a message has control characters"
    assert len(message) < 600, "a message is longer than anybody reads"


def _raw(content: bytes) -> Any:
    """Return the JSON of the card as text, because `==` ignores types (1 == 1.0 == True)."""
    try:
        return json.dumps(load_card(content).raw)
    except FormatError as error:
        is_one_line(error.message)
        return None


def _check_exports(found: CardImport) -> None:
    try:
        wanted = card_as_v3(found.card, modified_at=NOW)
    except FormatError as error:  # its lorebook cannot be read
        is_one_line(error.message)
        return
    for form in FORMS:
        written = dump_card(found, form, modified_at=NOW, with_v2=form == "png")
        again = load_card(written)
        assert _seen(again.card) == _seen(found.card), f"the {form} file is another card"
        now = card_as_v3(again.card, modified_at=NOW)
        assert _without_assets(now) == _without_assets(wanted), f"{form} lost something"
        twice = dump_card(again, form, modified_at=NOW, with_v2=form == "png")
        assert twice == written, f"{form} is another file the second time"
        for line in export_losses(found, form):
            is_one_line(line)


def _seen(card: Card) -> list[Any]:
    """Return the parts of a card that a game uses."""
    book = character_book(card)
    return [
        *(getattr(card, name) for name in _FIELDS),
        *((each.uid, each.keys, each.template.source) for each in (book.entries if book else ())),
    ]


def _without_assets(card: dict[str, Any]) -> dict[str, Any]:
    return {**card, "data": {**card["data"], "assets": None}}


def with_sound_chunks(content: bytes) -> bytes:
    """Return a PNG file with the correct checksum in each complete chunk."""
    made, at = bytearray(content), len(SIGNATURE)
    while at + 12 <= len(made):
        (length,) = struct.unpack_from(">I", made, at)
        if at + 12 + length > len(made):
            break
        struct.pack_into(">I", made, at + 8 + length, zlib.crc32(made[at + 4 : at + 8 + length]))
        at += 12 + length
    return bytes(made)


def with_sound_members(content: bytes) -> bytes:
    """Return an archive with the correct checksum in each row of its directory."""
    made = bytearray(content)
    for row in re.finditer(rb"PK\x01\x02", content):
        if row.start() + 46 > len(made):
            break
        method, packed_bytes = struct.unpack_from("<10xH8xL", made, row.start())
        (start,) = struct.unpack_from("<L", made, row.start() + 42)
        if start + 30 <= len(made):
            name, extra = struct.unpack_from("<26x2H", made, start)
            data = content[start + 30 + name + extra :][:packed_bytes]
            crc = zlib.crc32(_unpacked(data) if method else data)
            struct.pack_into("<L", made, row.start() + 16, crc)
    return bytes(made)


def _unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(-15).decompress(data, 1_000_000)
    except zlib.error:
        return b""


def _cards() -> Iterator[dict[str, Any]]:
    entries = [lore(head, name="e") for head in HEADS]
    assets = [an_asset("embeded://a.png"), an_asset("__asset:0", type="emotion", name="sad")]
    yield card_data(assets=assets, character_book={"extensions": {}, "entries": entries})
    yield {"name": "Marta", "description": "Keeps the lamp."}
    yield {**card_data(tags=["sea"]), "spec": "chara_card_v2", "spec_version": "2.0"}
    world = {"entries": {"0": {"key": ["coin"], "content": "@@depth 1\nA coin.", "uid": 0}}}
    yield card_data(character_book=world, nickname="Mar", extensions={"depth_prompt": {}})


def _texts() -> Iterator[bytes]:
    yield from map(as_json, _cards())
    yield from (path.read_bytes() for path in sorted(DEMO.glob("*.json")))


def _choices() -> Iterator[bytes]:
    yield from _texts()
    for start in range(0, 256, 32):
        yield bytes((start + 37 * step * step) % 256 for step in range(90))


def _pictures() -> Iterator[bytes]:
    for content in _texts():
        yield picture(text("ccv3", content))
    for card in _cards():
        yield a_picture(card, text("chara-ext-asset_:0", b"zero"), part(b"acTL", b"\0" * 8))
        yield picture(packed("chara", as_json(card)), behind=[text("x", b"y")])
        yield picture(international("ccv3", as_json(card), is_packed=True))


def _archives() -> Iterator[bytes]:
    members = {"a.png": picture(), "x_meta/0.json": b"{}", "b\u00e4r/\u7ea2.bin": bytes(90)}
    for card in _cards():
        yield an_archive(card, members)
        yield an_archive(card, {"a.png": b"x"}, before=b"\xff\xd8\xff pixels \xff\xd9")


def _heads() -> Iterator[bytes]:
    return (head.encode() for head in HEADS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A fuzz target: a check, and the seeds that fuzzing begins with."""

    check: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    most_bytes: int = 20_000


TARGETS: Final = {
    "png": Target(check=check_picture, seeds=_pictures),
    "charx": Target(check=check_archive, seeds=_archives),
    "json": Target(check=check_text, seeds=_choices),
    "decorators": Target(check=check_decorators, seeds=_heads, most_bytes=2_000),
}
