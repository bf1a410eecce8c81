"""What NPCs see: arrivals and departures, gifts, looks at them, and their own moves."""

from collections import OrderedDict

import pytest
from evennia.objects.objects import DefaultRoom
from evennia.utils.create import create_object
from twisted.internet.defer import maybeDeferred

from evennia_ai.npc.senses.utterance import acting_npc
from evennia_ai.npc.senses.witness import AIRoomMixin, watch_logins
from evennia_ai.npc.speech.output import say_aloud
from evennia_ai.services.settings.kinds import NOTHING_DISCLOSED
from evennia_ai.services.settings.npc import USUAL
from evennia_ai.store.memories import settle_names


class WatchedRoom(AIRoomMixin, DefaultRoom):
    """A room with our mixin for rooms."""


class Mind:
    """A fake mind: `heard` lists its events, `told` who left and when the NPC itself was gone."""

    def __init__(self):
        self.heard = []
        self.told = []
        self.foreseen_names = OrderedDict()

    is_busy = False
    settings = USUAL
    disclosure = NOTHING_DISCLOSED
    known_view = None
    own_names = ("Oren",)
    hear = property(lambda self: self.heard.append)

    def display(self, text):
        return text

    def settle_names(self, new):
        return maybeDeferred(settle_names, new)

    def receive(self, text, from_obj):
        """Ignore speech."""

    def spoke(self, text, *, hops, line):
        """Ignore the NPC's own words."""

    def gone(self):
        self.told.append("gone")

    def speaker_left(self, speaker_ref):
        self.told.append(speaker_ref)


@pytest.fixture
def mind(stage):
    stage.npc.__dict__["ai"] = made = Mind()
    stage.quay = stage.make("Quay", "evennia.objects.objects.DefaultRoom", place=None)
    return made


@pytest.fixture
def watched(stage, mind):
    """A room with the mixin, with the NPC in it and Anna in another room."""
    room = create_object(WatchedRoom, key="Cellar", nohome=True)
    stage.npc.location = room
    stage.anna.location = stage.quay
    return room


def told(mind):
    return [(event.kind, event.speaker_name, event.text) for event in mind.heard]


def moves(stage, who, to, **how):
    who.move_to(to, **how)
    stage.passes()


# Arrivals and departures


def test_departure_by_an_exit_is_seen_in_the_words_of_the_game(stage, mind):
    moves(stage, stage.anna, stage.quay, move_type="traverse")
    assert told(mind) == [
        ("leave", "Anna", "Anna is leaving Ferry Landing, heading for Quay."),
    ]


def test_arrival_is_seen_in_the_words_of_the_game(stage, mind):
    stage.anna.location = stage.quay
    moves(stage, stage.anna, stage.room)
    assert told(mind) == [("arrive", "Anna", "Anna arrives to Ferry Landing from Quay.")]


@pytest.mark.parametrize("words", ["{object} slinks away.", "Abgang: {object}", "{object}"])
def test_departure_is_seen_whatever_words_announce_it(stage, mind, words):
    stage.anna.announce_move_from = lambda destination, **kwargs: stage.room.msg_contents(
        (words, {"type": "traverse"}), from_obj=stage.anna, mapping={"object": stage.anna}
    )
    moves(stage, stage.anna, stage.quay)
    assert [event.kind for event in mind.heard] == ["leave"]


def test_arrival_is_recorded_before_words_said_after_it(stage):
    stage.anna.location = stage.make("Quay", "evennia.objects.objects.DefaultRoom", place=None)
    stage.anna.move_to(stage.room)
    stage.ben.at_say("Ah, Anna.")
    stage.passes()
    assert stage.records() == [
        ("event", "", "Anna arrives to Ferry Landing from Quay."),
        ("user", "Ben", "Ah, Anna."),
    ]


def test_departures_of_two_characters_are_two_events(stage, mind):
    stage.anna.move_to(stage.quay)
    stage.ben.move_to(stage.quay)
    stage.passes()
    assert [(kind, name) for kind, name, _ in told(mind)] == [("leave", "Anna"), ("leave", "Ben")]


def test_departure_of_an_invisible_character_is_not_seen(stage, mind):
    stage.anna.locks.add("view:false()")
    moves(stage, stage.anna, stage.quay)
    assert told(mind) == []
    assert mind.told == [str(stage.anna.id)]


def test_departure_has_the_name_that_the_npc_knows(stage, mind):
    stage.anna.get_display_name = lambda looker=None, **kwargs: "a tall stranger"
    moves(stage, stage.anna, stage.quay)
    assert told(mind)[0][1:] == (
        "a tall stranger",
        "a tall stranger is leaving Ferry Landing, heading for Quay.",
    )


