"""`ai/branch`: a builder continues from a past turn, and the game is not affected."""

import pytest
from twisted.internet.defer import Deferred

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.engine.history.turn.sending import storable_messages
from evennia_ai.engine.memory.memories import OF_NPC, Memory
from evennia_ai.engine.prompt.messages import ToolCall, messages_sha256
from evennia_ai.npc import npc_settings
from evennia_ai.npc.mind import emergency
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store import memories
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import erase_private
from evennia_ai.store.history import branches, conversations, record_rows, turns, verifying
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.windows import windows
from tests.commands.stage import hearing, on_screen, one_line

SAID = ("Oren, are you there?", "Oren, when does the ferry sail?", "Thanks, Oren.")


@pytest.fixture
def talked(stage):
    """Let Oren answer Pim three times in the room. Two more answers are ready."""
    with stage.model("Aye.", "At dusk.", "So be it.", "Then you had sailed.", "Hm.") as model:
        for line in SAID:
            stage.player.at_say(line)
            stage.waited()
        yield model


def says(stage, text, *, person=None):
    """Say something in the branch. Return what the builder reads at once and later."""
    builder = person or stage.builder
    typed = stage.sent(builder, f"ai/branch oren = {text}")
    with hearing(builder) as heard:
        stage.waited()
    return on_screen("\n".join([typed, *heard]))


def live_rows(npc):
    """Return everything that is stored of the NPC's real history, byte for byte."""
    ref = str(npc.id)
    of_talk = {"conversation__npc_ref": ref}
    tables = (
        models.Record.objects.filter(**of_talk),
        models.Turn.objects.filter(npc_ref=ref),
        models.Memory.objects.filter(npc_ref=ref),
        models.LoreState.objects.filter(**of_talk),
        models.Conversation.objects.filter(npc_ref=ref),
    )
    return [list(rows.order_by("pk").values_list()) for rows in tables]


def sent(model):
    return [(message.role, message.content) for message in model.requests[-1].messages]


def branch_of(stage, person=None):
    return branches.newest_branch(stage.npc.ai.ref, str((person or stage.builder).id))


def test_branch_continues_from_its_turn_and_the_real_history_stays(stage, talked):
    before, told = live_rows(stage.npc), stage.builds("ai/branch oren/2")
    assert "Branch of Oren from turn 2, conversation" in told
    assert "You speak as Pim. Nobody in the game hears it" in told
    again = says(stage, "What if I had paid?")
    assert "  Pim: What if I had paid?\n  Oren: Then you had sailed." in again
    assert [content for role, content in sent(talked) if role != "system"][:4] == [
        "Pim: Oren, are you there?",
        "Aye.",
        "Pim: Oren, when does the ferry sail?",
        "At dusk.",
    ]
    assert "Thanks" not in str(sent(talked)), "that came after turn 2"
    assert live_rows(stage.npc) == before
    assert turns.next_number(stage.npc.ai.ref) == 4


def test_branch_is_heard_by_nobody_in_the_room(stage, talked):
    with hearing(stage.player) as player, hearing(stage.npc) as npc:
        stage.builds("ai/branch oren/2")
        says(stage, "What if I had paid?")
    assert (player, npc) == ([], [])


def test_real_prompt_is_the_same_after_a_branch(stage, talked):
    would_be = stage.npc.ai.preview("And now?", stage.player).messages
    stage.builds("ai/branch oren/3")
    says(stage, "What if I had paid?")
    assert stage.npc.ai.preview("And now?", stage.player).messages == would_be
    stage.player.at_say("Oren, and now?")
    stage.waited()
    assert "What if I had paid" not in str(sent(talked)) and "had sailed" not in str(sent(talked))
    assert stage.npc.ai.status().last_turn.number == 4


def test_branch_of_another_room_names_that_room(stage, talked):
    stage.builds("ai/branch oren/1")
    says(stage, "And?")
    assert "lived through elsewhere" not in str(sent(talked)), "it is the same place"


