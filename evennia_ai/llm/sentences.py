"""The first sentences of a reply, while the model still writes the rest.

Nothing that was said can be taken back, so a sentence is given out only when nothing that may
still come can change it. All given out, one after another, is the start of what the whole reply
says in the end: `clean.spoken_text` is the judge of both.
"""

from collections.abc import Collection, Iterable

from evennia_ai.llm.clean import MAX_CHARACTERS, MAX_LINES, spoken_text


class SpokenStart:
    """What of one reply may be said already; it is fed the raw pieces in their order.

    `own_names` are the names the NPC goes by, `other_names` those for whom nobody else speaks.
    Without `early` nothing is given out before the end.
    """

    def __init__(
        self,
        own_names: Iterable[str],
        other_names: Collection[str] = (),
        *,
        early: bool = False,
        max_characters: int = MAX_CHARACTERS,
        max_lines: int = MAX_LINES,
    ) -> None:
        self.said = ""
        self._own_names = tuple(own_names)
        self._other_names = tuple(other_names)
        self._early = early
        self._max_characters = max_characters
        self._max_lines = max_lines

    def feed(self, piece: str) -> list[str]:
        """The whole sentences that may be said now that `piece` has come."""
        return []

    def whole(self, final_text: str) -> str:
        """All that the reply says, `said` included; what belongs into the history."""
        return spoken_text(
            final_text,
            own_names=self._own_names,
            other_names=self._other_names,
            max_characters=self._max_characters,
            max_lines=self._max_lines,
        )

    def rest(self, final_text: str) -> str:
        """What is left to say when the whole reply is there."""
        return self.whole(final_text).removeprefix(self.said)
