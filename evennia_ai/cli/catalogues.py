"""`evennia-ai catalogue`: write, update and compile the translations of the texts for players.

The texts are found in the source of this package: literals in `Phrase(...)` and
`translatable(...)`, and the help of players' commands. A catalogue is a `.po` file, as programs for
translators write it. Django reads the `.mo` file, which is made here in Python, so no machine needs
GNU gettext.
"""

import ast
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from gettext import c2py
from inspect import cleandoc
from itertools import takewhile
from pathlib import Path
from typing import Final

import evennia_ai
from evennia_ai.cli.output import write_lines
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.language import NAMES, language_named

SOURCE: Final = Path(evennia_ai.__file__).parent
PROJECT: Final = "evennia_ai"
"""The game counts only catalogues with this project in the header; `languages.PROJECT`."""
_MARKS: Final = frozenset({"Phrase", "translatable"})
_PLAYERS: Final = "PlayersCommand"
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\[nrt"\\])*"')
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_UNESCAPED: Final = {written[1]: sign for sign, written in _ESCAPES.items()}
_TWO_FORMS: Final = "nplurals=2; plural=(n != 1);"
_PLURALS: Final = re.compile(r"Plural-Forms:\s*nplurals=(\d+);\s*plural=([^;]+);")
_MO_MAGIC: Final = 0x950412DE


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One text of a catalogue with its translation."""

    text: str
    plural: str = ""
    forms: tuple[str, ...] = ()
    """The translation: one form, or as many as the language has if there is a plural."""
    where: str = ""
    """The file that has the text. "" for a text that only the catalogue has."""

    @property
    def is_translated(self) -> bool:
        """True if every form is translated."""
        return bool(self.forms) and all(self.forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The content of a `.po` file."""

    header: str
    entries: tuple[Entry, ...]

    @property
    def form_count(self) -> int:
        """The number of plural forms of the language."""
        found = _PLURALS.search(self.header)
        return int(found[1]) if found else 2


def update(folder: Path, language: str) -> int:
    """Update the catalogue of a language in a folder from the source, and compile it.

    A catalogue that does not exist is made. Texts that only the catalogue has stay, because a game
    may have lines of its own.

    Raises:
        FormatError: The language is not known, or the file cannot be read or does not fit.
    """
    code = language_named(language)
    if not code:
        raise FormatError("language", f"'{language}' is no known language; write a code such as nl")
    place = folder / locale_name(code) / "LC_MESSAGES"
    path, known = place / "django.po", Catalogue(header=_header(code), entries=())
    if path.exists():
        known = read_catalogue(path.read_text(encoding="utf-8"), where=str(path))
    old = {one.text: one for one in known.entries}
    new = [replace(one, forms=_forms(old.pop(one.text, one), one)) for one in source_entries()]
    own = [replace(one, where="") for one in old.values() if not one.where or one.is_translated]
    made = replace(known, entries=(*new, *own))
    if problems := tuple(misfits(made)):
        raise FormatError("catalogue", f"{path}: {'; '.join(problems)}. Nothing was written.")
    place.mkdir(parents=True, exist_ok=True)
    path.write_text(catalogue_text(made), encoding="utf-8")
    path.with_suffix(".mo").write_bytes(compiled(made))
    missing = sum(not one.is_translated for one in made.entries)
    write_lines([f"{path}: {len(made.entries)} texts, {missing} not translated"])
    return 0


def locale_name(code: str) -> str:
    """Return the name of the folder that Django reads for a language, such as `zh_Hans`."""
    language, _, region = code.partition("-")
    region = region.capitalize() if len(region) > 2 else region.upper()
    return f"{language}_{region}" if region else language


def source_entries() -> list[Entry]:
    """Return the texts in the source of this package, without translations."""
    found: dict[str, Entry] = {}
    trees = {path: ast.parse(path.read_bytes()) for path in sorted(SOURCE.rglob("*.py"))}
    commands = _players_commands(trees.values())
    for path, tree in trees.items():
        for text, plural in _texts_in(tree, commands):
            if re.search(r"\w", _PLACEHOLDER.sub("", text)):
                where = path.relative_to(SOURCE).as_posix()
                found.setdefault(text, Entry(text=text, plural=plural, where=where))
    return list(found.values())


def _players_commands(trees: Iterable[ast.Module]) -> frozenset[str]:
    """Return the names of the classes of players' commands."""
    bases = {
        node.name: [ast.unparse(base) for base in node.bases]
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found: set[str] = {_PLAYERS}
    while more := {n for n, of in bases.items() if n not in found and found.intersection(of)}:
        found |= more
    return frozenset(found - {_PLAYERS})


def _texts_in(tree: ast.Module, commands: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a module, each with its plural or ""."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in commands:
            yield cleandoc(ast.get_docstring(node, clean=False) or ""), ""
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _MARKS and node.args:
            plural = [one.value for one in node.keywords if one.arg == "plural"]
            texts = [
                one.value
                for one in (node.args[0], *plural)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            if texts:
                yield texts[0], texts[1] if len(texts) > 1 else ""


def _forms(known: Entry, now: Entry) -> tuple[str, ...]:
    """Return the known translation, unless the text has got or lost its plural since."""
    return known.forms if bool(known.plural) == bool(now.plural) else ()


def misfits(catalogue: Catalogue) -> Iterator[str]:
    """Yield what is wrong with the translations of a catalogue."""
    found = _PLURALS.search(catalogue.header)
    if found is None:
        yield "the header has no line Plural-Forms: nplurals=<number>; plural=<expression>;"
        return
    try:
        c2py(found[2])
    except ValueError as error:
        yield f"the plural expression cannot be read ({error})"
    for one in catalogue.entries:
        wanted = set(_PLACEHOLDER.findall(one.text + one.plural))
        for form in filter(None, one.forms):
            placed = set(_PLACEHOLDER.findall(form))
            if extra := sorted(placed - wanted):
                yield f"{form!r} has {{{extra[0]}}}, which {one.text!r} does not have"
            if "{" in _PLACEHOLDER.sub("", form) or "}" in _PLACEHOLDER.sub("", form):
                yield f"{form!r} has a brace that belongs to no name"
            lost = wanted - placed - ({"number"} if one.plural else set())
            if lost:
                yield f"{form!r} lacks {{{sorted(lost)[0]}}} of {one.text!r}"
        if one.plural and len(one.forms) not in (0, catalogue.form_count):
            yield f"{one.text!r} must have {catalogue.form_count} forms"


def _header(code: str) -> str:
    return (
        f"Project-Id-Version: {PROJECT}\nLanguage: {locale_name(code)}\n"
        f"Language-Name: {NAMES[code]}\nMIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n"
        f"Plural-Forms: {_TWO_FORMS}\n"
    )


def catalogue_text(catalogue: Catalogue) -> str:
    """Return the text of a `.po` file."""
    blocks = [f'msgid ""\nmsgstr {_quoted(catalogue.header)}']
    for one in catalogue.entries:
        lines = [f"#: {one.where}"] if one.where else ["# a text of the game"]
        lines.append(f"msgid {_quoted(one.text)}")
        if one.plural:
            lines.append(f"msgid_plural {_quoted(one.plural)}")
            forms = one.forms or ("",) * catalogue.form_count
            lines += [f"msgstr[{at}] {_quoted(form)}" for at, form in enumerate(forms)]
        else:
            lines.append(f"msgstr {_quoted(one.forms[0] if one.forms else '')}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _quoted(text: str) -> str:
    lines = text.splitlines(keepends=True)
    quoted = ['"' + "".join(_ESCAPES.get(sign, sign) for sign in line) + '"' for line in lines]
    return "\n".join(['""', *quoted]) if len(quoted) > 1 else "".join(quoted) or '""'


def read_catalogue(text: str, *, where: str) -> Catalogue:
    """Read a `.po` file. Fuzzy translations count as missing, and obsolete entries are left out.

    Raises:
        FormatError: A line is none of a `.po` file. The message names it.
    """
    header, entries = "", []
    for number, block in _blocks(text):
        fields: dict[str, str] = {}
        name = place = ""
        is_fuzzy = False
        for at, line in enumerate(block, start=number):
            if line.startswith("#"):
                is_fuzzy = is_fuzzy or (line.startswith("#,") and "fuzzy" in line)
                place = place or line.removeprefix("#: ") * line.startswith("#: ")
                continue
            word, blank, rest = line.partition(" ")
            if line.startswith('"'):
                rest = line
            elif blank and re.fullmatch(r"msgid|msgid_plural|msgstr(\[\d\])?", word):
                name = word
            else:
                raise FormatError("catalogue", f"{where}: line {at} is not understood: {line[:60]}")
            if not name or not _STRING.fullmatch(rest.strip()):
                raise FormatError("catalogue", f"{where}: line {at} needs one text in quotes")
            fields[name] = fields.get(name, "") + _unquoted(rest.strip())
        if "msgid" not in fields:
            continue
        forms = tuple(form for name, form in sorted(fields.items()) if name.startswith("msgstr"))
        if not fields["msgid"]:
            header = forms[0] if forms else ""
            continue
        known = forms if any(forms) and not is_fuzzy else ()
        plural = fields.get("msgid_plural", "")
        entries.append(Entry(text=fields["msgid"], plural=plural, forms=known, where=place))
    return Catalogue(header=header, entries=tuple(entries))


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the blocks between empty lines, each with the number of its first line."""
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if line.strip():
            rest = takewhile(lambda one: bool(one[1].strip()), lines)
            yield number, [line, *(following for _, following in rest)]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _UNESCAPED[found[1]], text[1:-1])


def compiled(catalogue: Catalogue) -> bytes:
    """Return the `.mo` file of a catalogue, with the texts that are translated."""
    texts = {b"": catalogue.header.encode()}
    for one in catalogue.entries:
        if one.is_translated:
            key = f"{one.text}\0{one.plural}" if one.plural else one.text
            texts[key.encode()] = "\0".join(one.forms).encode()
    keys = sorted(texts)
    start = 28 + 16 * len(keys)
    tables: list[int] = []
    data = b""
    for column in (keys, [texts[key] for key in keys]):
        for text in column:
            tables += [len(text), start + len(data)]
            data += text + b"\0"
    head = (_MO_MAGIC, 0, len(keys), 28, 28 + 8 * len(keys), 0, start)
    return struct.pack(f"<7I{len(tables)}I", *head, *tables) + data
