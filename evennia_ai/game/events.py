"""Events: what an NPC perceived, as a value.

An event carries everything a turn needs to know of the moment it was heard, so that a second
speaker can never change the one that is being answered.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["say", "whisper", "talk", "pose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something an NPC heard or saw.

    `text` is what was said, without markup and without the frame around it; `to_ref` is the id of
    the one it was said to, "" where it was said to nobody in particular. `speaker_rank` is the
    speaker's permission in words, "NPC" for one of ours. `private` events belong to the
    conversation with their speaker alone. `hops` counts the NPC replies in a row that led to this
    event; 0 is a person. `alone` is true when nobody but the speaker was there to be
    meant.
    """

    kind: Kind
    speaker_ref: str
    speaker_name: str
    speaker_rank: str = "Player"
    text: str
    room_ref: str
    to_ref: str = ""
    private: bool = False
    alone: bool = False
    hops: int = 0
