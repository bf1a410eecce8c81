"""Model profiles: which model is called, where and how, under the name of a profile.

Pure functions and values. pydantic reads the admin's dictionary; after that everything uses a
`ModelProfile`. A profile never contains a key, only the name of the environment variable that holds
it. An `Endpoint` describes the profile's server to a client, with the key as a `SecretText` that is
never shown.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from ipaddress import ip_address
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails

from evennia_ai.engine.errors import EndpointError, FormatError
from evennia_ai.engine.foreign.fields import (
    Must,
    error_words,
    read_fields,
    strict_model,
    suggest_name,
    suggest_or_list,
)
from evennia_ai.formats.presets.secrets import drop_secrets
from evennia_ai.services.llm.learned import NEEDED_FIELDS
from evennia_ai.services.net.http import is_address
from evennia_ai.services.net.secrets import SecretText

ModelRole = Literal["speaker", "planner", "mediator", "summariser", "decider", "lorekeeper"]
Client = Literal["openai", "anthropic", "scripted", "offline"]
ToolsBy = Literal["native", "schema", "none"]
SchemaBy = Literal["native", "text"]
PastCalls = Literal["native", "told"]
ReplyLimit = Literal["max_tokens", "max_completion_tokens"]

MODEL_ROLES: Final[tuple[ModelRole, ...]] = get_args(ModelRole)
DEFAULT: Final = "default"
"""The name of the profile that every game has. Settings such as EVENNIA_AI_MODEL define it."""

SUMMARISER: Final = "summariser"
"""The role that writes summaries.

The setting `SUMMARY_MODEL` makes a profile with the same name.
"""

IDLE_SECONDS: Final = 30.0
ANTHROPIC_URL: Final = "https://api.anthropic.com"
ANTHROPIC_KEY: Final = "ANTHROPIC_API_KEY"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
# Fields that say where the model is. A profile without any of them uses the server of `default`.
_WHERE: Final = ("client", "base_url", "script")
_SAMPLING: Final = ("temperature", "top_p", "stop", "seed", "reply_limit", "extra")
# Fields that every request sets itself, so that `extra` cannot.
_NOT_EXTRA: Final = NEEDED_FIELDS | {"max_completion_tokens", *_SAMPLING}


def _an_address(value: str) -> str:
    if value and not is_address(value):
        raise ValueError("must be an http or https address without a name, a password or a query")
    return value


def _a_name(value: str) -> str:
    if value and not value.isidentifier():
        raise ValueError(
            "must be the NAME of an environment variable that holds the key, never the key"
        )
    return value


def _can_be_sent(value: dict[str, Any]) -> dict[str, Any]:
    given = {name for name, one in value.items() if one is not None}
    if taken := sorted(_NOT_EXTRA & given):
        hint = "; set reply_limit to its name instead" if "max_completion_tokens" in taken else ""
        raise ValueError(
            f"cannot contain {', '.join(taken)}: the game sets these fields in each request{hint}"
        )
    if needed := sorted(NEEDED_FIELDS & set(value)):
        raise ValueError(f"cannot leave out {', '.join(needed)}: every request needs it")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("must be plain JSON: texts, numbers, lists, dictionaries") from None
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a model chooses its words. None leaves a value to the server."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    stop: Annotated[tuple[str, ...], Field(strict=False, max_length=8)] = ()
    seed: int | None = None
    reply_limit: ReplyLimit = "max_tokens"
    """The name of the request's field that limits a reply.

    Newer models of OpenAI need the other name.
    """
    extra: Annotated[dict[str, Any], AfterValidator(_can_be_sent)] = field(default_factory=dict)
    """Additional fields of the request's body that one server needs.

    None removes a field that is sent by default, such as `user`.
    """


USUAL: Final = Sampling()


# Names of fields that hold a key: `x-api-key`, `auth_token`, but not `eos_token` or `max_tokens`.
_OF_A_KEY: Final = re.compile(
    r"(?:^|[_-])(?:key|(?<!eos_)(?<!bos_)(?<!pad_)(?<!stop_)token)$", re.I
)


def recorded_extra(
    extra: Mapping[str, Any], *, keys: Iterable[SecretText]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the additional fields of a request without secrets, and the paths of these secrets.

    A field is a secret if its name looks like that of a key or password, or if a text in it
    contains one of `keys`. Names of members become texts, as in JSON.
    """
    if not extra:
        return {}, ()
    masks = [key for key in keys if key]

    def is_secret(name: str, value: Any) -> bool:
        if _OF_A_KEY.search(name) is not None and isinstance(value, str):
            return True
        texts = [name, *([value] if isinstance(value, str) else [])]
        return any(key.mask_in(text) != text for key in masks for text in texts)

    safe, paths = drop_secrets(json.loads(json.dumps(dict(extra))), is_secret=is_secret)
    for key in masks:
        paths = tuple(map(key.mask_in, paths))
    return safe, paths


