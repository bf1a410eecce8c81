"""Examining: tests the server of a profile in the running game, and reads its context window.

The requests run in the thread of the models, so the reactor never waits. The calls are counted,
watched and recorded like all others.
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
"""The role of calls that only test if a model answers."""

WINDOW_SECONDS: Final = 2.0
RESTART: Final = (
    "then type `evennia reboot` in that shell: @reload keeps the environment that the game was"
    " started with"
)


async def examine_profile(calls: ModelCalls, access: Access) -> tuple[Finding, ...]:
    """Test the server of a profile and return the findings.

    Its breaker and its queue are bypassed.
    """
    profile, client = access.profile, access.client
    if isinstance(client, NotReady):
        told = f"the profile cannot be used: {client.reason}"
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
    """Return a warning if the server's context window is smaller than the profile says, else ""."""
    profile, fetch = access.profile, _fetching(calls, access.client)
    (listed,) = await fetch([Probe(address=list_address(profile))], WINDOW_SECONDS)
    found = finding_of_window(profile, await window_of(profile, listed, fetch, WINDOW_SECONDS))
    return f"{found.told}. {found.advice}" if found.state == "FAIL" else ""


def _fetching(calls: ModelCalls, client: object) -> Fetch:
    """Return a function that sends probes to the client's server, with the client's API key."""

    def fetch(probes: Sequence[Probe], seconds: float) -> "Deferred[tuple[Answer, ...]]":
        headers = client.headers() if isinstance(client, RemoteChat) else {}
        bridge = calls.models.bridge
        return bridge.run(lambda: send_probes(probes, headers=headers, seconds=seconds))

    return fetch
