"""Examining: a profile's server is tried in the running game, and its window is looked at once.

The reactor waits for nothing: requests go through the thread of the models, calls are counted,
watched and written down as all others are.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from twisted.internet.defer import Deferred

from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.services.endpoints import Access, NotReady
from evennia_ai.services.llm.clients.remote import RemoteChat
from evennia_ai.services.llm.doctor import Finding, examine, finding_of_window
from evennia_ai.services.llm.probes import Answer, Fetch, Probe, send_probes
from evennia_ai.services.llm.windows import list_address, window_of

CHECK: Final = "check"
"""The role of calls that only try whether a model answers."""

WINDOW_SECONDS: Final = 2.0
RESTART: Final = (
    "then type `evennia reboot` in that shell: @reload keeps the environment that the game was"
    " started with"
)


async def examined(calls: ModelCalls, access: Access) -> tuple[Finding, ...]:
    """Try the server of a profile, past its breaker and queue; return what was found."""
    profile, client = access.profile, access.client
    if isinstance(client, NotReady):
        told = f"the profile cannot be asked: {client.reason}"
        return (Finding(about="profile", state="FAIL", told=told),)
    trial = access if client is None else replace(access, model=client)
    key = CallKey(npc_ref="", role=CHECK)
    return await examine(
        profile,
        has_key=isinstance(client, RemoteChat) and bool(client.endpoint.api_key),
        restart=RESTART,
        fetch=_fetching(calls, client),
        request=trial.request,
        learned=trial.learned,
        ask=lambda request, hear: calls.asked(trial, request, key, listener=hear),
        now=calls.clock.seconds,
    )


async def small_window(calls: ModelCalls, access: Access) -> str:
    """Return what is to be told of a window that is smaller than the profile counts on, or ""."""
    profile, fetch = access.profile, _fetching(calls, access.client)
    (listed,) = await fetch([Probe(address=list_address(profile))], WINDOW_SECONDS)
    found = finding_of_window(profile, await window_of(profile, listed, fetch, WINDOW_SECONDS))
    return f"{found.told}. {found.advice}" if found.state == "FAIL" else ""


def _fetching(calls: ModelCalls, client: object) -> Fetch:
    """What sends probes to the server of a client, with its key."""

    def fetch(probes: Sequence[Probe], seconds: float) -> "Deferred[tuple[Answer, ...]]":
        headers = client.headers() if isinstance(client, RemoteChat) else {}
        bridge = calls.models.bridge
        return bridge.run(lambda: send_probes(probes, headers=headers, seconds=seconds))

    return fetch