_Dollars = Annotated[
    float,
    Field(ge=0, le=1_000_000),
    Must("a number of dollars from 0 on"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model in US dollars per million tokens."""

    input: _Dollars
    output: _Dollars
    cached: _Dollars | None = None
    """Tokens read from the provider's cache. None: the price of `input`."""
    written: _Dollars | None = None
    """Tokens written to the provider's cache. None: the price of `input`."""


def read_price(given: Any) -> Price | None:
    """Return the price in a profile's settings.

    Raises:
        ValueError: It is not a price.
    """
    if given is None or isinstance(given, Price):
        return given
    wanted = "must be a dictionary, such as {'input': 0.25, 'output': 2}, in dollars per million"
    if not isinstance(given, Mapping) or not {"input", "output"} <= set(given):
        raise ValueError(wanted)
    try:
        return read_fields(Price, given, where="price", what="price ", hint=suggest_or_list)
    except FormatError as error:
        raise ValueError(error.message.removeprefix("price: ")) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """A model and how to call it, under the name of a profile.

    The settings of a profile have the same names.
    """

    name: str
    client: Client = "openai"
    base_url: Annotated[str, AfterValidator(_an_address)] = ""
    model: str = ""
    api_key_env: Annotated[str, AfterValidator(_a_name)] = ""
    sampling: Sampling = USUAL
    reply_tokens: Annotated[int, Field(ge=1)] = 400
    context_tokens: Annotated[int, Field(ge=256)] = 8192
    timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    """The time limit of a whole call, with retries."""
    idle_seconds: Annotated[float, Field(gt=0)] = IDLE_SECONDS
    """The longest time that may pass without a byte of the reply."""
    max_retries: Annotated[int, Field(ge=0, le=10)] = 2
    max_concurrent: Annotated[int, Field(ge=1, le=1000)] = 4
    stream: bool = True
    speaks_early: bool = False
    """True if an NPC says the first sentences of a reply before the rest has arrived.

    Do not use it for a model that writes its reasoning without an opening mark.
    """
    strict_roles: bool = False
    """True for servers that require one system message, then user and assistant alternating."""
    system_role: bool = True
    """True if the server accepts the role system.

    Otherwise its text begins the first user message.
    """
    past_calls: PastCalls = "native"
    """How tool calls of earlier turns are sent: as calls (`native`) or as text (`told`).

    Some servers refuse a call without its hidden reasoning, which is kept for one turn only.
    """
    tools: ToolsBy = "native"
    """How the server learns of tools: in its own field, in the prompt (`schema`), or not at all."""
    schema: SchemaBy = "native"
    """How the server gets the schema of an answer: in its own field, or in the prompt."""
    script: str = ""
    """The file with the replies, for the client `scripted`."""
    price: Annotated[Price | None, BeforeValidator(read_price)] = None
    """What the model costs in dollars per million tokens. None: the listed price is used."""

    @property
    def limit_tokens(self) -> int:
        """The most tokens that a prompt may have: the context without the tokens for the reply."""
        return self.context_tokens - self.reply_tokens


Given = Mapping[str, Any]
"""The fields that the settings give for one profile, already checked."""


def is_open(address: str) -> bool:
    """True if data to this address can be read on the way: http, to another machine."""
    parts = urlsplit(address)
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme != "http" or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:  # The host is a name and not a number, so it may be another machine.
        return True


FIELDS: Final = tuple(
    one.alias or name
    for name, one in strict_model(ModelProfile).model_fields.items()
    if name != "name"
)
"""The names of the fields that a profile may have in the settings."""

# Fields in which an admin may have written a key or password by mistake. Logs hide their values.
_UNSHOWN: Final = frozenset({"base_url", "api_key_env", "extra"})


def read_profiles(given: Any, *, where: str) -> dict[str, Given]:
    """Return the checked fields of each profile in a setting.

    Raises:
        FormatError: a field is wrong; the message names it and its profile.
    """
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary of profiles")
    problems: list[str] = []
    read: dict[str, Given] = {}
    for name, fields in given.items():
        try:
            read[name] = _read_profile(name, fields, where=f"{where}[{name!r}]")
        except FormatError as error:
            problems.append(error.message)
    if problems:
        raise FormatError("setting", "; ".join(problems))
    return read


def read_roles(given: Any, *, where: str) -> dict[ModelRole, tuple[str, ...]]:
    """Return the profile names of each role, in the order in which they are tried."""
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary of roles")
    return {
        _role(role, where=where): _names(names, where=f"{where}[{role!r}]")
        for role, names in given.items()
    }


def profiles_of(given: Mapping[str, Given], *, game: ModelProfile) -> dict[str, ModelProfile]:
    """Return all profiles, `default` first.

    A profile that does not say where its model is takes its missing fields from `default`. A
    profile that does say so takes nothing from `default`, in particular no key; its limits are
    those of the game.

    Args:
        game: The profile made from settings such as EVENNIA_AI_MODEL.
    """
    default = _changed_profile(replace(game, name=DEFAULT), given.get(DEFAULT, {}))
    elsewhere = ModelProfile(
        name="",
        reply_tokens=game.reply_tokens,
        context_tokens=game.context_tokens,
        timeout_seconds=game.timeout_seconds,
        idle_seconds=min(IDLE_SECONDS, game.timeout_seconds),
        max_concurrent=game.max_concurrent,
    )
    profiles = {DEFAULT: default}
    for name, fields in given.items():
        if name != DEFAULT:
            base = elsewhere if set(_WHERE) & set(fields) else default
            profiles[name] = _changed_profile(replace(base, name=name), fields)
    return profiles


def problem_of_profile(profile: ModelProfile) -> str:
    """Return why a profile cannot be used though its fields are valid, or ""."""
    asks_a_server = profile.client in ("openai", "anthropic")
    if asks_a_server and not profile.base_url:
        return "has no base_url: say where its model is"
    if asks_a_server and not profile.model:
        return "has no model: name the model to ask for at its address"
    if profile.client == "scripted" and not profile.script:
        return "has no script: name the file that the scripted client reads"
    if profile.reply_tokens >= profile.context_tokens:
        told = f"{profile.reply_tokens} are not fewer than {profile.context_tokens}"
        return f"leaves no tokens for the prompt: its reply_tokens {told}, its context_tokens"
    return ""


def _read_profile(name: Any, fields: Any, *, where: str) -> Given:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        wanted = "letters, digits, '_', '-' and '.', at most 40"
        raise FormatError("setting", f"{where}: a profile's name has {wanted}")
    if not isinstance(fields, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    given = {field: fields[field] for field in FIELDS if fields.get(field) is not None}
    wrong: list[str] = []
    try:
        read = strict_model(ModelProfile).model_validate({**given, "name": name})
        given = read.model_dump(include={*given, "schema_"}, exclude_unset=True, by_alias=True)
        if "price" in given:  # a dump makes dictionaries of dataclasses
            given["price"] = vars(read)["price"]
    except ValidationError as error:
        wrong = [f"{where}{_in_words(one)}" for one in error.errors()]
    wrong += [f"{where}{_unknown(str(field))}" for field in fields if field not in FIELDS]
    if wrong:
        raise FormatError("setting", "; ".join(wrong))
    return given


def _in_words(error: ErrorDetails) -> str:
    """Return the problem of one field. The value is left out if it might be a secret."""
    field = str(error["loc"][0])
    return f".{field}: {error_words(error, shows_value=field not in _UNSHOWN)}"


def _unknown(field: str) -> str:
    if "key" in field.lower():
        return f".{field}: never put a key in settings; name its variable in api_key_env"
    return f": there is no field {field!r}{suggest_name(field, FIELDS)}"


def _role(role: Any, *, where: str) -> ModelRole:
    for known in MODEL_ROLES:
        if role == known:
            return known
    raise FormatError(
        "setting", f"{where}: there is no role {role!r}{suggest_name(role, MODEL_ROLES)}"
    )


def _names(names: Any, *, where: str) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else names
    if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
        raise FormatError("setting", f"{where}: must be a profile's name or a list of them")
    if not listed:
        raise FormatError(
            "setting", f"{where}: is an empty list; write the name of a profile, or remove it"
        )
    return tuple(dict.fromkeys(listed))


def _changed_profile(base: ModelProfile, fields: Given) -> ModelProfile:
    """Return the profile with these fields replaced."""
    own = {name: value for name, value in fields.items() if name not in _SAMPLING}
    picked = {name: value for name, value in fields.items() if name in _SAMPLING}
    if "model" in own or "base_url" in own:  # the price of another model says nothing
        own = {"price": None, **own}
    if "client" not in own and set(_WHERE) & set(own):
        own["client"] = "scripted" if "script" in own else "openai"
    if own.get("client") == "anthropic" and "base_url" not in own:
        own = {"api_key_env": ANTHROPIC_KEY, **own, "base_url": ANTHROPIC_URL}
    return replace(base, **own, sampling=replace(base.sampling, **picked))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One model on one server, with the limits for requests.

    The time limit of a request covers all attempts and pauses.
    """

    name: str
    base_url: str
    model: str
    api_key: SecretText = field(default_factory=SecretText)
    timeout_seconds: float = 60.0
    """The time limit of one attempt."""
    max_retries: int = 2
    """How many attempts follow a failed one. The server's `Retry-After` is obeyed."""
    idle_seconds: float = 20.0
    """The longest time that an attempt may go without data.

    Before the headers it applies to streams only: a server that does not stream is silent while it
    writes.
    """
    max_concurrent: int = 4
    max_reply_bytes: int = 1_000_000
    """The most bytes that are read of one reply."""
    stream: bool = True
    """True if a reply is streamed when the request has a listener."""
    game_id: str = ""
    """The name of the game, which requests carry so that a router can tell games apart."""
    session_header: str = ""
    """The name of a header that also carries the session key; "" for none."""

    def session_key(self, cache_key: str) -> str:
        """Return a hash of `cache_key` by which a router recognizes an NPC: 32 hex digits.

        The key itself is not sent, because some routers compare only the starts of keys, and
        `npc-1` and `npc-12` start alike.
        """
        return sha256(f"{self.game_id}\0{cache_key}".encode()).hexdigest()[:32]

    def __post_init__(self) -> None:
        if problem := _address_problem(self.base_url):
            raise EndpointError(self.name, "base_url", problem)
        if not self.api_key.fits_a_header():
            raise EndpointError(
                self.name,
                "api_key",
                "has characters that an API key cannot have; remove spaces and line breaks",
            )
        if not self.model:
            raise EndpointError(self.name, "model", "is empty: give the model's name")
        for limit in ("timeout_seconds", "idle_seconds"):
            if not (getattr(self, limit) > 0 and math.isfinite(getattr(self, limit))):
                raise EndpointError(self.name, limit, "must be a number over 0")
        for limit, least in (("max_retries", 0), ("max_concurrent", 1), ("max_reply_bytes", 1)):
            if getattr(self, limit) < least:
                raise EndpointError(self.name, limit, f"must be {least} or more")


def _address_problem(address: str) -> str:
    """Return what is wrong with a base address, or "". The message does not quote the address."""
    wanted = "it must look like http://127.0.0.1:8080/v1"
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return f"is not an address; {wanted}"
    if not address.isprintable() or " " in address:
        return f"has a space or an invisible character; {wanted}"
    if parts.scheme not in ("http", "https") or not host:
        return f"is not an http or https address; {wanted}"
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        return f"must not hold a name, a key or a question mark; {wanted}"
    return ""
