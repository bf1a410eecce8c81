"""Turns with tools: call, commit, run, commit, ask again."""

import json

import pytest

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.history.turn.replay import replay_messages
from evennia_ai.engine.prompt.messages import ToolCall, messages_sha256
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.llm.roles import RoleProfile
from evennia_ai.store.history import conversations, record_rows, turns


def calls(*called: tuple[str, dict], text: str = "") -> ChatReply:
    made = [
        ToolCall(id="call_0", name=name, arguments=json.dumps(arguments))
        for name, arguments in called
    ]
    return ChatReply(text=text, model="scripted", tool_calls=tuple(made))


@pytest.fixture
def acting(stage):
    """Return a stage with an NPC that may look, say and pose."""
    change_settings(stage.npc, tools=("look", "say", "pose"), by=THE_GAME)
    return stage


def said_and_done(stage) -> list[tuple[str, str]]:
    return [(kind, body) for kind, _, body in stage.records() if kind != "context_block"]


def test_called_tool_runs_and_its_result_is_in_the_next_prompt(acting):
    acting.room.db.desc = "Planks over black water."
    model = acting.talks_with(calls(("look", {})), "Black water, as ever.")
    acting.says(acting.anna, "Oren, what do you see?")

    assert acting.screen_of(acting.anna)[-1] == 'Oren says, "Black water, as ever."'
    first, second = model.requests
    assert [m.role for m in second.messages[len(first.messages) :]] == ["assistant", "tool"]
    assert second.messages[: len(first.messages)] == first.messages
    assert "Planks over black water." in second.messages[-1].content
    assert second.messages[-1].tool_call_id == second.messages[-2].tool_calls[0].id


def test_every_request_has_the_same_list_of_tools(acting):
    model = acting.talks_with(calls(("look", {})), "Water.")
    acting.says(acting.anna, "Oren?")

    assert [tool.name for tool in model.requests[0].tools] == ["look", "pose", "say"]
    assert model.requests[0].tools == model.requests[1].tools


@pytest.mark.req("S2-28")
def test_call_is_committed_with_tool_and_arguments_before_it_runs(acting):
    seen = []

    def look(looker=None, **_):
        (room,) = conversations.conversations_of(acting.npc.ai.ref)
        seen.extend(record.meta.get("tool_calls") for record in record_rows.records_of(room))

    acting.room.at_desc = look
    acting.talks_with(calls(("look", {})), "Water.")
    acting.says(acting.anna, "Oren?")

    (call,) = seen[-1]
    assert (call["name"], call["arguments"]) == ("look", "{}")


@pytest.mark.req("S2-28")
def test_call_is_committed_before_it_runs_and_the_result_after_it(acting):
    seen = []
    acting.room.at_desc = lambda looker=None, **_: seen.append(said_and_done(acting))
    acting.talks_with(calls(("look", {})), "Water.")
    acting.says(acting.anna, "Oren?")

    assert seen[0][-1] == ("tool_call", "")
    kinds = [kind for kind, _ in said_and_done(acting)]
    assert kinds == ["user", "tool_call", "tool_result", "run_end", "assistant", "run_end"]


@pytest.mark.req("S2-28")
def test_calls_of_one_reply_run_in_their_order(acting):
    actions = ("picks up the oar", "pushes off", "rows")
    acting.talks_with(calls(*(("pose", {"action": action}) for action in actions)), "There.")
    acting.says(acting.anna, "Oren, shall we?")

    assert acting.screen_of(acting.anna)[-4:] == [
        *(f"Oren {action}" for action in actions),
        'Oren says, "There."',
    ]
    (room,) = conversations.conversations_of(acting.npc.ai.ref)
    records = record_rows.records_of(room)
    (asked,) = (record.meta["tool_calls"] for record in records if record.meta.get("tool_calls"))
    results = [record.meta["tool_call_id"] for record in records if record.role == "tool"]
    assert results == [call["id"] for call in asked]


