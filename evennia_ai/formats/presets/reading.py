"""Read a SillyTavern preset file: lenient about odd values, strict about sizes.

A file is either a preset or an export of the prompt manager, which has only prompts and their
order. A field with an impossible value gets its default and a notice. A file that is not a preset,
or is over a limit, is refused as a whole.
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
from evennia_ai.formats.file_kinds import describe_value, json_of_file
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
from evennia_ai.formats.presets.secrets import drop_secrets

MIB: Final = 1024 * 1024
MAX_ORDER: Final = 10**9
MOST_AFTER: Final = 440
"""The maximum number of prompts after the history; there are no component IDs for more."""
SECRETS: Final = "secrets were removed"
"""The first words of the notice that secrets were removed from a preset."""
_AtLeast1 = Annotated[int, Field(ge=1), Must("at least 1")]
_NAMES: Final[Mapping[Any, Names | None]] = {-1: "none", 0: None, 1: "field", 2: "content"}
_DIGITS: Final = re.compile(r"-?[0-9]{1,9}")
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_SLUG: Final = 56
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetLimits:
    """Limits on the size of a preset; the largest shared presets have 2 MB and 326 prompts."""

    file_bytes: _AtLeast1 = 8 * MIB
    prompts: _AtLeast1 = 2_000
    """The maximum number of prompts in a file, and of lines in its order."""
    content_characters: _AtLeast1 = MAX_CONTENT
    """The maximum number of characters in one prompt."""

    def __post_init__(self) -> None:
        if wrong := find_wrong_field(self):
            raise ValueError(f"{wrong[0]}: must be {wrong[1]}")
        if self.content_characters > MAX_CONTENT:
            raise ValueError(
                f"content_characters: must be at most {MAX_CONTENT}, the limit of a component"
            )


DEFAULT_LIMITS: Final = PresetLimits()


def read_preset(
    data: bytes | str | Mapping[str, Any], *, name: str, limits: PresetLimits = DEFAULT_LIMITS
) -> Preset:
    """Read a SillyTavern preset from the bytes, the text or the JSON value of its file.

    Args:
        name: the name of the preset, which files do not contain.

    Raises:
        FormatError: the file is not JSON, not a preset, or over a limit.
    """
    source, repeated_members = _read_source(data, limits=limits)
    notices = list(repeated_members)
    if not any(key in body_of(source) for key in _PRESET_KEYS):
        problem = describe_value(source, wanted="preset") or (
            "has neither `prompts` nor `prompt_order` nor another member of a preset for"
            " chat completion; text completion has presets of its own, which are not read"
        )
        raise FormatError(KIND, f"preset: {problem}")
    source, secrets = drop_secrets(source)
    if secrets:
        notices.append(f"{SECRETS} from the preset: {', '.join(limit_notices(secrets))}")
    prompts = _read_prompts(source, notices, limits=limits)
    texts = dict(TEXT_DEFAULTS)
    for key in TEXT_DEFAULTS:
        given = source.get(key)
        if isinstance(given, str) and len(given) <= MAX_TEXT:
            texts[key] = given
        elif given is not None:
            notices.append(f"{key}: must be text of at most {MAX_TEXT} characters; it is ignored")
    written = [(f"preset.prompts '{one_line(p.identifier)[:60]}'", p.content) for p in prompts]
    check_macros([*written, *((f"preset.{key}", text) for key, text in texts.items())], kind=KIND)
    return Preset(
        name=name,
        prompts=prompts,
        order=_read_order(source, prompts, notices, limits=limits),
        texts=texts,
        names=_read_names(source, notices),
        squash=_read_flag(source, "squash_system_messages", notices),
        source=source,
        secrets=secrets,
        notices=limit_notices(notices),
    )


_PRESET_KEYS: Final = frozenset(
    {"prompts", "prompt_order", "chat_completion_source", "openai_max_context", *TEXT_DEFAULTS}
    | {*OLD_KEYS.values()}
)


def _read_source(
    data: bytes | str | Mapping[str, Any], *, limits: PresetLimits
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the file's JSON object, and a notice for each duplicate member."""
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
        problem = describe_value(value, wanted="preset")
        problem = problem or "must be a JSON object, as SillyTavern exports it"
        raise FormatError(KIND, f"preset: {problem}")
    return value, twice


def _read_prompts(
    source: Mapping[str, Any], notices: list[str], *, limits: PresetLimits
) -> tuple[PresetPrompt, ...]:
    listed = body_of(source).get("prompts", [])
    if not isinstance(listed, list):
        raise FormatError(KIND, "preset.prompts: must be a list")
    if len(listed) > limits.prompts:
        raise FormatError(
            KIND, f"preset.prompts: there are {len(listed)}, more than {limits.prompts}"
        )
    keys = _KeyMaker()
    prompts = []
    for index, item in enumerate(listed):
        prompt = _PromptReader(item, index, notices).read_prompt(keys, limits=limits)
        if prompt is not None:
            prompts.append(prompt)
    times = Counter(prompt.identifier for prompt in prompts)
    notices += [
        f"{times[name]} prompts are called '{one_line(name)}'; the first counts"
        for name in times
        if times[name] > 1
    ]
    for name, own in OWN.items():
        if name not in times:
            # old files store the text of this prompt in another member
            old = source.get(OLD_KEYS.get(name, ""))
            prompt = PresetPrompt(
                identifier=name,
                key=keys.make_key(name),
                name=own.name,
                content=old if isinstance(old, str) else own.content,
                is_marker=own.is_marker,
                is_in_file=False,
            )
            prompts.append(prompt)
    return tuple(prompts)


