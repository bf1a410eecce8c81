"""Lore in the game: which books apply, which facts conditions know, and the state of timers."""

import json
from dataclasses import replace

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.compose import compose_with_lore
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState, Spell
from evennia_ai.engine.prompt.components import GAME, Scope, of_npc
from evennia_ai.engine.prompt.history import History
from evennia_ai.npc.inputs import gather
from evennia_ai.npc.mind.handler import AIHandler
from evennia_ai.npc.recording import heard
from evennia_ai.npc.runtime import current
from evennia_ai.store.authored.cards import CARDS, save_card
from evennia_ai.store.authored.lorebooks import LOREBOOKS, save_book
from evennia_ai.store.core.snapshots import forget_everything, one_transaction
from evennia_ai.store.history import conversations, turns
from evennia_ai.store.history.windows import empty_window, lore_states, remember_lore, reset_lore
from tests.npc.gathering import inputs_for

FERRY = "The ferry sails with the tide."
BELL = "The bell is cracked."


def an_entry(key, content, **fields):
    base = {"keys": [key], "content": content, "extensions": {}, "enabled": True}
    return {**base, "insertion_order": 1, "use_regex": False, **fields}


def a_book(name, *entries, scope=GAME):
    save_book(name, json.dumps({"entries": list(entries)}), by=trusted("builder"))
    LOREBOOKS.assign(name, scope, by=trusted("builder"))


def sticky_ferry(scope=GAME):
    a_book("harbour", an_entry("ferry", FERRY, extensions={"sticky": 3}), scope=scope)


def tells(model, text, index=-1):
    """Return whether a request contained this text."""
    return any(text in message.content for message in model.requests[index].messages)


def room_of(stage):
    return next(c for c in conversations.conversations_of(stage.npc.ai.ref) if c.kind == "room")


def private_of(stage):
    return next(c for c in conversations.conversations_of(stage.npc.ai.ref) if c.kind == "private")


def heard_next(stage, text, speaker=None):
    """Return the event of a line that is committed and not answered."""
    held = []
    stage.npc.ai.attention.consider = held.append
    stage.says(speaker or stage.anna, text)
    del stage.npc.ai.attention.consider
    return held[0]


def inputs_now(stage, text="Oren, well?", speaker=None):
    heard = heard_next(stage, text, speaker)
    return inputs_for(stage.npc, heard)


