"""Recognise about forty kinds of files by their content, to explain why a file is refused.

Files of different programs often look alike. Every reader that refuses a file asks this module for
its kind, so that all errors use the same names. Most files are recognised by the names of their
JSON members. A wrong guess only makes one sentence of an error message wrong.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import decode_text, parse_json

Use = Literal["card", "book", "preset", "chat"]
"""The name of the reader of this package that can load a file."""
_HOW: Final[Mapping[Use, str]] = {
    "card": "import it as a card",
    "book": "import it as a lorebook",
    "preset": "import it as a preset",
    "chat": "import it with ai/import or `evennia-ai history import`",
}
_TEXT_COMPLETION: Final = "it is for text completion, and this package sends chats"
_OF_THE_APP: Final = "only that application uses it"
_REGEX: Final = "import it into a game with regex/import"
_MOST_LOOKED_AT: Final = 20
_LARGEST: Final = 16 * 1024 * 1024
"""The largest file in bytes that is recognised.

Recognising a file parses all of its JSON, which would take too long for larger ones.
"""


class FileKind(NamedTuple):
    """A kind of file, with the reader that loads it or advice for the person who has the file."""

    name: str
    use: Use | None = None
    advice: str = ""

    def __str__(self) -> str:
        how = self.advice or (_HOW[self.use] if self.use else "")
        return f"this is {self.name}: {how}"


def _has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that is True for JSON objects with all of these members."""
    return lambda data: all(name in data for name in names)


def _has_type(name: str, *kinds: type) -> Callable[[Mapping[str, Any]], bool]:
    return lambda data: isinstance(data.get(name), kinds)


def is_card_v1(data: Mapping[str, Any]) -> bool:
    """True if a JSON object has a name and another text of a V1 card.

    An object with entries needs more than a name and a description, which lorebooks have too.
    """
    texts = {"description", "personality", "scenario", "first_mes", "mes_example"}
    if isinstance(data.get("entries"), list | dict):
        texts.remove("description")
    return "name" in data and not texts.isdisjoint(data)


