"""How foreign entries become ours: Card V3 and V2 entries, and those of SillyTavern's world files.

Each format is checked once and turned into `_Fields`, one vocabulary for both; then the decorators
of the content are applied, which win over fields. Standard: Card V3, "Lorebook". The extension
data that SillyTavern writes into card entries counts where it is about place, role or matching.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

from evennia_ai.lorebook.decorators import POSITIONS, Decorated, read_decorators, whole_number
from evennia_ai.lorebook.entries import Gates, Logic, LoreEntry, Position
from evennia_ai.lorebook.foreign import as_format_error, one_line
from evennia_ai.prompt.components import MAX_CONTENT, MAX_DEPTH
from evennia_ai.prompt.errors import FormatError
from evennia_ai.prompt.messages import Role
from evennia_ai.prompt.template import compile_template

DEFAULT_DEPTH: Final = 4
_DELIMITED: Final = re.compile(r"/(?:[^/\\]|\\.)+/[a-z]*", re.DOTALL)
_LOGICS: Final[tuple[Logic, ...]] = ("any", "not_all", "not_any", "all")
_ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant")
_V3_POSITIONS: Final[Mapping[str, Position]] = {"before_char": "before", "after_char": "after"}
_WORLD_POSITIONS: Final[Mapping[int, Position]] = {0: "before", 1: "after", 4: "depth"}
_OTHER_POSITIONS: Final[Mapping[int, str]] = {
    2: "a place around the author's note",
    3: "a place around the author's note",
    5: "a place around the examples",
    6: "a place around the examples",
    7: "outlets",
}


def _number(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise PydanticCustomError("number", "must be a number")


def _identifier(value: Any) -> str:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(_number(value))


def _keys(value: Any) -> list[str]:
    """A list of keys; one text with commas is taken for a list of them."""
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise PydanticCustomError("keys", "must be a list of texts")


Number = Annotated[float, PlainValidator(_number)]
Identifier = Annotated[str, PlainValidator(_identifier)]
Keys = Annotated[list[str], PlainValidator(_keys)]
Content = Annotated[str, Field(max_length=MAX_CONTENT)]


class _V3Entry(BaseModel):
    """An entry of a Card V3 or V2 book."""

    model_config = ConfigDict(strict=True, frozen=True)

    keys: list[str] = []
    content: Content = ""
    extensions: dict[str, Any] | None = None
    enabled: bool = True
    insertion_order: Number = 100
    case_sensitive: bool | None = None
    use_regex: bool | None = None
    constant: bool | None = None
    name: str | None = None
    priority: Number | None = None
    id: Identifier | None = None
    comment: str | None = None
    selective: bool | None = None
    secondary_keys: Keys | None = None
    position: str | None = None


class _WorldEntry(BaseModel):
    """An entry of a SillyTavern world file."""

    model_config = ConfigDict(strict=True, frozen=True)

    uid: Identifier | None = None
    key: list[str] = []
    keysecondary: list[str] | None = None
    comment: str | None = None
    content: Content = ""
    constant: bool | None = None
    selective: bool | None = None
    selectiveLogic: int | None = None  # noqa: N815  (their name)
    order: Number = 100
    position: int | None = None
    depth: int | None = None
    role: int | None = None
    disable: bool | None = None
    caseSensitive: bool | None = None  # noqa: N815
    matchWholeWords: bool | None = None  # noqa: N815
    scanDepth: int | None = None  # noqa: N815


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """What both formats say, in one vocabulary; `needs` names what this version does not do."""

    uid: str
    name: str
    keys: tuple[str, ...]
    secondary_keys: tuple[str, ...]
    logic: Logic = "any"
    enabled: bool
    constant: bool
    content: str
    position: Position
    depth: int | None = None
    role: Role = "system"
    order: float
    priority: float
    case_sensitive: bool | None = None
    match_whole_words: bool | None = None
    scan_depth: int | None = None
    needs: str = ""
    notices: tuple[str, ...] = ()


def read_entry(
    raw: Any, *, label: str, index: int, default_uid: str, where: str
) -> tuple[LoreEntry, tuple[str, ...]]:
    """The entry and the notices about it; FormatError names the field that is wrong."""
    if not isinstance(raw, dict):
        raise FormatError("book", f"{where}: must be an object")
    read = _from_world if "key" in raw and "keys" not in raw else _from_v3
    try:
        fields = read(raw, default_uid)
    except ValidationError as error:
        raise as_format_error(error, kind="book", where=where) from error
    return _entry(fields, label=label, index=index)


def _from_v3(raw: Mapping[str, Any], default_uid: str) -> _Fields:
    entry = _V3Entry.model_validate(raw)
    extensions = _extras(entry.extensions or {})
    keys = _trimmed(entry.keys)
    notices: list[str] = []
    use_regex = bool(entry.use_regex)
    if use_regex and _APP_DATA & extensions.keys() and not _delimited(keys):
        use_regex = False  # SillyTavern exports every entry with the flag set
        notices.append("use_regex is set, but no key is a /pattern/: they are taken as words")
    if isinstance(raw.get("secondary_keys"), str):
        notices.append("secondary_keys is one text: split at its commas")
    if entry.position and entry.position not in _V3_POSITIONS:
        notices.append(
            f"position '{one_line(entry.position)[:60]}' is not known: after_char counts"
        )
    fields = _Fields(
        uid=default_uid if entry.id is None else entry.id,
        name=entry.comment or entry.name or "",
        keys=keys,
        secondary_keys=_trimmed(entry.secondary_keys or []) if entry.selective else (),
        enabled=entry.enabled,
        constant=bool(entry.constant),
        content=entry.content,
        position=_V3_POSITIONS.get(entry.position or "", "after"),
        order=entry.insertion_order,
        priority=entry.insertion_order if entry.priority is None else entry.priority,
        case_sensitive=entry.case_sensitive,
        needs="regex keys" if use_regex else _needs(keys, extensions),
        notices=tuple(notices),
    )
    return _with_extensions(fields, extensions)


def _with_extensions(fields: _Fields, extras: Mapping[str, Any]) -> _Fields:
    """The fields with what SillyTavern says about the same entry in its extension data."""
    more: dict[str, Any] = {}
    position, logic, depth = (_int(extras, n) for n in ("position", "selectivelogic", "scandepth"))
    if position is not None:
        more |= _placed(position, _int(extras, "depth"), _int(extras, "role"), fields.needs)
    if logic is not None and 0 <= logic < len(_LOGICS):
        more["logic"] = _LOGICS[logic]
    if depth is not None:
        more["scan_depth"] = max(depth, 0)
    if isinstance(extras.get("matchwholewords"), bool):
        more["match_whole_words"] = extras["matchwholewords"]
    if fields.case_sensitive is None and isinstance(extras.get("casesensitive"), bool):
        more["case_sensitive"] = extras["casesensitive"]
    return replace(fields, **more) if more else fields


def _from_world(raw: Mapping[str, Any], default_uid: str) -> _Fields:
    entry = _WorldEntry.model_validate(raw)
    keys = _trimmed(entry.key)
    logic = entry.selectiveLogic or 0
    needs = _needs(keys, _extras(raw))
    if _delimited(keys) or _delimited(entry.keysecondary or ()):
        needs = "regex keys"
    elif not 0 <= logic < len(_LOGICS):
        needs, logic = f"selectiveLogic {logic}", 0
    fields = _Fields(
        uid=default_uid if entry.uid is None else entry.uid,
        name=entry.comment or "",
        keys=keys,
        secondary_keys=_trimmed(entry.keysecondary or []) if entry.selective else (),
        logic=_LOGICS[logic],
        enabled=not entry.disable,
        constant=bool(entry.constant),
        content=entry.content,
        position="before",
        order=entry.order,
        priority=entry.order,
        case_sensitive=entry.caseSensitive,
        match_whole_words=entry.matchWholeWords,
        scan_depth=None if entry.scanDepth is None else max(entry.scanDepth, 0),
        needs=needs,
    )
    return replace(fields, **_placed(entry.position or 0, entry.depth, entry.role, needs))


def _placed(position: int, depth: int | None, role: int | None, needs: str) -> dict[str, Any]:
    """The fields that say where an entry of SillyTavern's numbers stands."""
    if position not in _WORLD_POSITIONS:
        other = _OTHER_POSITIONS.get(position, f"position {position}")
        return {"needs": needs or other}
    return {
        "position": _WORLD_POSITIONS[position],
        "depth": DEFAULT_DEPTH if depth is None else depth,
        "role": _ROLES[role] if role is not None and 0 <= role < len(_ROLES) else "system",
    }