class _KeyMaker:
    """A factory of unique component keys for a preset's prompts; a repeated key gets a number."""

    def __init__(self) -> None:
        # Reserve the keys that components of SillyTavern's own prompts have without their grants
        # (`mapping.contained_key`).
        self._taken = {f"st_{name}" for name in (MAIN, JAILBREAK)}
        self._own = set(OWN)

    def make_key(self, identifier: str) -> str:
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


class _PromptReader:
    """A reader of one raw prompt of a preset.

    An impossible value gets its default and a notice.
    """

    def __init__(self, item: Any, index: int, notices: list[str]) -> None:
        self._item = item
        self._where = f"prompts[{index}]"
        self._index = index
        self._notices = notices

    def read_prompt(self, keys: _KeyMaker, *, limits: PresetLimits) -> PresetPrompt | None:
        if not isinstance(self._item, Mapping):
            self._notices.append(f"{self._where}: is not an object and is left out")
            return None
        identifier = self._item.get("identifier")
        if not isinstance(identifier, str) or not identifier:
            self._notices.append(f"{self._where}: has no identifier and gets one")
            identifier = f"prompt-{self._index}"
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
            key=keys.make_key(identifier),
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

    def _text(self, name: str, default: str) -> str:
        given = self._item.get(name)
        if isinstance(given, str):
            return given
        if given is not None:
            self._note_default(name, given, repr(default) if default else "empty")
        return default

    def _flag(self, name: str) -> bool:
        given = self._item.get(name)
        if given is not None and not isinstance(given, bool):
            self._note_default(name, given, "false")
        return given is True

    def _role(self) -> Role:
        given = self._item.get("role")
        role = next((one for one in TEXT_ROLES if one == given), None)
        if role is None and given not in (None, ""):
            self._note_default("role", given, "system")
        return role or "system"

    def _position(self) -> PromptPosition:
        given = self._item.get("injection_position")
        if given not in (None, 0, 1) or isinstance(given, bool):
            self._note_default("injection_position", given, "relative")
            return "relative"
        return "in_chat" if given == 1 else "relative"

    def _number(self, name: str, default: int, *, low: int, high: int) -> int:
        given = self._item.get(name)
        if isinstance(given, float) and given.is_integer():
            given = int(given)
        if isinstance(given, str) and _DIGITS.fullmatch(given):
            given = int(given)
        if is_plain_int(given):
            number = min(max(int(given), low), high)
            if number != given:
                self._note_default(name, given, str(number))
            return number
        if given is not None:
            self._note_default(name, given, str(default))
        return default

    def _triggers(self) -> tuple[str, ...]:
        given = self._item.get("injection_trigger")
        if isinstance(given, list) and all(isinstance(one, str) for one in given):
            return tuple(given)
        if given is not None:
            self._note_default("injection_trigger", given, "none")
        return ()

    def _note_default(self, name: str, given: Any, taken: str) -> None:
        shown = one_line(repr(given))[:60]
        self._notices.append(f"{self._where}.{name}: cannot be {shown}; {taken} is used")


def _read_order(
    source: Mapping[str, Any],
    prompts: Sequence[PresetPrompt],
    notices: list[str],
    *,
    limits: PresetLimits,
) -> tuple[OrderItem, ...]:
    written = order_in(source)
    if written is None:
        if "prompt_order" in body_of(source):
            notices.append(
                "prompt_order: has no list with the character_id 100001; the default order is used"
            )
        return tuple(OrderItem(name, own.enabled) for name, own in OWN.items())
    if len(written) > limits.prompts:
        raise FormatError(
            KIND, f"preset.prompt_order: there are {len(written)}, more than {limits.prompts}"
        )
    order = tuple(_order_items(written, {prompt.identifier for prompt in prompts}, notices))
    in_chat = {prompt.identifier for prompt in prompts if prompt.position == "in_chat"}
    names = [item.identifier for item in order]
    after = names[names.index(HISTORY) + 1 :] if HISTORY in names else []
    number = sum(name not in in_chat for name in after)
    if number > MOST_AFTER:
        raise FormatError(
            KIND,
            f"preset.prompt_order: {number} prompts come after chatHistory, more than"
            f" {MOST_AFTER}; move some before it",
        )
    return order


def _order_items(
    written: Sequence[Any], known: set[str], notices: list[str]
) -> Iterator[OrderItem]:
    seen: set[str] = set()
    for index, item in enumerate(written):
        name = item.get("identifier") if isinstance(item, Mapping) else None
        if not isinstance(name, str):
            notices.append(f"prompt_order: item {index} has no identifier of a prompt")
        elif name not in known:
            notices.append(f"prompt_order: there is no prompt '{one_line(name)}'")
        elif name in seen:
            notices.append(f"prompt_order: '{one_line(name)}' occurs twice; the first one is used")
        else:
            seen.add(name)
            yield OrderItem(name, item.get("enabled") is True)


def _read_names(source: Mapping[str, Any], notices: list[str]) -> Names | None:
    given = source.get("names_behavior")
    if given is None:
        return "field" if source.get("names_in_completion") is True else None
    if is_plain_int(given) and given in _NAMES:
        return _NAMES[given]
    notices.append(f"names_behavior: cannot be {one_line(repr(given))[:60]}; 0 is used")
    return None


def _read_flag(source: Mapping[str, Any], name: str, notices: list[str]) -> bool:
    given = source.get(name)
    if given is not None and not isinstance(given, bool):
        notices.append(f"{name}: must be true or false; false is used")
    return given is True
