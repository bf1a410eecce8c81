"""`ai/mode`: what an NPC listens to, shown and chosen, and what it made of what it heard last."""

from typing import Any, Final

from evennia_ai.commands.strict import CommandError
from evennia_ai.game.attention import Verdict
from evennia_ai.game.npc_settings import MODES, Mode, changed, settings_of
from evennia_ai.game.runtime import runtime
from evennia_ai.prompt.given_settings import near
from evennia_ai.text.columns import hanging

SHOWN: Final = 8
"""How many of the last things it heard are shown."""

MEANINGS: Final[dict[Mode, str]] = {
    "name_match": "answers who names it, talks or whispers to it, or goes on with it",
    "always": "answers whatever people say, if no other NPC does",
    "whisper_only": "answers whispers, and nothing that is said aloud",
    "decide": "answers as with name_match, and a cheap model decides about the rest",
}


def mode_lines(npc: Any) -> list[str]:
    """How an NPC listens, and what it answered lately or did not, and why."""
    mode = settings_of(npc).mode
    attention = npc.ai.attention
    lines = [f"{npc.key} listens by {mode}: it {MEANINGS[mode]}."]
    lines += [f"  {name} - {meaning}" for name, meaning in MEANINGS.items() if name != mode]
    if attention.overflows:
        lines.append(f"Not answered because too much waited: {attention.overflows}.")
    attention.forget_erased()
    newest = list(attention.last_verdicts)[-SHOWN:]
    if newest:
        now = runtime().clock.seconds()
        lines += ["What it heard last:", *(_heard(verdict, now=now) for verdict in newest)]
    return [shown for line in lines for shown in hanging(line)]


def mode_set(npc: Any, typed: str, *, by: str) -> str:
    """Have an NPC listen as it was typed; what is told."""
    mode = typed.strip().lower()
    if mode not in MODES:
        meant = near(mode, MODES) or f"; there are {', '.join(MODES)}"
        end = "" if meant.endswith("?") else "."
        raise CommandError(f"There is no mode '{mode}'{meant}{end} Nothing was changed.")
    before = settings_of(npc).mode
    changed(npc, by=by, mode=mode)
    after = settings_of(npc).mode
    return f"{npc.key} listens by {after} now; it was {before}. It {MEANINGS[after]}."


def _heard(verdict: Verdict, *, now: float) -> str:
    what = "answered" if verdict.answers else "silent"
    who = f"{verdict.speaker}, {verdict.kind}" if verdict.speaker else verdict.kind
    ago = max(0.0, now - verdict.heard_at)
    return f'  {ago:.0f} s ago, {who}: "{verdict.text}" - {what}: {verdict.why}'