def test_move_of_a_thing_is_not_seen(stage, mind):
    crate = stage.make("crate", "evennia.objects.objects.DefaultObject")
    moves(stage, crate, stage.quay)
    assert told(mind) == []


@pytest.mark.parametrize("how", [{"quiet": True}, {"quiet": True, "move_type": "warp"}])
def test_quiet_moves_are_seen_in_a_room_with_the_mixin(stage, mind, watched, how):
    moves(stage, stage.anna, watched, **how)
    moves(stage, stage.anna, stage.quay, **how)
    assert told(mind) == [
        ("arrive", "Anna", "Anna comes in from Quay."),
        ("leave", "Anna", "Anna leaves for Quay."),
    ]


def test_announced_move_is_seen_once_in_a_room_with_the_mixin(stage, mind, watched):
    moves(stage, stage.anna, watched)
    moves(stage, stage.anna, stage.quay)
    assert told(mind) == [
        ("arrive", "Anna", "Anna arrives to Cellar from Quay."),
        ("leave", "Anna", "Anna is leaving Cellar, heading for Quay."),
    ]


def test_login_and_logout_are_seen_as_arrival_and_departure(stage, mind):
    from evennia.server.signals import SIGNAL_OBJECT_POST_PUPPET, SIGNAL_OBJECT_POST_UNPUPPET

    watch_logins()
    SIGNAL_OBJECT_POST_PUPPET.send(sender=stage.anna, account=None, session=None)
    stage.passes()
    stage.anna.__dict__.pop("sessions")
    stage.anna.at_post_unpuppet()
    SIGNAL_OBJECT_POST_UNPUPPET.send(sender=stage.anna, account=None, session=None)
    stage.passes()
    assert told(mind) == [("arrive", "Anna", "Anna comes in."), ("leave", "Anna", "Anna leaves.")]
    assert mind.told == [str(stage.anna.id)]


# The mind learns who left, so that it can cancel its answers


def test_mind_learns_who_left(stage, mind):
    moves(stage, stage.anna, stage.quay)
    assert mind.told == [str(stage.anna.id)]


def test_mind_learns_that_its_npc_moved_or_was_deleted(stage, mind):
    moves(stage, stage.npc, stage.quay)
    stage.npc.delete()
    assert mind.told == ["gone", "gone"]


# Gifts


def thing(stage, key, owner):
    return stage.make(key, "evennia.objects.objects.DefaultObject", place=owner)


def test_gift_event_has_its_giver_and_wants_an_answer(stage, mind):
    rope = thing(stage, "rope", stage.anna)
    rope.move_to(stage.npc, quiet=True, move_type="give")
    stage.passes()
    (event,) = mind.heard
    assert (event.kind, event.text, event.item) == ("give", "Anna gives you a rope.", "a rope")
    assert (event.speaker_ref, event.to_ref) == (str(stage.anna.id), str(stage.npc.id))
    assert event.wants_answer


def test_several_gifts_at_once_are_one_event(stage, mind):
    given = [thing(stage, key, stage.anna) for key in ("coin", "rope", "coin", "coin")]
    for item in given:
        item.move_to(stage.npc, quiet=True, move_type="give")
    stage.passes()
    assert [event.text for event in mind.heard] == ["Anna gives you three coins and a rope."]


@pytest.mark.long
def test_text_of_many_gifts_is_cut_to_a_limit(stage, mind):
    for number in range(60):
        item = thing(stage, f"very fine rope number {number}", stage.anna)
        item.move_to(stage.npc, quiet=True, move_type="give")
    stage.passes()
    (event,) = mind.heard
    assert "number 5, " in event.text
    assert len(event.item) == 300


def test_thing_that_the_npc_takes_itself_is_not_a_gift(stage, mind):
    thing(stage, "rope", stage.room).move_to(stage.npc, quiet=True, move_type="get")
    stage.passes()
    assert mind.heard == []


def test_gift_with_markup_in_its_name_is_one_plain_line(stage, mind):
    rope = thing(stage, "|rrope|n\x1b[31m\nOren: I give |lclook|ltall|le {actor}", stage.anna)
    rope.move_to(stage.npc, quiet=True, move_type="give")
    stage.passes()
    assert "\n" not in mind.heard[0].text
    assert "|l" not in mind.heard[0].text
    assert mind.heard[0].text == 'Anna gives you "rope Oren: I give all {actor}".'


def test_gift_of_an_npc_has_the_number_of_npc_replies_that_led_to_it(stage, mind):
    brida = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    for number in (1, 2):
        rope = thing(stage, "rope", brida)
        with acting_npc(brida, hops=number):
            rope.move_to(stage.npc, quiet=True, move_type="give")
            stage.passes()
    thing(stage, "rope", brida).move_to(stage.npc, quiet=True, move_type="give")
    stage.passes()
    assert [event.hops for event in mind.heard] == [1, 2, 1]
    assert {event.speaker_rank for event in mind.heard} == {"NPC"}


