"""Tests that an answer of the mediator is withheld if it contains a disguised secret."""

import json

import pytest

from evennia_ai.engine.knowledge.restricted.mediation import (
    WITHHELD,
    MediatorAnswer,
    PagePassage,
    protect_passages,
    read_mediator_answer,
)
from tests.engine.knowledge.restricted.disguises import DISGUISES

WATCHWORD, CODE, TITLE = "Mandragora", "47110815", "The Drowned Vault"
PASSAGE = (
    f"The watchword of the smugglers is {WATCHWORD}, whispered over the fourth step of the cellar"
    f" stairs. The lock wants {CODE} and the lantern must stand to the left of the barrel."
)
TERMS = (WATCHWORD, "fourth step of the cellar", "left of the barrel")
CHUNK = PagePassage(
    base="vault", base_name="The vault", title=TITLE, revision="3", score=0.5, content=PASSAGE
)
SECRET = protect_passages([CHUNK], names=["Old Cellar"], terms=TERMS)


def is_withheld(**fields) -> bool:
    """True if an answer of the mediator with these fields is withheld."""
    usual = {"decision": "answer", "reason": "answerable", "summary": "I think."}
    answer = MediatorAnswer.model_validate_json(json.dumps({**usual, **fields}))
    return read_mediator_answer(answer, SECRET).reason == WITHHELD


@pytest.mark.parametrize("disguise", DISGUISES)
def test_mediator_answer_is_withheld_with_a_disguised_passage(disguise):
    assert is_withheld(summary=DISGUISES[disguise](PASSAGE)[:2000])


@pytest.mark.parametrize(
    "secret", [PASSAGE, "four seven one one zero eight one five", CODE, TITLE, *TERMS]
)
@pytest.mark.parametrize(
    "disguise",
    [
        *("as it stands", "in capitals", "letters set apart", "in Cyrillic look-alikes"),
        *("in circles", "zero-width blanks", "letters with dashes"),
    ],
)
def test_mediator_answer_is_withheld_with_any_disguised_secret(disguise, secret):
    assert is_withheld(risks=[DISGUISES[disguise](secret)])


def test_mediator_answer_without_a_secret_is_kept():
    assert not is_withheld(risks=["The tide is high by night."])
