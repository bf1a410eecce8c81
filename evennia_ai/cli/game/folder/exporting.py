"""`evennia-ai export-folder`: write what SillyTavern can hold as a data folder of SillyTavern.

Cards and books are written as their files, and imported chats with everything said in them since.
Conversations that began in the game are not included: `evennia-ai history export` writes them.
"""

import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evennia_ai.cli.game.cast import name_of
from evennia_ai.cli.game.folder.judged import Judged, left_out, report_object
from evennia_ai.cli.game.folder.personas import exported_persona
from evennia_ai.cli.game.folder.places import (
    CARDS,
    CHATS,
    GROUP_CHATS,
    GROUPS,
    PRESETS,
    SETTINGS,
    WORLDS,
)
from evennia_ai.cli.game.folder.presets import preset_text
from evennia_ai.cli.output import write_json, write_lines, write_pieces
from evennia_ai.cli.terminal import shown_progress
from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.foreign.documents import Progress
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.formats.cards.exporting import dump_card
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.services.private_files import FOLDER_OF_OWNER
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored import cards, lorebooks, presets
from evennia_ai.store.authored.personas import persona_of, persona_owners
from evennia_ai.store.history.chats import all_imported, exported_chat

_UNSAFE: Final = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')
_MOST_CHARACTERS: Final = 120
# Names that some systems reserve for devices, whatever their suffix.
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.I)
_PNG: Final = "png"


def write_out(path: Path, shown: Path, conf: Conf, *, as_json: bool) -> int:
    """Write a new folder, whole or not at all. `shown` is the path as it was typed."""
    if path.exists():
        raise FormatError("folder", f"{shown}: exists already; name a new folder")
    made = path.with_name(f".{path.name}.part")
    try:
        # An interrupted export may have left this folder.
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(mode=FOLDER_OF_OWNER)
        with shown_progress() as progress:
            written = [*_Export(made, conf, progress).all()]
        made.rename(path)
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        problem = f"{shown}: cannot be written: {error.strerror or error}"
        raise FormatError("folder", problem) from error
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    if as_json:
        write_json(report_object(shown, written, is_written=True), indent=2)
    else:
        write_lines(_lines(shown, written))
    return 0


def _lines(shown: Path, written: list[Judged]) -> Iterator[str]:
    counts: dict[str, int] = {}
    for one in written:
        counts[one.kind] = counts.get(one.kind, 0) + (one.fate == "taken")
    told = ", ".join(f"{count} {kind}s" for kind, count in counts.items())
    yield escape_controls(f"{shown}: {told or 'there is nothing to write'}")
    for one in written:
        if one.fate != "taken":
            yield escape_controls(f"  {one.kind} {one.name}: {one.why}")


