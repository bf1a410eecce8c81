"""Test the classification of players' lines."""

import pytest

from evennia_ai.services.llm.offline.asked import LINES, Kind, classify_line

KINDS = {
    "Ada!": Kind.CALL,
    "hello there": Kind.GREETING,
    "Good evening, all!": Kind.GREETING,
    "Good evening, Ada.": Kind.GREETING,
    "ty, cheers": Kind.STATEMENT,
    "cheers, Ada": Kind.THANKS,
    "I must be going.": Kind.FAREWELL,
    "Good night!": Kind.FAREWELL,
    "hello, how are you?": Kind.WELLBEING,
    "May I know your name?": Kind.NAME,
    "what do they call you": Kind.NAME,
    "Ada, who are you?": Kind.SELF,
    "What's your trade?": Kind.TRADE,
    "what do you do for a living?": Kind.TRADE,
    "how old are you?": Kind.AGE,
    "do you know my name?": Kind.ASKER,
    "What is this place?": Kind.PLACE,
    "who else is here?": Kind.COMPANY,
    "What do you carry?": Kind.BELONGINGS,
    "Ada, what are you wearing now?": Kind.BELONGINGS,
    "what have you got on you?": Kind.BELONGINGS,
    "What do you have with you?": Kind.BELONGINGS,
    "What's in your pockets?": Kind.BELONGINGS,
    "What have you got in your left hand?": Kind.BELONGINGS,
    "What do you have for sale?": Kind.WHAT,
    "What do you carry on the ferry?": Kind.WHAT,
    "How much is it?": Kind.PRICE,
    "what does a bed cost": Kind.PRICE,
    "can you tell me where the inn is?": Kind.WHERE,
    "how do I get to the inn?": Kind.WHERE,
    "How long have you lived here?": Kind.SINCE,
    "How many are there?": Kind.AMOUNT,
    "What time is it?": Kind.HOUR,
    "What time does it open?": Kind.WHEN,
    "why?": Kind.WHY,
    "How did it burn down?": Kind.HOW,
    "Do you know who lives there?": Kind.WHO,
    "may I sit here?": Kind.MAY,
    "I'd like some soup, please": Kind.REQUEST,
    "Are you married?": Kind.OWN,
    "Do you have beer?": Kind.EXISTS,
    "is there a well?": Kind.EXISTS,
    "Is the water cold?": Kind.YES_NO,
    "tell me about the war": Kind.WHAT,
    "The soup is good.": Kind.STATEMENT,
    "Wo ist der Turm?": Kind.FOREIGN,
    "¿Cómo te llamas?": Kind.FOREIGN,
    "*waves at Ada*": Kind.GREETING,
    "*asks Ada where the inn is*": Kind.WHERE,
    "*asks if Ada is well*": Kind.YES_NO,
    "*sits down beside Ada*": Kind.GESTURE,
    "": Kind.CALL,
    "???": Kind.CALL,
}
ANSWERED_OTHERWISE = {
    Kind.GREETING,
    Kind.FAREWELL,
    Kind.NAME,
    Kind.SELF,
    Kind.TRADE,
    Kind.ASKER,
    Kind.PLACE,
    Kind.COMPANY,
    Kind.BELONGINGS,
    Kind.FOREIGN,
}


@pytest.mark.parametrize(("line", "kind"), KINDS.items())
def test_line_is_classified_as_the_expected_kind(line: str, kind: Kind) -> None:
    assert classify_line(line, of="Ada").kind is kind


def test_every_kind_of_line_is_tested() -> None:
    assert set(KINDS.values()) == set(Kind)


def test_every_kind_of_line_with_fixed_answers_has_at_least_two_answers() -> None:
    assert {kind for kind, lines in LINES.items() if len(lines) > 1} == (
        set(Kind) - ANSWERED_OTHERWISE
    )


def test_name_politeness_and_greeting_are_removed_before_classifying() -> None:
    line = classify_line("Hello Ada, excuse me, where's the inn, please?", of="Ada")
    assert line.plain == "where is the inn"