class TestWhoseBooksCount:
    def test_book_of_a_faction_applies_only_to_its_members(self, stage):
        a_book("guild", an_entry("oath", "Row or drown."), scope=Scope(kind="faction", ref="oars"))
        assert inputs_now(stage).books == ()
        stage.npc.tags.add("Oars", category="faction")
        assert [book.label for book in inputs_now(stage).books] == ["guild"]
        stage.npc.tags.remove("Oars", category="faction")
        assert inputs_now(stage).books == ()

    def test_book_of_a_player_applies_in_turns_that_answer_the_player(self, stage):
        anna = Scope(kind="player", ref=str(stage.anna.id))
        a_book("anna", an_entry("bell", "Anna once stole the bell."), scope=anna)
        model = stage.talks_with("Aye.", "Aye.")
        stage.says(stage.ben, "Oren, the bell?")
        assert not tells(model, "stole the bell")
        stage.says(stage.anna, "Oren, the bell?")
        assert tells(model, "stole the bell")
        manifest = turns.last_turn(stage.npc.ai.ref).manifest
        assert manifest.revisions["book:anna"] == "1"

    def test_preview_uses_the_book_of_the_player(self, stage):
        anna = Scope(kind="player", ref=str(stage.anna.id))
        a_book("anna", an_entry("bell", "Anna once stole the bell."), scope=anna)
        seen = stage.npc.ai.preview("Oren, the bell?", stage.anna)
        assert "stole the bell" in str(seen.messages)

    def test_book_attached_to_game_and_player_applies_once(self, stage):
        a_book("harbour", an_entry("bell", BELL))
        LOREBOOKS.assign(
            "harbour", Scope(kind="player", ref=str(stage.anna.id)), by=trusted("builder")
        )
        (book,) = inputs_now(stage).books
        assert book.attach == "player"

    def test_book_in_a_card_and_book_of_a_player_with_the_same_name_both_apply(self, stage):
        card = {
            "spec": "chara_card_v3",
            "spec_version": "3.0",
            "data": {"name": "Oren", "character_book": {"entries": [], "extensions": {}}},
        }
        save_card("oren", json.dumps(card), by=trusted("builder"))
        CARDS.assign("oren", of_npc(stage.npc.ai.ref), by=trusted("builder"))
        a_book("Oren", scope=Scope(kind="player", ref=str(stage.anna.id)))
        books = inputs_now(stage).books
        assert [book.attach for book in books] == ["player", "character"]
        assert [book.label for book in books] == ["Oren", "Oren (card)"]

    def test_unreadable_book_of_a_player_is_left_out_and_logged_once(self, stage, caplog):
        save_book("anna", '{"entries": 7}', by=trusted("builder"))
        LOREBOOKS.assign(
            "anna", Scope(kind="player", ref=str(stage.anna.id)), by=trusted("builder")
        )
        model = stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren?")
        stage.says(stage.anna, "Oren?")
        assert len(model.requests) == 2
        told = [line for line in caplog.messages if "lorebook 'anna' is left out" in line]
        assert len(told) == 1

    def test_changed_book_of_a_player_is_in_the_next_turn(self, stage):
        anna = Scope(kind="player", ref=str(stage.anna.id))
        a_book("anna", an_entry("bell", "Anna stole the bell."), scope=anna)
        model = stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren, the bell?")
        a_book("anna", an_entry("bell", "Anna paid for the bell."), scope=anna)
        stage.says(stage.anna, "Oren, the bell?")
        assert tells(model, "paid for the bell")

    def test_warm_turn_with_the_book_of_a_player_makes_no_query(self, stage, no_queries):
        stage.npc.tags.add("oars", category="faction")
        a_book("anna", an_entry("bell", BELL), scope=Scope(kind="player", ref=str(stage.anna.id)))
        sticky_ferry()
        stage.talks_with(*["Aye."] * 3)
        stage.says(stage.anna, "Oren, the ferry?")
        stage.says(stage.anna, "Oren, the bell?")
        heard = heard_next(stage, "Oren, well?")
        with no_queries():
            inputs = inputs_for(stage.npc, heard)
        assert {book.label for book in inputs.books} == {"anna", "harbour"}

    def test_book_of_several_rooms_is_parsed_once(self, stage):
        cellar = stage.make("Cellar", "evennia.objects.objects.DefaultRoom", place=None)
        a_book("nets", an_entry("nets", "Torn."), scope=Scope(kind="room", ref=str(stage.room.id)))
        LOREBOOKS.assign("nets", Scope(kind="room", ref=str(cellar.id)), by=trusted("builder"))
        (here,) = stage.npc.ai.view().books
        stage.npc.location = cellar
        (there,) = stage.npc.ai.view().books
        assert there is here

    def test_new_lock_on_a_book_does_not_parse_the_book_again(self, stage):
        from evennia_ai.store.authored.lorebooks import set_book_locks

        sticky_ferry()
        (before,) = stage.npc.ai.view().books
        set_book_locks("harbour", "edit:perm(Admin)", by=trusted("builder"))
        assert stage.npc.ai.view().books == (before,)


