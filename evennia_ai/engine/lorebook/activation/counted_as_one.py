"""Texts counted as one: what lore costs under the preset `sillytavern`.

SillyTavern counts all texts of a pass together, anew with each that comes to them, and for the next
pass those that were passed on (`checkWorldInfo` in its world-info.js): the square of the work. What
texts cost together differs from the sum of their own tokens by what may stand between them, at
most; so they are counted as one only where that does not decide who has room.
"""

from collections.abc import Iterable

from evennia_ai.engine.prompt.tokens import TokenCounter


class CountedAsOne:
    """The texts that a pass admits; `before` are those that were passed on to it.

    `tokens` is what they cost: at most, or exactly where they were counted.
    """

    __slots__ = (
        "_before",
        "_before_tokens",
        "_counted_with",
        "_counter",
        "_is_counted",
        "_texts",
        "tokens",
    )

    def __init__(self, counter: TokenCounter, *, before: str, before_tokens: int) -> None:
        self._counter = counter
        self._before, self._before_tokens = before, before_tokens
        self._texts: list[str] = []
        self._is_counted = not before
        self._counted_with: str | None = None
        self.tokens = before_tokens

    def at_most(self, tokens: int) -> int:
        """What a text of so many tokens adds at most."""
        return tokens + self._counter.per_separator

    def at_least(self, tokens: int) -> int:
        """What a text of so many tokens adds at least."""
        return tokens - self._counter.per_separator

    def add(self, texts: Iterable[str], *, tokens: int) -> None:
        """Texts are admitted, which add so many tokens at most."""
        was_counted, self._counted_with = self._counted_with, None
        added = [*texts]
        self._is_counted = self._is_counted and added == [was_counted]
        self._texts += added
        self.tokens += tokens

    def count(self) -> int:
        """Count what is there; the tokens that this gives back."""
        at_most = self.tokens
        if not self._is_counted:
            self._before_tokens = self._counter.count(self._before) if self._before else 0
            self.tokens = self._counted()
            self._is_counted = True
        return at_most - self.tokens

    def cost(self, text: str) -> int:
        """What a text adds exactly, once the others were counted."""
        self._counted_with = text
        return self._counted(text) - self.tokens

    def _counted(self, *more: str) -> int:
        texts = "".join([f"{text}\n" for text in (*self._texts, *more)])
        return self._before_tokens + self._counter.count(texts)
