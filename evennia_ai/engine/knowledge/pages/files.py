"""Read folders of wiki pages: each file is a page, each folder is a namespace or a parent page.

The folders `Instructions/`, `Sources/` and `Talk/` contain the pages of these namespaces. All other
files are encyclopedia pages. Deeper folders become part of the title, as in
`Instructions/Core/Canon Policy.md`. `Talk/Sources/Ledger.md` is the talk page of `Sources:Ledger`.

`markup.py` parses text files. In a YAML file, the field `text` is the text, and all other fields
are metadata. The file `base.yaml` describes the knowledge base.

A folder is read completely or not at all. Nothing outside it is read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml

from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.foreign.documents import read_yaml
from evennia_ai.engine.knowledge.pages.markup import (
    MAX_TEXT,
    MarkupError,
    build_page,
    read_page,
)
from evennia_ai.engine.knowledge.pages.page import (
    MEDIATIONS,
    NAMESPACES,
    BaseInfo,
    MetaError,
    Namespace,
    Page,
    PageName,
    TitleError,
    page_name,
)

MAX_FILES: Final = 100_000
MAX_DEPTH: Final = 20
MAX_BYTES: Final = 4 * MAX_TEXT
_MOST_LISTED: Final = 20

_TEXTS: Final = frozenset({".md", ".txt", ".wiki"})
_YAML: Final = frozenset({".yaml", ".yml"})
_BASE: Final = frozenset({"base.yaml", "base.yml"})
_SPACES: Final[Mapping[str, Namespace]] = {one.lower(): one for one in NAMESPACES}

# The fields that base.yaml may have: for each the type, and a description of it for errors.
_BASE_FIELDS: Final[Mapping[str, tuple[type, str]]] = {
    "key": (str, "text"),
    "name": (str, "text"),
    "summary": (str, "text"),
    "topics": (list, "a list of texts"),
    "hint": (str, "text"),
    "keywords": (list, "a list of texts"),
    "restricted": (bool, "true or false"),
    "keeps_chunks": (bool, "true or false"),
    "direct_characters": (int, "a whole number"),
    "mediation": (str, "summary or hints"),
    "locks": (str, "text"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem:
    """A problem with a file in a folder of pages. `line` is None if `problem` names the line."""

    file: str
    problem: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''}: {self.problem}"


class ImportProblems(EvenniaAIError):  # noqa: N818  (it is several)
    """The error if files of a folder cannot be read as wiki pages. Then no file is imported."""

    def __init__(self, folder: str, problems: Sequence[FileProblem]) -> None:
        self.folder = folder
        self.problems = tuple(problems)
        lines = [f"  {problem}" for problem in self.problems[:_MOST_LISTED]]
        more = len(self.problems) - len(lines)
        lines += [f"  and {more} more"] if more > 0 else []
        head = f"{folder}: nothing was imported; correct this first"
        super().__init__("\n".join([head, *lines]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFolder:
    """A folder of wiki pages after reading: the knowledge base, its pages, and skipped files."""

    info: BaseInfo
    pages: tuple[Page, ...]
    skipped: tuple[str, ...] = ()


def read_folder(folder: Path, *, key: str = "") -> PageFolder:
    """Read a folder as a knowledge base, with its pages sorted by name.

    Args:
        folder: The folder.
        key: The key of the base. "" means the key in `base.yaml`, or else the name of the folder.

    Raises:
        ImportProblems: Some files are invalid. The error names each of them.
    """
    name = folder.resolve().name or "pages"
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "pages"
    info = BaseInfo(key=key or slug[:64], name=name)
    problems: list[FileProblem] = []
    pages: dict[tuple[Namespace, str], tuple[str, Page]] = {}
    skipped: list[str] = []
    for path in _files(folder, problems):
        file, suffix = path.relative_to(folder).as_posix(), path.suffix.lower()
        try:
            if file in _BASE:
                info = _base(info, _text(path), keeps_key=bool(key))
            elif suffix in _TEXTS | _YAML:
                page = _page(file, _text(path), is_yaml=suffix in _YAML)
                other = pages.setdefault((page.name.namespace, page.name.folded), (file, page))[0]
                if other != file:
                    problem = f"is the page '{page.name}', and so is {other}; remove one"
                    problems.append(FileProblem(file=file, problem=problem))
            else:
                skipped.append(file)
        except _FileError as error:
            problems.append(FileProblem(file=file, problem=error.problem, line=error.line))
    if problems:
        raise ImportProblems(str(folder), problems)
    found = sorted((page for _, page in pages.values()), key=lambda page: page.name)
    return PageFolder(info=info, pages=tuple(found), skipped=tuple(skipped))


def write_base_file(info: BaseInfo) -> str:
    """Return the text of `base.yaml` for a knowledge base. Default values are left out."""
    defaults = BaseInfo(key="", name="")
    written: dict[str, Any] = {}
    for field in _BASE_FIELDS:
        value = getattr(info, field)
        if value != getattr(defaults, field):
            written[field] = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(written, allow_unicode=True, sort_keys=False)


def file_of_page(name: PageName) -> PurePosixPath:
    """Return the path of the file for a wiki page, relative to the folder of the knowledge base.

    `read_folder` reads this page from a file with this path.

    Raises:
        TitleError: A part of the title cannot be a file name.
    """
    parts = name.title.split("/")
    space: list[str] = [] if name.namespace == "Main" else [name.namespace]
    about = _namespace_of(parts[0].partition(":")[0])
    if name.namespace == "Talk" and about and ":" in parts[0]:
        space, parts[0] = ["Talk", about], parts[0].partition(":")[2].strip()
    if name.namespace == "Main" and _namespace_of(parts[0]) and len(parts) > 1:
        space = ["Main"]
    wrong = [part for part in parts if part != part.strip() or part[:1] in {"", ".", "_"}]
    path = PurePosixPath(*space, *parts[:-1], f"{parts[-1]}.md")
    if wrong or len(path.name.encode()) > 255 or _name_of(path) != name:
        raise TitleError(f"the page '{name}' cannot be the name of a file; rename it")
    return path


class _FileError(Exception):
    """The error for one invalid file. `read_folder` collects all these errors."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem)


