"""Greetings: an NPC with a greeting opens each of its conversations with it."""

import json
import time
from datetime import UTC, datetime

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import HistoryConflictError, ModelUnavailable, StoreError
from evennia_ai.engine.prompt.components import GAME, of_npc
from evennia_ai.npc.mind import emergency
from evennia_ai.npc.mind.greeting import GREETING_SECONDS
from evennia_ai.npc.mind.handler import AIHandler
from evennia_ai.npc.recording import heard
from evennia_ai.npc.recording.unanswered import look_back, take_up
from evennia_ai.npc.runtime import current
from evennia_ai.npc.senses.witness import show_arrival
from evennia_ai.npc.turn.turn import Turn
from evennia_ai.store.authored import cards
from evennia_ai.store.authored.cards import save_card
from evennia_ai.store.authored.lorebooks import LOREBOOKS, save_book
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import control, conversations, turns
from evennia_ai.store.history.windows import windows
from tests.npc.gathering import inputs_for

NPC = "evennia_ai.typeclasses.AINPC"
PERSON = "evennia.objects.objects.DefaultCharacter"
FIRST = "Mind the wet planks."
HELLO = 'Oren says, "Mind the wet planks."'


def a_card(**fields):
    base = {
        "name": "Oren Vale",
        "nickname": "Oren",
        "first_mes": FIRST,
        "alternate_greetings": ["Back so soon?"],
        "group_only_greetings": ["Room for all of you aboard."],
    }
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": {**base, **fields}}


def greets(stage, index=0, **fields):
    """Let the NPC play a card with these fields, and open with the greeting of this index."""
    save_card("oren", json.dumps(a_card(**fields)), by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc(stage.npc.ai.ref), by=trusted("builder"))
    cards.set_greeting(stage.npc.ai.ref, index, by=trusted("builder"))


def gated_lore(greeting):
    entry = {"keys": [], "constant": True, "enabled": True, "insertion_order": 1}
    text = f"@@is_greeting {greeting}\nThe planks were laid in spring."
    entries = [{**entry, "content": text, "extensions": {}, "use_regex": False}]
    save_book("planks", json.dumps({"entries": entries}), by=trusted("builder"))
    LOREBOOKS.assign("planks", GAME, by=trusted("builder"))


def conversation_of(stage, kind="room"):
    known = conversations.conversations_of(stage.npc.ai.ref)
    return next(one for one in known if one.kind == kind)


def heard_next(stage, text):
    """Return the event of a line that is committed and not answered."""
    held = []
    stage.npc.ai.attention.consider = held.append
    stage.says(stage.anna, text)
    del stage.npc.ai.attention.consider
    return held[0]


def told(model, text, index=-1):
    return any(text in message.content for message in model.requests[index].messages)


def comes(stage, who):
    """Let somebody come into the room, and run what follows at once."""
    show_arrival(stage.room, who, None)
    stage.passes()


def greetings_heard(stage) -> int:
    return stage.screen_of(stage.ben).count(HELLO)


