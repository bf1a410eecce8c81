"""Warn builders of a server whose context window is too small, before it cuts a prompt.

After the first reply of a profile, its server is asked how many tokens it can read, because some
servers only know that for a loaded model. If no builder is present, the warning waits for one.
Hosted servers (https) are not asked, because they refuse prompts that are too long.
"""

from typing import Final

from evennia.utils import logger
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from evennia_ai.npc.mind.news import Tell, tell_builders
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.model_calls.examining import CHECK, small_window
from evennia_ai.npc.model_calls.watching import WatchedCall, Watcher
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.clients.remote import RemoteChat
from evennia_ai.store.model_calls import NewCall


class WindowWatch(Watcher):
    """A watcher that checks each profile's server once and warns builders of a small window."""

    def __init__(self, calls: ModelCalls, *, tell: Tell = tell_builders) -> None:
        self._calls: Final = calls
        self._tell: Final = tell
        self._looked_at: set[str] = set()
        self._untold: set[str] = set()

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """After a profile's first reply, check the context window of its server.

        After later replies, repeat the warning if no builder has received it yet.
        """
        name = call.key.profile
        if name in self._untold:
            self._tell_of(name, call.key.npc_ref)
        if name in self._looked_at or reply.offline or call.key.role == CHECK:
            return
        self._looked_at.add(name)
        found = (one for one in self._calls.models.accesses() if one.profile.name == name)
        access = next(found, None)
        if access is None or not isinstance(access.client, RemoteChat):
            return
        if access.profile.base_url.startswith("http:"):
            looked = Deferred.fromCoroutine(small_window(self._calls, access))
            looked.addCallback(self._found, name, call.key.npc_ref).addErrback(_log_unknown)

    def _found(self, problem: str, name: str, npc_ref: str) -> None:
        if problem:
            logger.log_warn(f"evennia_ai: {problem}")
            self._calls.small_windows[name] = problem
            self._untold.add(name)
            self._tell_of(name, npc_ref)

    def _tell_of(self, name: str, npc_ref: str) -> None:
        if self._tell(f"[ai] {self._calls.small_windows[name]}", near=npc_ref):
            self._untold.discard(name)


def _log_unknown(failure: Failure) -> None:
    logger.log_err(
        f"evennia_ai: the context window of a server could not be read\n{failure.getTraceback()}"
    )
