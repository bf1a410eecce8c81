"""Speech: what an NPC says aloud of a raw text, be it a model's reply or its card's greeting.

What comes out is still untrusted; `output` escapes it on its way to a client.
"""

from collections.abc import Collection, Iterable

from evennia_ai.llm.clean import spoken_text


def speech(text: str, *, own_names: Iterable[str], other_names: Collection[str] = ()) -> str:
    """What of `text` is said by who goes by `own_names`, "" where that is nothing.

    `other_names` are those of bystanders, for whom nobody else speaks.
    """
    return spoken_text(text, own_names=tuple(dict.fromkeys(own_names)), other_names=other_names)
