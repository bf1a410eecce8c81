"""The page of one turn: its prompt as a column, the reasons, and edits to try on it.

An edit is part of the address (`?with=component:mood.depth=4`). The page composes the recorded turn
again with it. Nothing is stored until the builder saves the edits as revisions.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.compose import compose_with_lore
from evennia_ai.engine.errors import EvenniaAIError, ReplayError
from evennia_ai.engine.history.turn.manifest import request_in_words
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.prompt.messages import without_time_line
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.views.forecast import Forecaster
from evennia_ai.npc.views.looking import (
    past_inputs_for,
    past_reader,
    sent_report,
    trial_report,
    visible_past,
    visible_revisions,
)
from evennia_ai.npc.views.lore_reasons import Because, titles_of, why_active
from evennia_ai.npc.views.recomposing import NotReadBackError, PastInputs, PastReader, compare_turn
from evennia_ai.npc.views.trials import Trial, places
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store import model_calls
from evennia_ai.store.history import past_turns, record_rows, turns
from evennia_ai.store.history.branches import npc_of
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.web.site.column import column_of, column_rows, sentences, why_values
from evennia_ai.web.site.kept import make_or_foresee
from evennia_ai.web.site.page import Page, name_of
from evennia_ai.web.site.saving import SEEN, Saver, current_revisions, read_seen_revisions
from evennia_ai.web.site.trying import (
    move_addresses,
    place_in_words,
    trial_in,
    trial_query,
    undo_links,
)

MOST_SAID_BEFORE: Final = 4
"""How many messages of the conversation the page shows above what the turn answers."""
MOST_AGAINST: Final = 200
SLICE: Final = 20
"""The most turns that one request compares. The page then requests the next ones."""
SLICE_SECONDS: Final = 0.03
"""A request compares no further turn after this time, because others wait for its thread."""


class TurnPage(Page):
    """`/ai/npc/<ref>/turn/<n>/`: one turn."""

    template = "evennia_ai/turn.html"
    _turn: StoredTurn
    _seer: Seer
    _past: PastInputs | None = None
    _not_read_back: str = ""
    """Why the inputs of the turn cannot be read back; "" if they can."""
    _inputs: Inputs | None = None
    """The inputs of the shown prompt; None if they cannot be read back."""
    _reasons: tuple[Because, ...] = ()

    def page_values(self, ref: str, number: int) -> dict[str, Any]:
        turn = turns.get_turn(ref, number)
        trial = trial_in(self.request)
        self._turn = turn
        seer = self._seer = seer_for(self.request.user, ref)
        unreadable, report = "", None
        records = record_rows.records(turn.manifest.sent_ids)
        replay = past_turns.replay_stored_turn(turn, records)
        if trial.edits:
            self._past = past_inputs_for(seer, turn)
            report = trial_report(self._past, trial)
        else:
            try:
                report = sent_report(
                    seer, turn, past_reader(), found=records, rebuilt=replay.messages
                )
            except ReplayError as error:  # most often because its words were erased
                unreadable = str(error)
        if report is not None:
            self._read_back(turn, trial)
        is_whole = report is not None and not report.hidden
        return {
            "ref": ref,
            "name": name_of(ref),
            "turn": turn.number,
            "state": turn.state,
            "outcome": turn.outcome,
            "at": turn.created_at,
            "seconds": None if turn.ended_at is None else turn.ended_at - turn.created_at,
            "model": turn.manifest.model,
            "trial": list(trial.lines),
            "sent_tokens": turn.manifest.tokens,
            "unreadable": unreadable,
            "replay": {
                "same": replay.is_same,
                "problem": replay.problem,
                # The hash would help to guess a hidden text.
                "sha256": replay.sha256 if is_whole else "",
            },
            "request": dict(turn.manifest.request),
            "revisions": visible_revisions(seer, turn, report),
            "cut": turn.manifest.cut,
            "calls": _calls(turn),
            "reply": _reply(seer, turn),
            "why": sentences(self._reasons),
            **(column_of(report) if report else {}),
        }

    def _read_back(self, turn: StoredTurn, trial: Trial) -> None:
        """Read the inputs of the shown prompt, and why its lore is active."""
        try:
            self._past = self._past or past_inputs_for(self._seer, turn)
        except NotReadBackError as error:
            self._not_read_back = str(error)
            return
        self._inputs = inputs = trial_inputs(self._past, trial)
        self._reasons = why_active(inputs, compose_with_lore(inputs).lore)

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        ref, number = told["ref"], told["turn"]
        path = self.request.path
        trial = trial_in(self.request)
        before, after = _neighbours(ref, number)
        pages = {"previous": before, "next": after, "query": trial_query(trial)}
        if told["unreadable"]:
            return pages
        inputs = self._inputs
        found = places(inputs) if inputs else {}
        here = {o: p for o, p in found.items() if o in told["by_origin"]}
        said = sum(message["said"] for message in told["messages"])
        there = places(self._past.inputs) if self._past else {}
        edited = [there[edit.origin] for edit in trial.edits if edit.origin in there]
        return {
            "rows": list(column_rows(told["messages"], everything="all" in self.request.GET)),
            **why_values(told["messages"], self._reasons, titles_of(inputs) if inputs else {}),
            "exchange": _exchange(told["messages"]),
            "may_keep": ref == npc_of(ref) and not told["hidden"],
            "movable": {
                origin: {
                    "depth": place.depth,
                    "order": place.order,
                    "words": place_in_words(
                        {"depth": place.depth, "order": place.order}, most=said
                    ),
                    **move_addresses(trial, place, path),
                }
                for origin, place in here.items()
            },
            "said": said,
            "asked": request_in_words(self._turn.manifest),
            "not_to_be_tried": self._not_read_back,
            **pages,
            "is_comparable": before and not turns.get_turn(ref, before).manifest.erased,
            "edits": undo_links(trial, path),
            "pane": self.request.GET.get("pane", "")[:20],
            "changed_tokens": told["tokens"] - told["sent_tokens"],
            "status": _status(trial, here, said),
            "seen": [
                f"{holder}@{revision}"
                for holder, revision in current_revisions(edited, npc_of(ref)).items()
            ],
        }

    def post(self, request: HttpRequest, ref: str, number: int) -> HttpResponseBase:
        """Save the edits of the form as revisions, or say which kept answers they would change."""
        trial = trial_in(request)
        past = past_inputs_for(seer_for(request.user, ref), turns.get_turn(ref, number))
        saver = Saver(
            by=self.actor,
            npc_ref=npc_of(ref),
            seen=read_seen_revisions(request.POST.getlist(SEEN)),
        )
        save = partial(saver.save, trial, places(past.inputs))
        foreseen = make_or_foresee(self, save)
        if foreseen is not None:
            return self.render_values({**self.page_values(ref, number), "foreseen": foreseen})
        where = reverse("evennia_ai:turn", kwargs={"ref": ref, "number": number})
        return HttpResponseRedirect(f"{where}?{trial_query(trial, saved=str(len(trial.edits)))}")


def trial_inputs(past: PastInputs, trial: Trial) -> Inputs:
    """Return the inputs of the turn, changed by the trial."""
    return trial(past) if trial.edits else past.inputs


def _exchange(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the last messages of the conversation and what the turn answers."""
    said = [one for one in messages if one["said"] and not one["calls"]][-MOST_SAID_BEFORE:]
    return [
        {
            **one,
            "parts": [{**part, "text": without_time_line(part["text"])} for part in one["parts"]],
        }
        for one in (*said, *(one for one in messages if one["block"] == "event"))
    ]


