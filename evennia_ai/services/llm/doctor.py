"""Check the server of a model profile within seconds, and say what to do about each problem.

`examine` sends a few small requests and returns findings as values. It does no networking of its
own and knows no game. The caller passes a `Fetch` for plain requests, and a `MakeRequest` and an
`Ask` for calls of the model, so that the game counts these calls like all others. Each of them must
end within the seconds that it gets. Together these are less than `SECONDS`, whatever the server
does.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlsplit

from evennia_ai.engine.errors import (
    EvenniaAIError,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
    on_one_line,
)
from evennia_ai.engine.prompt.messages import ToolSpec
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.services.llm.chat import (
    AnswerSchema,
    ChatMessage,
    ChatReply,
    ChatRequest,
    Listener,
)
from evennia_ai.services.llm.learned import Learned
from evennia_ai.services.llm.probes import (
    Answer,
    Fetch,
    Probe,
    entries_of,
    is_called,
    is_list,
    name_of,
)
from evennia_ai.services.llm.profiles import ModelProfile
from evennia_ai.services.llm.structured import json_objects
from evennia_ai.services.llm.windows import Window, list_address, window_of

SECONDS: Final = 9.0
"""The longest time that a whole check may take."""

LIST_SECONDS: Final = 2.5
REPLY_SECONDS: Final = 4.0
WINDOW_SECONDS: Final = 1.5
LEAST_SECONDS: Final = 0.5
"""With less time left than this, the check starts no further step."""

REPLY_TOKENS: Final = 200
MOST_NAMES: Final = 5

State = Literal["ok", "note", "FAIL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one step of the check."""

    about: str
    state: State
    """How serious the finding is.

    `note` means that all works or nothing is known, but an admin may want to change something.
    """
    told: str
    advice: str = ""
    """What the admin should do, or ""."""

    def line(self) -> str:
        """Return the finding as one line of text."""
        return f"{self.state:4}  {self.about:9} {self.told}{f'. {self.advice}' * bool(self.advice)}"


class MakeRequest(Protocol):
    """A function that makes a request for the profile's model: `endpoints.Access.request`."""

    def __call__(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        most_seconds: float,
        tools: tuple[ToolSpec, ...] = (),
        schema: AnswerSchema | None = None,
    ) -> ChatRequest: ...


Ask = Callable[[ChatRequest, Listener | None], Awaitable[ChatReply]]
"""A function that calls the model within the request's time limit.

It raises the errors of a `ChatModel`.
"""

_WEATHER: Final = (
    ChatMessage(role="system", content="Answer in one short sentence."),
    ChatMessage(role="user", content="It is evening by the sea."),
    ChatMessage(role="system", content="Speak of nothing but the weather."),
    ChatMessage(role="user", content="What is the weather like?"),
)
"""A short conversation with the roles that an NPC's prompt has.

Some chat templates refuse these roles.
"""

_LOOK: Final = ToolSpec(
    name="look",
    description="Look at something.",
    parameters={
        "type": "object",
        "properties": {"at": {"type": "string"}},
        "required": ["at"],
        "additionalProperties": False,
    },
)
_COLOUR: Final = AnswerSchema(
    name="colour",
    schema={
        "type": "object",
        "properties": {"colour": {"type": "string"}},
        "required": ["colour"],
        "additionalProperties": False,
    },
)


@dataclass(slots=True, kw_only=True)
class _Examination:
    """The state of one check while it runs."""

    profile: ModelProfile
    has_key: bool
    restart: str
    fetch: Fetch
    request: MakeRequest
    learned: Learned
    ask: Ask
    now: Callable[[], float]
    until: float
    findings: list[Finding] = field(default_factory=list)

    def add(self, about: str, state: State, told: str, advice: str = "") -> None:
        self.findings.append(Finding(about=about, state=state, told=told, advice=advice))

    def seconds(self, most: float) -> float:
        """Return the seconds that the next step may take, or 0 if too little time is left."""
        left = min(most, self.until - self.now())
        return left if left >= LEAST_SECONDS else 0.0


