"""Count the attacks of one subject that failed, and collect a line for each that succeeded."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from server.steps import StepError
from tests.hostile.harbour import Harbour

HELD = "attacks held"
"""How the summary line of a subject ends. The report of a run shows these lines."""

MOST_GROWN_MIB = 300
"""The most MiB by which the server may grow in one subject. The worst template once took 977 MB."""


class Audit:
    """The attacks of one subject. `findings` says what attackers got."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.played = 0
        self.findings: list[str] = []

    @contextmanager
    def attack(self, name: str) -> Iterator[None]:
        """Run one attack. A failed assertion in the block becomes a finding."""
        self.played += 1
        try:
            yield
        except (AssertionError, OSError, StepError) as error:
            self.findings.append(f"{self.subject}: {name}: {str(error)[:1500] or repr(error)}")

    def __str__(self) -> str:
        held = self.played - len(self.findings)
        return f"{self.subject}: {held} {HELD}"


OURS = re.compile(r'File "[^"]*(?:/evennia_ai/|/world/|(?<!/evennia)/commands/)')
"""Matches a file of this repository in a traceback."""


def errors_of_ours(log: str) -> list[str]:
    """Return the tracebacks that contain a file of this repository.

    Evennia itself logs one for each malformed frame, and continues.
    """
    told = re.split(r"^.*Traceback \(most recent call last\):", log, flags=re.MULTILINE)[1:]
    return [one[:1500] for one in told if OURS.search(one[:6000])]


@contextmanager
def audit(subject: str, harbour: Harbour) -> Iterator[Audit]:
    """Run attacks on the game, and check that none caused an error and the game still works."""
    harbour.builder.types("look")
    before, logged = harbour.memory_mib(), harbour.log_ends()
    made = Audit(subject)
    yield made
    with made.attack("a bystander looks around afterwards"):
        assert f"The room of {subject}" in (read := harbour.builder.types("look")), read
    with made.attack("nothing was an error of ours"):
        assert errors_of_ours(harbour.log_since(logged)) == []
    with made.attack("the server is as large as before"):
        grown = harbour.memory_mib() - before
        assert grown < MOST_GROWN_MIB, f"it grew by {grown} MiB"
    print(made)
    assert made.findings == [], "\n".join(made.findings)