class TestWhatConditionsKnow:
    def test_conditions_get_facts_of_the_npc_the_place_and_the_moment(self, stage):
        stage.npc.tags.add("ferryman")
        stage.room.tags.add("harbour", category="zone")
        facts = inputs_now(stage).facts
        assert facts["npc.key"] == "Oren"
        assert facts["npc.tags"] == ("ferryman",)
        assert facts["room.zones"] == ("harbour",)
        assert (facts["event.kind"], facts["speaker.name"]) == ("say", "Anna")
        assert "time.hour" in facts

    def test_conditions_know_a_new_tag_in_the_next_turn(self, stage):
        assert inputs_now(stage).facts["npc.tags"] == ()
        stage.npc.tags.add("drenched")
        assert inputs_now(stage).facts["npc.tags"] == ("drenched",)

    def test_conditions_use_functions_of_the_game(self, stage):
        stage.talks_with(lore_facts=("tests.npc.inputs.test_facts.of_the_tide",))
        assert inputs_now(stage).facts["tide.height"] == 2.5

    def test_entry_for_whispers_is_inactive_in_the_room(self, stage):
        own = {"evennia_ai": {"events": ["whisper"]}}
        a_book("secrets", an_entry("cove", "The cove hides a boat.", extensions=own))
        model = stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren, the cove?")
        assert not tells(model, "hides a boat")
        stage.whispers(stage.anna, "The cove?")
        assert tells(model, "hides a boat")

    def test_arrival_activates_only_an_entry_that_scans_events(self, stage):
        a_book(
            "harbour",
            an_entry("ferry", FERRY),
            an_entry("ferry", BELL, extensions={"evennia_ai": {"movement": True}}),
        )
        landing = stage.make("Ferry Landing", "evennia.objects.objects.DefaultRoom", place=None)
        model = stage.talks_with("Aye.", "Aye.")
        stage.anna.location = landing
        stage.anna.move_to(stage.room)
        stage.passes()
        assert any("Ferry Landing" in body for _, _, body in stage.records())
        stage.says(stage.anna, "Oren, good day.")
        assert (tells(model, FERRY), tells(model, BELL)) == (False, True)
        stage.says(stage.anna, "Oren, the ferry?")
        assert (tells(model, FERRY), tells(model, BELL)) == (True, True)

    def test_room_that_an_npc_enters_activates_no_entry_by_itself(self, stage):
        a_book("harbour", an_entry("ferry", FERRY), an_entry("waves", BELL))
        landing = stage.make("Ferry Landing", "evennia.objects.objects.DefaultRoom", place=None)
        landing.db.desc = "Waves lap at the stones."
        model = stage.talks_with("Aye.")
        for someone in (stage.npc, stage.anna):
            someone.move_to(landing)
        stage.passes()
        stage.says(stage.anna, "Oren, good day.")
        assert (tells(model, FERRY), tells(model, BELL)) == (False, False)
        assert tells(model, "Waves lap")

    def test_pose_activates_an_entry(self, stage):
        a_book("harbour", an_entry("ferry", FERRY))
        model = stage.talks_with("Aye.")
        stage.anna.location.msg_contents(
            text=("Anna points at the ferry.", {"type": "pose"}), from_obj=stage.anna
        )
        stage.says(stage.anna, "Oren, good day.")
        assert tells(model, FERRY)

    def test_description_of_the_room_activates_an_entry_that_scans_it(self, stage):
        own = {"evennia_ai": {"sources": ["room"]}}
        a_book("nets", an_entry("nets", "The nets are torn.", extensions=own))
        stage.room.db.desc = "|gNets|n hang over the quay."
        model = stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        assert tells(model, "The nets are torn.")

    def test_lore_rules_of_the_settings_apply(self, stage):
        a_book("harbour", an_entry("ferry", FERRY))
        lore = replace(stage.npc.ai.view().rules.lore, budget_percent=0)
        model = stage.talks_with("Aye.", lore=lore)
        stage.says(stage.anna, "Oren, the ferry?")
        assert not tells(model, FERRY)


class TestTheClock:
    def test_lore_clock_counts_own_turns_and_heard_messages(self, stage):
        stage.talks_with("Aye.", "Aye.")
        assert inputs_now(stage, "Fog again.").clock.turns == 1
        stage.says(stage.anna, "Oren, one")
        stage.says(stage.ben, "Nothing for Oren, this.")
        clock = inputs_now(stage, "Oren, two").clock
        heard = [kind for kind, *_ in stage.records() if kind == "user"]
        replies = [kind for kind, *_ in stage.records() if kind == "assistant"]
        assert (clock.turns, clock.messages) == (len(replies) + 1, len(heard))

    def test_lore_clock_counts_game_seconds_since_the_conversation_opened(self, stage, monkeypatch):
        from evennia.utils import gametime

        monkeypatch.setattr(gametime, "TIMEFACTOR", 4.0)
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren, one")
        opened_at = room_of(stage).opened_at
        monkeypatch.setattr(gather.time, "time", lambda: opened_at + 10)
        assert inputs_now(stage, "Oren, two").clock.seconds == 40

    def test_lore_clock_is_at_its_start_without_a_conversation(self, stage):
        talk = heard.ConversationKey(kind="room", place_ref=str(stage.room.id))
        view = stage.npc.ai.view()
        inputs = gather.make_inputs(
            stage.npc,
            view,
            talk,
            context=gather.context_of(None),
            conversation=None,
            window=empty_window(),
            event=None,
            said=None,
            history=History(),
        )
        assert inputs.clock == Clock(turns=1, messages=0, seconds=0)
        assert inputs.lore_state == NO_STATE