def _int(extras: Mapping[str, Any], name: str) -> int | None:
    value = extras.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _entry(fields: _Fields, *, label: str, index: int) -> tuple[LoreEntry, tuple[str, ...]]:
    head = read_decorators(fields.content)
    scan_depth = head.value("scan_depth")
    position, depth, from_oldest = _place(fields, head)
    entry = LoreEntry(
        uid=fields.uid,
        index=index,
        origin=f"lore:{label}#{fields.uid}",
        name=fields.name,
        keys=fields.keys,
        secondary_keys=fields.secondary_keys,
        logic=fields.logic,
        enabled=fields.enabled,
        constant=fields.constant,
        template=compile_template(head.text, trust="imported"),
        position=position,
        depth=depth,
        from_oldest=from_oldest,
        role=_role(fields, head),
        order=fields.order,
        priority=fields.priority,
        first_to_go=head.has("ignore_on_max_context"),
        case_sensitive=fields.case_sensitive,
        match_whole_words=fields.match_whole_words,
        scan_depth=fields.scan_depth if scan_depth is None else whole_number(scan_depth),
        gates=_gates(head),
        decorators=head.decorators,
        refused=f"needs {fields.needs}, which this version does not have" if fields.needs else None,
    )
    return entry, (*fields.notices, *head.notices)


