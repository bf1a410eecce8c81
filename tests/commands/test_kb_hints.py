"""`kb/hints`: hints that authors write for a page, and a base that reveals only hints."""

import pytest

from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.engine.knowledge.restricted.hinting import page_hints
from evennia_ai.store.knowledge import knowledge_bases, pages
from tests.commands.knowledge_bases import make_base
from tests.commands.stage import one_line

PAGE = "secret/The Cellar Door"
TEXT = "Behind barrel 3 in the cellar of the inn is a door of oak."


@pytest.fixture
def secret(stage):
    """Store a restricted base of one page."""
    make_base("secret", {"The Cellar Door": TEXT}, restricted=True)
    return stage


def hints():
    return page_hints(pages.page_or_none("secret", page_name("The Cellar Door")))


def test_a_hint_is_written_and_listed_with_its_number(secret):
    told = secret.builds(f"kb/hints {PAGE} = Ask  for the ale.")
    assert "hint 1: Ask for the ale." in told
    assert "kb/set secret/mediation = hints" in told
    secret.builds(f"kb/hints {PAGE} = Help the cook.")
    assert hints() == ("Ask for the ale.", "Help the cook.")
    for line in (f"kb/hints {PAGE}", "kb/hints secret"):
        assert "  2  Help the cook." in secret.builds(line)


def test_hint_is_a_revision_of_its_page_and_can_be_removed(secret):
    secret.builds(f"kb/hints {PAGE} = Ask for the ale.")
    told = secret.builds(f"kb/hints/remove {PAGE} = 1")
    assert "removed the hint 'Ask for the ale.'" in told
    assert hints() == ()
    assert pages.page_or_none("secret", page_name("The Cellar Door")).body.strip() == TEXT
    secret.builds(f"kb/revert {PAGE} = 2", "yes")
    assert hints() == ("Ask for the ale.",)


@pytest.mark.parametrize(
    ("hint", "what"),
    [
        ("Look behind the third barrel.", "number"),
        ("In the cellar of the inn is a door of oak.", "passage"),
        ("See The Cellar Door.", "title"),
        ("Ask for the ale.", ""),
    ],
)
def test_hint_that_repeats_its_page_warns(secret, hint, what):
    told = secret.builds(f"kb/hints {PAGE} = {hint}")
    assert (f"this repeats a {what}" in told) == bool(what)
    assert hints() == (hint,)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("kb/hints", "Usage: kb/hints"),
        ("kb/hints nowhere", "no knowledge base 'nowhere'"),
        ("kb/hints secret = x", "takes no"),
        (f"kb/hints {PAGE} = {'x' * 401}", "1 to 400 characters"),
        ("kb/hints secret/Nothing = x", "has no page"),
        (f"kb/hints/remove {PAGE} = 1", "has 0 hints"),
        (f"kb/hints/remove {PAGE} = x", "whole number"),
        ("kb/hints secret", "There are no hints"),
        ("kb/set secret/mediation = poems", "neither summary nor hints"),
    ],
)
def test_hints_errors_are_explained(secret, line, told):
    assert told.lower() in " ".join(secret.builds(line).split()).lower()


def test_mediation_hints_shows_only_hints(secret):
    assert "before: summary; now: hints." in one_line(
        secret.builds("kb/set secret/mediation = hints")
    )
    assert knowledge_bases.get_base("secret").mediation == "hints"
    assert "only the hints of its pages" in " ".join(secret.builds("kb secret").split())


def test_mediation_of_an_open_knowledge_base_says_it_has_no_effect_yet(stage):
    make_base("harbour", {})
    told = stage.builds("kb/set harbour/mediation = hints")
    assert "It has an effect only if the base is restricted" in " ".join(told.split())


def test_knowledge_base_of_another_backend_has_no_hints(stage):
    make_base("manual", {})
    stage.builds("kb/set manual/backend = help")
    told = " ".join(stage.builds("kb/set manual/mediation = hints").split())
    assert "hints are not there" in told
    assert knowledge_bases.get_base("manual").mediation == "summary"


def test_hints_of_a_hidden_page_are_hidden(secret):
    secret.builds(f"kb/hints {PAGE} = Ask for the ale.")
    secret.builds(f"kb/lock {PAGE} = view:perm(Admin)")
    assert "Ask for the ale." not in secret.builds("kb/hints secret")
