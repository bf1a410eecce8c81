"""Fixtures: a game after some turns, and browsers of accounts of every rank."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from evennia_ai.engine.actors import trusted
from tests.npc.conftest import _cast, beforehand, logged, stage
from tests.store.conftest import _fresh

__all__ = ["_cast", "_fresh", "beforehand", "logged", "stage"]

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)> |lcquit|ltx|le \u202egnp'
SECRET = "The vault is under the lamp."


# Everything that a policy without `unsafe-inline` forbids, foreign links, and characters that
# change the reading direction or are control characters. Values in a form are left out, because a
# form shows a text as it was typed.
_ACTING = (
    r"<[^>]+\s(?:style|on\w+)=",
    r"<script(?![^>]* src=\"/static/)[^>]*>",
    r"(?:src|href|action)=\"(?!/|\?|#|data:,|%)[^\"]*",
    r"<img(?! src=\"/ai/cards/[^\"]+/picture/\" alt=)[^>]*>",
    r"<(?:iframe|object|embed|base|math|style|link(?! rel=))[^>]*>",
    r"<svg(?! class=\"(?:bar|line|icon)\")[^>]*>",
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]",
)
_TYPED = re.compile(r"<textarea[^>]*>.*?</textarea>|<input[^>]*>|<option[^>]*>", re.DOTALL)


def acting(text: str) -> list[str]:
    """Return the parts of a page that are active content or lead to another site."""
    shown = _TYPED.sub("", text)
    return [found for wrong in _ACTING for found in re.findall(wrong, shown)]


@pytest.fixture(scope="module")
def _played(beforehand: Callable[..., Any]) -> Any:
    from evennia_ai.engine.knowledge.pages.markup import read_page
    from evennia_ai.engine.knowledge.pages.page import BaseInfo, PageDraft, page_name
    from evennia_ai.store.knowledge import knowledge_bases, page_drafts
    from tests.npc.lorekeeper.wikis import write
    from tests.npc.scripted_games import LINES, furnish, rule

    def play(stage: Any) -> None:
        furnish(stage)
        rule("weather", "It drizzles.", id=1202, injection_depth=2)
        stage.talks_with(lambda request: f"Aye, {len(request.messages)}.")
        for line in LINES[:4]:
            stage.says(stage.anna, line)
        stage.says(stage.anna, f"Oren, {HOSTILE}?")
        knowledge_bases.save_base(BaseInfo(key="library", name="Library"), by=trusted("builder"))
        write("library", "Saltholm", "An island.")
        wanted = PageDraft(
            page=read_page(page_name("Ebb"), HOSTILE), was="", by=trusted("lorekeeper")
        )
        return page_drafts.add_draft("library", wanted, task=HOSTILE, context_meta={}).number

    return beforehand(play)


@pytest.fixture
def played(_played: int, stage: Any) -> Any:
    """Return the stage after five turns with a card, books, notes and components.

    The last line is hostile. `draft` is the number of a knowledge draft that waits for a decision.
    """
    stage.draft = _played
    return stage


@pytest.fixture
def browser(db: None) -> Callable[..., Any]:
    """Return a function that returns the browser of an account with this permission. "" means no
    account.
    """
    from django.contrib.auth import get_user_model
    from django.test import Client

    def of(rank: str, **options: Any) -> Any:
        client = Client(**options)
        if rank:
            account = get_user_model().objects.create(username=f"a-{rank}", is_active=True)
            account.permissions.add(rank)
            client.force_login(account)
        return client

    return of
