"""Chats: a conversation with one or several characters, as a file of SillyTavern has it.

The first line says who spoke with whom, each later one is a message (docs/build/moving-in.md has
the fields and where they are from). Every line keeps the JSON values that it had, fields that mean
nothing here among them, so that a chat that was read and is written again says the same. Nothing in
it is ever expanded, and no name in it proves who somebody is.
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
from evennia_ai.engine.text.columns import clipped

KIND: Final = "chat"
LINE_FEED: Final = "\n"
_NOBODY: Final = "unused"
"""What SillyTavern writes in a header since 1.18 in place of the two names."""
NARRATOR: Final = "narrator"
"""What `extra.type` of a message is that nobody said: the story is told on."""

_SHOWN_NOTE: Final = 120

ReadLine = Callable[[int], bytes]
"""Gives the next line, its end with it, and of a longer one as many bytes as are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatLimits:
    """What a file of a chat may have at most; over a limit it is refused whole."""

    file_bytes: int = 64 * 1024 * 1024
    line_bytes: int = 4 * 1024 * 1024
    messages: int = 100_000
    swipes: int = 1_000
    """Of one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message; `raw` are the JSON values of its line."""

    line: int
    """The number of its line in the file."""
    name: str
    """Who spoke, as the file calls them; "" where it names nobody."""
    text: str
    is_user: bool
    is_hidden: bool
    """Whether the app leaves it out of prompts (`is_system`)."""
    is_narrator: bool
    swipes: int
    """How many answers there were to choose from; 0 where the file has none."""
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat; `header` are the JSON values of its first line, None where it had none."""

    header: Mapping[str, Any] | None
    user: str
    """The name of the user: the header's if they speak under it, else that of their lines."""
    character: str
    """Who says the lines without a name: the header's character, or the only one who speaks.

    "" where several characters speak, and no header says who that is.
    """
    messages: tuple[ChatMessage, ...]

    @property
    def characters(self) -> tuple[str, ...]:
        """The names of those who spoke and are not the user, in the order of their first words.

        Somebody of whom SillyTavern hides every line counts only if all lines are hidden.
        """
        spoke = [m for m in self.messages if not m.is_user and not m.is_narrator]
        shown = [m for m in spoke if not m.is_hidden] or spoke
        return tuple(dict.fromkeys(filter(None, (m.name or self.character for m in shown))))


def read_chat(readline: ReadLine, *, where: str, limits: ChatLimits | None = None) -> Chat:
    """The chat in a file, line by line; no more of it is held than what is kept.

    FormatError: it is no chat, or over a limit; the message names the line.
    """
    lines = _Lines(readline, where=where, limits=limits or ChatLimits())
    header: Mapping[str, Any] | None = None
    messages: list[ChatMessage] = []
    for told in lines:
        if header is None and not messages and _is_header(told):
            header = told
            continue
        if len(messages) == lines.limits.messages:
            lines.refuse(f"a chat may have at most {lines.limits.messages} messages; split it")
        messages.append(_message(lines, told))
    if header is None and not messages:
        raise FormatError(KIND, f"{where}: it holds nothing; a chat has lines of JSON")
    told = header or {}
    return Chat(
        header=header,
        user=_speaker(told.get("user_name"), [m.name for m in messages if m.is_user]),
        character=_character(
            told.get("character_name"),
            [m.name for m in messages if not m.is_user and not m.is_narrator],
        ),
        messages=tuple(messages),
    )


def values_sha256(chat: Chat) -> str:
    """The hash of all that a chat says: equal for files that say the same in other bytes."""
    digest = sha256()
    for line in (chat.header or {}, *(message.raw for message in chat.messages)):
        digest.update(canonical_json(dict(line)).encode() + b"\n")
    return digest.hexdigest()


def is_chat(first_line: bytes) -> bool:
    """Whether a file that begins with this line is a chat of another program.

    A transcript of this one begins with its own word (`evennia_ai.engine.history.transcripts`).
    """
    try:
        told = json.loads(first_line)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and (_is_header(told) or _is_message(told))


def chat_pieces(
    header: Mapping[str, Any] | None, messages: Iterable[Mapping[str, Any]]
) -> Iterator[bytes]:
    """A chat piece by piece for its file: a line each, and none behind the last, as the app has it.

    `messages` are the JSON values of their lines.
    """
    lines = messages if header is None else chain([header], messages)
    for number, line in enumerate(lines):
        text = json.dumps(dict(line), ensure_ascii=False, allow_nan=False)
        yield f"{LINE_FEED if number else ''}{text}".encode()