def _status(trial: Trial, here: Mapping[str, Any], said: int) -> str:
    """Return what a screen reader says after an edit, "" without one."""
    if not trial.edits:
        return ""
    last = trial.edits[-1]
    if last.field == "off":
        return f"{last.origin}: now left out of the prompt"
    place = here.get(last.origin)
    if place is None:
        return f"{last}: not in the prompt"
    words = place_in_words({"depth": place.depth, "order": place.order}, most=said)
    return f"{last.origin}: now {words}, of {said} messages"


def _neighbours(ref: str, number: int) -> tuple[int | None, int | None]:
    newest = turns.last_turn(ref)
    return (number - 1 or None), (number + 1 if newest and newest.number > number else None)


def _calls(turn: StoredTurn) -> list[dict[str, Any]]:
    return [
        {
            "role": call.role,
            "profile": call.profile,
            "model": call.model,
            "seconds": call.seconds,
            "input_tokens": call.input_tokens,
            "cached_tokens": call.cached_tokens,
            "output_tokens": call.output_tokens,
            "nanodollars": call.nanodollars,
            "outcome": call.outcome,
        }
        for call in model_calls.calls_of_turns(turn.npc_ref, [turn.number])
    ]


def _reply(seer: Seer, turn: StoredTurn) -> list[dict[str, str]]:
    """Return what the NPC said and did in the turn, without what the viewer may not see."""
    found = past_turns.acts_of(turn)
    return [
        {"number": record.id, "kind": str(record.kind), "text": seer.record(record, found).body}
        for record in found
    ]


class AgainstPage(Page):
    """`/ai/npc/<ref>/against/`: what a trial would have changed in the newest turns, slice by
    slice.
    """

    template = "evennia_ai/against.html"

    def page_values(self, ref: str) -> dict[str, Any]:
        trial = trial_in(self.request)
        text = self.request.GET.get("before", "")
        newest = turns.last_turn(ref)
        top = newest.number if newest else 0
        before = int(text) if text.isdecimal() and len(text) < 10 else top + 1
        lowest = max(0, top - MOST_AGAINST)
        begun = time.monotonic()
        reader, seer = past_reader(), seer_for(self.request.user, ref)
        done: list[dict[str, Any]] = []
        forecaster = Forecaster(ref)
        for number in range(before - 1, max(lowest, before - 1 - SLICE), -1):
            done.append(_compared(ref, number, trial, reader, seer, forecaster=forecaster))
            if time.monotonic() - begun > SLICE_SECONDS:
                break
        rest = done[-1]["number"] if done else lowest
        return {
            "ref": ref,
            "name": name_of(ref),
            "trial": list(trial.lines),
            "turns": done,
            "forecast": str(forecaster.found),
            "before": rest if rest > lowest + 1 else None,
        }

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        trial = trial_in(self.request)
        more = trial_query(trial, before=str(told["before"])) if told["before"] else ""
        return {"more": more, "is_slice": "before" in self.request.GET}


def _compared(
    ref: str,
    number: int,
    trial: Trial,
    reader: PastReader,
    seer: Seer,
    *,
    forecaster: Forecaster,
) -> dict[str, Any]:
    try:
        turn, as_seen = turns.get_turn(ref, number), partial(visible_past, seer)
        found = compare_turn(turn, trial, reader, as_seen)
    except EvenniaAIError as error:
        return {"number": number, "outcome": "unknown", "problem": str(error)}
    cost = forecaster.add(found)
    return {
        "number": number,
        "outcome": found.outcome,
        "problem": found.problem,
        "tokens_before": found.tokens_before,
        "tokens": found.tokens,
        "shared_tokens": found.shared_tokens,
        "changed_messages": len(found.differences),
        "is_priced": bool(cost.turns),
        "nanodollars_before": cost.nanodollars_before,
        "nanodollars": cost.nanodollars,
    }
