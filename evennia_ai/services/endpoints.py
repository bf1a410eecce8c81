"""Endpoints: the models of the profiles, each guarded, and who is asked in which role.

Of the game or of a worker, which both ask them; so what is Evennia's is handed in.

One `Access` a profile, made when it is first asked; one thread for all of them; one breaker and
one queue for a model at an address, however many profiles ask it. Each provider has a client of its
kind; its library is imported when it is first needed, in the thread of the bridge. None configured
means the offline responder: a game works, and says so, before it has a model.
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
)
from evennia_ai.services.llm.clients import anthropic, openai
from evennia_ai.services.llm.clients.anthropic import AnthropicChat
from evennia_ai.services.llm.clients.embeddings import EmbeddingServer
from evennia_ai.services.llm.clients.openai import OpenAIChat
from evennia_ai.services.llm.clients.scripted import FILES, scripted_from
from evennia_ai.services.llm.learned import Learned, without_fields
from evennia_ai.services.llm.offline.responder import OfflineResponder
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
from evennia_ai.services.llm.roles import OPEN, RoleProfile, adapt, alternating
from evennia_ai.services.llm.sentence_model import Sentences, sentence_model
from evennia_ai.services.llm.tools import schema_of
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.net.secrets import SecretText
from evennia_ai.services.settings.game import Conf
from evennia_ai.services.settings.npc import NPCSettings

OFFLINE: Final = "offline responder"

log: Final = logging.getLogger(__name__)


class NotReady:
    """A model that cannot be asked, because its profile is of no use: it says why each time."""

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
        """Nothing: the call fails at once."""
        return fail(ModelUnavailable(self._name, self.reason, was_sent=False))

    def prepare(self) -> Deferred[None]:
        """Fails with the reason."""
        return fail(ModelUnavailable(self._name, self.reason, was_sent=False))

    def close(self) -> None:
        """Nothing is open."""


def title_of(profile: ModelProfile) -> str:
    """What logs and builders call the model of a profile."""
    if profile.name == DEFAULT:
        return profile.model or profile.client
    return f"{profile.name} ({profile.model})" if profile.model else profile.name


def endpoint_of(profile: ModelProfile, conf: Conf, *, game_id: str = "") -> Endpoint:
    """Where the model of a profile is, with its key; EndpointError: it cannot be there.

    `game_id` tells this game's requests from another game's at one router.
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
    """What messages to the model of a profile must look like."""
    roles = RoleProfile(
        system=profile.system_role, tools=profile.tools, past_calls=profile.past_calls
    )
    return alternating(roles) if profile.strict_roles else roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What clients are made with."""

    conf: Conf
    clock: Clock
    bridge: AsyncBridge
    game_id: Callable[[], str] = str
    """Asked when the first client is made that sends it."""
    learned: Learned = field(default_factory=Learned)
    """What is known of the model that a client asks."""
    tell: Callable[[str], object] = log.warning
    """Is given what an admin should know."""


def client_of(profile: ModelProfile, around: Surroundings) -> ChatModel:
    """A client for the model of a profile; EvenniaAIError says why there can be none."""
    return _MAKERS[profile.client](profile, around)


def prepared(client: ChatModel) -> Deferred[None]:
    """Fires when the client has what a first request needs; some need nothing."""
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
    """A model and how it is asked.

    `profile` says how, with what the NPC has otherwise; `roles` is how messages are fitted to the
    model by its profile, `model_id` is its name there. `client` is what `model` guards.
    """

    model: ChatModel
    model_id: str = ""
    roles: RoleProfile = OPEN
    breaker: CircuitBreaker | None = None
    profile: ModelProfile = _UNKNOWN
    client: ChatModel | None = None
    learned: Learned = field(default_factory=Learned)
    """What its server said of itself, shared by all profiles of the model."""

    @property
    def name(self) -> str:
        """What builders read in the status."""
        return OFFLINE if self.model.offline else self.model.name

    @property
    def where(self) -> tuple[str, str, str]:
        """Client, address and model: accesses with the same ones ask the same model."""
        return _where(self.profile)

    @property
    def most_at_once(self) -> int:
        """How many requests may be out at one time."""
        model = self.model
        return model.most_at_once if isinstance(model, Guarded) else self.profile.max_concurrent

    @property
    def limit_tokens(self) -> int:
        """Tokens that a prompt may have, by the profile and by the window that the server named."""
        return self.learned.prompt_limit(self.profile.limit_tokens)

    @property
    def context_tokens(self) -> int:
        """How many tokens prompt and reply may have together."""
        return self.limit_tokens + self.profile.reply_tokens

    @property
    def tells_past_calls(self) -> bool:
        """True if calls of tools of earlier turns are told as text."""
        return self.learned.tells_past_calls or self.roles.past_calls == "told"

    @property
    def taken_roles(self) -> RoleProfile:
        """What messages must look like, by the profile and by what the server refused."""
        roles, refused = self.roles, self.learned.roles
        if self.tells_past_calls:
            roles = replace(roles, past_calls="told")
        if "no_system" in refused:
            roles = replace(roles, system=False)
        return alternating(roles) if "in_turn" in refused else roles

    @property
    def is_held_to_schemas(self) -> bool:
        """True if its server holds a model to the form of an answer."""
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
        """A request for it, of messages that are fitted to what it takes.

        `thoughts` are what goes with the calls of this turn, by the id of each message's first.

        A server that knows no tools is told of them in the messages, and held to the form of an
        answer that can call them where it holds a model to one.
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
        """The messages as its provider takes them; `own_calls` are ids of calls of this turn."""
        return adapt(messages, profile=self.taken_roles, tools=tools, own_calls=own_calls)

    def recorded(self, request: ChatRequest, *, keys: Iterable[SecretText]) -> dict[str, Any]:
        """Return how the model is asked beside messages and tools, for the manifest of a turn.

        Secrets are left out: in `extra` an admin may have written a key.

        Args:
            request: The request as it is sent.
            keys: The keys of the game, which stand in no text of `extra` that is returned.
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

    def prepare(self) -> "Deferred[None]":
        """Load what a first reply would have to wait for, off the reactor's thread."""
        return succeed(None) if self.client is None else prepared(self.client)

    def close(self) -> None:
        """Give up what is asked, close connections."""
        self.model.close()