@dataclass(slots=True)
class _Export:
    """A folder that is being written."""

    folder: Path
    conf: Conf
    progress: Progress

    def all(self) -> Iterator[Judged]:
        """Write everything, one kind after the other. Yield what became of each thing."""
        yield from self._cards()
        yield from self._worlds()
        yield from self._presets()
        yield from self._chats()
        yield from self._personas()

    def _cards(self) -> Iterator[Judged]:
        """Write each current card, or else the waiting one: SillyTavern has one per character."""
        names = cards.CARDS.names_ever()
        for done, name in enumerate(names):
            self.progress("cards", done, len(names))
            number = _number_of(name)
            if number is None:
                continue
            try:
                path = self._free(CARDS, name, ".png")
                self._write(path, [self._picture(name, number)])
            except EvenniaAIError as error:
                yield left_out("card", "", error, name=name)
                continue
            yield self._done("card", path, name)

    def _picture(self, name: str, number: int) -> bytes:
        """Return a card as a PNG picture: its own file if that is one, else a new picture."""
        file = cards.CARDS.revision_file(name, number)
        if file.carrier == _PNG:
            return file.content
        limits = self.conf.card_limits
        found = load_card(file.content, limits=limits)
        now = int(time.time())
        return dump_card(found, "png", with_v2=True, modified_at=now, limits=limits)

    def _worlds(self) -> Iterator[Judged]:
        names = lorebooks.LOREBOOKS.list_keys()
        for done, name in enumerate(names):
            self.progress("lorebooks", done, len(names))
            path = self._free(WORLDS, name, ".json")
            self._write(path, [lorebooks.get_book(name).source.encode()])
            yield self._done("world", path, name)

    def _presets(self) -> Iterator[Judged]:
        """Write each current preset with its switches, else the waiting one."""
        names = presets.PRESETS.names_ever()
        for done, name in enumerate(names):
            self.progress("presets", done, len(names))
            text = preset_text(name)
            if text is not None:
                path = self._free(PRESETS, name, ".json")
                self._write(path, [text.encode()])
                yield self._done("preset", path, name)

    def _chats(self) -> Iterator[Judged]:
        """Write each imported chat once, under the name of the NPC that has continued it.

        The first chat of a group is followed by the group's file.
        """
        seen: set[str] = set()
        groups: set[Any] = set()
        for done, found in enumerate(all_imported()):
            self.progress("chats", done, done + 1)
            if found.sha256 in seen:
                continue
            seen.add(found.sha256)
            npc = name_of(found.conversation.npc_ref) or found.played
            place, name = self._place_of_chat(found.file, found.played)
            path = self._free(place, name, ".jsonl")
            pieces = exported_chat(found.conversation, npc_name=npc, partner_name="You")
            self._write(path, pieces)
            yield self._done("chat", path, found.file)
            group = found.group or {}
            if group.get("id") and group["id"] not in groups:
                groups.add(group["id"])
                path = self._free(GROUPS, str(group["id"]), ".json")
                self._write(path, [json.dumps(group, ensure_ascii=False, indent=4).encode()])
                yield self._done("group", path, str(group["id"]))

    def _place_of_chat(self, file: str, played: str) -> tuple[str, str]:
        """Return the folder and the name for a chat's file: those that it was imported from."""
        parts = Path(file).parts
        name = Path(file).stem
        if parts[0] == GROUP_CHATS:
            return GROUP_CHATS, name
        character = parts[1] if len(parts) == 3 and parts[0] == CHATS else played
        return f"{CHATS}/{_plain(character)}", name

    def _personas(self) -> Iterator[Judged]:
        names: dict[str, str] = {}
        described: dict[str, dict[str, Any]] = {}
        for ref in persona_owners():
            persona, name = persona_of(ref), name_of(ref)
            if persona is None or not name:
                continue
            avatar, settings = exported_persona(persona, name=_plain(name), ref=ref)
            names[avatar], described[avatar] = name, settings
            yield Judged(kind="persona", where=SETTINGS, name=name, fate="taken")
        if names:
            told = {"power_user": {"personas": names, "persona_descriptions": described}}
            text = json.dumps(told, ensure_ascii=False, indent=4)
            self._write(self.folder / SETTINGS, [text.encode()])

    def _free(self, place: str, name: str, suffix: str) -> Path:
        """Return a new path for a file of this name, with a number if the name is taken."""
        plain = _plain(name)
        folder = self.folder / place
        folder.mkdir(mode=FOLDER_OF_OWNER, parents=True, exist_ok=True)
        path, number = folder / f"{plain}{suffix}", 1
        while path.exists():
            number += 1
            path = folder / f"{plain} {number}{suffix}"
        return path

    def _write(self, path: Path, pieces: Any) -> None:
        write_pieces(path, pieces, kind="folder", force=False)

    def _done(self, kind: str, path: Path, name: str) -> Judged:
        where = path.relative_to(self.folder).as_posix()
        return Judged(kind=kind, where=where, name=name, fate="taken")


def _number_of(name: str) -> int | None:
    """Return the revision of a card to write: the current one, else the newest that waits."""
    card = cards.card_or_none(name)
    if card is not None:
        return card.revision
    waiting = cards.CARDS.waiting(name)
    return waiting[-1].number if waiting else None


def _plain(name: str) -> str:
    """Return `name` as a file name that is valid on every system."""
    plain = _UNSAFE.sub("_", " ".join(name.split()))[:_MOST_CHARACTERS].strip(" .")
    return f"_{plain}" if not plain or _DEVICES.match(plain) else plain