async def examine(
    profile: ModelProfile,
    *,
    has_key: bool,
    restart: str,
    fetch: Fetch,
    request: MakeRequest,
    learned: Learned,
    ask: Ask,
    now: Callable[[], float],
) -> tuple[Finding, ...]:
    """Check a profile and its server, and return the findings.

    Later steps depend on earlier ones.

    Args:
        profile: The profile. If it uses no server, there is one finding only.
        has_key: True if this process has the profile's key.
        restart: What an admin must restart after exporting a key, as the end of a sentence.
        fetch: Sends plain requests, with the key.
        request: Makes a request for the model.
        learned: What the server's refusals have shown, including refusals during this check.
        ask: Sends a request to the model.
        now: Returns the current time in seconds.
    """
    one = _Examination(
        profile=profile,
        has_key=has_key,
        restart=restart,
        fetch=fetch,
        request=request,
        learned=learned,
        ask=ask,
        now=now,
        until=now() + SECONDS,
    )
    if profile.client not in ("openai", "anthropic"):
        one.add("address", "ok", f"the client '{profile.client}' asks no server")
        return tuple(one.findings)
    listed = await _check_address(one)
    if listed is None:
        return tuple(one.findings)
    refused = listed.status in (401, 403)
    works, error = (False, None) if refused else await _check_reply(one)
    _judge_key(one, status=listed.status if refused else getattr(error, "status", None))
    names = _names(listed.json)
    _judge_model(one, names, works=works, error=error)
    one.findings.sort(key=lambda found: _ORDER.index(found.about))
    if works:
        _judge_window(one, await window_of(profile, listed, fetch, one.seconds(WINDOW_SECONDS)))
        await _try_tools(one)
        await _try_schema(one)
        _judge_requests(one)
    return tuple(one.findings)


_ORDER: Final = ("address", "key", "model", "reply", "streaming", "speed")


async def _check_address(one: _Examination) -> Answer | None:
    """Check whether an API answers at the base address.

    Returns:
        The server's list of models, or None if there is no API.
    """
    base = one.profile.base_url.rstrip("/")
    others = [] if one.profile.client == "anthropic" else _likely_addresses(base)
    probes = [list_address(one.profile), *(f"{other}/models" for other in others)]
    answers = await one.fetch([Probe(address=each) for each in probes], one.seconds(LIST_SECONDS))
    first, *rest = answers
    if first.problem:
        one.add(
            "address",
            "FAIL",
            f"{base} cannot be reached: {first.problem}",
            "Start the server there, or correct base_url; inside a container localhost is the"
            " container itself",
        )
        return None
    if is_list(first) or first.status in (401, 403):
        one.add("address", "ok", f"{base} answers")
        return first
    for other, answer in zip(others, rest, strict=True):
        if is_list(answer) or answer.status in (401, 403):
            one.add(
                "address",
                "FAIL",
                f"{base} is not the API (status {first.status}), but {other} is",
                f'Set base_url to "{other}"',
            )
            return None
    if 300 <= first.status < 400:
        where = f" to {first.location}" if first.location else ""
        one.add(
            "address",
            "FAIL",
            f"{base} redirects{where}, which is not followed: the key would go there",
            "Set base_url to the address to which the server redirects",
        )
        return None
    one.add("address", "ok", f"{base} answers, without a list of models (status {first.status})")
    return first


def _likely_addresses(base: str) -> list[str]:
    """Return addresses at the same server that may be the API, the likeliest first."""
    path = urlsplit(base).path.rstrip("/")
    root = base.removesuffix(path) if path else base
    short = base.removesuffix("/chat/completions").removesuffix("/completions")
    likely = [short, f"{short}/v1", f"{root}/v1", f"{root}/api/v1", short.removesuffix("/v1")]
    return [one for one in dict.fromkeys(likely) if one != base]


