"""Test that sentences of a card are turned into the first person."""

import pytest

from evennia_ai.services.llm.offline.first_person import first_person, pronoun_of

TURNED = {
    "Ada keeps the inn.": "I keep the inn.",
    "Ada Brook keeps the inn.": "I keep the inn.",
    "She never says why.": "I never say why.",
    "She watches her fire and lets it warm her.": None,
    "She watches her fire.": "I watch my fire.",
    "She carries what they give her.": "I carry what they give me.",
    "She is tall, has red hair and is proud of it.": "I am tall, have red hair and am proud of it.",
    "She came here, and bought the place.": "I came here, and bought the place.",
    "For six years she has lit the lamp.": "For six years I have lit the lamp.",
    "The inn that she keeps is old.": "The inn that I keep is old.",
    "She thinks before she speaks.": "I think before I speak.",
    "She answers a question and puts one back.": None,
    "People trust Ada.": None,
    "Ada's whistle is lost.": None,
    "The inn is old.": "The inn is old.",
    "Adalbert is her brother.": "Adalbert is her brother.",
}


@pytest.mark.parametrize(("told", "said"), TURNED.items())
def test_sentence_becomes_first_person_or_none(told: str, said: str | None) -> None:
    assert first_person(told, name="Ada", pronoun="she") == said


def test_his_and_him_become_mine_and_me() -> None:
    told = "He rows as his mother did before him, and washes himself."
    said = "I row as my mother did before me, and washes myself."
    assert first_person(told.replace("and washes", "but never tires"), name="Bo", pronoun="he") == (
        said.replace("and washes", "but never tires")
    )


def test_lore_about_another_she_is_unchanged() -> None:
    told = "She waits for the slack, as every ferry does."
    assert first_person(told, name="Ada", pronoun="") == told


@pytest.mark.parametrize(
    ("text", "pronoun"), [("He rows. His boat is old.", "he"), ("She... he? She.", "she"), ("", "")]
)
def test_pronoun_is_the_most_frequent_one(text: str, pronoun: str) -> None:
    assert pronoun_of(text) == pronoun
