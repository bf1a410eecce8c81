"""A preset file of SillyTavern -> Preset: lenient with what is odd in it, strict with its size.

Both forms of file are read: the preset, and the export of the prompt manager, which holds prompts
and their order alone. A field that cannot be what it is keeps its default and is told; a file that
is no preset, or is over a limit, is refused whole.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import check_plain, limit_notices, one_line
from evennia_ai.engine.foreign.fields import Must, find_wrong_field
from evennia_ai.engine.prompt.assembly.rules import MAX_TEXT, Names
from evennia_ai.engine.prompt.components import MAX_CONTENT, MAX_DEPTH, is_plain_int
from evennia_ai.engine.prompt.messages import TEXT_ROLES, Role
from evennia_ai.engine.prompt.templates.macros import check_macros
from evennia_ai.formats.file_kinds import json_of_file, told_of
from evennia_ai.formats.presets.preset import (
    DEFAULT_DEPTH,
    HISTORY,
    JAILBREAK,
    KIND,
    MAIN,
    OLD_KEYS,
    OWN,
    TEXT_DEFAULTS,
    OrderItem,
    Preset,
    PresetPrompt,
    PromptPosition,
    body_of,
    order_in,
)
from evennia_ai.formats.presets.secrets import without_secrets

MIB: Final = 1024 * 1024
MAX_ORDER: Final = 10**9
MOST_AFTER: Final = 440
"""Prompts that may stand after the history: so many IDs are free there."""
SECRETS: Final = "secrets were dropped"
"""How the notice about them begins."""
_AtLeast1 = Annotated[int, Field(ge=1), Must("at least 1")]
_NAMES: Final[Mapping[Any, Names | None]] = {-1: "none", 0: None, 1: "field", 2: "content"}
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_SLUG: Final = 56
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetLimits:
    """How large a preset may be; the largest that people share have 2 MB and 326 prompts."""

    file_bytes: _AtLeast1 = 8 * MIB
    prompts: _AtLeast1 = 2_000
    """Prompts of a file, and lines of its order."""
    content_characters: _AtLeast1 = MAX_CONTENT
    """Characters of one prompt."""

    def __post_init__(self) -> None:
        if wrong := find_wrong_field(self):
            raise ValueError(f"{wrong[0]}: must be {wrong[1]}")
        if self.content_characters > MAX_CONTENT:
            raise ValueError(f"content_characters: must be at most {MAX_CONTENT}, as components")


DEFAULT_LIMITS: Final = PresetLimits()


def read_preset(
    data: bytes | str | Mapping[str, Any], *, name: str, limits: PresetLimits = DEFAULT_LIMITS
) -> Preset:
    """The preset in a file's bytes, its text or its JSON value; `name` is that of the file.

    FormatError: it is no JSON, no preset, or over a limit.
    """
    source, told = _source(data, limits=limits)
    notices = list(told)
    if not any(key in body_of(source) for key in _PRESET_KEYS):
        problem = told_of(source, wanted="preset") or (
            "has neither `prompts` nor `prompt_order` nor another member of a preset for"
            " chat completion; text completion has presets of its own, which are not read"
        )
        raise FormatError(KIND, f"preset: {problem}")
    source, secrets = without_secrets(source)
    if secrets:
        notices.append(f"{SECRETS} and are not kept: {', '.join(limit_notices(secrets))}")
    prompts = _prompts(source, notices, limits=limits)
    texts = _texts(source, notices)
    written = [(f"preset.prompts '{one_line(p.identifier)[:60]}'", p.content) for p in prompts]
    check_macros([*written, *((f"preset.{name}", text) for name, text in texts.items())], kind=KIND)
    return Preset(
        name=name,
        prompts=prompts,
        order=_order(source, prompts, notices, limits=limits),
        texts=texts,
        names=_names(source, notices),
        squash=_flag(source, "squash_system_messages", notices),
        quotes=_flag(source, "wrap_in_quotes", notices),
        source=source,
        secrets=secrets,
        notices=limit_notices(notices),
    )


_PRESET_KEYS: Final = frozenset(
    {"prompts", "prompt_order", "chat_completion_source", "openai_max_context", *TEXT_DEFAULTS}
    | {*OLD_KEYS.values()}
)


def _source(
    data: bytes | str | Mapping[str, Any], *, limits: PresetLimits
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The file's JSON object, and notices of members written twice."""
    twice: tuple[str, ...] = ()
    value: Any = data
    if isinstance(data, bytes | str):
        size = len(data) if isinstance(data, bytes) else len(data.encode("utf-8", "replace"))
        if size > limits.file_bytes:
            raise FormatError(
                KIND, f"preset: has {size} bytes, more than {limits.file_bytes}; make it smaller"
            )
        content = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
        value, twice = json_of_file(content, wanted="preset", where="preset")
    else:
        check_plain(data, kind=KIND, where="preset")
    if not isinstance(value, Mapping):
        told = told_of(value, wanted="preset") or "must be a JSON object, as SillyTavern exports it"
        raise FormatError(KIND, f"preset: {told}")
    return value, twice


