"""`ai/set`, `ai/profile`, `ai/mode` and `ai/tools`: show and change the settings of an NPC.

`evennia_ai.npc.npc_settings` decides which values are valid. This module parses what builders type
and says where each value comes from. It also shows why an NPC answered, or did not answer, what it
heard last.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from evennia_ai.commands.base import CommandError
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.foreign.fields import suggest_name
from evennia_ai.engine.text.columns import wrap_hanging
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.npc_settings import SettingChange, change_settings, given_to, settings_of
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.tools.registry import Choice, choice_of, choose_tools, registry
from evennia_ai.npc.tools.tool import Tool
from evennia_ai.services.endpoints import Access, Models, NotReady
from evennia_ai.services.llm.profiles import MODEL_ROLES, ModelProfile
from evennia_ai.services.settings.conf import SettingError
from evennia_ai.services.settings.game import Conf
from evennia_ai.services.settings.npc import MODE_MEANINGS, MODES, NPCSettings, read_typed

_ELSEWHERE: Final = {"profile": "ai/profile <npc> = <profile>", "tools": "ai/tools <npc> = <tools>"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """The sources from which an NPC's settings take their values."""

    settings: NPCSettings
    profile: ModelProfile
    conf: Conf


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A setting as builders know it.

    `usual` gives the value that counts if the NPC has none of its own. `nothing` is shown for None,
    0 and "". `empty` is shown for an empty list.
    """

    name: str
    field: str
    usual: Callable[[Origins], Any] = lambda _: None
    nothing: str = ""
    empty: str = ""
    of_profile: bool = False


def set_lines(npc: NPC) -> list[str]:
    """Return all settings of an NPC with their values and where each value comes from."""
    given = given_to(npc)
    origins = _origins(npc)
    profile_from = "this NPC" if "profile" in given else "the game"
    rows = [("profile", origins.profile.name, profile_from)]
    rows += [
        (row.name, _value_in_words(row, origins), _origin_of(row, origins, given)) for row in ROWS
    ]
    problems = [f"  problem: {problem}" for problem in npc.ai.settings_problems]
    lines = [f"Settings of {npc.key}:", *_table(rows), *problems]
    return [shown for line in lines for shown in wrap_hanging(line)]


def change_setting(npc: NPC, typed: str, *, by: Actor) -> str:
    """Change one setting as typed, `<name> <value>`, or reset it, `<name>`.

    Return a line about it.
    """
    name, _, text = typed.partition(" ")
    row = _row(name.strip().lower())
    if not text.strip():
        return _reset(npc, row, by=by)
    before = _value_in_words(row, _origins(npc))
    try:
        change_settings(npc, by=by, **{row.field: read_typed(row.field, text.strip())})
    # The error names the field; builders know the setting by another name.
    except SettingError as error:
        told = str(error).replace(f": {row.field}: ", f": {row.name}: ", 1)
        raise CommandError(told) from error
    # The new value may start or stop the NPC's ticks.
    runtime().ticker.stirs(npc)
    after = _value_in_words(row, _origins(npc))
    return f"{npc.key}: {row.name} is {_quoted(after)} now; it was {_quoted(before)}."


def profile_lines() -> list[str]:
    """Return a table of the model profiles, their states, and the roles that use them."""
    models = runtime().models
    accesses = models.accesses()
    rows = [
        (one.profile.name, one.profile.client, one.profile.model, _state(one), _roles(one, models))
        for one in accesses
    ]
    whys = [
        f"  problem: {one.profile.name} cannot be asked: {_reason(one)}"
        for one in accesses
        if isinstance(one.client, NotReady)
    ]
    whys += [
        f"  problem: {one.profile.name} sends its key over plain http to another machine"
        for one in accesses
        if runtime().conf.shows_key_of(one.profile)
    ]
    learned = [
        f"  learned: {one.profile.name} {line}"
        for one in accesses
        for line in one.learned.describe_lines()
    ]
    if learned:
        learned.append("What was learned is forgotten when the game's server restarts.")
    heads = ("profile", "client", "model", "breaker", "asked as")
    lines = ["Profiles of models:", *_table([heads, *rows]), *whys, *learned]
    return [shown for line in lines for shown in wrap_hanging(line)]


def profile_of(npc: NPC) -> list[str]:
    """Return a line that says with which models an NPC speaks."""
    settings = settings_of(npc)
    asked = runtime().models.of_role("speaker", settings=settings)
    first, *others = (access.profile.name for access in asked)
    instead = f", or {', then '.join(others)} if that gives no answer" if others else ""
    whose = "its own profile" if settings.profile else "the game's usual profile"
    return [f"{npc.key} speaks with {first}, {whose}{instead}."]


def choose_profile(npc: NPC, name: str, *, by: Actor) -> str:
    """Let an NPC speak with the profile of this name. Return a line about it."""
    models = runtime().models
    usual = models.of_role("speaker")[0].profile.name
    before = _origins(npc).profile.name
    change_settings(npc, by=by, profile=None if name == usual else name)
    open_key = runtime().conf.shows_key_of(_origins(npc).profile)
    warned = f" {name} sends its key over plain http to another machine." if open_key else ""
    return f"{npc.key} speaks with {name} now; it was {before}.{warned}"


def _reset(npc: NPC, row: Row, *, by: Actor) -> str:
    """Reset a setting to the value of the profile or the game. Return a line about it."""
    before = _value_in_words(row, _origins(npc))
    was_set = row.field in given_to(npc)
    change_settings(npc, by=by, **{row.field: None})
    origins = _origins(npc)
    now = f"{_quoted(_value_in_words(row, origins))} ({_origin_of(row, origins, frozenset())})"
    if not was_set:
        return f"{npc.key}: {row.name} was not set; it is {now}."
    return f"{npc.key}: {row.name} is {now} again; it was {_quoted(before)}."


def change_in_words(change: SettingChange) -> str:
    """Return a change of a setting in the words that builders type."""
    row = next((row for row in ROWS if row.field == change.name), None)
    name = row.name if row is not None else change.name
    by = f", by {change.by}" if change.by else ""
    return f"{name}: {_value(change.old)} -> {_value(change.new)}{by}"


def _value(value: Any) -> str:
    """Return a stored value in words."""
    return "not set" if value is None else _plain(value, empty="none")


def _plain(value: Any, *, empty: str) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={most}" for name, most in value.items()) or empty
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or empty
    return f"{value:g}" if isinstance(value, float) else str(value)


def _row(name: str) -> Row:
    for row in ROWS:
        if name in (row.name, row.field):
            return row
    if name in _ELSEWHERE:
        raise CommandError(f"For that type {_ELSEWHERE[name]}. Nothing was changed.")
    names = [row.name for row in ROWS]
    meant = suggest_name(name, names) or f"; there are {', '.join(names)}."
    raise CommandError(f"There is no setting '{name}'{meant} Nothing was changed.")


def _origins(npc: NPC) -> Origins:
    live = runtime()
    settings = settings_of(npc)
    profile = live.models.speaking_profile(settings)
    return Origins(settings=settings, profile=profile, conf=live.conf)


def _origin_of(row: Row, origins: Origins, given: frozenset[str]) -> str:
    if row.field in given:
        return "this NPC"
    return f"profile {origins.profile.name}" if row.of_profile else "the game"


def _value_in_words(row: Row, origins: Origins) -> str:
    """Return the value that counts, in words."""
    own = getattr(origins.settings, row.field)
    value = row.usual(origins) if own is None or own == "" else own
    if not value and row.nothing and not isinstance(value, tuple | Mapping):
        return row.nothing
    return _plain(value, empty=row.empty)


def _quoted(value: str) -> str:
    # A value that is a sentence, such as the thinking line, is put in quotes.
    return f"'{value}'" if value.endswith(".") else value


def _state(access: Access) -> str:
    if isinstance(access.client, NotReady):
        return "not ready"
    return access.breaker.state if access.breaker is not None else "none"


def _reason(access: Access) -> str:
    assert isinstance(access.client, NotReady)
    return re.sub(r"^endpoint '.*?': ", "", access.client.reason)


def _roles(access: Access, models: Models) -> str:
    roles = models.roles_of(access.profile.name)
    some = ", ".join(roles) or "what an NPC is given"
    return "every role" if len(roles) == len(MODEL_ROLES) else some


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        # The last column may be long, so its padding is stripped.
        "  " + "  ".join(map(str.ljust, row, widths)).rstrip()
        for row in rows
    ]


def _of_profile(name: str, usual: Callable[[ModelProfile], Any]) -> Row:
    return Row(
        name=name,
        field=name,
        usual=lambda origins: usual(origins.profile),
        nothing="up to the server",
        of_profile=True,
    )


def _of_game(name: str, field: str) -> Row:
    return Row(name=name, field=field, usual=lambda own: getattr(own.conf, field))


ROWS: Final = (
    _of_profile("model", lambda profile: profile.model),
    _of_profile("temperature", lambda profile: profile.sampling.temperature),
    _of_profile("top_p", lambda profile: profile.sampling.top_p),
    _of_profile("reply_tokens", lambda profile: profile.reply_tokens),
    Row(name="mode", field="mode"),
    _of_game("cooldown", "cooldown_seconds"),
    _of_game("engagement", "engagement_seconds"),
    Row(name="tick", field="tick_seconds", nothing="never"),
    _of_game("hops", "hop_limit"),
    Row(name="thinking", field="thinking", usual=lambda own: own.conf.thinking_line),
    _of_game("odd_replies", "odd_replies"),
    Row(name="talkativeness", field="talkativeness"),
    Row(name="speaks", field="speaks", usual=lambda own: own.conf.language, nothing="none"),
    Row(name="languages", field="languages", nothing="all", empty="none"),
    Row(name="react_to", field="react_to", empty="what is addressed to it"),
    Row(name="limits", field="limits", empty="those of the game"),
)


SHOWN: Final = 8
"""How many of the last things that the NPC heard are shown."""


def mode_lines(caller: Any, npc: NPC) -> list[str]:
    """Return how an NPC listens, what it heard last, and why it answered or did not.

    A text that `caller` may not read is replaced by a mark.
    """
    mode = settings_of(npc).mode
    attention = npc.ai.attention
    lines = [f"{npc.key} listens by {mode}: it {MODE_MEANINGS[mode]}."]
    lines += [f"  {name} - {meaning}" for name, meaning in MODE_MEANINGS.items() if name != mode]
    if attention.overflows:
        lines.append(f"Not answered because too much waited: {attention.overflows}.")
    if heard := attention.heard_lately()[-SHOWN:]:
        now, seer = runtime().clock.seconds(), seer_for(caller, npc.ai.ref)
        lines.append("What it heard last:")
        for verdict in heard:
            seen = seer.record(verdict.record)
            text = f'"{verdict.text}"' if seen.body == verdict.record.body else seen.body
            who = f"{verdict.speaker}, {verdict.kind}" if verdict.speaker else verdict.kind
            what = "answered" if verdict.answers else "silent"
            ago = max(0.0, now - verdict.heard_at)
            lines.append(f"  {ago:.0f} s ago, {who}: {text} - {what}: {verdict.why}")
    return [shown for line in lines for shown in wrap_hanging(line)]


def set_mode(npc: NPC, typed: str, *, by: Actor) -> str:
    """Set how an NPC listens, as typed. Return a line about it."""
    mode = typed.strip().lower()
    if mode not in MODES:
        meant = suggest_name(mode, MODES) or f"; there are {', '.join(MODES)}"
        end = "" if meant.endswith("?") else "."
        raise CommandError(f"There is no mode '{mode}'{meant}{end} Nothing was changed.")
    before = settings_of(npc).mode
    change_settings(npc, by=by, mode=mode)
    return f"{npc.key} listens by {mode} now; it was {before}. It {MODE_MEANINGS[mode]}."


_SIGN: Final = re.compile(r"([+-])\s+")
MOST_WORDS: Final = 50


def tools_lines(npc: NPC) -> list[str]:
    """Return the tools that an NPC has and those it could be given, one line each."""
    choice = choice_of(npc)
    lines = [f"What {npc.key} may do besides answering:", *_lines(choice.has)]
    lines += [f"  {name} - no longer a tool of the game" for name in choice.gone]
    if choice.others:
        lines += ["What it could be given:", *_lines(choice.others)]
    lines += [f"Left out: {problem}" for problem in registry().problems]
    return [shown for line in lines for shown in wrap_hanging(line)]


def choose_tools_typed(npc: NPC, text: str, *, by: Actor) -> str:
    """Give an NPC the tools that `text` names. Return a line with the tools it has then."""
    words = [word for word in re.split(r"[\s,]+", _SIGN.sub(r"\1", text.lower())) if word]
    names = _wanted_names(_names(choice_of(npc)), words)
    has = ", ".join(_names(choose_tools(npc, names, by=by)))
    return f"{npc.key} may {has or 'do nothing'} besides answering."


def _wanted_names(has: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the tool names that words such as `say, give` or `+give, -say` mean.

    `has` are the names that the NPC has before the change.
    """
    changes = [word for word in words if word[:1] in "+-"]
    if not words or len(words) > MOST_WORDS:
        raise CommandError(
            f"Name up to {MOST_WORDS} tools, or 'none' for none at all. Nothing was changed."
        )
    if changes and len(changes) < len(words):
        raise CommandError(
            "Name all tools that it should have, or only changes with + and -. Nothing was changed."
        )
    if not changes:
        return [] if words == ["none"] else [_known_tool(word) for word in words]
    gone = [word[1:].strip() for word in changes if word[0] == "-"]
    for name in gone:
        if name not in has:
            raise CommandError(f"It has no tool '{name}'. Nothing was changed.")
    added = [_known_tool(word[1:].strip()) for word in changes if word[0] == "+"]
    return [name for name in has if name not in gone] + added


def _known_tool(name: str) -> str:
    """Return `name`. CommandError if the game has no tool of this name."""
    tools = registry().tools
    if name in tools:
        return name
    like = get_close_matches(name, tools, n=1)
    meant = f"; did you mean '{like[0]}'?" if like else f"; there are {', '.join(sorted(tools))}."
    raise CommandError(f"There is no tool '{name}'{meant} Nothing was changed.")


def _lines(tools: Sequence[Tool]) -> list[str]:
    if not tools:
        return ["  nothing"]
    return [
        f"  {tool.name}{' (dangerous)' * tool.dangerous} - {' '.join(tool.description.split())}"
        for tool in tools
    ]


def _names(choice: Choice) -> list[str]:
    return [*(tool.name for tool in choice.has), *choice.gone]