def test_branch_is_shown_and_erased(stage, talked):
    stage.builds("ai/branch oren/2")
    assert "Nothing was said in it yet." in stage.builds("ai/branch oren")
    says(stage, "What if I had paid?")
    shown = stage.builds("ai/branch oren")
    assert "  Pim: What if I had paid?\n  Oren: Then you had sailed." in shown
    assert "Oren (#" in stage.builds("ai/branch")
    (where,) = conversations_of(branch_of(stage).conversation.npc_ref)
    told = one_line(stage.builds("ai/branch/close oren"))
    assert "1 turn. The history of Oren is unchanged" in told.replace("turns", "turn")
    assert "You have no branch of Oren" in one_line(stage.builds("ai/branch oren"))
    assert "You have no branch." in stage.builds("ai/branch")
    rows = models.Record.objects.filter(conversation_id=where.id)
    assert not rows.exclude(body="").exists() and not rows.exclude(name="").exists()
    assert verifying.verify(where) is None


def test_second_branch_replaces_the_first_and_both_histories_stay_valid(stage, talked):
    stage.builds("ai/branch oren/2")
    says(stage, "What if I had paid?")
    assert "It replaces your branch from turn 2." in stage.builds("ai/branch oren/1")
    assert "Oren: Hm." in says(stage, "And now?")
    assert "ferry" not in str(sent(talked)) and "paid" not in str(sent(talked))
    where = branch_of(stage).conversation
    assert verifying.verify(where) is None
    assert "paid" not in stage.builds("ai/branch oren")
    stage.builds("ai/branch/close oren", "ai/branch oren/1")
    assert verifying.verify(where) is None, "after an erasure too"
    assert "Nothing was said in it yet." in stage.builds("ai/branch oren")


def test_branch_turns_can_be_replayed_and_composed_again(stage, talked):
    stage.builds("note oren = He has a cold.", "ai/branch oren/2")
    says(stage, "What if I had paid?")
    says(stage, "And then?")
    ref = branch_of(stage).conversation.npc_ref
    for number in (1, 2):
        turn = turns.get_turn(ref, number)
        records = record_rows.records(turn.manifest.sent_ids)
        assert replay_turn(turn.manifest, records).is_same
        made = compose_again(turn, PastReader())
        assert messages_sha256(storable_messages(made.messages)) == turn.manifest.sha256


def test_branch_prompt_is_explained_like_a_turn(stage, talked):
    assert "You have no branch" in one_line(stage.builds("ai/branch/prompt oren"))
    stage.builds("ai/branch oren/2")
    assert "Nothing was said in the branch yet" in one_line(stage.builds("ai/branch/prompt oren"))
    says(stage, "What if I had paid?")
    told = stage.builds("ai/branch/prompt oren")
    assert "In your branch of Oren from turn 2:" in told and "turn 1," in told
    assert "More: ai/branch/prompt Oren/1 = full" in told
    assert "What if I had paid?" in stage.builds("ai/branch/prompt oren/1 = full")
    assert "no turn 7" in one_line(stage.builds("ai/branch/prompt oren/7"))


def test_branch_belongs_to_one_builder(stage, talked):
    other = stage.person("Lena", permission="Builder")
    stage.builds("ai/branch oren/2")
    stage.sent(other, "ai/branch oren/1")
    first, second = branch_of(stage), branch_of(stage, other)
    assert first.conversation.id != second.conversation.id
    says(stage, "What if I had paid?")
    says(stage, "Psst?", person=other)
    assert "paid" not in str(sent(talked)) and "ferry" not in str(sent(talked))
    stage.sent(other, "ai/branch/close oren")
    assert "had sailed" in stage.builds("ai/branch oren")


class Pending:
    """A model whose replies the test gives."""

    name = "pending"
    offline = False

    def __init__(self):
        self.asked = []

    def __call__(self, request):
        self.asked.append(Deferred())
        return self.asked[-1]


def test_branch_and_real_turn_run_at_the_same_time(stage, talked):
    stage.builds("ai/branch oren/2")
    pending = Pending()
    talked._line = pending
    stage.player.at_say("Oren, still there?")
    stage.waited()
    told = stage.builds("ai/branch oren = What if I had paid?")
    assert "Oren thinks about it" in told
    stage.waited()
    assert len(pending.asked) == 2, "neither waits for the other"
    with hearing(stage.builder) as heard:
        pending.asked[1].callback("In the branch.")
        stage.waited()
    assert "Oren: In the branch." in on_screen("\n".join(heard))
    with hearing(stage.player) as heard:
        pending.asked[0].callback("In the room.")
        stage.waited()
    assert "In the room." in on_screen("\n".join(heard))
    assert "In the branch" not in stage.builds("ai/history oren")


