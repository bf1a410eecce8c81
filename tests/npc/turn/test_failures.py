"""What a turn does when its model fails, for each kind of fault."""

import json

import pytest
from django.test import override_settings
from twisted.internet.defer import fail

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.errors import (
    Fault,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
)
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.services.llm.chat import ChatReply, Thoughts, sent_sha256
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.components import update
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.history.branches import goes_on
from evennia_ai.store.history.past_turns import turns_in_order

FALLBACK = "Hm? Ask me later."


@pytest.fixture
def two(stage):
    """Return a stage with two profiles that are asked in order, "first" and "second"."""
    own = {
        "EVENNIA_AI_PROFILES": {
            "default": {"client": "scripted", "script": "a.b", "model": "first"},
            "second": {
                "client": "scripted",
                "script": "a.c",
                "model": "second",
                "context_tokens": 20_000,
            },
        },
        "EVENNIA_AI_MODEL_ROLES": {"speaker": ["default", "second"]},
    }
    stage.npc.fallback_line = FALLBACK
    change_settings(stage.npc, tools=("look", "say", "pose"), by=THE_GAME)
    with override_settings(**own):
        conf.cache_clear()
        yield stage
    conf.cache_clear()


def fails_first(error):
    return lambda request: error if request.model == "first" else "The second answers."


def asked(model):
    return [request.model for request in model.requests]


FAULTS = {
    "timeout": (ModelTimeout("x", 3), True),
    "unavailable": (ModelUnavailable("x", "down"), True),
    "account": (ModelRefused("x", 402, "no credit", fault=Fault.ACCOUNT), True),
    "malformed": (ModelRubbish("x", "html"), True),
    "prompt": (ModelRefused("x", 400, "Jinja", fault=Fault.PROMPT), False),
    "policy": (ModelRefused("x", 400, "filter", fault=Fault.POLICY), False),
    "policy in a reply": (ModelRubbish("x", "filter", fault=Fault.POLICY), False),
}


@pytest.mark.parametrize("name", FAULTS)
def test_next_profile_is_asked_after_a_failure_that_it_may_avoid(two, logged, name):
    error, is_asked = FAULTS[name]
    model = two.talks_with(fails_first(error))
    two.says(two.anna, "Oren?")
    line = "The second answers." if is_asked else FALLBACK
    assert two.screen_of(two.anna)[-1] == f'Oren says, "{line}"'
    assert asked(model) == (["first", "second"] if is_asked else ["first"])


def long_for(most, *, window=None, counted=None):
    """Return a model that refuses prompts of more than so many tokens."""

    def answer(request):
        tokens = sum(len(one.content) for one in request.messages) // 4
        if tokens <= most:
            return "Aye."
        return ModelRefused(
            "tiny",
            400,
            "too long",
            fault=Fault.TOO_LONG,
            window_tokens=window,
            counted_tokens=counted,
        )

    return answer


def fill(stage, lines=60):
    for number in range(lines):
        stage.says(stage.ben, f"Fog rolled in over the harbour on evening number {number} again.")


def checked_turns(stage):
    """Return the turns. Check that each replays and recomposes to the prompt that was sent."""
    reader, past = PastReader(), list(turns_in_order(stage.npc.ai.ref))
    for turn in past:
        records = record_rows.records(turn.manifest.sent_ids)
        assert replay_turn(turn.manifest, records).is_same
        assert compose_again(turn, reader).sha256 == turn.manifest.sha256
    return past


