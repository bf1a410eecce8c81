"""Turns that break off, because of a game, a builder, the database or the server."""

import json

import pytest
from twisted.internet.defer import Deferred, succeed

from evennia_ai import models
from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.errors import (
    HistoryConflictError,
    ModelTimeout,
    ModelUnavailable,
    StoreError,
)
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc import service
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.tools import registry as tools
from evennia_ai.npc.tools.tool import Tool
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.erasing import erase_private
from evennia_ai.store.history import conversations, record_rows, turns
from evennia_ai.store.history.errands import get_errand
from evennia_ai.store.history.transcripts import export_lines, import_lines
from tests.npc.turn.test_turn_early import Streaming


def calls(*names: str, text: str = "") -> ChatReply:
    made = [ToolCall(id="call_0", name=name, arguments="{}") for name in names]
    return ChatReply(text=text, model="scripted", tool_calls=tuple(made))


def said(text: str) -> ChatReply:
    call = ToolCall(id="call_0", name="say", arguments=json.dumps({"text": text}))
    return ChatReply(text="", model="scripted", tool_calls=(call,))


class Deed(Tool):
    """A tool that calls a function of the test."""

    name = "deed"
    description = "Do it."
    done: list = []
    deed = staticmethod(lambda use: "Done.")

    def run(self, use, arguments):
        self.done.append(use.turn)
        return type(self).deed(use)


@pytest.fixture
def acting(stage, monkeypatch):
    """Return a stage with an NPC that may look, say and use the tool `Deed`."""
    Deed.done.clear()
    found = tools.registry_of((f"{__name__}.Deed",))
    monkeypatch.setattr("evennia_ai.npc.tools.registry.registry", lambda: found)
    change_settings(stage.npc, tools=("deed", "look", "say"), by=THE_GAME)
    return stage


def refuse(*args, **kwargs):
    raise StoreError("the disk is full")


def kinds(stage, kind: str = "room") -> list[str]:
    return [kind for kind, _, _ in stage.records(kind)]


def rows() -> list[str]:
    return list(models.ModelCall.objects.order_by("pk").values_list("outcome", flat=True))


class TestTheDatabaseIsAway:
    def test_next_turn_begins_only_after_the_calls_of_the_broken_turn_are_closed(
        self, acting, logged, monkeypatch
    ):
        model = acting.talks_with(calls("deed"), "Aye.")
        add = turns.add_records
        with monkeypatch.context() as patch:
            patch.setattr(
                turns, "add_records", lambda turn, new: refuse() if Deed.done else add(turn, new)
            )
            patch.setattr(turns, "fail_turn", refuse)
            acting.says(acting.anna, "Oren, do it.")
        acting.says(acting.anna, "Oren, and now?")
        assert len(model.requests) == 1

        acting.passes(6)
        said = [m for m in model.requests[1].messages if m.role != "system"]
        assert [m.role for m in said][:3] == ["user", "assistant", "tool"]
        assert said[-1].content == "Anna: Oren, and now?"

    def test_row_of_a_model_call_is_written_with_the_late_end_of_its_turn(
        self, stage, logged, monkeypatch
    ):
        stage.talks_with("Aye.")
        with monkeypatch.context() as patch:
            patch.setattr(turns, "finish_turn", refuse)
            stage.says(stage.anna, "Oren?")

        assert rows() == ["answered"]

    def test_row_of_a_model_call_is_written_once_when_the_next_prompt_fails(
        self, acting, logged, monkeypatch
    ):
        acting.talks_with(calls("deed"), "Aye.")
        begin = turns.begin_turn
        monkeypatch.setattr(
            turns, "begin_turn", lambda *a, **k: refuse() if Deed.done else begin(*a, **k)
        )
        acting.says(acting.anna, "Oren, do it.")

        assert rows() == ["answered"]
        assert turns.last_turn(acting.npc.ai.ref).state == "done"

    def test_kept_event_is_recorded_after_its_npc_was_deleted(self, stage, logged, monkeypatch):
        stage.talks_with("Aye.")
        with monkeypatch.context() as patch:
            patch.setattr(conversations, "append_records", refuse)
            patch.setattr(conversations, "append_each", refuse)
            stage.says(stage.anna, "Oren?")
        stage.npc.delete()
        stage.passes(6)

        assert models.Record.objects.filter(body="Oren?").exists()
        assert not any("Traceback" in line for line in logged)


class TestAnotherProcessWrites:
    @pytest.mark.parametrize("write", ["add_records", "begin_turn", "finish_turn"])
    def test_turn_with_tools_goes_on_after_another_process_wrote(
        self, acting, logged, monkeypatch, write
    ):
        acting.talks_with(calls("deed"), "Aye.")
        real, refused = getattr(turns, write), [HistoryConflictError("the conversation")]

        def conflicting(*args, **kwargs):
            if Deed.done and refused:
                raise refused.pop()
            return real(*args, **kwargs)

        monkeypatch.setattr(turns, write, conflicting)
        acting.says(acting.anna, "Oren, do it.")

        assert not refused
        assert acting.screen_of(acting.anna)[-1] == 'Oren says, "Aye."'
        assert len(Deed.done) == 1


