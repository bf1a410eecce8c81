"""Which parts of a reply are said and which are done."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evennia_ai.npc.speech.reply_acts import MOST_ACTS, Act, acts_of, is_open
from tests.effort import little_work

NAMES = ("Oren",)


def delivered(text: str, *, after: int = 0) -> list[str]:
    """Return the acts as text: speech in quotation marks, actions as they follow the name."""
    acts = acts_of(text, own_names=NAMES, after=after)
    return [shown(act) for act in acts]


def shown(act: Act) -> str:
    """Return an act as text: speech in quotes, a whisper with its listener before it."""
    words = act.text if act.kind == "pose" else f'"{act.text}"'
    return f"to {act.to}: {words}" if act.kind == "whisper" else words


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('*She smiles.* "Good evening."', ["smiles.", '"Good evening."']),
        ('*She smiles.* "Good evening"', ["smiles.", '"Good evening"']),
        ("*She smiles.* Good evening.", ["smiles.", '"Good evening."']),
        ("_He nods slowly._ Come in.", ["nods slowly.", '"Come in."']),
        ("*nods* Aye.", ["nods", '"Aye."']),
        ("Good evening. *She smiles.*", ['"Good evening."', "smiles."]),
        ("Well, *sighs* fine.", ['"Well,"', "sighs", '"fine."']),
        ("*sighs* No. *turns away* Go.", ["sighs", '"No."', "turns away", '"Go."']),
        ('"A." *nods* "B." *waves* "C."', ['"A."', "nods", '"B."', "waves", '"C."']),
        ('*nods* "Sit." Well.', ["nods", '"Sit. Well."']),
        ('*nods* "Sit." She steps aside.', ["nods", '"Sit."', "steps aside."]),
        ('*turns. "Now!" He runs.*', ["turns.", '"Now!"', "runs."]),
        ('"Good!"\n\n*She smiles.*\n\n"Come in."', ['"Good!"', "smiles.", '"Come in."']),
    ],
)
def test_text_between_marks_is_an_action_and_the_rest_is_speech(
    text: str, wanted: list[str]
) -> None:
    assert delivered(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('Oren looks up. "Evening," he says.', ["looks up.", '"Evening."']),
        ('"Aye," he says. "At dusk."', ['"Aye. At dusk."']),
        ('"Do not," says Oren, "lean on it."', ['"Do not, lean on it."']),
        ('"Hm." She shrugs. "Well."', ['"Hm."', "shrugs.", '"Well."']),
        ("“Hm.” She shrugs. “Well.”", ['"Hm."', "shrugs.", '"Well."']),
        ("„Hm.“ She shrugs. „Well.“", ['"Hm."', "shrugs.", '"Well."']),
        ("«Bon soir.» Oren sourit.", ['"Bon soir."', "sourit."]),
        ("「こんばんは。」 Oren nickt.", ['"こんばんは。"', "nickt."]),
        ('"Fine," he says, and spits.', ['"Fine."', "spits."]),
        ('"Fine," says Oren, already gone.', ['"Fine."', ", already gone."]),
        ('"Fine," he mutters. "Go."', ['"Fine. Go."']),
        ('"Fine," he says to nobody, then: "Go."', ['"Fine."', "says to nobody, then:", '"Go."']),
        ('"A." "B."', ['"A. B."']),
        ("Oren looks along the bench and waits.", ["looks along the bench and waits."]),
    ],
)
def test_quotations_are_speech_in_a_text_that_narrates_its_speaker(
    text: str, wanted: list[str]
) -> None:
    assert delivered(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('Oren says, "Evening."', ['"Evening."']),
        ('Oren says "Evening."', ['"Evening."']),
        ('She says softly: "Evening."', ['"Evening."']),
        ('Oren nods and says, "Evening."', ["nods", '"Evening."']),
        ('"Evening," she mutters.', ['"Evening."']),
        ('"Evening," she says, looking up. "You?"', ['"Evening."', "is looking up.", '"You?"']),
        ('I nod. "Evening."', ["nods.", '"Evening."']),
        ('"Evening." I wipe my hands and smile. "You?"', [
            '"Evening."', "wipes their hands and smiles.", '"You?"'
        ]),
        ('I carefully push the jar over. "Here."', ["carefully pushes the jar over.", '"Here."']),
        ("I nod slowly.", ["nods slowly."]),
        ("I shrug at Anna.", ["shrugs at Anna."]),
        ("Oren sagt: „Abend.“", ['"Abend."']),
        ("„Abend“, sagt Oren und nickt.", ['"Abend"', "nickt."]),
        ("« Bonsoir », dit Oren.", ['"Bonsoir"']),
        ("Oren dice: «Buenas.»", ['"Buenas."']),
        ("Орен говорит: «Вечер.»", ['"Вечер."']),
        ("オレンは「こんばんは。」と言う。", ['"こんばんは。"']),
        ("奥伦说：“晚上好。”", ['"晚上好。"']),
    ],
)  # fmt: skip
def test_clauses_that_introduce_quotations_are_not_shown(text: str, wanted: list[str]) -> None:
    names = (*NAMES, "Орен", "オレン", "奥伦")
    assert [shown(act) for act in acts_of(text, own_names=names)] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('Oren whispers to Anna, "Come."', ['to Anna: "Come."']),
        ('"Come," Oren whispers to Anna.', ['to Anna: "Come."']),
        ('"Come," she whispers to Anna, "at dusk."', ['to Anna: "Come, at dusk."']),
        ('"Hm." She whispers to Anna: "Come."', ['"Hm."', 'to Anna: "Come."']),
        ("*leans in and whispers to Anna* Come.", ['to Anna: "Come."']),
        ("*leans close to Anna and whispers* Come.", ['to Anna: "Come."']),
        ('Oren leans to Anna and whispers, "Come."', ["leans to Anna", 'to Anna: "Come."']),
        ('He leans to the rail and whispers, "Come."', ["leans to the rail", '"Come."']),
        ('Oren beugt sich zu Anna und flüstert: "Hm."', ["beugt sich zu Anna", 'to Anna: "Hm."']),
        ('*whispers to Old Bo* "Come." *nods*', ['to Old Bo: "Come."', "nods"]),
        ("Oren flüstert zu Anna: „Komm.“", ['to Anna: "Komm."']),
    ],
)
def test_words_whispered_in_prose_become_a_whisper(text: str, wanted: list[str]) -> None:
    assert delivered(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "Aye, at dusk.",
        "I *really* mean it.",
        "*Never* go there.",
        "*The old ferry* sank.",
        "**Menu** of the *day*",
        'They call it "the bell".',
        '"Slack water" is what we call it.',
        'He said "No." And then he left.',
        'I told him: "Go!" And he went.',
        '"Evening." I know you.',
        "Oren is my name.",
        "It costs 2*3*4, in snake_case_names.",
        "*waves",
        "waves*",
        "_waves and",
        '"Evening, she says. *waves',
        'Aye," he says.',
        "“Evening.",
        "«Evening",
        '"',
        "*",
        "* fish\n* bread",
    ],
)
def test_ambiguous_text_is_said_unchanged(text: str) -> None:
    assert delivered(text) == [f'"{text}"']


@pytest.mark.parametrize(
    ("text", "shown", "told"),
    [
        ("*His eyes narrow.*", "'s eyes narrow.", "His eyes narrow."),
        ("*Oren's eyes narrow.*", "'s eyes narrow.", "Oren's eyes narrow."),
        ("*Smiles warmly.*", "smiles warmly.", ""),
        ("*Slowly turns round.*", "slowly turns round.", ""),
        ("*The lamp goes out.*", "— The lamp goes out.", "The lamp goes out."),
        ("*They smile.*", "— They smile.", "They smile."),
        ("*Oren looks up.*", "looks up.", ""),
    ],
)
def test_action_follows_the_name_of_its_actor(text: str, shown: str, told: str) -> None:
    (act,) = acts_of(text, own_names=NAMES)
    assert (act.kind, act.text, act.told) == ("pose", shown, told)


def test_speech_keeps_the_lines_of_a_list() -> None:
    text = "Three things:\n- rope\n- tar\n* bread"
    assert delivered(text) == [f'"{text}"']


def test_empty_reply_has_no_acts() -> None:
    assert delivered("") == delivered(" \n ") == []


# Replies whose start was said before.


@pytest.mark.parametrize(
    ("said", "text", "wanted"),
    [
        ("*She smiles.*", '*She smiles.* "Good evening."', ['"Good evening."']),
        ('"Aye."', '"Aye." He nods. "Go."', ["nods.", '"Go."']),
        ('"Aye," he says.', '"Aye," he says. "Go."', ['"Go."']),
        ("Aye.", "Aye. *nods* Go.", ["nods", '"Go."']),
        ("Oren looks up.", 'Oren looks up. He nods. "Go."', ["nods.", '"Go."']),
        ("Aye.", "Aye.", []),
    ],
)
def test_rest_of_a_reply_is_interpreted_together_with_its_start(
    said: str, text: str, wanted: list[str]
) -> None:
    assert delivered(text, after=len(said)) == wanted


@pytest.mark.parametrize("start", ["Oren looks up.", "She looks up.", "The lamp lights Oren."])
def test_start_that_narrates_the_speaker_is_open_until_the_first_quotation(start: str) -> None:
    assert is_open(start, own_names=NAMES)
    assert not is_open(f'{start} "Aye." He nods.', own_names=NAMES)


def test_start_is_open_after_a_quotation_because_a_whisper_may_follow() -> None:
    assert is_open('"Aye."', own_names=NAMES)
    assert not is_open('"Aye." Sit down.', own_names=NAMES)


@pytest.mark.parametrize("start", ["Aye, at dusk.", "It costs a penny.", "*She smiles.*"])
def test_start_that_does_not_narrate_the_speaker_is_not_open(start: str) -> None:
    assert not is_open(start, own_names=NAMES)


# Properties of any text.

# Words that no rule removes: neither pronouns, names nor "says".
_WORDS = st.sampled_from(["rope", "Tar", "slack", "turns", "Bell!", "gulls,", "9", "water."])
_MARKS = st.sampled_from(
    ['"', '" ', ' "', "*", "* ", " *", "_", "“", "”", "«", "»", "\n", " ", "- ", "„", "'", "|", "—"]
)
_TEXTS = st.lists(st.one_of(_WORDS, _MARKS, st.just(" ")), max_size=40).map("".join)


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


@given(text=_TEXTS)
@example(text='"rope," *turns* "Tar')
def test_acts_keep_all_words_of_a_reply_in_order(text: str) -> None:
    acts = acts_of(text, own_names=NAMES)
    assert words(" ".join(act.text for act in acts)) == words(text)


@given(text=_TEXTS)
def test_reply_has_a_limited_number_of_acts(text: str) -> None:
    acts = acts_of(text, own_names=NAMES)
    assert len(acts) <= MOST_ACTS
    assert all(act.text.strip() for act in acts)


@given(text=_TEXTS, share=st.integers(0, 100))
def test_acts_skip_the_part_that_was_said_before(text: str, share: int) -> None:
    after = len(text) * share // 100
    acts = acts_of(text, own_names=NAMES, after=after)
    assert len(words(" ".join(act.text for act in acts))) <= len(words(text[after:]))


@given(text=st.text(max_size=200), after=st.integers(0, 200))
def test_acts_are_found_in_any_text_without_an_error(text: str, after: int) -> None:
    acts_of(text, own_names=NAMES, after=after)
    is_open(text, own_names=NAMES)


@pytest.mark.parametrize("unit", ["*", '"', "_", "*a ", '"a. ', "_a ", "“", '*a* "b." ', "\n- a"])
def test_hostile_replies_take_time_linear_in_their_length(unit: str) -> None:
    text = unit * (8_000 // len(unit))
    with little_work():
        acts_of(text, own_names=NAMES)