_AI_DUNGEON: Final = FileKind(
    "an AI Dungeon world", None, "write its cards as entries with keys and content"
)
# Tests for JSON objects. The first matching row decides. Some formats contain their own name and
# come first. Otherwise a row that only compares the names of members could match them.
_OBJECTS: Final[tuple[tuple[Callable[[Mapping[str, Any]], bool], FileKind], ...]] = (
    (
        lambda data: str(data.get("spec")).startswith("chara_card"),
        FileKind("a character card", "card"),
    ),
    (lambda data: data.get("spec") == "lorebook_v3", FileKind("a lorebook of Card V3", "book")),
    (_has("lorebookVersion", "entries"), FileKind("a NovelAI lorebook", "book")),
    (lambda data: data.get("kind") == "memory", FileKind("an Agnai memory book", "book")),
    (
        lambda data: data.get("type") == "risu" and isinstance(data.get("data"), list),
        FileKind("a RisuAI lorebook", "book"),
    ),
    (
        lambda data: data.get("type") == "risuModule",
        FileKind("a module of RisuAI", None, "export only its lorebook from RisuAI"),
    ),
    (
        _has("mainPrompt", "jailbreak"),
        FileKind("a preset of RisuAI", None, "write its texts as components"),
    ),
    (
        _has("scenarioVersion"),
        FileKind("a NovelAI scenario", None, "put its member `lorebook` into a file of its own"),
    ),
    (
        _has("storyContainerVersion"),
        FileKind("a NovelAI story", None, "export only its lorebook from NovelAI"),
    ),
    (_has("storyCards"), _AI_DUNGEON),
    (_has("worldInfo"), _AI_DUNGEON),
    (
        _has("gamestarted", "actions"),
        FileKind("a saved story of KoboldAI", None, "it cannot be imported"),
    ),
    (_has("findRegex", "replaceString"), FileKind("a SillyTavern regex script", None, _REGEX)),
    (
        lambda data: data.get("type") == "script" and "content" in data,
        FileKind("a script of TavernHelper", None, "scripts in files are never run"),
    ),
    (_has("blur_strength", "main_text_color"), FileKind("a SillyTavern theme", None, _OF_THE_APP)),
    (
        lambda data: len(data.keys() & {"instruct", "context", "sysprompt", "preset"}) > 1,
        FileKind("a master export of SillyTavern", None, _TEXT_COMPLETION),
    ),
    (_has("movingUIState"), FileKind("a SillyTavern panel layout", None, _OF_THE_APP)),
    (_has("qrList"), FileKind("a set of SillyTavern quick replies", None, _OF_THE_APP)),
    (_has("quickReplySlots"), FileKind("a set of SillyTavern quick replies", None, _OF_THE_APP)),
    (
        _has("power_user"),
        FileKind("the settings of SillyTavern", None, "import its personas with import-folder"),
    ),
    (
        _has("personas", "persona_descriptions"),
        FileKind(
            "a backup of SillyTavern personas",
            None,
            "players write their own with the command persona",
        ),
    ),
    (
        lambda data: any(name.startswith("api_key_") for name in data),
        FileKind("a file of keys", None, "it is never imported; keep it secret"),
    ),
    (_has("members", "chat_id"), FileKind("a SillyTavern group", None, _OF_THE_APP)),
    (
        _has("input_sequence", "output_sequence"),
        FileKind("a SillyTavern instruct template", None, _TEXT_COMPLETION),
    ),
    (_has("story_string"), FileKind("a SillyTavern context template", None, _TEXT_COMPLETION)),
    (
        _has("prefix", "suffix", "separator"),
        FileKind("a SillyTavern reasoning template", None, _OF_THE_APP),
    ),
    (_has_type("prompts", list), FileKind("a SillyTavern preset for chat completion", "preset")),
    (_has_type("prompt_order", list), FileKind("a SillyTavern preset", "preset")),
    (
        lambda data: "rep_pen" in data and ("temp" in data or "temperature" in data),
        FileKind("a preset for text completion", None, _TEXT_COMPLETION),
    ),
    (
        _has("repetition_penalty", "temperature"),
        FileKind("a preset for text completion", None, _TEXT_COMPLETION),
    ),
    (
        lambda data: data.get("kind") == "preset" or "presetVersion" in data,
        FileKind("a preset of Agnai or NovelAI", None, _TEXT_COMPLETION),
    ),
    (
        lambda data: (
            isinstance(data.get("mes"), str)
            or ("character_name" in data and "chat_metadata" in data)
            or ("character_name" in data and "user_name" in data)
        ),
        FileKind("a SillyTavern chat", "chat"),
    ),
    (
        _has("internal", "visible"),
        FileKind("a chat of text-generation-webui", None, "it cannot be imported"),
    ),
    (_has("histories"), FileKind("a chat of Character.AI", None, "it cannot be imported")),
    (is_card_v1, FileKind("a character card", "card")),
    (
        _has("char_name", "char_persona"),
        FileKind(
            "a character of text-generation-webui",
            None,
            "rename char_name, char_persona and char_greeting to name, description and first_mes",
        ),
    ),
    (
        _has("name", "greeting", "context"),
        FileKind(
            "a character of text-generation-webui",
            None,
            "write it as JSON with name, description (its context) and first_mes (its greeting)",
        ),
    ),
    (
        lambda data: data.get("kind") == "character",
        FileKind("a character of Agnai", None, "export it from Agnai as a character card"),
    ),
    (_has_type("entries", dict), FileKind("a SillyTavern world file", "book")),
    (_has_type("entries", list), FileKind("a lorebook", "book")),
    (
        lambda data: data.keys() >= {"name", "content"} and len(data) <= 3,
        FileKind(
            "a SillyTavern system prompt", None, "copy its text with component/edit system_prompt"
        ),
    ),
)
_LISTS: Final = (
    (_has("keys", "entry"), _AI_DUNGEON),
    (_has("keys", "value"), _AI_DUNGEON),
    (_has("findRegex", "replaceString"), FileKind("SillyTavern regex scripts", None, _REGEX)),
    (
        _has("keys", "content"),
        FileKind("a bare list of lore entries", None, 'put it into {"entries": [...]}'),
    ),
    (
        _has("mes"),
        FileKind("the messages of a chat", None, "a chat file has one message on each line"),
    ),
)


