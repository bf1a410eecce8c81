"""A comparison of two prompts: texts added, removed, moved or changed, and the first difference."""

from typing import Any

from evennia_ai.engine.prompt.changes import compare_messages, compare_reports
from evennia_ai.engine.prompt.report import Report, hidden_in_words, number_of
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.views.looking import past_inputs_for, past_reader, sent_report, trial_report
from evennia_ai.npc.views.trials import Trial
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store.history import turns
from evennia_ai.web.site.page import Page, name_of
from evennia_ai.web.site.trying import trial_in


class DiffPage(Page):
    """`/ai/npc/<ref>/diff/<a>/<b>/`: two turns compared, or one turn with and without a trial."""

    template = "evennia_ai/diff.html"

    def page_values(self, ref: str, older: int, newer: int) -> dict[str, Any]:
        seer, trial = seer_for(self.request.user, ref), trial_in(self.request)
        first = turns.get_turn(ref, older)
        before = sent_report(seer, first, past_reader())
        after = self._newer(seer, ref, newer, trial)
        came, gone = compare_messages(before, after)
        shared = _shared(before, after)
        return {
            "ref": ref,
            "name": name_of(ref),
            "older": older,
            "newer": newer,
            "trial": list(trial.lines),
            "hidden": hidden_in_words(after if after.hidden else before),
            "tokens_before": before.tokens,
            "tokens": after.tokens,
            "changes": [
                {
                    "item": change.item,
                    "how": change.how,
                    "why": change.why,
                    "lines": list(change.lines),
                }
                for change in compare_reports(before, after)
            ],
            "moved": _moved(before, after),
            "said_since": came,
            "no_longer_shown": gone,
            "shared_messages": shared,
            "shared_tokens": sum(one.tokens for one in after.messages[:shared]),
            "first_break": number_of(after, shared) if shared < len(after.messages) else "",
        }

    def _newer(self, seer: Seer, ref: str, number: int, trial: Trial) -> Report:
        turn = turns.get_turn(ref, number)
        if trial.edits:
            return trial_report(past_inputs_for(seer, turn), trial)
        return sent_report(seer, turn, past_reader())


def _shared(before: Report, after: Report) -> int:
    """Return how many messages at the start of both prompts are equal."""
    pairs = zip(before.messages, after.messages, strict=False)
    count = 0
    for old, new in pairs:
        if (old.role, old.name, old.content, old.calls) != (
            new.role,
            new.name,
            new.content,
            new.calls,
        ):
            break
        count += 1
    return count


def _moved(before: Report, after: Report) -> list[dict[str, Any]]:
    """Return the texts that are inside the history of both prompts, at different depths."""
    old, new = _depths(before), _depths(after)
    return [
        {"item": item, "depth_before": old[item], "depth": depth}
        for item, depth in new.items()
        if item in old and old[item] != depth
    ]


def _depths(report: Report) -> dict[str, int]:
    """Return the depth of each text inside the history, by the text's origin."""
    found: dict[str, int] = {}
    follow = 0
    for message in reversed(report.messages):
        if message.block != "history":
            continue
        if message.injected:
            found |= {part.origin: follow for part in message.parts}
        else:
            follow += 1
    return found