class TestAConversationIsErased:
    @pytest.fixture
    def model(self, acting):
        made = Streaming()
        acting.install(made, given_profiles={"default": {"speaks_early": True}})
        acting.whispers(acting.anna, "My secret.")
        erase_private(str(acting.anna.id), by=trusted("Anna"))
        return made

    def ends(self, acting, model, reply):
        model.asked.callback(reply)
        acting.passes()

    def test_tools_do_not_run_when_the_conversation_was_erased_meanwhile(
        self, acting, model, logged
    ):
        self.ends(acting, model, calls("deed"))

        assert Deed.done == []
        assert kinds(acting, "private")[-1] == "erasure"

    def test_reply_is_not_said_early_when_the_conversation_was_erased_meanwhile(
        self, acting, model, logged
    ):
        model.writes("Your secret is safe. With")

        assert kinds(acting, "private")[-1] == "erasure"
        assert "secret is safe" not in str(acting.screen_of(acting.anna))

    def test_row_of_the_model_call_is_written_when_the_conversation_was_erased_meanwhile(
        self, acting, model, logged
    ):
        self.ends(acting, model, ChatReply(text="Aye.", model="streaming"))

        assert rows() == ["answered"]

    def test_errand_of_an_erased_conversation_causes_no_event(self, acting, logged, monkeypatch):
        sent = Deferred()
        monkeypatch.setattr(Deed, "deed", staticmethod(lambda use: sent))
        acting.talks_with(calls("deed"), "Sent.")
        acting.whispers(acting.anna, "My secret.")
        erase_private(str(acting.anna.id), by=trusted("Anna"))
        sent.callback("All is known.")
        acting.passes()

        assert kinds(acting, "private")[-1] == "erasure"


class TestHooksOfAGame:
    def test_turn_is_closed_when_the_room_fails_while_words_before_a_call_are_said(
        self, acting, logged
    ):
        acting.talks_with(calls("deed", text="A moment."), delay_seconds=1)
        acting.says(acting.anna, "Oren, do it.")
        acting.room.msg_contents = lambda *_, **__: 1 / 0
        acting.passes(1)

        assert not models.Turn.objects.filter(state="open").exists()
        assert "ZeroDivisionError" in logged[-1]

    def test_turn_is_closed_after_any_error(self, acting, logged, monkeypatch):
        acting.talks_with(calls("deed"))
        monkeypatch.setattr(Deed, "deed", staticmethod(lambda use: broken()))

        def broken():
            acting.npc.why_unable = lambda: 1 / 0
            return "Done."

        acting.says(acting.anna, "Oren, do it.")

        assert not models.Turn.objects.filter(state="open").exists()
        assert "ZeroDivisionError" in logged[-1]

    def test_error_of_one_npc_while_hearing_does_not_affect_other_npcs(self, acting, logged):
        brida = acting.make("Brida", "evennia_ai.typeclasses.AINPC")
        model = acting.talks_with("Aye.")
        acting.npc.why_unable = lambda: 1 / 0
        acting.says(acting.anna, "Brida?")
        acting.says(acting.anna, "Oren?")

        assert [request.speaker for request in model.requests] == ["Brida"]
        assert [body for _, _, body in acting.records()] == ["Brida?", "Aye.", "Oren?"]
        assert not brida.ai.is_busy
        assert not acting.npc.ai.is_busy

    def test_error_before_a_turn_leaves_no_pending_answer(self, acting, logged):
        acting.talks_with("Aye.", "Aye.", delay_seconds=1)
        acting.says(acting.anna, "Oren?")
        acting.says(acting.anna, "Oren, again?")
        acting.npc.why_unable = lambda: 1 / 0
        acting.passes(5)

        assert not acting.npc.ai.is_busy


