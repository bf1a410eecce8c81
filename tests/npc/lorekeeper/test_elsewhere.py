"""What a task asks for: models of two roles, bases on other machines, and Wikipedia."""

from typing import Any, ClassVar

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import deferLater

from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.engine.knowledge.pages.page import BackendError
from evennia_ai.npc.knowledge.backends import Backends
from evennia_ai.npc.lorekeeper import asking
from evennia_ai.npc.lorekeeper.keeping import lorekeeper
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.wiki.backend import Intro
from tests.npc.lorekeeper.wikis import TASK, Writer, answer, keeps, write


def test_planner_and_writer_use_the_models_of_their_roles(stage, mara):
    cheap, dear, away = Writer(), Writer(), Writer(ModelUnavailable("away", "is broken"))
    stage.opens(None)
    live = stage.running.runtime()
    roles = {"planner": [cheap], "lorekeeper": [away, dear]}
    models = {role: [model_of(one) for one in found] for role, found in roles.items()}
    live.models.of_role = lambda role, **_: models[role]
    assert answer(mara).drafts
    assert [len(one.planned) for one in (cheap, dear, away)] == [1, 0, 0]
    assert [len(one.asked) for one in (cheap, dear, away)] == [0, 1, 1]


def model_of(writer: Writer) -> Any:
    """Return an access to this model."""
    return Access(model=ScriptedModel(writer), model_id="stub")


class Elsewhere:
    """A base on another machine, each of whose answers arrives later or fails."""

    def __init__(self, here: Any, clock: Any, *, broken: str = "") -> None:
        self._here, self._clock, self._broken = here, clock, broken

    def __getattr__(self, name: str) -> Any:
        def asked(*args: Any, **options: Any) -> Any:
            return deferLater(self._clock, 1.0, self._said, name, args, options)

        return asked

    def _said(self, name: str, args: Any, options: Any) -> Any:
        if name == self._broken:
            raise BackendError(f"the wiki does not answer to {name}")
        return getattr(self._here, name)(*args, **options)


def elsewhere(stage: Any, monkeypatch: Any, **options: Any) -> None:
    """Make all bases behave as if they were on another machine."""
    found = Backends.of
    monkeypatch.setattr(
        Backends, "of", lambda self, info: Elsewhere(found(self, info), stage.clock, **options)
    )


def test_remote_knowledge_base_gives_the_same_package_as_a_stored_base(stage, mara, monkeypatch):
    writer = keeps(stage)
    answer(mara)
    here = writer.sent
    elsewhere(stage, monkeypatch)
    results: list[Any] = []
    lorekeeper(TASK, base="harbour", by=mara).addBoth(results.append)
    assert results == []
    for _ in range(40):
        stage.passes(1)
    assert results[0].drafts
    assert writer.sent == here


@pytest.mark.parametrize("broken", ["fetch", "search", "linking", "listed"])
def test_task_fails_before_the_writer_is_asked_when_the_knowledge_base_does_not_answer(
    stage, mara, monkeypatch, broken
):
    writer = keeps(stage)
    elsewhere(stage, monkeypatch, broken=broken)
    results: list[Any] = []
    lorekeeper(TASK, base="harbour", by=mara).addBoth(results.append)
    for _ in range(40):
        stage.passes(1)
    assert results[0].check(BackendError)
    assert writer.asked == []


class Encyclopedia:
    """A Wikipedia with given articles, which keeps what it was asked for."""

    asked: ClassVar[list[str]] = []

    def __init__(self, api: str, bridge: Any) -> None:
        self.api = api

    def intro(self, entity: str) -> "Deferred[Any]":
        self.asked.append(f"{entity} of {self.api}")
        return succeed(Intro(title="Ferry", text="A ferry is a ship."))


def test_wikipedia_is_asked_at_the_address_in_the_settings(stage, mara, monkeypatch):
    monkeypatch.setattr(asking, "Wikipedia", Encyclopedia)
    monkeypatch.setattr(Encyclopedia, "asked", [])
    writer = Writer()
    stage.talks_with(writer, knowledge_wikipedia="https://wiki.test/api.php")
    answer(mara)
    assert Encyclopedia.asked == ["The Ferry of https://wiki.test/api.php"]
    assert (
        "Do NOT treat as in-universe canon for Ebbwick.\n--- The Ferry ---\nWikipedia: Ferry\n"
        "A ferry is a ship." in writer.sent[0][1]
    )


def test_config_page_can_turn_wikipedia_off(stage, mara, monkeypatch):
    monkeypatch.setattr(asking, "Wikipedia", Encyclopedia)
    monkeypatch.setattr(Encyclopedia, "asked", [])
    write("harbour", "Instructions:Config", "---\nwikipedia: false\n---\n")
    stage.talks_with(Writer(), knowledge_wikipedia="https://wiki.test/api.php")
    answer(mara)
    assert Encyclopedia.asked == []