def _prompts(
    source: Mapping[str, Any], notices: list[str], *, limits: PresetLimits
) -> tuple[PresetPrompt, ...]:
    listed = body_of(source).get("prompts", [])
    if not isinstance(listed, list):
        raise FormatError(KIND, "preset.prompts: must be a list")
    if len(listed) > limits.prompts:
        raise FormatError(
            KIND, f"preset.prompts: there are {len(listed)}, more than {limits.prompts}"
        )
    keys = _Keys()
    made = [
        _Row(item, index, notices).prompt(keys, limits=limits) for index, item in enumerate(listed)
    ]
    prompts = [prompt for prompt in made if prompt is not None]
    times = Counter(prompt.identifier for prompt in prompts)
    notices += [
        f"{times[name]} prompts are called '{one_line(name)}'; the first counts"
        for name in times
        if times[name] > 1
    ]
    prompts += [_own(name, source, keys) for name in OWN if name not in times]
    return tuple(prompts)


def _own(identifier: str, source: Mapping[str, Any], keys: "_Keys") -> PresetPrompt:
    """One of the application's own prompts that the file does not list; old files have its text."""
    own = OWN[identifier]
    old = source.get(OLD_KEYS.get(identifier, ""))
    return PresetPrompt(
        identifier=identifier,
        key=keys.of(identifier),
        name=own.name,
        content=old if isinstance(old, str) else own.content,
        is_marker=own.is_marker,
        is_in_file=False,
    )


class _Keys:
    """Gives each prompt the key of its component: doubles get a number."""

    def __init__(self) -> None:
        # What the own texts are called that stand where nobody vouches for them.
        self._taken = {f"st_{name}" for name in (MAIN, JAILBREAK)}
        self._own = set(OWN)

    def of(self, identifier: str) -> str:
        if identifier in self._own:
            self._own.remove(identifier)
            self._taken.add(OWN[identifier].key)
            return OWN[identifier].key
        words = _NO_WORD.sub("_", _HUMP.sub("_", identifier).lower()).strip("_")
        slug = f"st_{words[:_LONGEST_SLUG] or 'prompt'}"
        key, number = slug, 2
        while key in self._taken or key in _OWN_KEYS:
            key, number = f"{slug}_{number}", number + 1
        self._taken.add(key)
        return key


_OWN_KEYS: Final = frozenset(own.key for own in OWN.values())


class _Row:
    """One item of `prompts`; what cannot be keeps its default, and `notices` say so."""

    def __init__(self, item: Any, index: int, notices: list[str]) -> None:
        self._item = item
        self._where = f"prompts[{index}]"
        self._index = index
        self._notices = notices

    def prompt(self, keys: _Keys, *, limits: PresetLimits) -> PresetPrompt | None:
        if not isinstance(self._item, Mapping):
            self._notices.append(f"{self._where}: is no object and is left out")
            return None
        identifier = self._identifier()
        own = OWN.get(identifier)
        content = self._text("content", own.content if own else "")
        if len(content) > limits.content_characters:
            raise FormatError(
                KIND,
                f"preset.{self._where}.content: has {len(content)} characters, more than"
                f" {limits.content_characters}; make it shorter",
            )
        return PresetPrompt(
            identifier=identifier,
            key=keys.of(identifier),
            name=self._text("name", own.name if own else "")[:_LONGEST_NAME],
            content=content,
            role=self._role(),
            is_marker=own.is_marker if own else self._flag("marker"),
            position=self._position(),
            depth=self._number("injection_depth", DEFAULT_DEPTH, low=0, high=MAX_DEPTH),
            injection_order=self._number("injection_order", 100, low=-MAX_ORDER, high=MAX_ORDER),
            triggers=self._triggers(),
            forbids_overrides=self._flag("forbid_overrides"),
        )

    def _identifier(self) -> str:
        given = self._item.get("identifier")
        if isinstance(given, str) and given:
            return given
        self._notices.append(f"{self._where}: has no identifier and gets one")
        return f"prompt-{self._index}"

    def _text(self, name: str, default: str) -> str:
        given = self._item.get(name)
        if isinstance(given, str):
            return given
        if given is not None:
            self._odd(name, given, repr(default) if default else "empty")
        return default

    def _flag(self, name: str) -> bool:
        given = self._item.get(name)
        if given is not None and not isinstance(given, bool):
            self._odd(name, given, "false")
        return given is True

    def _role(self) -> Role:
        given = self._item.get("role")
        role = next((one for one in TEXT_ROLES if one == given), None)
        if role is None and given not in (None, ""):
            self._odd("role", given, "system")
        return role or "system"

    def _position(self) -> PromptPosition:
        given = self._item.get("injection_position")
        if given not in (None, 0, 1) or isinstance(given, bool):
            self._odd("injection_position", given, "relative")
            return "relative"
        return "in_chat" if given == 1 else "relative"

    def _number(self, name: str, default: int, *, low: int, high: int) -> int:
        given = self._item.get(name)
        if isinstance(given, float) and given.is_integer():
            given = int(given)
        if is_plain_int(given):
            number = min(max(int(given), low), high)
            if number != given:
                self._odd(name, given, str(number))
            return number
        if given is not None:
            self._odd(name, given, str(default))
        return default

    def _triggers(self) -> tuple[str, ...]:
        given = self._item.get("injection_trigger")
        if isinstance(given, list) and all(isinstance(one, str) for one in given):
            return tuple(given)
        if given is not None:
            self._odd("injection_trigger", given, "none")
        return ()

    def _odd(self, name: str, given: Any, taken: str) -> None:
        shown = one_line(repr(given))[:60]
        self._notices.append(f"{self._where}.{name}: cannot be {shown}; {taken} is taken")