def test_each_round_of_a_turn_is_replayed_and_composed_again(acting):
    acting.talks_with(calls(("look", {})), calls(("pose", {"action": "nods"})), "Water.")
    acting.says(acting.anna, "Oren?")

    npc_ref = acting.npc.ai.ref
    for number in (1, 2, 3):
        stored = turns.get_turn(npc_ref, number)
        records = record_rows.records(stored.manifest.record_ids)
        assert messages_sha256(replay_messages(stored.manifest, records)) == stored.manifest.sha256
        again = compose_again(stored, PastReader())
        assert again.sha256 == stored.manifest.sha256


def test_list_of_tools_is_recorded_and_named_in_the_manifest(acting):
    acting.talks_with("Water.")
    acting.says(acting.anna, "Oren?")

    manifest = turns.last_turn(acting.npc.ai.ref).manifest
    (record,) = record_rows.records([manifest.tools_record])
    assert [name for name, _, _ in json.loads(record.body)] == ["look", "pose", "say"]


def test_next_turn_has_the_tool_calls_in_its_history(acting):
    model = acting.talks_with(calls(("look", {})), "Water.", "More water.")
    acting.says(acting.anna, "Oren?")
    acting.says(acting.anna, "Oren, and now?")

    roles = [m.role for m in model.requests[-1].messages if m.role != "system"]
    assert roles[:4] == ["user", "assistant", "tool", "assistant"]


def test_words_next_to_a_call_are_said_before_the_tool_runs(acting):
    acting.talks_with(calls(("pose", {"action": "nods slowly"}), text="Aye."), "So be it.")
    acting.says(acting.anna, "Oren?")

    assert acting.screen_of(acting.anna)[-3:] == [
        'Oren says, "Aye."',
        "Oren nods slowly",
        'Oren says, "So be it."',
    ]


def test_empty_reply_is_allowed_after_a_tool_has_spoken(acting):
    acting.talks_with(calls(("say", {"text": "Evening."})), "")
    acting.says(acting.anna, "Oren?")

    assert acting.screen_of(acting.anna)[-1] == 'Oren says, "Evening."'
    assert turns.last_turn(acting.npc.ai.ref).state == "done"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("fly", "{}", "There is no tool 'fly'"),
        ("say", '{"text": 5}', "'text'"),
        ("say", "{", "not one JSON object"),
        ("say", "[]", "must be a JSON object"),
    ],
)
def test_model_reads_what_is_wrong_with_an_invalid_call(acting, name, arguments, told):
    wrong = ChatReply(
        text="", model="scripted", tool_calls=(ToolCall(id="x", name=name, arguments=arguments),)
    )
    model = acting.talks_with(wrong, "Never mind.")
    acting.says(acting.anna, "Oren?")

    assert told in model.requests[1].messages[-1].content
    assert acting.screen_of(acting.anna)[-1] == 'Oren says, "Never mind."'


def test_number_of_rounds_is_limited_when_a_model_always_calls_tools(acting):
    model = acting.talks_with(lambda request: calls(("look", {})))
    acting.says(acting.anna, "Oren?")

    assert len(model.requests) == 6
    assert turns.last_turn(acting.npc.ai.ref).state == "failed"
    assert acting.npc.ai.fallback_line in acting.screen_of(acting.anna)[-1]


def test_calls_are_ignored_when_the_npc_has_no_tools(stage):
    model = stage.talks_with(calls(("say", {"text": "Hah."}), text="Evening."))
    stage.says(stage.anna, "Oren?")

    assert model.requests[0].tools == ()
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Evening."'


def test_lore_timers_count_one_turn_for_several_rounds(acting):
    acting.talks_with(calls(("look", {})), calls(("look", {})), "Water.", "Aye.")
    acting.says(acting.anna, "Oren?")
    acting.says(acting.anna, "Oren, again?")

    clocks = [
        turns.get_turn(acting.npc.ai.ref, number).manifest.inputs["clock"]["turns"]
        for number in (1, 2, 3, 4)
    ]
    assert clocks == [1, 1, 1, 2]


@pytest.mark.parametrize("nothing", ["-", "...", "(silence)"])
def test_npc_may_choose_to_say_nothing(stage, nothing):
    stage.talks_with(nothing)
    stage.says(stage.anna, "Oren?")

    last = turns.last_turn(stage.npc.ai.ref)
    assert (last.state, last.outcome) == ("done", "chose to say nothing")
    assert [kind for kind, _ in said_and_done(stage)] == ["user", "run_end"]