class TestActs:
    def test_npc_that_deletes_itself_runs_no_further_tools(self, acting, logged, monkeypatch):
        npc_ref = acting.npc.ai.ref
        monkeypatch.setattr(Deed, "deed", staticmethod(lambda use: str(use.npc.delete())))
        acting.talks_with(calls("deed", "look", "say"))
        acting.says(acting.anna, "Oren, do it.")

        assert turns.last_turn(npc_ref).state == "done"
        assert not any("Traceback" in line for line in logged)

    def test_event_of_an_instant_errand_follows_the_result_of_its_call(self, acting, monkeypatch):
        monkeypatch.setattr(Deed, "deed", staticmethod(lambda use: succeed("Found it.")))
        acting.talks_with(calls("deed"), "Sent.", "Done.")
        acting.says(acting.anna, "Oren, do it.")

        assert kinds(acting)[:4] == ["user", "tool_call", "tool_result", "run_end"]
        assert kinds(acting).count("event") == 1
        assert get_errand(acting.npc.ai.ref, 1).result == "Found it."

    def test_chain_of_errands_ends_at_the_hop_limit(self, acting, monkeypatch):
        monkeypatch.setattr(Deed, "deed", staticmethod(lambda use: succeed("Found it.")))
        model = acting.talks_with(
            lambda request: "Sent." if request.messages[-1].role == "tool" else calls("deed")
        )
        acting.says(acting.anna, "Oren, do it.")
        acting.passes(100)

        assert len(model.requests) < 12

    def test_start_of_a_reply_with_calls_is_recorded_once(self, acting, logged, monkeypatch):
        model = Streaming()
        acting.install(model, given_profiles={"default": {"speaks_early": True}})
        acting.says(acting.anna, "Oren, do it.")
        model.writes("Aye, at once. Then")
        monkeypatch.setattr(Deed, "deed", staticmethod(lambda use: "Done."))
        monkeypatch.setattr(turns, "finish_turn", refuse)
        model.asked.callback(calls("deed", text="Aye, at once. Then more."))
        acting.passes()

        assert turns.last_turn(acting.npc.ai.ref).state == "failed"
        said = [b for kind, _, b in acting.records() if kind in ("assistant", "tool_call")]
        assert said == ["Aye, at once. Then more."]

    def test_calls_in_an_imported_conversation_have_unique_ids(self, acting):
        acting.talks_with(calls("deed"), "Aye.", calls("deed"), "Aye.", calls("deed"), "Aye.")
        acting.says(acting.ben, "Oren, do it.")
        (room,) = conversations.conversations_of(acting.npc.ai.ref)
        lines = list(export_lines(room))
        ned = acting.make("Ned", "evennia_ai.typeclasses.AINPC")
        change_settings(ned, tools=("deed",), by=THE_GAME)
        imported = import_lines(lines, npc_ref=str(ned.id), by=trusted("Ada"))
        acting.says(acting.ben, "Ned, do it.")
        acting.says(acting.ben, "Ned, do it again.")

        ids = [
            call["id"]
            for record in record_rows.records_of(imported)
            for call in record.meta.get("tool_calls", ())
        ]
        assert len(ids) == len(set(ids)) == 3
        assert {len(one) for one in ids} == {9}


class TestOtherModels:
    def test_failed_profile_is_not_asked_again_in_the_same_turn(self, acting, logged):
        acting.talks_with(
            ModelUnavailable("a", "is away"),
            calls("deed"),
            ModelTimeout("b", 5),
            given_profiles={"default": {}, "spare": {}},
            given_roles={"speaker": ("default", "spare")},
        )
        acting.says(acting.anna, "Oren, do it.")

        assert len(acting.model.requests) == 3
        assert turns.last_turn(acting.npc.ai.ref).state == "failed"

    def test_no_other_profile_is_asked_after_all_npcs_were_stopped(self, stage, logged):
        from evennia_ai.npc.mind import emergency

        model = Streaming()
        stage.install(
            model,
            given_profiles={"default": {}, "spare": {}},
            given_roles={"speaker": ("default", "spare")},
        )
        stage.says(stage.anna, "Oren?")
        asked = model.asked
        emergency.stop_all(by=trusted("Mira"))
        stage.passes(5)

        assert asked is model.asked
        assert "stopped by Mira" in turns.last_turn(stage.npc.ai.ref).outcome


class TestTheServerStops:
    def test_turn_that_ends_at_the_stop_creates_no_other_runtime(self, stage, logged):
        model = Streaming()
        stage.install(model)
        stage.says(stage.anna, "Oren?")
        model.close = model.asked.cancel
        service.at_server_stop()

        assert stage.running.current.installed is None
        assert turns.last_turn(stage.npc.ai.ref).state == "interrupted"

    def test_end_of_an_errand_and_its_event_are_committed_together(
        self, acting, logged, monkeypatch
    ):
        from evennia_ai.npc.turn import acting as running

        monkeypatch.setattr(Deed, "deed", staticmethod(lambda use: Deferred()))
        acting.talks_with(calls("deed"), "Sent.")
        acting.says(acting.anna, "Oren, do it.")
        with monkeypatch.context() as patch:
            patch.setattr(conversations, "append_records", refuse)
            with pytest.raises(StoreError):
                running.close_lost(begun_before=1e12)
        assert get_errand(acting.npc.ai.ref, 1).state == "open"

        assert running.close_lost(begun_before=1e12) == 1
        assert kinds(acting)[-1] == "event"


class TestThinking:
    def test_thinking_gesture_is_not_shown_after_the_reply_has_begun(self, stage):
        model = Streaming()
        stage.install(
            model, given_profiles={"default": {"speaks_early": True}}, thinking_seconds=2.0
        )
        stage.says(stage.anna, "Oren?")
        model.writes("Aye, at dusk. Bring")
        stage.passes(5)

        assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye, at dusk."'
