"""Models by profile, and the profiles that each role uses.

The game and the workers both use this module, so callers pass the clock and the other parts of
Evennia as arguments. Each profile gets one `Access` when it is first used. All clients run in one
thread, the bridge's. Profiles that name the same model at the same address share one circuit
breaker and one queue. Each protocol has its own client class, and its library is imported when the
first client is made. Without a configured model the offline responder answers, so that a game works
before it has a model.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred, FirstError, fail, gatherResults, succeed
from twisted.python.failure import Failure

from evennia_ai.engine.errors import EvenniaAIError, ModelUnavailable
from evennia_ai.engine.prompt.messages import ToolSpec
from evennia_ai.services.llm.chat import (
    AnswerSchema,
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    Listener,
    Thoughts,
    Usage,
)
from evennia_ai.services.llm.clients import anthropic, openai
from evennia_ai.services.llm.clients.anthropic import AnthropicChat
from evennia_ai.services.llm.clients.embeddings import EmbeddingServer
from evennia_ai.services.llm.clients.openai import OpenAIChat
from evennia_ai.services.llm.clients.scripted import FILES, scripted_from
from evennia_ai.services.llm.learned import Learned, without_fields
from evennia_ai.services.llm.offline.responder import OfflineResponder
from evennia_ai.services.llm.prices import call_cost, load_prices, needs_tables
from evennia_ai.services.llm.profiles import (
    DEFAULT,
    Client,
    Endpoint,
    ModelProfile,
    ModelRole,
    Sampling,
    recorded_extra,
)
from evennia_ai.services.llm.resilience import CircuitBreaker, Clock, Guarded, Slots
from evennia_ai.services.llm.roles import OPEN, RoleProfile, adapt_messages, alternating
from evennia_ai.services.llm.sentence_model import Sentences, sentence_model
from evennia_ai.services.llm.tools import schema_of
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.net.secrets import SecretText
from evennia_ai.services.settings.game import Conf
from evennia_ai.services.settings.npc import NPCSettings

OFFLINE: Final = "offline responder"

log: Final = logging.getLogger(__name__)


class NotReady:
    """A placeholder for a model whose profile cannot be used. Every call fails with the reason."""

    offline: Final = False

    def __init__(self, name: str, reason: str) -> None:
        self._name = name
        self.reason: Final = reason

    @property
    def name(self) -> str:
        return self._name

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """Fail at once with the reason why the profile cannot be used."""
        return fail(ModelUnavailable(self._name, self.reason, was_sent=False))

    def prepare(self) -> Deferred[None]:
        """Fail at once with the reason why the profile cannot be used."""
        return fail(ModelUnavailable(self._name, self.reason, was_sent=False))

    def close(self) -> None:
        """Do nothing, because this placeholder has no connections."""


def title_of(profile: ModelProfile) -> str:
    """Return the name by which logs and builders know a profile's model."""
    if profile.name == DEFAULT:
        return profile.model or profile.client
    return f"{profile.name} ({profile.model})" if profile.model else profile.name


def endpoint_of(profile: ModelProfile, conf: Conf, *, game_id: str = "") -> Endpoint:
    """Return the endpoint of a profile, with its key.

    Args:
        game_id: The name of the game, which requests carry so that a router can tell games apart.

    Raises:
        EndpointError: the profile's address, key or model is not valid.
    """
    return Endpoint(
        name=title_of(profile),
        base_url=profile.base_url,
        model=profile.model,
        api_key=conf.key_of(profile),
        timeout_seconds=profile.timeout_seconds,
        idle_seconds=profile.idle_seconds,
        max_retries=profile.max_retries,
        max_concurrent=profile.max_concurrent,
        stream=profile.stream,
        game_id=game_id,
        session_header=conf.session_header,
    )