def a_model_without_tools(stage, *script: str, tools: str) -> ScriptedModel:
    """Return a scripted model whose server does not accept tools in requests."""
    model = ScriptedModel(script)
    stage.opens(Access(model=model, roles=RoleProfile(tools=tools)))
    return model


class TestAModelThatKnowsNoTools:
    def test_model_without_tool_support_gets_tools_in_the_prompt_and_answers_as_json(self, acting):
        wants = {"say": "A moment.", "acts": [{"tool": "pose", "arguments": {"action": "nods"}}]}
        script = (json.dumps(wants), json.dumps({"say": "So be it."}))
        model = a_model_without_tools(acting, *script, tools="schema")
        acting.says(acting.anna, "Oren?")

        first = model.requests[0]
        assert first.tools == ()
        assert first.schema is not None
        assert "You can act with the tools below" in str(first.messages)
        assert acting.screen_of(acting.anna)[-3:] == [
            'Oren says, "A moment."',
            "Oren nods",
            'Oren says, "So be it."',
        ]

    def test_model_that_is_offered_no_tools_just_speaks(self, acting):
        model = a_model_without_tools(acting, "Evening.", tools="none")
        acting.says(acting.anna, "Oren?")

        assert model.requests[0].tools == ()
        assert model.requests[0].schema is None
        assert turns.last_turn(acting.npc.ai.ref).manifest.tools_record is None


NODS = '{"name": "pose", "arguments": {"action": "nods"}}'
AS_TEXT = [
    f"<tool_call>{NODS}</tool_call>",
    f"[TOOL_CALLS][{NODS}]",
    "<function=pose><parameter=action>nods</parameter></function>",
    "[pose(action='nods')]",
    f"```json\n{NODS}\n```",
]


class TestAModelWhoseServerDoesNotKnowItsFormat:
    """The calls of such a model arrive as text."""

    @pytest.mark.parametrize("tools", ["native", "schema"])
    @pytest.mark.parametrize("call", AS_TEXT)
    def test_calls_written_as_text_are_run_and_not_said(self, acting, call, tools):
        model = a_model_without_tools(acting, f"A moment.\n{call}", "So be it.", tools=tools)
        acting.says(acting.anna, "Oren?")

        assert acting.screen_of(acting.anna)[-3:] == [
            'Oren says, "A moment."',
            "Oren nods",
            'Oren says, "So be it."',
        ]
        assert "tool_call>" not in str(model.requests[1].messages)

    def test_call_of_an_unknown_tool_written_as_text_is_logged_and_not_said(
        self, acting, monkeypatch
    ):
        logged = []
        monkeypatch.setattr("evennia_ai.npc.turn.rounds.logger.log_warn", logged.append)
        call = NODS.replace("pose", "fly\n[EE]")
        a_model_without_tools(acting, f"Evening.\n<tool_call>{call}</tool_call>", tools="native")
        acting.says(acting.anna, "Oren?")

        assert acting.screen_of(acting.anna)[-1] == 'Oren says, "Evening."'
        (line,) = logged
        assert "neither said nor run: 'fly\\n[EE]'" in line

    def test_calls_written_as_text_are_not_said_when_the_npc_has_no_tools(self, acting):
        a_model_without_tools(acting, f"Evening.\n{AS_TEXT[0]}", tools="none")
        acting.says(acting.anna, "Oren?")

        assert acting.screen_of(acting.anna)[-1] == 'Oren says, "Evening."'
        assert turns.last_turn(acting.npc.ai.ref).outcome == "answered"

    def test_reasoning_before_a_call_written_as_text_is_not_said(self, acting):
        text = f"She lies.</think>Evening.\n{AS_TEXT[0]}"
        a_model_without_tools(acting, text, "Aye.", tools="native")
        acting.says(acting.anna, "Oren?")

        assert acting.screen_of(acting.anna)[-3] == 'Oren says, "Evening."'