def test_branch_is_refused_for_a_turn_under_way(stage, talked):
    talked._line = Pending()
    stage.player.at_say("Oren, still there?")
    stage.waited()
    assert "turn 4 is still running" in stage.builds("ai/branch oren/4").lower()


def test_branch_answers_lines_in_the_order_in_which_they_were_typed(stage, talked):
    stage.builds("ai/branch oren/2")
    stage.builds("ai/branch oren = One?", "ai/branch oren = Two?")
    stage.waited()
    stage.waited()
    shown = stage.builds("ai/branch oren")
    order = [shown.index(text) for text in ("One?", "Then you had sailed.", "Two?", "Hm.")]
    assert order == sorted(order)


def test_branch_stays_closed_if_closed_while_the_model_answers(stage, talked):
    stage.builds("ai/branch oren/2")
    pending = talked._line = Pending()
    stage.builds("ai/branch oren = What if I had paid?")
    stage.waited()
    (where,) = conversations_of(branch_of(stage).conversation.npc_ref)
    stage.builds("ai/branch/close oren")
    with hearing(stage.builder) as heard:
        pending.asked[0].callback("Too late.")
        stage.waited()
    assert "Too late." not in on_screen("\n".join(heard))
    assert not models.Record.objects.filter(conversation_id=where.id, body="Too late.").exists()
    assert "You have no branch of Oren" in stage.builds("ai/branch oren")


def test_waiting_line_is_not_said_in_a_closed_branch(stage, talked):
    stage.builds("ai/branch oren/2", "ai/branch oren = What if?", "ai/branch/close oren")
    with hearing(stage.builder) as heard:
        stage.waited()
    assert "branch was deleted meanwhile" in on_screen("\n".join(heard))
    assert len(talked.requests) == 3


def test_branch_shows_a_model_failure_and_continues(stage, talked):
    stage.builds("ai/branch oren/2")
    answers = iter([ModelUnavailable("scripted", "no connection"), "Back again."])
    talked._line = lambda request: next(answers)
    told = says(stage, "What if I had paid?")
    assert "(no answer: turn 1: " in told and "no connection" in " ".join(told.split())
    assert "Back again." in says(stage, "Well?")


def test_branch_offers_tools_to_the_model_but_runs_no_tool(stage, talked):
    npc_settings.change_settings(stage.npc, by=trusted("Mara"), tools=("drop", "pose"))
    stage.npc.attributes.add("ai_mood", "calm")
    call = ToolCall(id="x1", name="pose", arguments='{"text": "bows"}')
    answers = iter([ChatReply(text="", tool_calls=(call,), model="m"), "So I bowed."])
    talked._line = lambda request: next(answers)
    stage.builds("ai/branch oren/2")
    with hearing(stage.player) as heard:
        told = says(stage, "Bow!")
    assert heard == []
    assert "(Oren would use pose" in told and "nothing was done)" in told
    assert [tool.name for tool in talked.requests[3].tools] == ["drop", "pose"]


def test_branch_copies_tool_calls_and_results_of_its_turn(stage, talked):
    npc_settings.change_settings(stage.npc, by=trusted("Mara"), tools=("look",))
    call = ToolCall(id="x1", name="look", arguments="{}")
    answers = iter([ChatReply(text="", tool_calls=(call,), model="m"), "Fog.", "Still fog."])
    talked._line = lambda request: next(answers)
    stage.player.at_say("Oren, look around!")
    stage.waited()
    told = stage.builds("ai/branch oren/4")
    assert "Turn 4 was a part of the answer that ended with turn 5." in told
    assert "Still fog." in says(stage, "And now?")
    calls = [one.id for m in talked.requests[-1].messages for one in m.tool_calls]
    results = [m.tool_call_id for m in talked.requests[-1].messages if m.role == "tool"]
    assert calls == results == ["b00000000"]