def _files(folder: Path, problems: list[FileProblem]) -> Iterator[Path]:
    """Yield the files of a folder and of its subfolders, sorted by name in each folder."""
    if not folder.is_dir():
        problems.append(FileProblem(file=".", problem="is not a folder; name an existing one"))
        return
    count = 0
    waiting = [folder]
    while waiting:
        for path in _entries(waiting.pop(), folder, problems):
            if path.is_dir():
                waiting.append(path)
                continue
            count += 1
            if count > MAX_FILES:
                many = f"has more than {MAX_FILES} files; split it"
                problems.append(FileProblem(file=".", problem=many))
                return
            yield path


def _entries(folder: Path, root: Path, problems: list[FileProblem]) -> Iterator[Path]:
    """Yield the files and folders in one folder, except those whose name begins with "." or "_"."""
    file = folder.relative_to(root).as_posix()
    if len(folder.relative_to(root).parts) > MAX_DEPTH:
        deep = f"is more than {MAX_DEPTH} folders deep; make it flatter"
        problems.append(FileProblem(file=file, problem=deep))
        return
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        problems.append(FileProblem(file=file, problem=f"cannot be read: {error.strerror}"))
        return
    for path in found:
        if path.name.startswith((".", "_")):
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            odd = "is a link or a device; put the file itself here"
            problems.append(FileProblem(file=path.relative_to(root).as_posix(), problem=odd))
            continue
        yield path


def _page(file: str, text: str, *, is_yaml: bool) -> Page:
    try:
        name = _name_of(PurePosixPath(file))
        return _yaml_page(name, text) if is_yaml else read_page(name, text)
    except MarkupError as error:
        raise _FileError(error.problem, error.line) from error
    except (MetaError, TitleError) as error:
        raise _FileError(str(error)) from error


def _yaml_page(name: PageName, source: str) -> Page:
    values = _mapping(source)
    text = values.pop("text", "")
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise _FileError(f"text must be a text of at most {MAX_TEXT} characters")
    return build_page(name, values, text)


def _name_of(file: PurePosixPath) -> PageName:
    """Return the name of the wiki page in the file with this path."""
    *above, _ = parts = [*file.parts[:-1], file.stem if file.suffix else file.name]
    namespace: Namespace = "Main"
    if above and (named := _namespace_of(above[0])):
        namespace, parts = named, parts[1:]
    title = "/".join(parts)
    if namespace == "Talk" and len(parts) > 1 and (about := _namespace_of(parts[0])):
        title = page_name("/".join(parts[1:]), default=about).full
    if namespace == "Main" and not above:
        return page_name(title)
    return page_name(f"{namespace}:{title}")


def _namespace_of(folder: str) -> Namespace | None:
    return _SPACES.get(folder.strip().lower())


def _base(info: BaseInfo, text: str, *, keeps_key: bool) -> BaseInfo:
    """Return the facts about a knowledge base with the changes that `base.yaml` makes."""
    values = _mapping(text)
    unknown = sorted(set(map(str, values)) - _BASE_FIELDS.keys())
    if unknown:
        raise _FileError(f"{unknown[0]} is not known; known are {', '.join(_BASE_FIELDS)}")
    for field, value in values.items():
        wanted, words = _BASE_FIELDS[field]
        texts = not isinstance(value, list) or all(isinstance(one, str) for one in value)
        is_kind = field != "mediation" or value in MEDIATIONS
        if type(value) is not wanted or not texts or not is_kind:
            raise _FileError(f"{field} must be {words}")
    if keeps_key:
        values.pop("key", None)
    fields: dict[str, Any] = {
        key: tuple(one) if isinstance(one, list) else one for key, one in values.items()
    }
    return replace(info, **fields)


def _mapping(source: str) -> dict[str, Any]:
    try:
        values = read_yaml(source, kind="page", where="the file")
    except FormatError as error:
        raise _FileError(error.message) from error
    if not isinstance(values, dict):
        raise _FileError("must hold fields with values")
    return values


def _text(path: Path) -> str:
    """Read the text of a file. Line breaks become line feeds."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _FileError(f"cannot be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise _FileError(f"is larger than {MAX_BYTES} bytes; split it")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _FileError("is not UTF-8 text; store it as UTF-8", line) from error