def kind_of_value(value: Any) -> FileKind | None:
    """Return the kind of a file from its JSON value, None if it is unknown."""
    if isinstance(value, Mapping):
        return next((kind for fits, kind in _OBJECTS if fits(value)), None)
    if not isinstance(value, list) or not value:
        return None
    some = [item for item in value[:_MOST_LOOKED_AT] if isinstance(item, Mapping)]
    return next((kind for fits, kind in _LISTS if some and all(map(fits, some))), None)


def kind_of_file(content: bytes) -> FileKind | None:
    """Return the kind of a file from its bytes, None if it is unknown."""
    if len(content) > _LARGEST:
        return None
    if content.startswith(_PNG):
        return _kind_of_png(content)
    if content.startswith(_PICTURES):
        return FileKind("a picture of another kind", "card", "a card is in a PNG")
    if content.startswith(b"PK\x03\x04"):
        return FileKind("an archive", "card")
    try:
        return _kind_of_text(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


def _kind_of_text(text: str) -> FileKind | None:
    # Try the whole text as JSON, then its first line: a chat file has one JSON object in each line.
    for part in (text, text.lstrip().partition("\n")[0]):
        try:
            found = kind_of_value(json.loads(part))
        except (ValueError, RecursionError):
            continue
        return found if part is text or (found and found.use == "chat") else None
    # text-generation-webui saves characters as YAML. The top-level names identify such a file, so
    # this does not parse it.
    names = {line.partition(":")[0] for line in text.splitlines() if line[:1].isalpha()}
    return kind_of_value(dict.fromkeys(names)) if {"name", "greeting", "context"} <= names else None


_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PICTURES: Final = (b"\xff\xd8\xff", b"RIFF", b"GIF8", b"BM", b"\x00\x00\x00")
_TEXT_CHUNKS: Final = (b"tEXt", b"zTXt", b"iTXt")


def _kind_of_png(content: bytes) -> FileKind:
    """Return the kind of a PNG picture, from the keywords of its text chunks."""
    keywords: set[bytes] = set()
    at = len(_PNG)
    while at + 8 <= len(content):
        length, name = int.from_bytes(content[at : at + 4]), content[at + 4 : at + 8]
        if name in _TEXT_CHUNKS:
            keywords.add(content[at + 8 : at + 88].partition(b"\0")[0].lower())
        at += 12 + length
    if b"naidata" in keywords:
        advice = "export it from NovelAI as a .lorebook file"
        return FileKind("a NovelAI lorebook in a picture", None, advice)
    if keywords & {b"chara", b"ccv3"}:
        return FileKind("a character card in a picture", "card")
    return FileKind("a picture without a card", "card", "download the card again from its source")


def describe_value(value: Any, *, wanted: Use) -> str:
    """Return a sentence that names the kind of a JSON value, "" if unknown or as wanted."""
    return _describe(kind_of_value(value), wanted)


def describe_file(content: bytes, *, wanted: Use) -> str:
    """Return a sentence that names the kind of a file, "" if unknown or as wanted."""
    return _describe(kind_of_file(content), wanted)


def _describe(kind: FileKind | None, wanted: Use) -> str:
    return "" if kind is None or kind.use == wanted else str(kind)


def json_of_file(content: bytes, *, wanted: Use, where: str) -> tuple[Any, tuple[str, ...]]:
    """Parse a file as JSON, and return its value and a notice for each duplicate member.

    Raises:
        FormatError: the file is not JSON in UTF-8; the message names its kind if that is known.
    """
    if not content.strip():
        raise FormatError(wanted, f"{where}: the file is empty; download it again")
    try:
        return parse_json(decode_text(content, kind=wanted, where=where), kind=wanted, where=where)
    except FormatError as error:
        if other_kind := describe_file(content, wanted=wanted):
            raise FormatError(wanted, f"{where}: {other_kind}") from error
        raise