def _parameters(client: Client) -> Callable[..., dict[str, Any]]:
    return anthropic.parameters_of if client == "anthropic" else openai.parameters_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gate:
    """What all who ask one model at one address go through."""

    breaker: CircuitBreaker
    slots: Slots
    learned: Learned


class Models:
    """The models of one process; `only` answers for all of them, in tests and trials."""

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
        """`game_id` gives the name of the game, "" for none, when it is first sent."""
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
        """All profiles, `default` first."""
        return tuple(self._profiles.values())

    @property
    def bridge(self) -> AsyncBridge:
        """The thread in which whatever speaks asyncio runs."""
        return self._bridge

    def of_role(
        self, role: ModelRole, *, settings: NPCSettings | None = None
    ) -> tuple[Access, ...]:
        """The models to ask in this role, each instead of the one before it; never empty.

        What an NPC speaks with is up to its settings. A profile that they name and the game has no
        more is passed over.
        """
        names = self._roles[role]
        if settings is None or role != "speaker":
            return tuple(self._access(self._profiles[name]) for name in names)
        return tuple(self._access(profile) for profile in self._spoken_with(settings))

    def thinking(self, role: ModelRole) -> tuple[Access, ...]:
        """The same without responders that are no model, which make nothing of their own."""
        return tuple(access for access in self.of_role(role) if not access.model.offline)

    def ready(self, role: ModelRole) -> Access | None:
        """The first of these whose breaker lets a call through now."""
        found = (one for one in self.thinking(role) if one.breaker is None or one.breaker.admits)
        return next(found, None)

    def speaking_profile(self, settings: NPCSettings) -> ModelProfile:
        """The profile that an NPC with these settings speaks with, changed as they say."""
        return self._spoken_with(settings)[0]

    def speaking_limit(self, settings: NPCSettings) -> int:
        """How many tokens a prompt may have that an NPC with these settings speaks from."""
        profile = self.speaking_profile(settings)
        return self._gate(profile).learned.prompt_limit(profile.limit_tokens)

    def roles_of(self, name: str) -> tuple[ModelRole, ...]:
        """The roles that ask the profile of this name, first or instead of another."""
        return tuple(role for role, names in self._roles.items() if name in names)

    def sentences(self) -> Sentences:
        """Return what turns texts into vectors: the server in the settings, or the packaged model.

        SentenceModelError: there is none.
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
        """The models of all profiles, `default` first."""
        return tuple(self._access(profile) for profile in self._profiles.values())

    def prepare(self) -> "Deferred[Any]":
        """Load what first replies would have to wait for; fails where one model cannot."""
        used = dict.fromkeys(name for names in self._roles.values() for name in names)
        prepared = [self._access(self._profiles[name]).prepare() for name in used]
        return gatherResults(prepared, consumeErrors=True).addErrback(_first)

    def close(self) -> None:
        """Give up what is asked, close connections, end the thread."""
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
            first = replace(first, model=settings.model)
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
            self._log_error(f"evennia_ai: profile '{profile.name}' cannot be asked: {error}")
            client = NotReady(title_of(profile), str(error))
        if isinstance(client, NotReady) or client.offline:
            model_id = profile.model or profile.client
            return Access(model=client, model_id=model_id, profile=profile, client=client)
        return self._guarded(client, profile)

    def _guarded(self, client: ChatModel, profile: ModelProfile) -> Access:
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
        """That of the profile's model; as many at once as the strictest of its profiles allows."""
        key = _where(profile)
        if key not in self._gates:
            same = [one for one in (profile, *self._profiles.values()) if _where(one) == key]
            self._gates[key] = _Gate(
                breaker=CircuitBreaker(seconds=self._clock.seconds),
                slots=Slots(min(one.max_concurrent for one in same)),
                learned=Learned(),
            )
        return self._gates[key]


def _where(profile: ModelProfile) -> tuple[str, str, str]:
    """What is one and the same to a server: the address and the model."""
    return (profile.client, profile.base_url or profile.script, profile.model)


def _first(failure: Failure) -> Failure:
    """What went wrong, without that it was one of several."""
    inner: Failure = failure.value.subFailure if failure.check(FirstError) else failure
    return inner