class TestWhoComes:
    def test_newcomer_is_greeted_after_the_arrival(self, stage):
        greets(stage)
        model = stage.talks_with()
        comes(stage, stage.anna)

        assert greetings_heard(stage) == 1
        assert stage.records() == [("event", "", "Anna comes in."), ("assistant", "", FIRST)]
        assert not model.requests

    def test_person_who_comes_several_times_is_greeted_once(self, stage):
        greets(stage)
        for _ in range(3):
            comes(stage, stage.anna)
            stage.passes(100.0)

        assert greetings_heard(stage) == 1

    def test_person_who_heard_a_greeting_is_not_greeted_on_return(self, stage):
        greets(stage)
        comes(stage, stage.anna)
        stage.passes(100.0)
        comes(stage, stage.ben)

        assert greetings_heard(stage) == 1

    def test_another_newcomer_is_greeted_after_the_pause(self, stage):
        greets(stage)
        comes(stage, stage.anna)
        stage.passes(100.0)
        comes(stage, stage.make("Carl", PERSON, stage.room))

        assert greetings_heard(stage) == 2

    def test_only_the_first_newcomer_of_a_crowd_is_greeted_at_once(self, stage):
        greets(stage)
        for number in range(20):
            comes(stage, stage.make(f"Guest {number}", PERSON, stage.room))

        assert greetings_heard(stage) == 1

    def test_other_newcomers_of_a_crowd_are_greeted_together_after_the_pause(self, stage):
        greets(stage)
        comes(stage, stage.anna)
        carl = stage.make("Carl", PERSON, stage.room)
        for who in (carl, stage.make("Dora", PERSON, stage.room)):
            comes(stage, who)
        stage.passes(GREETING_SECONDS - 1.0)
        assert greetings_heard(stage) == 1

        stage.passes(1.0)
        assert greetings_heard(stage) == 2
        assert stage.records()[-1] == ("assistant", "", FIRST)
        stage.passes(100.0)
        comes(stage, carl)
        assert greetings_heard(stage) == 2

    def test_newcomer_who_left_during_the_pause_is_not_greeted(self, stage):
        greets(stage)
        comes(stage, stage.anna)
        carl = stage.make("Carl", PERSON, stage.room)
        comes(stage, carl)
        carl.location = None
        before = stage.records()
        stage.passes(100.0)

        assert greetings_heard(stage) == 1
        assert stage.records() == before

    def test_newcomer_who_was_answered_during_the_pause_is_not_greeted(self, stage):
        greets(stage)
        stage.talks_with("Aye.")
        comes(stage, stage.anna)
        carl = stage.make("Carl", PERSON, stage.room)
        comes(stage, carl)
        stage.says(carl, "Oren?")
        stage.passes(100.0)

        assert greetings_heard(stage) == 1
        assert stage.records()[-2] == ("assistant", "", "Aye.")

    @pytest.mark.parametrize(
        "stops",
        [
            lambda stage: stage.npc.ai.disable(),
            lambda stage: emergency.pause(stage.npc, by=trusted("builder")),
            lambda stage: setattr(stage.npc, "location", None),
            lambda stage: stage.npc.delete(),
        ],
    )
    def test_newcomers_are_not_greeted_by_an_npc_that_may_not_speak_after_the_pause(
        self, stage, stops
    ):
        greets(stage)
        comes(stage, stage.anna)
        comes(stage, stage.make("Carl", PERSON, stage.room))
        stops(stage)
        stage.passes(100.0)

        assert greetings_heard(stage) == 1

    def test_greeting_after_the_pause_waits_for_a_running_answer(self, stage):
        greets(stage)
        stage.talks_with("Aye.", delay_seconds=60)
        comes(stage, stage.anna)
        comes(stage, stage.make("Carl", PERSON, stage.room))
        stage.says(stage.anna, "Oren?")
        stage.passes(40.0)
        assert greetings_heard(stage) == 1

        for _ in range(12):
            stage.passes(5.0)
        said = [body for role, _, body in stage.records() if role == "assistant"]
        assert said == [FIRST, "Aye.", FIRST]

    def test_newcomer_before_a_reload_is_greeted_after_it(self, stage):
        greets(stage)
        comes(stage, stage.anna)
        carl = stage.make("Carl", PERSON, stage.room)
        comes(stage, carl)
        comes(stage, stage.make("Dora", PERSON, stage.room))
        carl.location = None
        forget_everything()
        stage.npc.__dict__.pop("ai")
        take_up(look_back(started_at=time.time()))
        stage.passes()
        assert greetings_heard(stage) == 2

        take_up(look_back(started_at=time.time()))
        stage.passes(100.0)
        assert greetings_heard(stage) == 2

    def test_newcomer_who_spoke_before_a_reload_is_not_greeted_after_it(self, stage):
        greets(stage)
        stage.talks_with("Aye.")
        comes(stage, stage.anna)
        carl = stage.make("Carl", PERSON, stage.room)
        comes(stage, carl)
        stage.says(carl, "Oren?")
        forget_everything()
        stage.npc.__dict__.pop("ai")
        take_up(look_back(started_at=time.time()))
        stage.passes(100.0)

        assert greetings_heard(stage) == 1

    def test_two_npcs_greet_newcomers_independently(self, stage):
        greets(stage)
        berta = stage.make("Berta", NPC, stage.room)
        cards.CARDS.assign("oren", of_npc(berta.ai.ref), by=trusted("builder"))
        cards.set_greeting(berta.ai.ref, 0, by=trusted("builder"))
        comes(stage, stage.anna)
        comes(stage, stage.make("Carl", PERSON, stage.room))
        stage.passes(100.0)

        heard = stage.screen_of(stage.ben)
        hers = HELLO.replace("Oren", "Berta")
        assert (heard.count(HELLO), heard.count(hers)) == (2, 2)

    def test_greeting_is_not_repeated_after_a_reload(self, stage):
        greets(stage)
        comes(stage, stage.anna)
        forget_everything()
        stage.npc.__dict__.pop("ai")
        comes(stage, stage.anna)

        assert greetings_heard(stage) == 1

    def test_greeting_is_said_again_after_a_reset_of_the_conversation(self, stage):
        greets(stage)
        stage.talks_with("Aye.")
        comes(stage, stage.anna)
        stage.passes(100.0)
        control.reset_conversation(conversation_of(stage), by=trusted("builder"))
        comes(stage, stage.anna)
        assert greetings_heard(stage) == 2

        control.reset_conversation(conversation_of(stage), by=trusted("builder"))
        stage.says(stage.anna, "Oren?")
        assert greetings_heard(stage) == 3

    def test_greeted_newcomer_is_answered_without_another_greeting(self, stage):
        greets(stage)
        stage.talks_with("Aye.")
        comes(stage, stage.anna)
        stage.says(stage.anna, "Oren?")

        assert greetings_heard(stage) == 1
        assert stage.records()[-2] == ("assistant", "", "Aye.")

    def test_arriving_npc_is_not_greeted(self, stage):
        greets(stage)
        comes(stage, stage.make("Berta", NPC, stage.room))

        assert greetings_heard(stage) == 0

    def test_newcomer_is_not_greeted_by_a_switched_off_npc(self, stage):
        greets(stage)
        stage.npc.ai.disable()
        comes(stage, stage.anna)

        assert greetings_heard(stage) == 0

    def test_newcomer_is_not_greeted_when_no_greeting_is_chosen(self, stage):
        greets(stage)
        cards.set_greeting(stage.npc.ai.ref, None, by=trusted("builder"))
        comes(stage, stage.anna)

        assert greetings_heard(stage) == 0


