"""How many tokens of a prompt's limit the history takes, and whether it should be compacted.

Dialogue examples are not counted. They are dropped in favour of the history anyway, so a compaction
would not make room for them.
"""

from dataclasses import dataclass

from evennia_ai.engine.history.compaction.planning import (
    CompactionMoment,
    CompactionRules,
    is_due,
    refuse_thrash,
    tokens_from_cut,
)
from evennia_ai.engine.prompt.fragments import Tier
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Fullness:
    """The tokens of the history from its cut on, and those of everything else in the prompt."""

    history_tokens: int
    other_tokens: int
    limit_tokens: int
    counter: TokenCounter

    @property
    def tokens(self) -> int:
        """Return how many tokens a prompt with the whole history has."""
        return self.history_tokens + self.other_tokens

    def is_due(self, rules: CompactionRules, when: CompactionMoment) -> bool:
        """True if the history should be compacted."""
        return is_due(
            self.history_tokens,
            limit_tokens=self.limit_tokens,
            rules=rules,
            when=when,
            other_tokens=self.other_tokens,
        )

    def refuse_thrash(self, rules: CompactionRules) -> None:
        """Check that a history that was just compacted has enough room.

        Raises:
            ThrashError: Another compaction would be due at once.
        """
        refuse_thrash(
            self.history_tokens,
            limit_tokens=self.limit_tokens,
            rules=rules,
            other_tokens=self.other_tokens,
        )


def fullness_of(prompt: Prompt, *, cut: int) -> Fullness:
    """Return how full a prompt is.

    Args:
        cut: The cut of the history in the previous prompt.
    """
    return _fullness(prompt, prompt.history, cut=cut, other_tokens=_tokens_outside_history(prompt))


def fullness_after(prompt: Prompt, history: History, *, cut: int) -> Fullness:
    """Estimate how full the next prompt will be: `prompt` with the history as it is now.

    The event that `prompt` answered is now part of the history.
    """
    answered = sum(tokens for _, tokens in prompt.fixed)
    other_tokens = _tokens_outside_history(prompt) - answered
    return _fullness(prompt, history, cut=cut, other_tokens=other_tokens)


def _tokens_outside_history(prompt: Prompt) -> int:
    yielding = sum(p.tokens for p in prompt.fragments if p.claim.tier is Tier.YIELDING)
    return prompt.tokens - prompt.fitted.history_tokens - yielding


def _fullness(prompt: Prompt, history: History, *, cut: int, other_tokens: int) -> Fullness:
    return Fullness(
        history_tokens=tokens_from_cut(cut, history, prompt.counter),
        other_tokens=other_tokens,
        limit_tokens=prompt.limit_tokens,
        counter=prompt.counter,
    )
