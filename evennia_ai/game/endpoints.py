"""Endpoints: the models of the profiles, each guarded, and who is asked in which role.

One `Access` a profile, made when it is first asked; one thread for all of them; one breaker and
one queue for a model at an address, however many profiles ask it. None configured means the
offline responder: a game works, and says so, before it has a model.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia.utils import logger
from twisted.internet.defer import Deferred, FirstError, gatherResults, succeed
from twisted.python.failure import Failure

from evennia_ai.errors import EvenniaAIError
from evennia_ai.game.clients import (
    OFFLINE,
    NotReady,
    Surroundings,
    client_of,
    prepared,
    roles_of,
    title_of,
)
from evennia_ai.game.stopping import Stoppable
from evennia_ai.llm.chat import ChatModel
from evennia_ai.llm.fitting.roles import OPEN, RoleProfile
from evennia_ai.llm.profiles import DEFAULT, ModelProfile, ModelRole
from evennia_ai.llm.resilience import CircuitBreaker, Clock, Guarded, Slots
from evennia_ai.net.bridge import AsyncBridge
from evennia_ai.settings.model import Conf
from evennia_ai.settings.npc import NPCSettings

_UNKNOWN: Final = ModelProfile(name=DEFAULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A model and how it is asked.

    `profile` says how, with what the NPC has otherwise; `roles` fits messages to the model,
    `model_id` is its name there. `client` is what `model` guards.
    """

    model: ChatModel
    model_id: str = ""
    roles: RoleProfile = OPEN
    breaker: CircuitBreaker | None = None
    profile: ModelProfile = _UNKNOWN
    client: ChatModel | None = None

    @property
    def name(self) -> str:
        """What builders read in the status."""
        return OFFLINE if self.model.offline else self.model.name

    def prepare(self) -> "Deferred[None]":
        """Load what a first reply would have to wait for, off the reactor's thread."""
        return succeed(None) if self.client is None else prepared(self.client)

    def close(self) -> None:
        """Give up what is asked, close connections."""
        self.model.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gate:
    """What all who ask one model at one address go through."""

    breaker: CircuitBreaker
    slots: Slots


class Models:
    """The models of one process; `only` answers for all of them, in tests and trials."""

    def __init__(
        self,
        conf: Conf,
        *,
        clock: Clock,
        bridge: AsyncBridge | None = None,
        only: Access | None = None,
    ) -> None:
        self._clock: Final = clock
        self._bridge: Final = bridge or AsyncBridge()
        self._around: Final = Surroundings(conf=conf, clock=clock, bridge=self._bridge)
        self._only: Final = only
        self._profiles: Final = conf.profiles
        self._roles: Final = conf.model_roles
        self._made: dict[tuple[str, str], Access] = {}
        self._stoppable: list[Stoppable] = []
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

    def speaking_profile(self, settings: NPCSettings) -> ModelProfile:
        """The profile that an NPC with these settings speaks with, changed as they say."""
        return self._spoken_with(settings)[0]

    def roles_of(self, name: str) -> tuple[ModelRole, ...]:
        """The roles that ask the profile of this name, first or instead of another."""
        return tuple(role for role, names in self._roles.items() if name in names)

    def accesses(self) -> tuple[Access, ...]:
        """The models of all profiles, `default` first."""
        return tuple(self._access(profile) for profile in self._profiles.values())

    def prepare(self) -> "Deferred[Any]":
        """Load what first replies would have to wait for; fails where one model cannot."""
        used = dict.fromkeys(name for names in self._roles.values() for name in names)
        prepared = [self._access(self._profiles[name]).prepare() for name in used]
        return gatherResults(prepared, consumeErrors=True).addErrback(_first)

    def give_up(self, why: str) -> int:
        """Fail all that is under way with ModelStopped; how many calls that were."""
        return sum(model.give_up(why) for model in self._stoppable)

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
            made = self._made_for(profile)
            stoppable = Stoppable(made.model)
            self._stoppable.append(stoppable)
            self._made[key] = replace(made, model=stoppable)
        made = self._made[key]
        return made if made.profile == profile else replace(made, profile=profile)

    def _made_for(self, profile: ModelProfile) -> Access:
        if self._only is not None:
            model_id = profile.model or self._only.model_id
            return replace(self._only, profile=profile, model_id=model_id)
        try:
            client = client_of(profile, self._around)
        except EvenniaAIError as error:
            logger.log_err(f"evennia_ai: profile '{profile.name}' cannot be asked: {error}")
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
        )

    def _gate(self, profile: ModelProfile) -> _Gate:
        """That of the profile's model; as many at once as the strictest of its profiles allows."""
        key = _where(profile)
        if key not in self._gates:
            same = [one for one in (profile, *self._profiles.values()) if _where(one) == key]
            self._gates[key] = _Gate(
                breaker=CircuitBreaker(seconds=self._clock.seconds),
                slots=Slots(min(one.max_concurrent for one in same)),
            )
        return self._gates[key]


def _where(profile: ModelProfile) -> tuple[str, str, str]:
    """What is one and the same to a server: the address and the model."""
    return (profile.client, profile.base_url or profile.script, profile.model)


def _first(failure: Failure) -> Failure:
    """What went wrong, without that it was one of several."""
    inner: Failure = failure.value.subFailure if failure.check(FirstError) else failure
    return inner