class _Lines:
    """The lines of a file as JSON objects, empty ones left out; `number` is that of the newest."""

    def __init__(self, readline: ReadLine, *, where: str, limits: ChatLimits) -> None:
        self.limits: Final = limits
        self.number = 0
        self._readline = readline
        self._where = where
        self._bytes = 0

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        while line := self._readline(self.limits.line_bytes + 1):
            self.number += 1
            self._bytes += len(line)
            if len(line) > self.limits.line_bytes:
                self.refuse(f"it is longer than {self.limits.line_bytes} bytes")
            if self._bytes > self.limits.file_bytes:
                self.refuse(f"a chat may have at most {self.limits.file_bytes} bytes; split it")
            if line.strip():
                yield self._object(line)

    def _object(self, line: bytes) -> Mapping[str, Any]:
        where = f"{self._where}: line {self.number}"
        told, twice = parse_json(decode_text(line, kind=KIND, where=where), kind=KIND, where=where)
        if twice:
            self.refuse(f"{twice[0].partition(';')[0]}; leave one out")
        if not isinstance(told, dict):
            self.refuse("must be a JSON object")
        return told

    def refuse(self, problem: str) -> NoReturn:
        """The newest line cannot be taken, and with it none."""
        raise FormatError(KIND, f"{self._where}: line {self.number}: {problem}")


def _is_header(told: Mapping[str, Any]) -> bool:
    named = any(key in told for key in ("user_name", "character_name", "chat_metadata"))
    return named and not _is_message(told)


def _is_message(told: Mapping[str, Any]) -> bool:
    return isinstance(told.get("mes"), str)


def _message(lines: _Lines, told: Mapping[str, Any]) -> ChatMessage:
    text = told.get("mes")
    if not isinstance(text, str):
        lines.refuse("mes must be what was said, as a text; is this a chat of SillyTavern?")
    swipes = told.get("swipes")
    if swipes is not None and not isinstance(swipes, list):
        lines.refuse("swipes must be a list")
    if swipes and len(swipes) > lines.limits.swipes:
        lines.refuse(f"it has {len(swipes)} swipes and may have {lines.limits.swipes}")
    extra = told.get("extra")
    is_narrator = isinstance(extra, dict) and extra.get("type") == NARRATOR
    return ChatMessage(
        line=lines.number,
        name=_text_of(lines, told, "name"),
        text=text,
        is_user=_flag(lines, told, "is_user"),
        is_hidden=_flag(lines, told, "is_system"),
        is_narrator=is_narrator,
        swipes=len(swipes or ()),
        raw=told,
    )


def _text_of(lines: _Lines, told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    if value is not None and not isinstance(value, str):
        lines.refuse(f"{key} must be a text")
    return value or ""


def _flag(lines: _Lines, told: Mapping[str, Any], key: str) -> bool:
    """A yes or no; the app also writes null where it means no."""
    value = told.get(key)
    if value is not None and not isinstance(value, bool):
        lines.refuse(f"{key} must be true or false, not {one_line(repr(value))[:40]}")
    return bool(value)


def _speaker(in_header: object, of_lines: list[str]) -> str:
    """Return the user's name; `of_lines` has a name for each of the user's lines, or ""."""
    named = in_header if isinstance(in_header, str) and in_header != _NOBODY else ""
    if named in of_lines or not any(of_lines):
        return named
    return named if named and "" in of_lines else next(filter(None, of_lines))


def _character(in_header: object, of_lines: list[str]) -> str:
    """Return the character's name; `of_lines` has a name for each line of others, or ""."""
    named = in_header if isinstance(in_header, str) and in_header != _NOBODY else ""
    if named and ("" in of_lines or named in of_lines):
        return named
    known = {name for name in of_lines if name}
    return known.pop() if len(known) == 1 else ""


def left_in_file(chat: Chat) -> tuple[str, ...]:
    """Return a sentence for each thing that an import leaves out, such as the chat's note.

    The header keeps them, and an export gives them back.
    """
    told = (chat.header or {}).get("chat_metadata")
    data = told if isinstance(told, dict) else {}
    found: list[str] = []
    note = data.get("note_prompt")
    if isinstance(note, str) and note.strip():
        how = ", ".join(
            f"{word} {data[name]}"
            for word, name in (("depth", "note_depth"), ("every", "note_interval"))
            if type(data.get(name)) is int
        )
        text = clipped(one_line(note), _SHOWN_NOTE)
        found.append(f"its author's note stays in the file{f' ({how})' if how else ''}: {text}")
    world = data.get("world_info")
    if isinstance(world, str) and world.strip():
        found.append(
            f"its lorebook '{one_line(world)[:60]}' is not attached: lore/attach does that"
        )
    timers = data.get("timedWorldInfo")
    kinds = timers if isinstance(timers, dict) else {}
    counts = [
        f"{len(kinds[kind])} {kind}"
        for kind in ("sticky", "cooldown")
        if isinstance(kinds.get(kind), dict) and kinds[kind]
    ]
    if counts:
        found.append(f"its timers of lore entries ({', '.join(counts)}) begin anew")
    variables = data.get("variables")
    if isinstance(variables, dict) and variables:
        found.append(f"its variables ({len(variables)}) stay in the file")
    return tuple(found)
