"""Read and write SillyTavern chat files: conversations with one or several characters.

`chat_records` makes records of messages, and lines of records.

The first line is a header with the names. Each later line is a message (docs/build/moving-in.md
lists the fields). Every line keeps all of its JSON values, so a chat that is read and written again
has the same content. A line that is no message is kept as it is, and the others are read. Macros in
a chat are never expanded. The names in a chat prove nobody's identity.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import Any, Final, NoReturn

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import decode_text, one_line, parse_json
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.text.columns import clip_text

KIND: Final = "chat"
LINE_FEED: Final = "\n"
_NOBODY: Final = "unused"
"""The placeholder that SillyTavern 1.18 and newer write in a chat's header for both names."""
NARRATOR: Final = "narrator"
"""The value of `extra.type` in a message that is spoken by a narrator."""

_SHOWN_NOTE: Final = 120
_MOST_UNREAD_NAMED: Final = 5

ReadLine = Callable[[int], bytes]
"""A function that returns the next line of a file, including its newline.

If the line has more bytes than the argument, it returns only the first bytes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatLimits:
    """The size limits of a chat file; a file over one of them is refused as a whole."""

    file_bytes: int = 64 * 1024 * 1024
    line_bytes: int = 4 * 1024 * 1024
    messages: int = 100_000
    swipes: int = 1_000
    """The maximum number of alternative answers (swipes) in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """A message of a SillyTavern chat."""

    line: int
    """The line number of the message in the file."""
    name: str
    """The speaker's name, "" if the line has no name."""
    text: str
    is_user: bool
    is_hidden: bool
    """True if SillyTavern leaves the message out of prompts (`is_system`)."""
    is_narrator: bool
    swipes: int
    """The number of alternative answers (swipes) in the message, 0 if it has none."""
    raw: Mapping[str, Any]
    """All JSON values of the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadLine:
    """A line of a chat file that is no message, such as damaged JSON."""

    line: int
    """The line number in the file."""
    content: bytes
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A SillyTavern chat that was read from a file."""

    header: Mapping[str, Any] | None
    """The JSON values of the first line, None if the first line is not a header."""
    user: str
    """The user's name.

    It is the name in the header, unless all of the user's messages have other names. Then it is the
    name in the first of these messages.
    """
    character: str
    """The character's name, used for messages without a name.

    It is the character in the header, else the only character who speaks. It is "" if several
    characters speak and the header names none of them.
    """
    messages: tuple[ChatMessage, ...]
    unread: tuple[UnreadLine, ...] = ()

    @property
    def characters(self) -> tuple[str, ...]:
        """The names of the characters who speak, in the order of their first lines.

        A speaker with only hidden lines is included only if all lines of the chat are hidden.
        """
        spoke = [m for m in self.messages if not m.is_user and not m.is_narrator]
        shown = [m for m in spoke if not m.is_hidden] or spoke
        return tuple(dict.fromkeys(filter(None, (m.name or self.character for m in shown))))


def read_chat(readline: ReadLine, *, where: str, limits: ChatLimits | None = None) -> Chat:
    """Read a SillyTavern chat file line by line.

    Args:
        where: the name of the file in error messages.

    Raises:
        FormatError: no line of the file is one of a chat, or the file is over a limit; the message
            names the line.
    """
    lines = _Lines(readline, where=where, limits=limits or ChatLimits())
    header: Mapping[str, Any] | None = None
    messages: list[ChatMessage] = []
    unread: list[UnreadLine] = []
    for line in lines:
        if len(messages) + len(unread) == lines.limits.messages:
            lines.refuse(f"a chat may have at most {lines.limits.messages} messages; split it")
        try:
            values = lines.parse(line)
            if header is None and not messages and _is_header(values):
                header = values
            else:
                messages.append(_read_message(lines, values))
        except _UnreadableLineError as error:
            content, problem = line.rstrip(b"\r\n"), error.message.removeprefix(f"{where}: ")
            unread.append(UnreadLine(line=lines.number, content=content, problem=problem))
    if not messages and (unread or header is None):
        problem = unread[0].problem if unread else "it is empty; a chat has lines of JSON"
        raise FormatError(KIND, f"{where}: {problem}")
    names = header or {}
    return Chat(
        header=header,
        user=_user_name(names.get("user_name"), [m.name for m in messages if m.is_user]),
        character=_character_name(
            names.get("character_name"),
            [m.name for m in messages if not m.is_user and not m.is_narrator],
        ),
        messages=tuple(messages),
        unread=tuple(unread),
    )