def roles_of(profile: ModelProfile) -> RoleProfile:
    """Return the message format that a profile requires, such as one system message only."""
    roles = RoleProfile(
        system=profile.system_role, tools=profile.tools, past_calls=profile.past_calls
    )
    return alternating(roles) if profile.strict_roles else roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything that a client needs in addition to its profile."""

    conf: Conf
    clock: Clock
    bridge: AsyncBridge
    game_id: Callable[[], str] = str
    """Returns the name of the game. Called when a client for a server is made."""
    learned: Learned = field(default_factory=Learned)
    """What the server's refusals have shown about the model."""
    tell: Callable[[str], object] = log.warning
    """Called with each message that an admin should read."""


def client_of(profile: ModelProfile, around: Surroundings) -> ChatModel:
    """Return a new client for the model of a profile.

    Raises:
        EvenniaAIError: no client can be made from this profile.
    """
    return _MAKERS[profile.client](profile, around)


def prepared(client: ChatModel) -> Deferred[None]:
    """Return a Deferred that fires when the client is ready for a first request."""
    prepare: Callable[[], Deferred[None]] | None = getattr(client, "prepare", None)
    return succeed(None) if prepare is None else prepare()


def _remote(profile: ModelProfile, around: Surroundings) -> ChatModel:
    endpoint = endpoint_of(profile, around.conf, game_id=around.game_id())
    kind = AnthropicChat if profile.client == "anthropic" else OpenAIChat
    return kind(endpoint, around.bridge, learned=around.learned, tell=around.tell)


def _scripted(profile: ModelProfile, around: Surroundings) -> ChatModel:
    script = Path(around.conf.game_folder, profile.script)
    is_file = script.suffix.lower() in FILES
    return scripted_from(
        script if is_file else profile.script, name=title_of(profile), clock=around.clock
    )


def _offline(profile: ModelProfile, around: Surroundings) -> ChatModel:
    return OfflineResponder(around.conf.unknown_line, name=OFFLINE)


_MAKERS: Final[dict[Client, Callable[[ModelProfile, Surroundings], ChatModel]]] = {
    "openai": _remote,
    "anthropic": _remote,
    "scripted": _scripted,
    "offline": _offline,
}


