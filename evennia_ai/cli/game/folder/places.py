"""The files in a user's data folder of SillyTavern: which can be imported, and which cannot.

Files are only listed here. A folder that is not SillyTavern's may contain loose files: cards and
lorebooks from any program.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from evennia_ai.engine.errors import FormatError

Kind = Literal["world", "card", "group", "chat", "group chat", "persona", "preset", "loose"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
KIND: Final = "folder"

CARDS: Final = "characters"
WORLDS: Final = "worlds"
CHATS: Final = "chats"
GROUPS: Final = "groups"
GROUP_CHATS: Final = "group chats"
PRESETS: Final = "OpenAI Settings"
SETTINGS: Final = "settings.json"
CARD_FILES: Final = (".png", ".json", ".charx", ".jpg", ".jpeg")
CHAT_FILES: Final = (".jsonl",)
MOST_FILES: Final = 200_000

# SillyTavern's folders in the order of the import: a chat needs the card of its NPC.
_PLACES: Final[Mapping[str, tuple[Kind, tuple[str, ...]]]] = {
    WORLDS: ("world", (".json",)),
    CARDS: ("card", CARD_FILES),
    PRESETS: ("preset", (".json",)),
    GROUPS: ("group", (".json",)),
    CHATS: ("chat", CHAT_FILES),
    GROUP_CHATS: ("group chat", CHAT_FILES),
}
_TEXT_COMPLETION: Final = "for text completion; prompts here are chats"
_LOOKS: Final = "the look of SillyTavern; not used here"
_OTHERS: Final[Mapping[str, str]] = {
    "User Avatars": "pictures of personas; a persona here is a text",
    "TextGen Settings": _TEXT_COMPLETION,
    "KoboldAI Settings": _TEXT_COMPLETION,
    "NovelAI Settings": _TEXT_COMPLETION,
    "instruct": _TEXT_COMPLETION,
    "context": _TEXT_COMPLETION,
    "sysprompt": f"{_TEXT_COMPLETION}; component/edit system_prompt takes its text",
    "reasoning": "how a model's thinking is marked; profiles of models have that here",
    "QuickReplies": "buttons and scripts of SillyTavern",
    "extensions": "programs of SillyTavern",
    "vectors": "computed from chats; computed again here",
    "themes": _LOOKS,
    "movingUI": _LOOKS,
    "backgrounds": _LOOKS,
    "thumbnails": _LOOKS,
    "assets": "sounds and pictures of SillyTavern",
    "user": "pictures and files that were sent in chats",
    "backups": "copies of what is here already",
    "secrets.json": "keys of services; never opened",
    "stats.json": "counts of SillyTavern",
    "content.log": "a log of SillyTavern",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFile:
    """A file that may be imported. `where` is its path in the folder."""

    kind: Kind
    path: Path
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A file or folder that is not imported, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The files of a folder."""

    is_of_app: bool
    """True if it is a user's data folder of SillyTavern, not a folder of loose files."""
    files: tuple[FolderFile, ...]
    others: tuple[LeftOut, ...]


def places_in(folder: Path, *, shown: Path) -> Places:
    """Return the files of a folder, kind by kind. `shown` is the path as it was typed.

    Raises:
        FormatError: It is no folder, it contains the folders of several users, or it has too many
    files.
    """
    try:
        names = sorted(one.name for one in folder.iterdir())
    except OSError as error:
        problem = f"{shown}: cannot be read: {error.strerror or error}"
        raise FormatError(KIND, problem) from error
    users = [f"{shown / one}" for one in _users(folder)]
    if users:
        raise FormatError(KIND, f"{shown}: contains folders of users; name one: {', '.join(users)}")
    is_of_app = any(name in (*_PLACES, SETTINGS) for name in names)
    others = [LeftOut(where=name, why=_OTHERS[name]) for name in names if name in _OTHERS]
    found: list[FolderFile] = []
    for one in _listed(folder, names) if is_of_app else _loose(folder, names):
        if len(found) == MOST_FILES:
            raise FormatError(KIND, f"{shown}: more than {MOST_FILES} files; import it in parts")
        if isinstance(one, LeftOut):
            others.append(one)
        else:
            found.append(one)
    return Places(is_of_app=is_of_app, files=tuple(found), others=tuple(others))


def _users(folder: Path) -> list[str]:
    """Return the data folders of users in SillyTavern's own folder, or in its folder `data`."""
    for inner in (".", "data"):
        try:
            there = sorted(one for one in (folder / inner).iterdir() if one.is_dir())
        except OSError:
            continue
        found = [one.name for one in there if (one / CARDS).is_dir() and (one / SETTINGS).is_file()]
        if found:
            return [str(Path(inner) / name) for name in found]
    return []


def _listed(folder: Path, names: list[str]) -> Iterator[FolderFile | LeftOut]:
    for place, (kind, suffixes) in _PLACES.items():
        if place in names:
            yield from _under(folder, folder / place, kind, suffixes)
    if SETTINGS in names:
        yield from _file(folder, folder / SETTINGS, "persona")
    for name in names:
        if name not in _PLACES and name not in _OTHERS and name != SETTINGS and name[0] != ".":
            yield LeftOut(where=name, why="an unknown file or folder")


def _under(
    folder: Path, place: Path, kind: Kind, suffixes: tuple[str, ...]
) -> Iterator[FolderFile | LeftOut]:
    """Yield the files of one kind. Only chats are in a folder for each character."""
    for path in sorted(place.iterdir()):
        where = path.relative_to(folder).as_posix()
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            if kind == "chat":
                yield from _under(folder, path, kind, suffixes)
            elif kind == "card":
                yield LeftOut(where=where, why="pictures of a character; its card has a picture")
            else:
                yield LeftOut(where=where, why="a folder, where files are expected")
        elif path.suffix.lower() in suffixes:
            yield from _file(folder, path, kind)
        else:
            yield LeftOut(where=where, why=f"a file of this kind holds no {kind}")


def _loose(folder: Path, names: list[str]) -> Iterator[FolderFile | LeftOut]:
    for name in names:
        path = folder / name
        if path.is_dir():
            yield LeftOut(where=name, why="a folder that SillyTavern does not have")
        elif path.suffix.lower() in CARD_FILES:
            yield from _file(folder, path, "loose")
        elif path.suffix.lower() in CHAT_FILES:
            yield from _file(folder, path, "chat")
        elif name[0] != ".":
            yield LeftOut(where=name, why="a file of this kind holds neither a card nor a lorebook")


def _file(folder: Path, path: Path, kind: Kind) -> Iterator[FolderFile | LeftOut]:
    where = path.relative_to(folder).as_posix()
    if path.resolve() != folder.resolve() / where:
        # A link inside the folder is refused, too: it could lead to secrets.json, which is never
        # opened.
        yield LeftOut(where=where, why="a link; put the file itself there")
    elif not path.is_file():
        yield LeftOut(where=where, why="it is not a file")
    else:
        yield FolderFile(kind=kind, path=path, where=where)