class TestOpening:
    @pytest.mark.parametrize("index", [0, 1, 2])
    def test_conversation_with_a_room_opens_with_the_chosen_greeting(self, stage, index):
        greets(stage, index)
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        words = [FIRST, "Back so soon?", "Room for all of you aboard."][index]
        assert stage.screen_of(stage.ben) == [
            'Anna says, "Oren?"',
            f'Oren says, "{words}"',
            'Oren says, "Aye."',
        ]

    def test_greeting_precedes_the_answered_line_in_the_history(self, stage):
        greets(stage)
        model = stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        assert stage.records()[:3] == [
            ("assistant", "", FIRST),
            ("user", "Anna", "Oren?"),
            ("assistant", "", "Aye."),
        ]
        sent = [(m.role, m.content) for m in model.requests[0].messages]
        assert sent.index(("assistant", FIRST)) < sent.index(("user", "Anna: Oren?"))

    def test_conversation_is_opened_with_a_greeting_once(self, stage):
        greets(stage)
        stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren?")
        stage.says(stage.ben, "Oren?")
        assert stage.screen_of(stage.ben).count(HELLO) == 1

    def test_conversation_is_not_opened_again_after_a_reload(self, stage):
        greets(stage)
        stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren?")
        forget_everything()
        stage.npc.__dict__.pop("ai")
        stage.says(stage.anna, "Oren?")
        assert stage.screen_of(stage.ben).count(HELLO) == 1

    def test_greeting_is_said_although_the_npc_overheard_earlier_lines(self, stage):
        greets(stage)
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Ben, fog again.")
        assert HELLO not in stage.screen_of(stage.ben)
        stage.says(stage.anna, "Oren?")
        assert stage.screen_of(stage.ben)[-2] == HELLO
        assert [body for _, _, body in stage.records()][:3] == ["Ben, fog again.", FIRST, "Oren?"]

    def test_running_conversation_is_not_opened_with_a_greeting_chosen_later(self, stage):
        greets(stage, None)
        stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren?")
        cards.set_greeting(stage.npc.ai.ref, 0, by=trusted("builder"))
        stage.says(stage.anna, "Oren?")
        assert FIRST not in [body for _, _, body in stage.records()]

    def test_npc_without_a_greeting_just_answers(self, stage):
        greets(stage, None)
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        assert stage.records() == [
            ("user", "Anna", "Oren?"),
            ("assistant", "", "Aye."),
            ("run_end", "", "answered"),
        ]

    def test_switched_off_npc_says_no_greeting(self, stage):
        greets(stage)
        stage.npc.ai.disable()
        stage.says(stage.anna, "Oren?")
        assert stage.records() == [("user", "Anna", "Oren?")]

    def test_greeting_is_followed_by_the_fallback_line_when_the_model_is_dead(self, stage, logged):
        greets(stage)
        stage.talks_with(ModelUnavailable("scripted", "no connection"))
        stage.says(stage.anna, "Oren?")
        hello, fallback = stage.screen_of(stage.ben)[1:]
        assert hello == HELLO
        assert "lost in thought" in fallback

    def test_greeting_is_said_at_once_while_another_answer_runs(self, stage):
        greets(stage)
        stage.talks_with("Aye.", "Aye.", delay_seconds=30)
        stage.says(stage.anna, "Oren?")
        stage.whispers(stage.ben, "psst")
        assert stage.screen_of(stage.ben)[-1] == 'Oren whispers to you, "Mind the wet planks."'
        stage.passes(30)
        stage.passes(30)
        assert sum(FIRST in line for line in stage.screen_of(stage.ben)) == 2

    def test_turn_that_starts_at_once_says_the_greeting_before_the_answer(self, stage):
        greets(stage)
        stage.talks_with("Aye.")
        turn = Turn(stage.npc.ai, heard_next(stage, "Oren?"), current.runtime)
        turn.run()
        turn.greet()
        assert stage.screen_of(stage.ben)[1:] == [HELLO, 'Oren says, "Aye."']

    def test_greeting_is_said_when_the_queue_of_answers_is_full(self, stage):
        greets(stage)
        stage.talks_with(*["Aye."] * 3, delay_seconds=30, queue_limit=1)
        stage.says(stage.anna, "Oren?")
        stage.says(stage.anna, "Oren?")
        stage.whispers(stage.ben, "psst")
        assert stage.screen_of(stage.ben)[-1] == 'Oren whispers to you, "Mind the wet planks."'

    def test_greeting_is_not_said_when_the_npc_has_left_meanwhile(self, stage):
        greets(stage)
        stage.anna.at_say("Oren?", msg_self=True)
        stage.npc.location = None
        stage.passes()
        assert stage.screen_of(stage.ben) == ['Anna says, "Oren?"']