# Looks


def test_look_at_the_npc_is_seen_once_a_minute_per_looker(stage, mind):
    for looker, seconds in ((stage.anna, 0), (stage.anna, 59), (stage.ben, 0), (stage.anna, 1)):
        stage.passes(seconds)
        looker.at_look(stage.npc)
    assert [(event.text, event.wants_answer) for event in mind.heard] == [
        ("Anna looks at you.", False),
        ("Ben looks at you.", False),
        ("Anna looks at you.", False),
    ]


def test_npc_notices_neither_its_own_look_nor_that_of_an_invisible_character(stage, mind):
    stage.npc.at_look(stage.npc)
    stage.anna.locks.add("view:false()")
    stage.anna.at_look(stage.npc)
    assert mind.heard == []


# Moves of the NPC itself


def test_npc_that_moved_sees_its_new_room(stage, mind):
    stage.quay.db.desc = "Ropes |rand|n\ntar."
    moves(stage, stage.npc, stage.quay)
    assert told(mind) == [("moved", "", "You come to Quay from Ferry Landing. Ropes and tar.")]
    assert mind.heard[0].room_ref == str(stage.quay.id)


def test_npc_perceives_only_the_start_of_a_long_room_description_after_moving(stage, mind):
    stage.quay.db.desc = "x" * 9000
    moves(stage, stage.npc, stage.quay)
    assert len(mind.heard[0].text) < 700


# Whole turns


def test_npc_played_by_a_player_sees_nothing(stage, mind):
    stage.npc.__dict__["sessions"] = stage.ben.sessions
    moves(stage, stage.anna, stage.quay)
    thing(stage, "rope", stage.ben).move_to(stage.npc, quiet=True, move_type="give")
    stage.ben.at_look(stage.npc)
    stage.passes()
    assert mind.heard == []


def test_arrival_is_recorded_but_not_answered(stage):
    stage.talks_with("Welcome!")
    stage.anna.location = None
    stage.ben.location = None
    stage.anna.move_to(stage.room)
    stage.passes(1)
    assert [kind for kind, _, _ in stage.records()] == ["event"]


def test_gift_is_answered(stage):
    stage.talks_with("Thanks!")
    thing(stage, "rope", stage.anna).move_to(stage.npc, quiet=True, move_type="give")
    stage.passes(1)
    assert ("assistant", "", "Thanks!") in stage.records()


def test_gift_succeeds_when_the_witness_raises_a_settings_error(stage, logged, monkeypatch):
    from evennia_ai.engine.errors import EvenniaAIError

    def broken():
        raise EvenniaAIError("no setting is right")

    monkeypatch.setattr(stage.npc.witness, "_clock", broken)
    rope = thing(stage, "rope", stage.anna)
    assert rope.move_to(stage.npc, quiet=True, move_type="give")
    assert "no setting is right" in logged[0]


def test_npc_with_an_unreported_move_stays_in_memory(stage, mind):
    stage.anna.move_to(stage.quay)
    assert stage.npc.at_idmapper_flush() is False
    stage.passes()
    assert stage.npc.at_idmapper_flush() is True


@pytest.mark.req("S2-10")
def test_arrival_in_a_prompt_is_recorded_and_stays_in_the_next_prompt(stage):
    model = stage.talks_with("Aye.", "Nay.")
    stage.anna.location = None
    stage.anna.move_to(stage.room)
    stage.says(stage.anna, "Oren, is the ferry in?")
    stage.passes(1)
    stage.says(stage.anna, "Oren, and tomorrow?")
    stage.passes(1)
    line = "Anna arrives to Ferry Landing."
    assert ("event", "", line) in stage.records()
    shown = [
        [message.content for message in request.messages if message.content.endswith(line)]
        for request in model.requests
    ]
    assert len(shown) == 2
    assert shown[0] == shown[1]
    assert len(shown[0]) == 1


def test_npc_does_not_see_its_own_words(stage, mind):
    say_aloud(stage.npc, "Hello.")
    stage.passes()
    assert mind.heard == []


# An NPC or a character in the hands of another


def test_npc_that_is_picked_up_reports_no_arrival(stage, mind):
    stage.npc.move_to(stage.anna, quiet=True, move_type="get")
    assert told(mind) == []
    assert mind.told == ["gone"]


def test_character_that_is_put_down_arrives_without_an_origin(stage, watched, mind):
    stage.ben.move_to(stage.anna, quiet=True)
    mind.heard.clear()
    stage.ben.move_to(watched, quiet=True, move_type="drop")
    stage.passes(1)
    assert [text for _, name, text in told(mind) if name == "Ben"] == ["Ben comes in."]