def test_branch_leaves_out_later_memories_and_changes_no_memory(stage, talked):
    for turn, text in ((1, "Pim likes tea."), (3, "Pim paid nothing.")):
        new = Memory(
            id=memories.NEW, text=text, about=str(stage.player.id), turn=turn, author=OF_NPC
        )
        memories.add_memory(stage.npc.ai.ref, new, by=trusted(OF_NPC), most=40)
    before = live_rows(stage.npc)
    stage.builds("ai/branch oren/2")
    says(stage, "What do you know of me? Tea? Did I pay?")
    assert "likes tea" in str(sent(talked)) and "paid nothing" not in str(sent(talked))
    assert live_rows(stage.npc) == before


def test_branch_opens_from_a_turn_before_a_compaction(stage, talked):
    (room,) = conversations_of(stage.npc.ai.ref)
    history = windows(room.id).history
    summary = NewRecord(
        kind=RecordKind.SUMMARY, role="system", body="Pim asked about the ferry.", meta={"by": "m"}
    )
    conversations.begin_segment(room, summary, summarised=history, first_kept=history.stop - 1)
    stage.player.at_say("Oren, one more?")
    stage.waited()
    stage.builds("ai/branch oren/2")
    says(stage, "What if I had paid?")
    assert "At dusk." in str(sent(talked)) and "asked about" not in str(sent(talked))
    stage.builds("ai/branch oren/4")
    talked._line = lambda request: "Fine."
    says(stage, "And now?")
    assert "Pim asked about the ferry." in str(sent(talked)), "after it, with its summary"
    assert "So be it." in str(sent(talked)) and "Aye." not in str(sent(talked))
    assert verifying.verify(branch_of(stage).conversation) is None


def test_branch_survives_a_reload(stage, talked):
    stage.builds("ai/branch oren/2")
    talked._line = Pending()
    stage.builds("ai/branch oren = What if I had paid?")
    stage.waited()
    forget_everything()
    assert turns.close_interrupted() == 1
    shown = stage.builds("ai/branch oren")
    assert "Pim: What if I had paid?" in shown and "(turn 1 interrupted" in shown
    with stage.model("Here again."):
        assert "Oren: Here again." in says(stage, "Well?")


def test_branch_line_is_not_answered_again_after_a_reload(stage, talked):
    from evennia_ai.npc.recording.unanswered import look_back, take_up

    stage.builds("ai/branch oren/2")
    where = branch_of(stage).conversation
    meta = {"event": "say", "speaker": str(stage.player.id), "hops": 0}
    line = NewRecord(kind=RecordKind.USER, role="user", name="Pim", body="Oren?", meta=meta)
    (record,) = conversations.append_records(where, [line])
    assert take_up(look_back(started_at=record.created_at + 1)).answered == 0


def test_emergency_stop_refuses_branches_and_drops_their_calls(stage, talked):
    stage.builds("ai/branch oren/2")
    talked._line = Pending()
    stage.builds("ai/branch oren = What if I had paid?")
    stage.waited()
    with hearing(stage.builder) as heard:
        assert emergency.stop_all(by=trusted("Mara"), reason="the bill").given_up == 1
        stage.waited()
    assert "dropped" in on_screen("\n".join(heard))
    told = one_line(stage.builds("ai/branch oren = Well?"))
    assert "stopped by Mara: the bill; nothing was said." in told
    emergency.start_all(by=trusted("Mara"))


def test_pause_of_the_npc_stops_its_branches(stage, talked):
    stage.builds("ai/branch oren/2", "ai/pause oren = strange")
    assert "paused by Mara" in one_line(stage.builds("ai/branch oren = Well?"))
    stage.builds("ai/resume oren")


def test_branch_calls_count_against_the_limits_of_npc_and_builder(stage, talked):
    stage.builds("ai/branch oren/2")
    says(stage, "What if I had paid?")
    call = models.ModelCall.objects.order_by("-pk")[0]
    assert (call.npc_ref, call.player_ref) == (stage.npc.ai.ref, str(stage.builder.id))
    assert (call.role, call.turn) == ("branch", None)
    stage.builds("ai/set oren = limits calls_per_day=4")
    told = one_line(stage.builds("ai/branch oren = Again?"))
    assert "has used its 4 calls per day" in told and "nothing was said" in told