class TestPrivately:
    def test_private_conversation_opens_with_a_whispered_greeting(self, stage):
        greets(stage, 1)
        stage.talks_with("The bell.")
        stage.whispers(stage.anna, "what lies under the quay?")
        assert stage.screen_of(stage.anna)[1:] == [
            'Oren whispers to you, "Back so soon?"',
            'Oren whispers to you, "The bell."',
        ]
        assert stage.records("private")[0] == ("assistant", "", "Back so soon?")

    def test_whispered_greeting_is_heard_and_recorded_only_in_private(self, stage):
        greets(stage, 1)
        model = stage.talks_with("The bell.", "Fog.")
        stage.whispers(stage.anna, "what lies under the quay?")
        cards.set_greeting(stage.npc.ai.ref, None, by=trusted("builder"))
        stage.says(stage.ben, "Oren, what news?")
        assert not any("Back so soon" in line for line in stage.screen_of(stage.ben))
        assert not told(model, "Back so soon")

    def test_every_partner_of_a_private_conversation_is_greeted(self, stage):
        greets(stage)
        stage.talks_with("Aye.", "Aye.")
        stage.whispers(stage.anna, "psst")
        stage.whispers(stage.ben, "psst")
        assert sum(FIRST in line for line in stage.screen_of(stage.anna)) == 1
        assert sum(FIRST in line for line in stage.screen_of(stage.ben)) == 1

    def test_first_message_replaces_a_group_greeting_in_private(self, stage):
        greets(stage, 2)
        stage.talks_with("Aye.")
        stage.whispers(stage.anna, "psst")
        assert stage.screen_of(stage.anna)[1] == 'Oren whispers to you, "Mind the wet planks."'
        assert windows(conversation_of(stage, "private").id).greeting == 0

    def test_status_says_that_a_group_greeting_is_replaced_in_private(self, stage, logged):
        greets(stage, 2)
        (problem,) = stage.npc.ai.status().problems
        assert problem == (
            "card 'oren': greeting 2 is for groups only; a player who whispers gets greeting 0"
        )
        assert any(problem in line for line in logged)

    def test_private_conversation_has_no_greeting_when_the_first_message_is_empty(
        self, stage, logged
    ):
        greets(stage, 2, first_mes="")
        stage.talks_with("Aye.")
        stage.whispers(stage.anna, "psst")
        assert stage.records("private")[0] == ("user", "Anna", "psst")
        (problem,) = stage.npc.ai.status().problems
        assert "a player who whispers gets no greeting" in problem


