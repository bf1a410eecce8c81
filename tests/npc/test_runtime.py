"""The runtime: in which thread long work is done."""

from threading import get_ident
from typing import Any

from twisted.internet import interfaces
from twisted.internet.task import Clock
from twisted.python.threadpool import ThreadPool
from zope.interface import implementer

from evennia_ai.npc.runtime import runtime_of
from evennia_ai.services.settings.conf import conf


@implementer(interfaces.IReactorThreads)
class Reactor(Clock):
    """A clock with threads like Twisted's reactor. `passes` runs what the threads send back."""

    running = True

    def __init__(self) -> None:
        super().__init__()
        self.pool = ThreadPool(minthreads=1, maxthreads=1)
        self.called: list[Any] = []

    def getThreadPool(self) -> ThreadPool:
        return self.pool

    def callFromThread(self, call: Any, *args: Any, **options: Any) -> None:
        self.called.append((call, args, options))

    def callInThread(self, call: Any, *args: Any) -> None:
        self.pool.callInThread(call, *args)

    def suggestThreadPoolSize(self, size: int) -> None:
        """Do nothing, because one thread is enough."""

    def passes(self) -> None:
        self.pool.stop()  # waits until the thread has finished
        for call, args, options in self.called:
            call(*args, **options)


def test_work_runs_in_another_thread_while_the_reactor_runs():
    reactor = Reactor()
    compactor = runtime_of(conf(), clock=reactor).compactor
    reactor.pool.start()
    seen: list[int] = []
    done = compactor._in_thread(get_ident).addCallback(seen.append)
    assert not done.called
    reactor.passes()

    assert seen != [get_ident()]
    assert len(seen) == 1


def test_work_runs_at_once_before_the_reactor_runs():
    reactor = Reactor()
    reactor.running = False
    seen: list[int] = []
    runtime_of(conf(), clock=reactor).compactor._in_thread(get_ident).addCallback(seen.append)

    assert seen == [get_ident()]