def test_branch_of_a_whisper_is_marked_and_erased_with_its_player(stage, talked):
    stage.player.at_say("The tunnel is open.", receivers=[stage.npc], whisper=True)
    stage.waited()
    assert "is hidden from you" in one_line(stage.builds("ai/branch oren/4"))
    stage.builder.permissions.add("Admin")
    told = stage.builds("ai/branch oren/4")
    assert "WHISPERED, with Pim" in " ".join(told.split()) and "You speak as Pim." in told
    says(stage, "And the key?")
    assert "tunnel is open" in str(sent(talked))
    done = erase_private(str(stage.player.id), by=trusted("Mara"), npc_ref=stage.npc.ai.ref)
    assert done.conversations == 2
    assert not models.Record.objects.filter(body__contains="tunnel").exists()
    assert "You have no branch of Oren" in stage.builds("ai/branch oren")


def test_branch_of_a_whisper_is_hidden_from_an_admin_who_became_a_builder(stage, talked):
    stage.player.at_say("The tunnel is open.", receivers=[stage.npc], whisper=True)
    stage.waited()
    stage.builder.permissions.add("Admin")
    stage.builds("ai/branch oren/4")
    assert "And the key?" in says(stage, "And the key?")
    stage.builder.permissions.remove("Admin")
    told = stage.builds("ai/branch oren", "ai/branch/prompt oren = full")
    assert "And the key?" not in told and "The tunnel is open." not in told
    assert "said in private" in told


def test_branch_is_refused_for_an_erased_turn(stage, talked):
    stage.player.at_say("The tunnel is open.", receivers=[stage.npc], whisper=True)
    stage.waited()
    erase_private(str(stage.player.id), by=trusted("Mara"))
    assert "were erased" in one_line(stage.builds("ai/branch oren/4"))


def test_branch_is_refused_to_players(stage, talked):
    assert "Command 'ai/branch oren/2' is not available" in stage.plays("ai/branch oren/2")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("ai/branch oren/9", "had no turn 9"),
        ("ai/branch oren/0", "from 1 on"),
        ("ai/branch oren", "You have no branch of Oren"),
        ("ai/branch oren = Hm?", "You have no branch of Oren"),
        ("ai/branch oren =", "Nothing was said"),
        ("ai/branch/close oren", "You have no branch of Oren"),
        ("ai/branch/close", "Usage: ai/branch/close"),
        ("ai/branch nobody/1", "nobody"),
    ],
)
def test_branch_errors_are_one_line(stage, talked, typed, told):
    assert told in one_line(stage.builds(typed))
    assert not models.Conversation.objects.filter(npc_ref__contains="~").exists()


def test_branch_is_refused_for_an_npc_that_never_spoke(stage):
    assert "had no turn yet" in one_line(stage.builds("ai/branch oren/1"))


def test_deleted_npc_drops_waiting_branch_lines(stage, talked):
    stage.builds("ai/branch oren/2", "ai/branch oren = Well?")
    stage.npc.delete()
    with hearing(stage.builder) as heard:
        stage.waited()
    assert "Oren: " not in on_screen("\n".join(heard))
    assert len(talked.requests) == 3


def test_markup_in_a_branch_is_shown_literally(stage, talked):
    talked._line = lambda request: "|rRed|n and $eval(1)."
    stage.builds("ai/branch oren/2")
    assert "|rRed|n and $eval(1)." in says(stage, "|gWhat?|n")
    assert models.Turn.objects.order_by("-pk")[0].tokens > 0


def test_branch_of_a_deleted_npc_can_be_erased(stage, talked):
    stage.builds("ai/branch oren/2")
    ref = stage.npc.ai.ref
    stage.npc.delete()
    assert f"#{ref} (deleted; ai/branch/close erases it)" in stage.builds("ai/branch")

    told = one_line(stage.builds(f"ai/branch/close #{ref}"))
    assert "who was deleted, is erased: 5 records and 0 turns" in told
    assert "You have no branch" in stage.builds("ai/branch")
