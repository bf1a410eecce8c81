"""A kind of job for these tests: it asks a model and writes the answer into a ledger.

The ledger is the table of memories, with one row per applied job, so a job applied twice occurs
twice. With `die_at` a job kills its worker once at that step. The file `mark` remembers that.
"""

import os
import signal
import sys
from hashlib import sha256
from pathlib import Path

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.services.llm.chat import ChatMessage


def answer(request):
    """Return a model's reply that depends only on the request."""
    asked = request.messages[-1].content
    if asked.startswith("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    return f"It is {sha256(asked.encode()).hexdigest()[:12]}."


def die_once(mark):
    """Kill this process, as a power cut would, unless the file `mark` exists already."""
    path = Path(mark)
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def last_number(conversation):
    """Read a number from the tables, as a job's function does in a thread."""
    from evennia_ai.models import Memory

    return Memory.objects.filter(npc_ref=f"none {conversation}").count()


class Ledger:
    """Both halves of the kind: what a worker does, and what the game applies."""

    name = "ledger"

    def __init__(self):
        self.ends = []

    def refuse_stale(self, job):
        """Do nothing, because no test erases anything."""

    async def run(self, job, tools):
        given = job.given
        if given.get("die_at") == "claimed":
            die_once(given["mark"])
        if given.get("fails") == "foreseen":
            raise EvenniaAIError("the page was erased")
        if given.get("fails") == "unforeseen":
            raise ZeroDivisionError("by zero")
        if given.get("fails") == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        count = await tools.off(last_number, given["number"])
        npc = str(given.get("npc", given["number"]))
        (access, *_) = tools.models("summariser")
        question = [ChatMessage(role="user", content=f"What is {given['number']} and {count}?")]
        request = access.request(question, max_tokens=given.get("tokens", 20))
        reply = await tools.ask(access, request, role="summariser", npc_ref=npc)
        if given.get("die_at") == "asked":
            die_once(given["mark"])
        loaded = [name for name in sys.modules if name.split(".")[0] == "evennia"]
        reactor = ["twisted.internet.reactor"] if "twisted.internet.reactor" in sys.modules else []
        return {"said": reply.text, **({"loaded": loaded + reactor} if given.get("look") else {})}

    def apply(self, job, body):
        from evennia_ai.engine.errors import StaleError
        from evennia_ai.models import Memory

        if job.given.get("stale"):
            Memory.objects.create(npc_ref="half", text="", created_at=0, recalled_at=0, author="")
            raise StaleError("the conversation has a newer segment")
        if job.given.get("fails") == "in apply":
            raise KeyError("what nobody foresaw")
        text = f"{job.idempotency}: {body['said']}"
        if "loaded" in body:
            text = f"loaded {body['loaded']}"
        Memory.objects.create(
            npc_ref="ledger", text=text, created_at=0, recalled_at=0, author=job.kind
        )

    def ended(self, job, ending, reason):
        self.ends.append((job.idempotency, ending, reason))


LEDGER = Ledger()