def _order(
    source: Mapping[str, Any],
    prompts: Sequence[PresetPrompt],
    notices: list[str],
    *,
    limits: PresetLimits,
) -> tuple[OrderItem, ...]:
    written = order_in(source)
    if written is None:
        if "prompt_order" in body_of(source):
            notices.append("prompt_order: has no list of 100001; the default order is taken")
        return tuple(OrderItem(name, own.enabled) for name, own in OWN.items())
    if len(written) > limits.prompts:
        raise FormatError(
            KIND, f"preset.prompt_order: there are {len(written)}, more than {limits.prompts}"
        )
    order = tuple(_items(written, {prompt.identifier for prompt in prompts}, notices))
    _refuse_too_many_after(order, prompts)
    return order


def _items(written: Sequence[Any], known: set[str], notices: list[str]) -> Iterator[OrderItem]:
    seen: set[str] = set()
    for index, item in enumerate(written):
        name = item.get("identifier") if isinstance(item, Mapping) else None
        if not isinstance(name, str):
            notices.append(f"prompt_order: item {index} names no prompt")
        elif name not in known:
            notices.append(f"prompt_order: there is no prompt '{one_line(name)}'")
        elif name in seen:
            notices.append(f"prompt_order: '{one_line(name)}' is there twice; the first counts")
        else:
            seen.add(name)
            yield OrderItem(name, item.get("enabled") is True)


def _refuse_too_many_after(order: Sequence[OrderItem], prompts: Sequence[PresetPrompt]) -> None:
    in_chat = {prompt.identifier for prompt in prompts if prompt.position == "in_chat"}
    names = [item.identifier for item in order]
    after = names[names.index(HISTORY) + 1 :] if HISTORY in names else []
    number = sum(name not in in_chat for name in after)
    if number > MOST_AFTER:
        raise FormatError(
            KIND,
            f"preset.prompt_order: {number} prompts stand after chatHistory, more than"
            f" {MOST_AFTER}; move some before it",
        )


def _texts(source: Mapping[str, Any], notices: list[str]) -> Mapping[str, str]:
    """The utility texts; one that cannot be keeps its default."""
    texts = dict(TEXT_DEFAULTS)
    for name in TEXT_DEFAULTS:
        given = source.get(name)
        if isinstance(given, str) and len(given) <= MAX_TEXT:
            texts[name] = given
        elif given is not None:
            notices.append(f"{name}: must be text of at most {MAX_TEXT} characters; left alone")
    return texts


def _names(source: Mapping[str, Any], notices: list[str]) -> Names | None:
    given = source.get("names_behavior")
    if given is None:
        return "field" if source.get("names_in_completion") is True else None
    if is_plain_int(given) and given in _NAMES:
        return _NAMES[given]
    notices.append(f"names_behavior: cannot be {one_line(repr(given))[:60]}; 0 is taken")
    return None


def _flag(source: Mapping[str, Any], name: str, notices: list[str]) -> bool:
    given = source.get(name)
    if given is not None and not isinstance(given, bool):
        notices.append(f"{name}: must be true or false; false is taken")
    return given is True