async def _check_reply(one: _Examination) -> tuple[bool, EvenniaAIError | None]:
    """Check whether the model writes a reply.

    Returns:
        True if it does, else the error.
    """
    heard: list[tuple[float, str]] = []
    began = one.now()
    seconds = one.seconds(REPLY_SECONDS)
    try:
        reply = await _ask_about_weather(
            one, seconds, lambda piece: heard.append((one.now(), piece))
        )
    except EvenniaAIError as error:
        if not heard:
            one.add("reply", "FAIL", on_one_line(error), _advice_for_no_reply(error, seconds))
            return False, error
        text = "".join(piece for _, piece in heard)
        tokens = ESTIMATE.count(text)
        one.add("reply", "ok", f"the model writes, and was not ready after {seconds:.0f} s")
    else:
        text, tokens = reply.text, ESTIMATE.count(reply.text)
        if reply.usage is not None and 0 < reply.usage.output_tokens <= REPLY_TOKENS:
            tokens = reply.usage.output_tokens
        one.add("reply", "ok", f"the model answers, {len(text.split())} words")
    ended = one.now()
    if heard:
        one.add("streaming", "ok", f"first words after {heard[0][0] - began:.1f} s")
    elif not one.profile.stream:
        one.add("streaming", "ok", "not asked for (stream: False in the profile)")
    else:
        one.add(
            "streaming",
            "note",
            "the server answers in one piece",
            "NPCs speak once a reply is complete",
        )
    writing = ended - (heard[0][0] if heard else began)
    if writing < 0.05:  # The reply came so fast that a speed would mean nothing.
        writing = ended - began
    rate = tokens / max(writing, 0.001)
    slow = "NPCs need a while; a smaller model is quicker" if rate < 5 else ""
    shown = f"about {rate:.0f}" if rate < 1000 else "over 1000"
    one.add("speed", "note" if slow else "ok", f"{shown} tokens a second", slow)
    return True, None


async def _ask_about_weather(one: _Examination, seconds: float, hear: Listener) -> ChatReply:
    """Ask about the weather. If the server refuses the roles of a prompt, ask with other roles."""
    until = one.now() + seconds
    max_tokens = min(REPLY_TOKENS, one.profile.reply_tokens)
    request = one.request(_WEATHER, max_tokens=max_tokens, most_seconds=seconds)
    while True:
        try:
            return await one.ask(request, hear)
        except ModelRefused:
            left = until - one.now()
            again = one.request(_WEATHER, max_tokens=max_tokens, most_seconds=left)
            # The client may have learnt from the refusal which roles the server accepts. Then its
            # next request has other messages. The same messages would only be refused again.
            if again.messages == request.messages or left < LEAST_SECONDS:
                raise
            request = again


def _advice_for_no_reply(error: EvenniaAIError, seconds: float) -> str:
    """Return what the admin should do about a missing reply, or "" if the error says it."""
    if isinstance(error, ModelTimeout):
        return (
            f"A model that is loaded first may need longer than the {seconds:.0f} s of this check;"
            " try once more"
        )
    if isinstance(error, ModelUnavailable):
        return "Try again in a minute; if it stays so, look at the server's own log"
    if isinstance(error, ModelRubbish) and "of the profile" not in error.problem:
        return "Look at the server's own log; a model that is not made for chats may write nothing"
    return ""


def _judge_key(one: _Examination, *, status: int | None) -> None:
    variable = one.profile.api_key_env
    is_refused = status in (401, 403)
    if one.has_key and is_refused:
        advice = f"Export the right one as {variable}, {one.restart}"
        one.add("key", "FAIL", f"the server refuses it (status {status})", advice)
    elif one.has_key:
        one.add("key", "ok", f"sent from {variable}, not refused")
    elif is_refused:
        told = f"the server wants one (status {status}), and this process has none"
        where = variable or "a variable that api_key_env of the profile names"
        one.add("key", "FAIL", told, f"Export it as {where}, {one.restart}")
    else:
        one.add("key", "ok", "none is configured, and the server requires none")


def _judge_requests(one: _Examination) -> None:
    """Report what the server refused, so that requests no longer contain it."""
    if changes := one.learned.describe_changes():
        told = f"the server refused the usual one; now it {changes}"
        advice = f"Set {one.learned.lasting_settings()} in the profile: then it refuses none"
        one.add("request", "note", told, advice)


def _names(listed: Any) -> list[str]:
    """Return the names in a list of models, whatever format the server uses."""
    entries = entries_of(listed)
    return [name for entry in entries if (name := name_of(entry))]


