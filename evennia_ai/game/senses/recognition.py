"""Whom an NPC takes somebody for, and what it may be called.

A character may wear a guise, so that who sees it does not know who it is. An NPC then knows nothing
of the person behind it: the guise has a reference of its own (`12~0f3a9c21`), and personas,
relations, memories and whispers are asked for by that. When the guise is taken off, all that the
NPC knew of the person is there again, and what it learnt of the guise stays the guise's.

A game with a recognition system of its own overrides `guise_of` and `called_by` of its NPCs. What
stands here is for Evennia's `rpsystem`: `mask` takes the recognitions of everybody away.
"""

import re
from hashlib import sha256
from typing import Any, Final

from evennia_ai.game.senses.text import plain_name
from evennia_ai.prompt.names import in_guise

_DEFAULT_SDESC: Final = "a normal person"
"""What `rpsystem` calls everybody who has not said how they look: it is nobody's name."""
_ARTICLE: Final = re.compile(r"(?:an?|the|some)\s+", re.IGNORECASE)
_EMOTED: Final = re.compile(r'/me\s+\w+,?\s+"(.*)"', re.IGNORECASE | re.DOTALL)


def known_ref(npc: Any, person: Any) -> str:
    """The reference of whom `npc` takes somebody for: the person's own, or that of their guise."""
    guise = npc.guise_of(person)
    return in_guise(str(person.id), sha256(guise.encode()).hexdigest()[:8] if guise else "")


def mask_of(npc: Any, person: Any) -> str:
    """What somebody who wears a mask of `rpsystem` looks like to `npc`; "" for who wears none."""
    sdesc = getattr(person, "sdesc", None)
    if sdesc is None or person.access(npc, "enable_recog", default=True):
        return ""
    return plain_name(str(sdesc.get()))


def sdesc_names(character: Any) -> tuple[str, ...]:
    """What somebody may call a character by its short description: "a one-eyed smith", "smith"."""
    sdesc = getattr(character, "sdesc", None)
    described = plain_name(str(sdesc.get() or "")) if sdesc is not None else ""
    if not described or described.casefold() in (_DEFAULT_SDESC, "someone"):
        return ()
    bare = _ARTICLE.sub("", described, count=1) if _ARTICLE.match(described) else described
    return tuple(dict.fromkeys((described, bare, bare.split()[-1])))


def recog_names(character: Any, speaker: Any) -> tuple[str, ...]:
    """What `speaker` has chosen to recognise a character by, where the game has that."""
    recog = getattr(speaker, "recog", None)
    name = recog.get(character) if recog is not None else None
    return (plain_name(str(name)),) if name else ()


def spoken_words(text: str) -> str:
    """What is said, without the emote that `at_pre_say` of `rpsystem` makes of it.

    It gives `/Me says, "..."` to every caller, and only its own command reads that as an emote
    (evennia#3071).
    """
    emote = _EMOTED.fullmatch(text.strip())
    return emote[1] if emote else text