class TestWords:
    def test_macros_in_a_greeting_are_expanded(self, stage):
        greets(
            stage, first_mes="{{char}} nods to {{user}}.{{// not said}}{{setvar::x::1}} {{summary}}"
        )
        stage.talks_with("Aye.", "Aye.")
        stage.npc.ai_partner = "the lodger"
        stage.says(stage.anna, "Oren?")
        stage.whispers(stage.anna, "psst")
        assert stage.records()[0][2] == "Oren nods to the lodger. {{summary}}"
        assert stage.records("private")[0][2] == "Oren nods to Anna. {{summary}}"

    def test_greeting_keeps_the_time_at_which_it_was_said(self, stage, monkeypatch):
        greets(stage, first_mes="It is {{isotime}} {{datetimeformat Z}}.")
        stage.talks_with("Aye.", "Aye.")
        for hour in (7, 8):
            at = datetime(2031, 5, 1, hour, 30, tzinfo=UTC)
            monkeypatch.setattr(heard, "game_time", lambda at=at: at)
            stage.says(stage.anna, "Oren?")
        assert stage.records()[0][2] == "It is 07:30 +00:00."

    def test_dice_in_a_greeting_depend_on_the_conversation(self, stage):
        greets(stage, first_mes="{{roll:1000000}}")
        stage.talks_with("Aye.", "Aye.", "Aye.")
        seen = stage.npc.ai.preview("Oren?", stage.anna).history[0].content
        stage.whispers(stage.ben, "psst")
        stage.says(stage.anna, "Oren?")
        assert stage.records()[0][2] == seen
        assert stage.records("private")[0][2] != seen

    def test_name_of_a_player_is_no_macro_in_a_greeting(self, stage):
        greets(stage, first_mes="Well met, {{user}}.")
        stage.talks_with("Aye.")
        stage.anna.key = "{{char}} |rRed"
        stage.whispers(stage.anna, "psst")
        assert stage.records("private")[0][2] == "Well met, char Red."

    def test_markup_in_a_greeting_is_shown_as_text(self, stage):
        greets(stage, first_mes="|rRed|n |lcquit|ltdoor|le $pick(a) {npc}")
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        line = stage.screen_of(stage.ben)[1]
        assert line.startswith('Oren says, "|rRed|n ')
        assert "$pick(a) {npc}" in line
        assert not any("\x1b]" in shown for shown in stage.ben.screen.telnet(MXP=True))

    def test_greeting_is_shortened_to_the_longest_length_of_a_reply(self, stage):
        greets(stage, first_mes="The ferry is old. " * 200)
        stage.talks_with("The ferry is old. " * 200)
        stage.says(stage.anna, "Oren?")
        greeting, _, reply = (body for _, _, body in stage.records()[:3])
        assert greeting == reply
        assert len(greeting) <= 600

    def test_greeting_is_said_without_label_and_reasoning(self, stage):
        greets(stage, first_mes="<think>hm</think>\nOren: Aye, aboard.\nAnna: Thank you.")
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        assert stage.records()[0][2] == "Aye, aboard."

    def test_greeting_that_is_an_action_is_shown_as_a_pose(self, stage):
        greets(stage, first_mes="*coils a rope*")
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        assert stage.screen_of(stage.ben)[1] == "Oren coils a rope"


