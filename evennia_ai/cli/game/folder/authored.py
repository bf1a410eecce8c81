"""Cards and lorebooks of a folder: cards wait for approval, books are not assigned."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

from evennia_ai.cli.game.cast import Cast
from evennia_ai.cli.game.folder.judged import Judged, left_out
from evennia_ai.cli.game.folder.places import FolderFile
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import ComponentValueError, EvenniaAIError, FormatError
from evennia_ai.engine.foreign.documents import decode_text, read_bytes
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.same_book import has_same_content, linked_world
from evennia_ai.engine.text.columns import clip_text
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.components import character_book
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.file_kinds import json_of_file, kind_of_file
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored import cards, lorebooks
from evennia_ai.store.authored.card_files import card_file
from evennia_ai.store.core.authoring import checked_name

_OF_CARD = "card:"
_BYTES_PER_CHARACTER = 4
_MOST_WHY = 300


@dataclass(slots=True, kw_only=True)
class Taking:
    """What an import of a folder knows: the game's settings, and names already used."""

    conf: Conf
    by: Actor
    cast: Cast
    names: dict[str, str] = field(default_factory=dict)
    """By the case-folded name of a card: the file of the folder that got this name."""
    card_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By the stem of a card's file: the character's name in the game, and in the card."""
    worlds: dict[str, tuple[str, Lorebook]] = field(default_factory=dict)
    """By the case-folded stem of a lorebook's file: its name in the game, and the book."""
    groups: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By the name of a group chat: the JSON object of its group."""


def judged_world(file: FolderFile, taking: Taking) -> Iterable[Judged]:
    """Judge a lorebook, which gets the name of its file."""
    return [_world(file, _text_of(file, taking.conf), taking)]


def judged_card(file: FolderFile, taking: Taking) -> Iterable[Judged]:
    """Judge a character card, which waits under its own name."""
    return [_card(file, taking)]


def judged_loose(file: FolderFile, taking: Taking) -> Iterable[Judged]:
    """Judge a file that may be a card, or a lorebook of any known program."""
    try:
        return judged_card(file, taking)
    except FormatError as error:
        if file.path.suffix.lower() != ".json":
            raise
        return [_book_or_nothing(file, taking, no_card=error)]


def _book_or_nothing(file: FolderFile, taking: Taking, *, no_card: FormatError) -> Judged:
    try:
        return _world(file, _text_of(file, taking.conf), taking)
    except FormatError as error:
        why = f"no card ({no_card.message}) and no lorebook ({error.message})"
        kind = kind_of_file(read_bytes(file.path, kind="book"))
        if kind is not None and kind.use not in ("card", "book"):
            why = str(kind)
        return left_out("loose", file.where, clip_text(why, _MOST_WHY))


def _card(file: FolderFile, taking: Taking) -> Judged:
    found = load_card(file.path, limits=taking.conf.card_limits)
    content = read_bytes(file.path, kind="card")
    name = _card_name(found.card.name, file, taking)
    taking.card_names[file.path.stem] = (name, found.card.name)
    digest = sha256(content).hexdigest()
    if cards.CARDS.is_known(name, digest):
        return Judged(kind="card", where=file.where, name=name, fate="there")
    stored = card_file(content, found)
    return Judged(
        kind="card",
        where=file.where,
        name=name,
        fate="take",
        why=f"waits as card {name}",
        notices=tuple(_of_world(found.card, taking)),
        write=partial(cards.import_card, name, stored, by=taking.by),
    )


def _of_world(card: Card, taking: Taking) -> Iterator[str]:
    """Yield a notice about the lorebook of the folder to which a card is linked."""
    world = linked_world(card.extensions)
    name, book = taking.worlds.get(world.casefold(), ("", None))
    if book is None:
        return
    assign = f"lore/assign {name} = npc:<its NPC> assigns it"
    try:
        own = character_book(card)
    except FormatError:
        own = None  # The card's own report names the error.
    if own is None:
        yield f"its lorebook is {name}: {assign}"
        return
    differs = "" if has_same_content(own, book) else ", with other entries"
    yield f"its lorebook is {name} too{differs}: {assign} instead of the copy in the card"


def _world(file: FolderFile, text: str, taking: Taking) -> Judged:
    data, twice = json_of_file(text.encode(), wanted="book", where=file.path.name)
    book = read_book(data, label=file.path.stem)
    name = _book_name(file.path.stem)
    taking.worlds[name.casefold()] = (name, book)
    known = next(
        (n for n in lorebooks.LOREBOOKS.list_keys() if n.casefold() == name.casefold()), None
    )
    if known is not None:
        stored = lorebooks.get_book(known)
        if stored.source == text or json.loads(stored.source) == data:
            return Judged(kind="world", where=file.where, name=known, fate="there")
        why = (
            f"a lorebook {known} with other text is in the game (revision {stored.revision});"
            " lore/remove it first, or give the file another name"
        )
        return left_out("world", file.where, why, name=known)
    return Judged(
        kind="world",
        where=file.where,
        name=name,
        fate="take",
        why=f"becomes lorebook {name}; lore/assign assigns it",
        notices=(*twice, *book.notices),
        write=partial(lorebooks.save_book, name, text, by=taking.by, seen_revision=0),
    )


def _text_of(file: FolderFile, conf: Conf) -> str:
    content = read_bytes(file.path, kind="book")
    most = conf.max_source_characters
    if len(content) > most * _BYTES_PER_CHARACTER:
        problem = f"it has {len(content)} bytes; EVENNIA_AI_MAX_SOURCE_CHARACTERS is {most}"
        raise FormatError("book", problem)
    return decode_text(content, kind="book", where=file.path.name)


def _book_name(stem: str) -> str:
    name = " ".join(stem.split())
    if name.startswith(_OF_CARD) or "=" in name:
        raise FormatError("book", f"no lorebook can be called '{name}'; give the file another name")
    return checked_name(name, what="lorebook")


def _card_name(own: str, file: FolderFile, taking: Taking) -> str:
    """Return the name under which a card waits: its own, unless another file has it already."""
    stem = file.path.stem
    for wanted in (own, f"{own} ({stem})", stem):
        try:
            name = cards.CARDS.known_name(cards.CARDS.typeable_name(wanted))
        except ComponentValueError:
            continue
        if taking.names.setdefault(name.casefold(), file.where) == file.where:
            return name
    raise FormatError("card", f"its name '{own[:60]}' cannot be typed, nor that of its file")


def refused(file: FolderFile, error: EvenniaAIError) -> Judged:
    """Return the verdict on a file that is not of the expected kind, with the reason."""
    why = error.message if isinstance(error, FormatError) else str(error)
    return left_out(file.kind, file.where, clip_text(" ".join(why.split()), _MOST_WHY))
