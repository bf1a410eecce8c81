"""A stage whose NPC guards a base with a secret, and one fake model for NPC and mediator."""

import json
from collections.abc import Callable
from typing import Any

from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageDraft, PageMeta, page_name
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.llm.chat import ChatReply, ChatRequest
from evennia_ai.store.knowledge import knowledge_bases
from evennia_ai.store.knowledge.pages import save_page

WATCHWORD = "Mandragora"
CODE = "47110815"
TITLE = "The Drowned Vault"
PASSAGE = (
    f"The watchword of the smugglers is {WATCHWORD}, whispered over the fourth step of the cellar"
    f" stairs. The lock wants {CODE} and the lantern must stand to the left of the barrel."
)
CANARIES = (WATCHWORD, CODE, TITLE, "fourth step of the cellar", "left of the barrel")

VAULT = BaseInfo(
    key="vault",
    name="The smugglers' cellar",
    summary=f"Where {WATCHWORD} is said.",
    topics=("watchword",),
    hint="What the smugglers keep, and how one gets on with them.",
    keywords=("smugglers", "cellar"),
    restricted=True,
)
HARBOUR = BaseInfo(key="harbour", name="The harbour", summary="Ships and people.")
SUMMARY = "Be friendly to them, and come after dark."


def a_page(title: str, body: str, **meta: Any) -> Page:
    return Page(name=page_name(title), body=body, meta=PageMeta(**meta))


def written(base: str, page: Page) -> None:
    save_page(base, PageDraft(page=page, was="", by=trusted("builder")))


class Minds:
    """A model for all roles. It answers as the NPC, or as the mediator if asked as one.

    The NPC searches for what was said to it and then repeats everything in its prompt.
    `mediates` makes the mediator's answer from its request.
    """

    name = "minds"
    offline = False

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        self.mediations: list[ChatRequest] = []
        self.mediates: Callable[[ChatRequest], Any] = answering()
        self.searches: dict[str, Any] | None = {}

    def complete(self, request: ChatRequest, *, listener: Any = None) -> Any:
        from twisted.internet.defer import fail, maybeDeferred

        system = request.messages[0].content
        if "stand between protected texts" in system or "numbered hints" in system:
            self.mediations.append(request)
            made = maybeDeferred(self.mediates, request)
            return made.addCallback(lambda text: ChatReply(text=text, model="mediator"))
        self.requests.append(request)
        try:
            return _done(self._said(request))
        except Exception as error:
            return fail(error)

    def close(self) -> None:
        """Do nothing, because no connection is open."""

    def _said(self, request: ChatRequest) -> ChatReply:
        last = request.messages[-1]
        if last.role != "tool" and self.searches is not None:
            arguments = json.dumps({"query": last.content[-200:] or "?", **self.searches})
            call = ToolCall(id="x", name=TOOL, arguments=arguments)
            return ChatReply(text="", model="npc", tool_calls=(call,))
        given = " ".join(message.content for message in reversed(request.messages))
        return ChatReply(text=given, model="npc")


def _done(reply: ChatReply) -> Any:
    from twisted.internet.defer import succeed

    return succeed(reply)


def answering(**fields: Any) -> Callable[[ChatRequest], str]:
    """Return a mediator that always gives the same answer, with these fields."""
    usual = {"decision": "answer", "reason": "answerable", "summary": SUMMARY}
    told = json.dumps({**usual, "confidence": "high", **fields})
    return lambda request: told


def echoing(request: ChatRequest) -> str:
    """Return a mediator's answer that repeats its whole request in every field."""
    whole = "\n".join(message.content for message in request.messages)
    fields = ("summary", "answer_guidance")
    lists = ("observations", "risks", "recommended_actions")
    told = {"decision": "answer", "reason": whole, "confidence": "high"}
    told |= dict.fromkeys(fields, whole) | {name: [whole] for name in lists}
    return json.dumps(told)


def a_cellar(stage: Any) -> Any:
    """Return the stage, where Oren guards the base "vault". `stage.minds` is its model."""
    dig(stage.npc)
    return with_minds(stage)


def dig(npc: Any) -> None:
    """Store the base "vault" with its page. This NPC may search it and must guard it."""
    knowledge_bases.save_base(VAULT, by=trusted("builder"))
    protect = {"protect": [WATCHWORD, "fourth step of the cellar", "left of the barrel"]}
    written("vault", a_page(TITLE, PASSAGE, aliases=("Old Cellar",), fields=protect))
    knowledge_bases.assign_base("vault", Scope(kind="npc", ref=npc.ai.ref), by=trusted("builder"))
    change_settings(npc, tools=(TOOL,), by=THE_GAME)


def with_minds(stage: Any) -> Any:
    """Return the stage with `Minds` as its model, `stage.minds`."""
    stage.minds = Minds()
    stage.install(stage.minds)
    return stage