class TestWhatCannotBeSaid:
    @pytest.mark.parametrize(
        ("index", "fields", "why"),
        [
            (3, {}, "there is no greeting 3, only 0 to 2"),
            (0, {"first_mes": " \n"}, "greeting 0 says nothing"),
            (1, {"alternate_greetings": ["{{// later}}"]}, "greeting 1 says nothing"),
            (0, {"first_mes": "<think>hm"}, "greeting 0 says nothing"),
        ],
    )
    def test_status_says_why_an_npc_has_no_greeting(self, stage, logged, index, fields, why):
        greets(stage, index, **fields)
        stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren?")
        stage.whispers(stage.anna, "psst")
        assert stage.records()[0] == ("user", "Anna", "Oren?")
        assert stage.records("private")[0] == ("user", "Anna", "psst")
        (problem,) = stage.npc.ai.status().problems
        mend = "change that with card/greeting Oren = <number>, or off"
        assert problem == f"card 'oren': {why}, so nobody is greeted; {mend}"

    def test_npc_greets_nobody_after_the_card_lost_the_greeting(self, stage, logged):
        greets(stage, 2)
        stage.talks_with("Aye.")
        assert "Room for all" in str(stage.npc.ai.preview("Oren?", stage.anna).messages)
        save_card("oren", json.dumps(a_card(group_only_greetings=[])), by=trusted("builder"))
        stage.says(stage.anna, "Oren?")
        assert stage.screen_of(stage.ben)[1:] == ['Oren says, "Aye."']

    def test_npc_greets_nobody_when_its_card_cannot_be_read(self, stage, logged):
        greets(stage, 0, name=7)
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        assert stage.records()[0] == ("user", "Anna", "Oren?")
        (problem,) = stage.npc.ai.status().problems
        assert "is left out" in problem