class TestWhatAConversationRemembers:
    def test_sticky_entry_stays_active_for_its_turns(self, stage):
        sticky_ferry()
        model = stage.talks_with(*["Aye."] * 4, lore=shallow(stage))
        stage.says(stage.anna, "Oren, the ferry?")
        stage.says(stage.anna, "Oren, and then?")
        assert any("sticky" in line for line in stage.npc.ai.why("harbour#0"))
        stage.says(stage.anna, "Oren, and then?")
        stage.says(stage.anna, "Oren, and then?")
        assert [tells(model, FERRY, n) for n in range(4)] == [True, True, True, False]

    def test_sticky_entry_stays_active_after_a_reload(self, stage):
        sticky_ferry()
        model = stage.talks_with("Aye.", "Aye.", lore=shallow(stage))
        stage.says(stage.anna, "Oren, the ferry?")
        forget_everything()
        stage.npc.__dict__.pop("ai")
        stage.says(stage.anna, "Oren, and then?")
        assert tells(model, FERRY)

    def test_sticky_state_of_a_private_conversation_is_separate(self, stage):
        sticky_ferry()
        model = stage.talks_with("Aye.", "Aye.", "Aye.", lore=shallow(stage))
        stage.whispers(stage.anna, "The ferry?")
        stage.says(stage.anna, "Oren, and then?")
        assert not tells(model, FERRY)
        stage.whispers(stage.anna, "And then?")
        assert tells(model, FERRY)
        assert lore_states(room_of(stage).id) == NO_STATE
        assert list(lore_states(private_of(stage).id).sticky) == ["harbour#0"]

    def test_preview_changes_no_lore_state(self, stage):
        sticky_ferry()
        stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren, good evening")
        seen = compose_with_lore(stage.npc.ai.foreseen("Oren, the ferry?", stage.anna))
        assert list(seen.lore.after.sticky) == ["harbour#0"]
        assert lore_states(room_of(stage).id) == NO_STATE

    def test_preview_uses_the_stored_lore_state(self, stage):
        sticky_ferry()
        stage.talks_with("Aye.", lore=shallow(stage))
        stage.says(stage.anna, "Oren, the ferry?")
        assert FERRY in str(stage.npc.ai.preview("Oren, and then?", stage.anna).messages)

    def test_failed_turn_keeps_the_lore_state_of_its_prompt(self, stage, logged):
        sticky_ferry()
        stage.talks_with(RuntimeError("the model is away"))
        stage.says(stage.anna, "Oren, the ferry?")
        assert turns.last_turn(stage.npc.ai.ref).state == "failed"
        assert list(lore_states(room_of(stage).id).sticky) == ["harbour#0"]

    def test_uncommitted_prompt_keeps_no_lore_state(self, stage, logged, monkeypatch):
        def refuse(*args, **kwargs):
            raise StoreError("the disk is full")

        sticky_ferry()
        stage.talks_with("Aye.")
        with monkeypatch.context() as patch:
            patch.setattr(turns, "_insert_turn", refuse)
            stage.says(stage.anna, "Oren, the ferry?")
        assert lore_states(room_of(stage).id) == NO_STATE

    def test_turn_without_books_keeps_the_lore_state(self, stage):
        anna = Scope(kind="player", ref=str(stage.anna.id))
        sticky_ferry(scope=anna)
        stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, "Oren, the ferry?")
        stage.says(stage.ben, "Oren, and then?")
        assert list(lore_states(room_of(stage).id).sticky) == ["harbour#0"]

    def test_detached_book_is_inactive_and_its_timers_run_on(self, stage):
        sticky_ferry()
        a_book("bells", an_entry("bell", BELL))
        model = stage.talks_with("Aye.", "Aye.", lore=shallow(stage))
        stage.says(stage.anna, "Oren, the ferry?")
        LOREBOOKS.unassign(GAME, "harbour", by=trusted("builder"))
        stage.says(stage.anna, "Oren, and then?")
        assert not tells(model, FERRY)
        assert list(lore_states(room_of(stage).id).sticky) == ["harbour#0"]

    def test_reset_of_the_conversation_clears_the_lore_state(self, stage):
        sticky_ferry()
        model = stage.talks_with("Aye.", "Aye.", lore=shallow(stage))
        stage.says(stage.anna, "Oren, the ferry?")
        reset_lore(room_of(stage), by=trusted("builder"))
        stage.says(stage.anna, "Oren, and then?")
        assert not tells(model, FERRY)

    def test_lore_state_is_part_of_the_recorded_inputs(self, stage):
        state = LoreState(sticky={"harbour#0": Spell(1, 4)})
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        with one_transaction("remembering"):
            remember_lore(room_of(stage), state, turn=1)
        assert inputs_now(stage).lore_state == state


class TestPastTurns:
    def test_inactive_entry_of_a_past_turn_can_be_explained(self, stage):
        a_book("harbour", *(an_entry(f"key{n}", f"Text {n}.") for n in range(200)))
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren, key7?")
        before = stage.npc.ai.why("harbour#150")
        forget_everything()
        mind = AIHandler(stage.npc, current)
        assert mind.why("harbour#150") == before
        assert mind.why("harbour#7") == stage.npc.ai.why("harbour#7")

    def test_manifest_stays_small_with_a_large_book(self, stage):
        from evennia_ai.models import Turn

        a_book("harbour", *(an_entry(f"key{n}", f"Text {n}.") for n in range(2000)))
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren, key7?")
        (written,) = Turn.objects.values_list("manifest", flat=True)
        assert len(written) < 10_000
        assert len(stage.npc.ai.last_report().verdicts) > 2000


def shallow(stage):
    """Return rules that scan the newest message only."""
    return replace(stage.npc.ai.view().rules.lore, scan_depth=1)