def _judge_model(
    one: _Examination, names: Sequence[str], *, works: bool, error: EvenniaAIError | None
) -> None:
    model = one.profile.model
    if any(is_called(name, model) for name in names):
        one.add("model", "ok", f"'{model}' is there")
        return
    if not names:
        if works:
            one.add("model", "ok", f"'{model}' answers")
        elif getattr(error, "status", None) == 404:
            advice = "Look up the names of the server's models"
            one.add("model", "FAIL", f"the server knows no '{model}', and lists none", advice)
        return
    part = [name for name in names if model.lower() in name.lower()]
    near = dict.fromkeys((*part, *get_close_matches(model, names, n=MOST_NAMES, cutoff=0.4)))
    shown = ", ".join(list(near or names)[:MOST_NAMES])
    what = "Nearest" if near else "There are"
    if works:
        told = f"'{model}' is not in the list, and the server answers all the same"
        one.add("model", "note", told, f"It may take any name. {what}: {shown}")
    else:
        told = f"the server has no '{model}'"
        one.add("model", "FAIL", told, f"{what}: {shown}. Set model in the profile")


def finding_of_window(profile: ModelProfile, window: Window | None) -> Finding:
    """Return a finding that compares the server's window with the size of the profile's prompts."""
    used = profile.context_tokens
    if window is None:
        return Finding(
            about="window",
            state="note",
            told=f"the server does not say; the profile counts on {used} tokens",
            advice="Set context_tokens to what the model can read",
        )
    if window.tokens >= used:
        told = f"{window.tokens} tokens, of which the profile uses {used}"
        return Finding(about="window", state="ok", told=told)
    return Finding(
        about="window",
        state="FAIL",
        told=f"the server reads {window.tokens} tokens, the profile '{profile.name}' sends up to"
        f" {used}: longer ones are cut or refused",
        advice=f"Raise it ({window.setting}), or set context_tokens to {window.tokens}",
    )


def _judge_window(one: _Examination, window: Window | None) -> None:
    one.findings.append(finding_of_window(one.profile, window))


_NO_TIME: Final = "not known, the time of this check was over"


async def _try_tools(one: _Examination) -> None:
    way = one.profile.tools
    if way != "native":
        how = "described in the prompt" if way == "schema" else "not used"
        one.add("tools", "ok", f"{how}, as the profile says (tools: {way})")
        return
    advice = 'Set tools to "schema" in the profile'
    reply = await _answered(
        one,
        "tools",
        'Call the tool "look" for the word boat. Say nothing else.',
        # The check of schemas, which follows, needs the rest of the time.
        seconds=one.seconds((one.until - one.now()) / 2),
        advice=advice,
        tools=(_LOOK,),
    )
    if reply is not None and reply.tool_calls:
        one.add("tools", "ok", "the model calls them")
    elif reply is not None:
        one.add("tools", "note", "offered, and the model did not call any", advice)


async def _try_schema(one: _Examination) -> None:
    if one.profile.schema != "native":
        one.add("schema", "ok", "described in the prompt, as the profile says (schema: text)")
        return
    advice = 'Set schema to "text" in the profile'
    reply = await _answered(
        one,
        "schema",
        'Which colour has the sea? Answer as JSON, such as {"colour": "red"}.',
        seconds=one.seconds(SECONDS),
        advice=advice,
        schema=_COLOUR,
    )
    if reply is None:
        return
    if any("colour" in found for found in json_objects(reply.text).objects):
        one.add("schema", "ok", "the server holds the model to a JSON schema")
    else:
        one.add("schema", "note", "the answer does not match the schema of the request", advice)


async def _answered(
    one: _Examination,
    about: str,
    text: str,
    *,
    seconds: float,
    advice: str,
    tools: tuple[ToolSpec, ...] = (),
    schema: AnswerSchema | None = None,
) -> ChatReply | None:
    """Ask the model and return its reply. If there is none, add a finding and return None."""
    if not seconds:
        one.add(about, "note", _NO_TIME)
        return None
    request = one.request(
        [ChatMessage(role="user", content=text)],
        max_tokens=min(REPLY_TOKENS, one.profile.reply_tokens),
        most_seconds=seconds,
        tools=tools,
        schema=schema,
    )
    try:
        return await one.ask(request, None)
    except EvenniaAIError as error:
        if getattr(error, "timeout_seconds", None) is not None:
            one.add(about, "note", _NO_TIME)
        elif isinstance(error, ModelRefused) and f"{about} of the profile" in error.advice:
            # The text of the error already says what helps.
            one.add(about, "FAIL", on_one_line(error))
        else:
            one.add(about, "FAIL", on_one_line(error), advice)
        return None