def values_sha256(chat: Chat) -> str:
    """Return the SHA-256 of a chat's JSON values, which does not depend on how they are written."""
    digest = sha256()
    for line in (chat.header or {}, *(message.raw for message in chat.messages)):
        digest.update(canonical_json(dict(line)).encode() + b"\n")
    for unread in chat.unread:
        digest.update(unread.content + b"\n")
    return digest.hexdigest()


def is_chat(beginning: bytes) -> bool:
    """True if a file with this beginning is a SillyTavern chat.

    Empty lines may precede its first line. Transcripts of this package begin differently
    (`evennia_ai.engine.history.transcripts`).
    """
    try:
        values = json.loads(beginning.lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and (_is_header(values) or _is_message(values))


def dump_chat(
    header: Mapping[str, Any] | None, messages: Iterable[Mapping[str, Any] | bytes]
) -> Iterator[bytes]:
    """Yield the lines of a chat file; the last line has no newline, as in SillyTavern's files.

    Args:
        messages: for each line, the JSON values of its message, or the content of an unread line.
    """
    lines = messages if header is None else chain([header], messages)
    for number, line in enumerate(lines):
        if number:
            yield LINE_FEED.encode()
        if isinstance(line, bytes):
            yield line
        else:
            yield json.dumps(dict(line), ensure_ascii=False, allow_nan=False).encode()


class _UnreadableLineError(FormatError):
    """A line is no message of a chat. The other lines are read."""


class _Lines:
    """A reader that yields the lines of a file, and skips empty lines.

    `number` is the number of the line that was read last.
    """

    def __init__(self, readline: ReadLine, *, where: str, limits: ChatLimits) -> None:
        self.limits: Final = limits
        self.number = 0
        self._readline = readline
        self._where = where
        self._bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        while line := self._readline(self.limits.line_bytes + 1):
            self.number += 1
            self._bytes += len(line)
            if len(line) > self.limits.line_bytes:
                self.refuse(f"it is longer than {self.limits.line_bytes} bytes")
            if self._bytes > self.limits.file_bytes:
                self.refuse(f"a chat may have at most {self.limits.file_bytes} bytes; split it")
            if line.strip():
                yield line

    def parse(self, line: bytes) -> Mapping[str, Any]:
        """Return the JSON object in the line that was read last."""
        where = f"{self._where}: line {self.number}"
        try:
            text = decode_text(line, kind=KIND, where=where)
            values, twice = parse_json(text, kind=KIND, where=where)
        except FormatError as error:
            raise _UnreadableLineError(KIND, error.message) from error
        if twice:
            self.set_aside(f"{twice[0].partition(';')[0]}; remove one of the two")
        if not isinstance(values, dict):
            self.set_aside("must be a JSON object")
        return values

    def set_aside(self, problem: str) -> NoReturn:
        """Raise the error that the line of the chat file that was read last is no message."""
        raise _UnreadableLineError(KIND, f"{self._where}: line {self.number}: {problem}")

    def refuse(self, problem: str) -> NoReturn:
        """Raise FormatError about the line of the chat file that was read last."""
        raise FormatError(KIND, f"{self._where}: line {self.number}: {problem}")


def _is_header(values: Mapping[str, Any]) -> bool:
    has_names = any(key in values for key in ("user_name", "character_name", "chat_metadata"))
    return has_names and not _is_message(values)


def _is_message(values: Mapping[str, Any]) -> bool:
    return isinstance(values.get("mes"), str)


def _read_message(lines: _Lines, values: Mapping[str, Any]) -> ChatMessage:
    text = values.get("mes")
    if not isinstance(text, str):
        lines.set_aside("mes must be text; is this a SillyTavern chat?")
    swipes = values.get("swipes")
    if swipes is not None and not isinstance(swipes, list):
        lines.set_aside("swipes must be a list")
    if swipes and len(swipes) > lines.limits.swipes:
        lines.refuse(f"it has {len(swipes)} swipes and may have {lines.limits.swipes}")
    extra = values.get("extra")
    is_narrator = isinstance(extra, dict) and extra.get("type") == NARRATOR
    name = values.get("name")
    if name is not None and not isinstance(name, str):
        lines.set_aside("name must be a text")
    return ChatMessage(
        line=lines.number,
        name=name or "",
        text=text,
        is_user=_read_flag(lines, values, "is_user"),
        is_hidden=_read_flag(lines, values, "is_system"),
        is_narrator=is_narrator,
        swipes=len(swipes or ()),
        raw=values,
    )


def _read_flag(lines: _Lines, values: Mapping[str, Any], key: str) -> bool:
    """Return a flag of a message; null counts as false, because SillyTavern sometimes writes it."""
    value = values.get(key)
    if value is not None and not isinstance(value, bool):
        lines.set_aside(f"{key} must be true or false, not {one_line(repr(value))[:40]}")
    return bool(value)


def _user_name(in_header: object, of_lines: list[str]) -> str:
    """Return the name of a chat's user.

    Args:
        in_header: the name in the chat's header.
        of_lines: the name in each of the user's messages, "" for a message without a name.
    """
    named = in_header if isinstance(in_header, str) and in_header != _NOBODY else ""
    if named in of_lines or not any(of_lines):
        return named
    return named if named and "" in of_lines else next(filter(None, of_lines))


def _character_name(in_header: object, of_lines: list[str]) -> str:
    """Return the name of a chat's character, "" if several speak.

    Args:
        in_header: the name in the chat's header.
        of_lines: the name in each message of the other speakers, "" for a message without a name.
    """
    named = in_header if isinstance(in_header, str) and in_header != _NOBODY else ""
    if named and ("" in of_lines or named in of_lines):
        return named
    known = {name for name in of_lines if name}
    return known.pop() if len(known) == 1 else ""


def list_import_losses(chat: Chat) -> tuple[str, ...]:
    """Return a sentence for each part of a chat that an import ignores, such as the author's note.

    These parts are kept, so an export contains them again.
    """
    metadata = (chat.header or {}).get("chat_metadata")
    data = metadata if isinstance(metadata, dict) else {}
    found = [
        f"{unread.problem}; the line is kept for the export"
        for unread in chat.unread[:_MOST_UNREAD_NAMED]
    ]
    if (more := len(chat.unread) - _MOST_UNREAD_NAMED) > 0:
        found.append(f"{more} more lines are no messages; they are kept for the export")
    note = data.get("note_prompt")
    if isinstance(note, str) and note.strip():
        how = ", ".join(
            f"{word} {data[name]}"
            for word, name in (("depth", "note_depth"), ("every", "note_interval"))
            if type(data.get(name)) is int
        )
        text = clip_text(one_line(note), _SHOWN_NOTE)
        found.append(f"its author's note stays in the file{f' ({how})' if how else ''}: {text}")
    world = data.get("world_info")
    if isinstance(world, str) and world.strip():
        found.append(
            f"its lorebook '{one_line(world)[:60]}' is not assigned: assign it with lore/assign"
        )
    timers = data.get("timedWorldInfo")
    kinds = timers if isinstance(timers, dict) else {}
    counts = [
        f"{len(kinds[kind])} {kind}"
        for kind in ("sticky", "cooldown")
        if isinstance(kinds.get(kind), dict) and kinds[kind]
    ]
    if counts:
        found.append(f"its timers of lore entries ({', '.join(counts)}) restart")
    variables = data.get("variables")
    if isinstance(variables, dict) and variables:
        found.append(f"its variables ({len(variables)}) stay in the file")
    return tuple(found)