class TestCommits:
    def test_greeting_that_cannot_be_committed_is_not_said(self, stage, logged, monkeypatch):
        greets(stage)
        model = stage.talks_with("Aye.")
        append = conversations.append_records

        def refuse_events(where, new):
            if new[0].role == "user":
                raise StoreError("the disk is full")
            return append(where, new)

        with monkeypatch.context() as patch:
            patch.setattr(conversations, "append_records", refuse_events)
            stage.says(stage.anna, "Oren?")
        assert (stage.records(), model.requests) == ([], [])
        assert stage.screen_of(stage.ben) == ['Anna says, "Oren?"']
        assert windows(conversation_of(stage).id).first_reply is None

        stage.passes(5)
        assert stage.screen_of(stage.ben)[1:] == [HELLO, 'Oren says, "Aye."']
        assert [body for _, _, body in stage.records()][:2] == [FIRST, "Oren?"]

    def test_greeting_is_committed_once_when_another_process_wrote_first(self, stage, monkeypatch):
        greets(stage)
        stage.talks_with("Aye.")
        append, tried = conversations.append_records, []

        def conflict_once(where, new):
            if new[0].role == "user" and not tried:
                tried.append(new)
                raise HistoryConflictError(str(where))
            return append(where, new)

        monkeypatch.setattr(conversations, "append_records", conflict_once)
        stage.says(stage.anna, "Oren?")
        assert [body for _, _, body in stage.records()][:3] == [FIRST, "Oren?", "Aye."]
        assert stage.screen_of(stage.ben).count(HELLO) == 1

    def test_greeting_is_not_repeated_when_the_turn_is_tried_again(
        self, stage, logged, monkeypatch
    ):
        def refuse(*args, **kwargs):
            raise StoreError("the disk is full")

        greets(stage)
        stage.talks_with("Aye.")
        with monkeypatch.context() as patch:
            patch.setattr(turns, "begin_turn", refuse)
            stage.says(stage.anna, "Oren?")
        stage.passes(5)
        assert stage.screen_of(stage.ben)[1:] == [HELLO, 'Oren says, "Aye."']

    def test_report_of_a_turn_with_a_greeting_is_the_same_after_a_reload(self, stage):
        greets(stage)
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        before = stage.npc.ai.last_report()
        greets(stage, 1, first_mes="Another one.")
        forget_everything()
        assert AIHandler(stage.npc, current).last_report() == before

    def test_warm_turn_after_a_greeting_makes_no_query(self, stage, no_queries):
        greets(stage, 1)
        gated_lore(1)
        stage.talks_with(*["Aye."] * 3)
        stage.says(stage.anna, "Oren?")
        stage.says(stage.anna, "Oren?")
        heard = heard_next(stage, "Oren?")
        with no_queries():
            inputs = inputs_for(stage.npc, heard)
        assert inputs.rules.lore.greeting_index == 1


class TestPreview:
    def test_preview_shows_the_greeting_as_the_first_message_of_the_history(self, stage):
        greets(stage)
        seen = stage.npc.ai.preview("Oren?", stage.anna)
        assert [m.content for m in seen.messages if m.block == "history"] == [FIRST]

    def test_preview_with_a_greeting_writes_nothing(self, stage):
        greets(stage)
        stage.npc.ai.preview("Oren?", stage.anna)
        assert conversations.conversations_of(stage.npc.ai.ref) == ()

    @pytest.mark.parametrize("before", [[], ["Ben, fog again."], ["Oren, hello?"]])
    def test_preview_with_a_greeting_equals_the_prompt_of_the_next_turn(self, stage, before):
        greets(stage, 1)
        gated_lore(1)
        stage.talks_with("Aye.", "Aye.")
        for text in before:
            stage.says(stage.anna, text)
        seen = [stage.npc.ai.preview("Oren?", stage.anna) for _ in range(2)]
        stage.says(stage.anna, "Oren?")
        sent = stage.npc.ai.last_report().sha256
        assert [prompt.sha256 for prompt in seen] == [sent, sent]


class TestLore:
    @pytest.mark.parametrize(("gate", "is_there"), [(1, True), (0, False)])
    def test_lore_condition_tests_the_greeting_of_the_conversation(self, stage, gate, is_there):
        greets(stage, 1)
        gated_lore(gate)
        model = stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren?")
        stage.says(stage.anna, "Oren?")
        assert [told(model, "laid in spring", turn) for turn in (0, 1)] == [is_there, is_there]

    def test_lore_condition_tests_the_said_greeting_after_a_reload_and_a_new_choice(self, stage):
        greets(stage, 1)
        gated_lore(1)
        model = stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren?")
        cards.set_greeting(stage.npc.ai.ref, 0, by=trusted("builder"))
        forget_everything()
        stage.npc.__dict__.pop("ai")
        stage.says(stage.anna, "Oren?")
        assert told(model, "laid in spring")

    def test_lore_condition_tests_the_greeting_of_each_conversation(self, stage):
        greets(stage, 1)
        gated_lore(1)
        model = stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren?")
        cards.set_greeting(stage.npc.ai.ref, 0, by=trusted("builder"))
        stage.whispers(stage.anna, "psst")
        assert [told(model, "laid in spring", turn) for turn in (0, 1)] == [True, False]

    def test_lore_condition_assumes_greeting_0_when_none_was_said(self, stage):
        greets(stage, None)
        gated_lore(0)
        model = stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        assert told(model, "laid in spring")