def _place(fields: _Fields, head: Decorated) -> tuple[Position, int | None, bool]:
    """Position, depth clamped to what a depth can be, and whether it counts from the oldest."""
    named = head.value("position")
    if named is not None:
        return POSITIONS[named], None, False
    for name, from_oldest in (("depth", False), ("reverse_depth", True)):
        depth = head.value(name)
        if depth is not None:
            return "depth", _clamped(whole_number(depth)), from_oldest
    if fields.position != "depth":
        return fields.position, None, False
    return "depth", _clamped(DEFAULT_DEPTH if fields.depth is None else fields.depth), False


def _role(fields: _Fields, head: Decorated) -> Role:
    wanted = head.value("role")
    return next((role for role in _ROLES if role == wanted), fields.role)


def _gates(head: Decorated) -> Gates:
    def number(name: str) -> int | None:
        value = head.value(name)
        return None if value is None else whole_number(value)

    return Gates(
        forced=head.has("activate"),
        forbidden=head.has("dont_activate"),
        greeting=number("is_greeting"),
        replies_from=number("activate_only_after"),
        every_replies=number("activate_only_every"),
        additional=tuple(head.lists("additional_keys")),
        excluded=next(iter(head.lists("exclude_keys")), ()),
    )


def _clamped(depth: int) -> int:
    return min(max(depth, 0), MAX_DEPTH)


def _trimmed(keys: list[str]) -> tuple[str, ...]:
    """The keys without blanks around them; an empty key would match everything, so it is none."""
    return tuple(key for written in keys if (key := written.strip()))


def _delimited(keys: tuple[str, ...] | list[str]) -> bool:
    return any(_DELIMITED.fullmatch(key) for key in keys)


def _extras(raw: Mapping[str, Any]) -> dict[str, Any]:
    """SillyTavern's fields under one spelling: it writes each in two."""
    return {name.replace("_", "").lower(): value for name, value in raw.items()}


def _needs(keys: tuple[str, ...], extras: Mapping[str, Any]) -> str:
    """What the entry asks for and this version does not do, "" where it does all."""
    if any("{{" in key for key in keys):
        return "macros in keys"
    return next((what for what, asks in _NOT_DONE.items() if asks(extras)), "")


def _chance(extras: Mapping[str, Any]) -> bool:
    chance = extras.get("probability")
    if extras.get("useprobability") is False or not isinstance(chance, int | float):
        return False
    return chance < 100


def _any(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda extras: any(bool(extras.get(name)) for name in names)


def _filters(extras: Mapping[str, Any]) -> bool:
    wanted = extras.get("characterfilter")
    names = isinstance(wanted, dict) and bool(wanted.get("names") or wanted.get("tags"))
    return names or bool(extras.get("triggers"))


_NOT_DONE: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "chance (probability under 100)": _chance,
    "inclusion groups": _any("group"),
    "timed effects (sticky, cooldown, delay)": _any("sticky", "cooldown", "delay"),
    "recursion": _any("delayuntilrecursion"),
    "filters": _filters,
    "a place outside the budget": _any("ignorebudget"),
    "scanning of card fields": _any(
        "matchpersonadescription",
        "matchcharacterdescription",
        "matchcharacterpersonality",
        "matchcharacterdepthprompt",
        "matchscenario",
        "matchcreatornotes",
    ),
}
# Marks of an entry that SillyTavern wrote.
_APP_DATA: Final = frozenset(
    {
        "position",
        "displayindex",
        "excluderecursion",
        "probability",
        "selectivelogic",
        "useprobability",
    }
)