@pytest.mark.parametrize(
    ("window", "counted"), [(700, None), (2000, 4000), (None, None)], ids=["named", "counted", "-"]
)
def test_too_long_prompt_is_composed_again_for_the_smaller_window(stage, logged, window, counted):
    stage.npc.fallback_line = FALLBACK
    fill(stage)
    model = stage.talks_with(long_for(800, window=window, counted=counted), reply_tokens=100)
    stage.says(stage.anna, "Oren, when does the ferry run?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye."'
    assert len(model.requests) == 2
    first, second = checked_turns(stage)
    assert goes_on(first)
    assert second.manifest.tokens <= second.manifest.limit_tokens < first.manifest.tokens
    assert second.manifest.sent_sha256 == sent_sha256(
        model.requests[1].messages, tools=model.requests[1].tools
    )
    assert any("context_tokens" in line or "is asked again" in line for line in logged)
    # Later turns use what was learned.
    stage.says(stage.anna, "Oren, where to?")
    assert len(model.requests) == 3
    assert checked_turns(stage)[-1].manifest.limit_tokens == second.manifest.limit_tokens


def test_prompt_that_stays_too_long_goes_to_a_profile_with_a_larger_window(two, logged):
    refusal = ModelRefused("x", 400, "too long", fault=Fault.TOO_LONG, window_tokens=1500)
    fill(two)
    model = two.talks_with(fails_first(refusal), reply_tokens=100)
    two.says(two.anna, "Oren?")
    assert asked(model) == ["first", "first", "second"]
    assert two.screen_of(two.anna)[-1] == 'Oren says, "The second answers."'


def test_fallback_line_is_said_when_required_texts_do_not_fit_the_window(stage, logged):
    stage.npc.fallback_line = FALLBACK
    refusal = ModelRefused("x", 400, "too long", fault=Fault.TOO_LONG, window_tokens=300)
    model = stage.talks_with(lambda request: refusal)
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[-1] == f'Oren says, "{FALLBACK}"'
    assert len(model.requests) == 1
    assert any("the prompt cannot be made shorter" in line for line in logged)
    stage.talks_with("Aye.")  # the server can now read more
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye."'


def test_larger_profile_is_asked_when_the_npc_does_not_fit_a_known_window(two, logged):
    model = two.talks_with(lambda request: f"The {request.model} answers.")
    first = two.running.runtime().models.of_role("speaker")[0]
    first.learned.limit_tokens = 5
    two.says(two.anna, "Oren?")
    assert two.screen_of(two.anna)[-1] == 'Oren says, "The second answers."'
    assert asked(model) == ["second"]
    assert checked_turns(two)[-1].manifest.limit_tokens == 20_000 - 400


class Breaking(ScriptedModel):
    """A model that sends the start of each reply to its listener before the reply breaks off."""

    def __init__(self, *, times):
        super().__init__(lambda request: f"The {request.model} answers.")
        self.left = times

    def complete(self, request, *, listener=None):
        if self.left == 0:
            return super().complete(request, listener=listener)
        self.left -= 1
        self.requests.append(request)
        listener("The captain ")
        return fail(ModelUnavailable("x", "broke off"))


@pytest.mark.parametrize(
    ("times", "models"),
    [(1, ["first", "first"]), (2, ["first", "first", "second"])],
)
def test_model_is_asked_again_when_a_reply_broke_off_unheard(two, logged, times, models):
    model = Breaking(times=times)
    two.install(model)
    two.says(two.anna, "Oren?")
    assert asked(model) == models
    assert two.screen_of(two.anna)[-1] == f'Oren says, "The {models[-1]} answers."'
    assert goes_on(checked_turns(two)[0])


def test_model_without_retries_is_not_asked_again_when_a_reply_broke_off(stage, logged):
    model = Breaking(times=1)
    stage.install(model, given_profiles={"default": {"max_retries": 0}})
    stage.says(stage.anna, "Oren?")
    assert len(model.requests) == 1


def takes_roles(stage, wish):
    """Return a model that accepts only these roles, and whose client learns that."""

    def answer(request):
        roles = [message.role for message in request.messages]
        later = roles[1:] if wish == "in_turn" else roles
        if "system" not in later:
            return "Aye."
        stage.running.runtime().models.of_role("speaker")[0].learned.learn_roles(wish)
        return ModelRefused("tiny", 500, "Jinja", wants_roles=wish)

    return answer


@pytest.mark.parametrize(
    ("wish", "recorded"), [("no_system", "system_role"), ("in_turn", "strict_roles")]
)
def test_refused_roles_are_replaced_at_once_and_in_later_requests(two, logged, wish, recorded):
    update("system_prompt", content="You are Oren.", by=THE_GAME)
    update("goals", content="Be brief.", by=THE_GAME)
    model = two.talks_with(takes_roles(two, wish))
    two.says(two.anna, "Oren?")
    assert two.screen_of(two.anna)[-1] == 'Oren says, "Aye."'
    assert len(model.requests) == 2
    first, second = checked_turns(two)
    assert goes_on(first)
    assert first.manifest.request.get(recorded) != second.manifest.request[recorded]
    sent = model.requests[1]
    assert second.manifest.sent_sha256 == sent_sha256(sent.messages, tools=sent.tools)
    two.says(two.anna, "Oren, and now?")
    assert len(model.requests) == 3


def test_model_that_refuses_all_roles_is_asked_once_for_each_role(two, logged):
    update("system_prompt", content="You are Oren.", by=THE_GAME)

    def answer(request):
        two.running.runtime().models.of_role("speaker")[0].learned.learn_roles("no_system")
        return ModelRefused("tiny", 500, "Jinja", wants_roles="no_system")

    model = two.talks_with(answer)
    two.says(two.anna, "Oren?")
    assert len(model.requests) == 2
    assert two.screen_of(two.anna)[-1] == f'Oren says, "{FALLBACK}"'


# Replies without words or without an end.
def call(name, text="", **arguments):
    made = ToolCall(id="c1", name=name, arguments=json.dumps(arguments))
    return ChatReply(text=text, model="tiny", tool_calls=(made,))


def empty(text=""):
    return ChatReply(text=text, model="tiny")


@pytest.mark.parametrize("nothing", ["", "\n ", "<think>done</think>"])
@pytest.mark.parametrize(
    ("done", "seen"),
    [
        (call("pose", action="nods"), "Oren nods"),
        (call("look", "Let me look."), 'Oren says, "Let me look."'),
    ],
    ids=["by a tool", "beside a call"],
)
def test_empty_reply_ends_the_turn_normally_after_a_tool_answered(two, logged, done, seen, nothing):
    model = two.talks_with(done, empty(nothing))
    two.says(two.anna, "Oren?")
    assert two.screen_of(two.anna)[-1] == seen
    assert [request.may_be_empty for request in model.requests] == [False, True]
    last = turns.last_turn(two.npc.ai.ref)
    assert (last.state, last.outcome) == ("done", "answered")
    assert not logged


def test_empty_reply_is_a_failure_when_nothing_was_heard(stage, logged):
    stage.npc.fallback_line = FALLBACK
    change_settings(stage.npc, tools=("look",), by=THE_GAME)
    stage.talks_with(call("look"), empty())
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[-1] == f'Oren says, "{FALLBACK}"'


def test_failure_says_that_the_model_only_called_tools(stage, logged):
    stage.npc.fallback_line = FALLBACK
    change_settings(stage.npc, tools=("look",), by=THE_GAME)
    stage.talks_with(lambda request: call("look"))
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[-1] == f'Oren says, "{FALLBACK}"'
    assert any("no more tools may be called in this turn" in line for line in logged)


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("The ferry is due. The captain, he is a", "The ferry is due."),
        ("The captain of that ferry is a", "The captain of that ferry is…"),
        ("The ferry is due.", "The ferry is due."),
    ],
)
def test_npc_says_whole_sentences_when_the_reply_is_too_long(stage, text, heard):
    stage.talks_with(ChatReply(text=text, model="tiny", finish_reason="length"))
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[-1] == f'Oren says, "{heard}"'
    assert stage.records()[1] == ("assistant", "", heard)