_UNKNOWN: Final = ModelProfile(name=DEFAULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A model, the profile that it is called with, and the state that its calls share.

    `profile` has the changes of the NPC. `roles` is the form of messages by the profile, `model_id`
    the model's name at its server. `client` is the client inside the guarded `model`.
    """

    model: ChatModel
    model_id: str = ""
    roles: RoleProfile = OPEN
    breaker: CircuitBreaker | None = None
    profile: ModelProfile = _UNKNOWN
    client: ChatModel | None = None
    learned: Learned = field(default_factory=Learned)
    """What the server has revealed about the model. All profiles of the model share it."""

    @property
    def name(self) -> str:
        """The name of the model that the status page and commands show to builders."""
        return OFFLINE if self.model.offline else self.model.name

    @property
    def where(self) -> tuple[str, str, str]:
        """The client, the address and the model's name.

        If these are equal, the model is the same.
        """
        return _model_identity(self.profile)

    @property
    def most_at_once(self) -> int:
        """How many requests the server may handle at the same time."""
        model = self.model
        return model.most_at_once if isinstance(model, Guarded) else self.profile.max_concurrent

    @property
    def limit_tokens(self) -> int:
        """The most tokens that a prompt may have.

        The profile and the server's own window both limit it.
        """
        return self.learned.prompt_limit(self.profile.limit_tokens)

    @property
    def context_tokens(self) -> int:
        """The most tokens that prompt and reply may have together."""
        return self.limit_tokens + self.profile.reply_tokens

    @property
    def tells_past_calls(self) -> bool:
        """True if tool calls of earlier turns are sent as text."""
        return self.learned.tells_past_calls or self.roles.past_calls == "told"

    @property
    def taken_roles(self) -> RoleProfile:
        """The message format that the server accepts, by the profile and by earlier refusals."""
        roles, refused = self.roles, self.learned.roles
        if self.tells_past_calls:
            roles = replace(roles, past_calls="told")
        if "no_system" in refused:
            roles = replace(roles, system=False)
        return alternating(roles) if "in_turn" in refused else roles

    @property
    def is_held_to_schemas(self) -> bool:
        """True if the server itself enforces the JSON schema of an answer."""
        return self.profile.schema == "native"

    def request(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        most_seconds: float = inf,
        sampling: Sampling | None = None,
        tools: tuple[ToolSpec, ...] = (),
        schema: AnswerSchema | None = None,
        cache_key: str = "",
        thoughts: Mapping[str, Thoughts] | None = None,
    ) -> ChatRequest:
        """Return a request whose messages have the format that the server accepts.

        If the server does not support tools, a text in the messages describes them. If such a
        server enforces JSON schemas, the request also gets the schema of an answer that can call
        these tools.

        Args:
            thoughts: Hidden reasoning from earlier replies of this turn. The key is the id of the
                first tool call of the message that it belongs to.
        """
        if tools and self.roles.tools == "schema" and self.is_held_to_schemas:
            schema = schema_of(tools)
        return ChatRequest(
            messages=self.fitted(messages, tools=tools, own_calls=thoughts or ()),
            model=self.model_id,
            max_tokens=max_tokens,
            timeout_seconds=min(most_seconds, self.profile.timeout_seconds),
            sampling=sampling or self.profile.sampling,
            tools=tools if self.roles.tools == "native" else (),
            schema=schema,
            cache_key=cache_key,
            thoughts=dict(thoughts or {}),
        )

    def fitted(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: tuple[ToolSpec, ...] = (),
        own_calls: Collection[str] = (),
    ) -> tuple[ChatMessage, ...]:
        """Return messages in the format that the server accepts.

        Args:
            own_calls: Ids of the tool calls of this turn. They stay calls even if calls of earlier
                turns are sent as text.
        """
        return adapt_messages(messages, profile=self.taken_roles, tools=tools, own_calls=own_calls)

    def recorded(self, request: ChatRequest, *, keys: Iterable[SecretText]) -> dict[str, Any]:
        """Return the parameters of a request that a turn's manifest records.

        Messages and tools are not included. Secrets are left out, because an admin may have written
        a key into `extra`.

        Args:
            request: The request as it is sent.
            keys: The keys of the game, which are removed from texts in `extra`.
        """
        asked = {"profile": self.profile.name, "client": self.profile.client}
        if self.model.offline:
            return {**asked, "client": "offline"}
        extra, withheld = recorded_extra(request.sampling.extra, keys=keys)
        roles = self.taken_roles
        return {
            **asked,
            "tools": roles.tools,
            "strict_roles": roles.alternate,
            **({} if roles.system else {"system_role": False}),
            **({"past_calls": "told"} if roles.past_calls == "told" else {}),
            "body": without_fields(
                {**extra, **_parameters(self.profile.client)(request, model=self.model_id)},
                self.learned.left_out(request.sampling.extra),
            ),
            **({"withheld": list(withheld)} if withheld else {}),
        }

    def cost(self, usage: Usage, *, at: float) -> int | None:
        """Return the nanodollars of a call that began at this time, None if no price is known."""
        return 0 if self.model.offline else call_cost(self.profile, usage, at=at)

    def prepare(self) -> "Deferred[None]":
        """Load what the first request needs, in another thread than the reactor's."""
        return succeed(None) if self.client is None else prepared(self.client)

    def close(self) -> None:
        """Cancel running requests and close the connections."""
        self.model.close()


def access_in_loop(profile: ModelProfile, conf: Conf) -> Access:
    """Return access to the server of a profile, for requests in the running asyncio loop.

    Ask `access.client.answer`, and close the client with `aclose` at the end.
    """
    # The bridge is only needed for closing: every request runs in the caller's loop.
    kind = AnthropicChat if profile.client == "anthropic" else OpenAIChat
    chat = kind(endpoint_of(profile, conf), AsyncBridge())
    return Access(
        model=chat,
        model_id=profile.model,
        roles=roles_of(profile),
        profile=profile,
        client=chat,
        learned=chat.learned,
    )


def _parameters(client: Client) -> Callable[..., dict[str, Any]]:
    return anthropic.parameters_of if client == "anthropic" else openai.parameters_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gate:
    """The breaker, the queue and the learned facts that all profiles of one model share."""

    breaker: CircuitBreaker
    slots: Slots
    learned: Learned


class Models:
    """All models of one process, by profile and by role.

    In tests and trials, `only` replaces all of them.
    """

    def __init__(
        self,
        conf: Conf,
        *,
        clock: Clock,
        bridge: AsyncBridge | None = None,
        only: Access | None = None,
        game_id: Callable[[], str] = str,
        log_error: Callable[[str], object] = log.error,
    ) -> None:
        """Store how to reach the models in the settings. Clients are made at their first use.

        Args:
            game_id: Returns the name of the game, or "". Called when the first client for a server
                is made.
        """
        self._clock: Final = clock
        self._bridge: Final = bridge or AsyncBridge()
        self._around: Final = Surroundings(
            conf=conf, clock=clock, bridge=self._bridge, game_id=game_id, tell=log_error
        )
        self._log_error: Final = log_error
        self._only: Final = only
        self._profiles: Final = conf.profiles
        self._roles: Final = conf.model_roles
        self._sentences: Sentences | None = None
        self._made: dict[tuple[str, str], Access] = {}
        self._gates: dict[tuple[str, str, str], _Gate] = {}

    @property
    def profiles(self) -> tuple[ModelProfile, ...]:
        """All model profiles of the settings, `default` first."""
        return tuple(self._profiles.values())

    @property
    def used_profiles(self) -> tuple[ModelProfile, ...]:
        """The profiles that a role uses."""
        used = dict.fromkeys(name for names in self._roles.values() for name in names)
        return tuple(self._profiles[name] for name in used)

    @property
    def bridge(self) -> AsyncBridge:
        """The thread in which asyncio code runs."""
        return self._bridge

    def of_role(
        self, role: ModelRole, *, settings: NPCSettings | None = None
    ) -> tuple[Access, ...]:
        """Return the models for a role such as "speaker", in the order in which they are tried.

        There is always at least one. The settings of an NPC may choose the profiles with which it
        speaks. Profiles that no longer exist are skipped.
        """
        names = self._roles[role]
        if settings is None or role != "speaker":
            return tuple(self._access(self._profiles[name]) for name in names)
        return tuple(self._access(profile) for profile in self._spoken_with(settings))

    def thinking(self, role: ModelRole) -> tuple[Access, ...]:
        """Return the models of a role without offline responders, which cannot write new texts."""
        return tuple(access for access in self.of_role(role) if not access.model.offline)

    def ready(self, role: ModelRole) -> Access | None:
        """Return the first model of a role whose breaker allows a call, or None."""
        found = (one for one in self.thinking(role) if one.breaker is None or one.breaker.admits)
        return next(found, None)

    def speaking_profile(self, settings: NPCSettings) -> ModelProfile:
        """Return the profile with which an NPC speaks, changed by the NPC's own settings."""
        return self._spoken_with(settings)[0]

    def speaking_limit(self, settings: NPCSettings) -> int:
        """Return the most tokens that a prompt may have for an NPC with these settings."""
        profile = self.speaking_profile(settings)
        return self._gate(profile).learned.prompt_limit(profile.limit_tokens)

    def roles_of(self, name: str) -> tuple[ModelRole, ...]:
        """Return the roles that use a profile, as their first choice or as a replacement."""
        return tuple(role for role, names in self._roles.items() if name in names)

    def sentences(self) -> Sentences:
        """Return the model that turns texts into vectors: a server or the packaged model.

        Raises:
            SentenceModelError: there is no such model.
        """
        if self._sentences is None:
            profile = self._profiles.get(self._around.conf.embeddings_profile)
            self._sentences = (
                sentence_model()
                if profile is None
                else EmbeddingServer(endpoint_of(profile, self._around.conf))
            )
        return self._sentences

    def accesses(self) -> tuple[Access, ...]:
        """Return the models of all profiles, `default` first."""
        return tuple(self._access(profile) for profile in self._profiles.values())

    def prepare(self) -> "Deferred[Any]":
        """Load what the first requests need. Fails if one of the models cannot be loaded."""
        prepared = [self._access(profile).prepare() for profile in self.used_profiles]
        if any(map(needs_tables, self.profiles)):
            prepared.append(self._bridge.run(_load_prices))
        return gatherResults(prepared, consumeErrors=True).addErrback(_first_failure)

    def close(self) -> None:
        """Cancel running requests, close all connections and end the bridge's thread."""
        opened = self._made.values() if self._only is None else (self._only,)
        for access in opened:
            access.close()
        self._bridge.stop()

    def _spoken_with(self, settings: NPCSettings) -> tuple[ModelProfile, ...]:
        names: Iterable[str] = self._roles["speaker"]
        if settings.profile in self._profiles:
            names = dict.fromkeys((settings.profile, *names))
        first, *others = (self._profiles[name] for name in names)
        if settings.model:
            first = replace(first, model=settings.model, price=None)
        return tuple(settings.applied_to(profile) for profile in (first, *others))

    def _access(self, profile: ModelProfile) -> Access:
        key = (profile.name, profile.model)
        if key not in self._made:
            self._made[key] = self._made_for(profile)
        made = self._made[key]
        return made if made.profile == profile else replace(made, profile=profile)

    def _made_for(self, profile: ModelProfile) -> Access:
        if self._only is not None:
            model_id = profile.model or self._only.model_id
            learned = self._gate(profile).learned
            return replace(self._only, profile=profile, model_id=model_id, learned=learned)
        try:
            client = client_of(profile, replace(self._around, learned=self._gate(profile).learned))
        except EvenniaAIError as error:
            self._log_error(f"evennia_ai: profile '{profile.name}' cannot be used: {error}")
            client = NotReady(title_of(profile), str(error))
        if isinstance(client, NotReady) or client.offline:
            model_id = profile.model or profile.client
            return Access(model=client, model_id=model_id, profile=profile, client=client)
        return self._guarded_access(client, profile)

    def _guarded_access(self, client: ChatModel, profile: ModelProfile) -> Access:
        gate = self._gate(profile)
        return Access(
            model=Guarded(client, breaker=gate.breaker, clock=self._clock, slots=gate.slots),
            model_id=profile.model or profile.client,
            roles=roles_of(profile),
            breaker=gate.breaker,
            profile=profile,
            client=client,
            learned=gate.learned,
        )

    def _gate(self, profile: ModelProfile) -> _Gate:
        """Return the breaker and queue that all profiles of a model share.

        If these profiles have different limits for simultaneous requests, the lowest limit counts.
        """
        key = _model_identity(profile)
        if key not in self._gates:
            same = [
                one for one in (profile, *self._profiles.values()) if _model_identity(one) == key
            ]
            self._gates[key] = _Gate(
                breaker=CircuitBreaker(seconds=self._clock.seconds),
                slots=Slots(min(one.max_concurrent for one in same)),
                learned=Learned(),
            )
        return self._gates[key]


async def _load_prices() -> None:
    load_prices()


def _model_identity(profile: ModelProfile) -> tuple[str, str, str]:
    """Return the client, the address and the name that identify a model."""
    return (profile.client, profile.base_url or profile.script, profile.model)


def _first_failure(failure: Failure) -> Failure:
    """Return the original failure from the `FirstError` of a Twisted gatherResults."""
    inner: Failure = failure.value.subFailure if failure.check(FirstError) else failure
    return inner