# Thoughts that are sent back with calls.
THOUGHTS = Thoughts(message={"reasoning_content": "SECRET plan"}, calls=({},))


def thinking(name="pose"):
    made = ToolCall(id="c1", name=name, arguments=json.dumps({"action": "nods"}))
    return ChatReply(text="", model="tiny", tool_calls=(made,), thoughts=THOUGHTS)


def test_thoughts_are_sent_back_within_their_turn_and_are_in_no_record(two):
    model = two.talks_with(thinking(), thinking(), "Aye.", "Aye again.")
    two.says(two.anna, "Oren?")
    two.says(two.anna, "Oren, and now?")
    first, second, third, later = (request.thoughts for request in model.requests)
    assert (first, later) == ({}, {})
    (called,) = (one for one in model.requests[1].messages if one.tool_calls)
    assert second == {called.tool_calls[0].id: THOUGHTS}
    assert list(third.values()) == [THOUGHTS, THOUGHTS]
    records = record_rows.records(turns.last_turn(two.npc.ai.ref).manifest.sent_ids)
    assert not any("SECRET" in f"{one.body}{one.meta}" for one in records)
    assert all("SECRET" not in one.manifest.to_json() for one in checked_turns(two))


def test_other_model_does_not_get_the_thoughts_of_the_first_one(two):
    def answer(request):
        if request.model == "second":
            return "The second answers."
        return ModelUnavailable("x", "down") if request.thoughts else thinking()

    model = two.talks_with(answer)
    two.says(two.anna, "Oren?")
    assert asked(model) == ["first", "first", "second"]
    assert model.requests[-1].thoughts == {}


def wants_thoughts(request):
    """Refuse each call that is sent without the thoughts for it."""
    for message in request.messages:
        if message.tool_calls:
            thought = request.thoughts.get(message.tool_calls[0].id)
            if thought is None or not thought.message:
                return ModelRefused("tiny", 400, "reasoning missing", wants_past_thoughts=True)
    return "Aye."


def test_earlier_calls_are_sent_as_text_to_a_server_that_wants_their_thoughts(two, logged):
    two.talks_with(call("pose", action="nods"), "Aye.")
    two.says(two.anna, "Oren?")
    model = two.talks_with(wants_thoughts)
    two.says(two.anna, "Oren, and now?")
    assert two.screen_of(two.anna)[-1] == 'Oren says, "Aye."'
    before, after = model.requests
    assert any(one.tool_calls for one in before.messages)
    assert not any(one.tool_calls for one in after.messages)
    assert "[Tool result]\npose" in "".join(one.content for one in after.messages)
    *_, failed, last = checked_turns(two)
    assert goes_on(failed)
    assert last.manifest.request["past_calls"] == "told"
    assert last.manifest.sent_sha256 == sent_sha256(after.messages, tools=after.tools)
    # Later turns know it already.
    two.says(two.anna, "Oren, and then?")
    assert len(model.requests) == 3
