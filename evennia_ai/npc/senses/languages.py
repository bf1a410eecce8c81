"""Languages: which one a person reads, which one an NPC speaks, and the game's texts in it.

Texts are translated where they are sent, once for each reader, and never where they are stored or
put into a prompt. Translations are Django's: catalogues `locale/<code>/LC_MESSAGES/django.mo` of
this package and of the folders in the game's `LOCALE_PATHS`. Evennia switches Django's functions
such as `gettext` off (`USE_I18N`), and they know only one language at a time. Therefore a catalogue
is asked directly here.
"""

from functools import lru_cache
from gettext import GNUTranslations
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.utils.translation import trans_real
from evennia.accounts.models import AccountDB
from evennia.utils import logger

import evennia_ai
from evennia_ai.engine.prompt.language import NAMES
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.senses.choices import chosen_language
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, object_of
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.npc import NPCSettings

ENGLISH: Final = "en"
PROJECT: Final = "evennia_ai"
"""What the header of each catalogue of our texts names as its project."""
LOCALE: Final = Path(evennia_ai.__file__).parent / "locale"


def game_language() -> str:
    """Return the code of the language in which players read the game's lines by default."""
    return conf().language or str(settings.LANGUAGE_CODE)


def language_of(account: Any) -> str:
    """Return the code of the language that an account reads. None: the language of the game."""
    return chosen_language(account) or game_language()


def read_by(reader: Any) -> str:
    """Return the code of the language that an account, or the player of a character, reads."""
    is_account = isinstance(reader, AccountDB)
    return language_of(reader if is_account else getattr(reader, "account", None))


def own_language(npc: NPC) -> str:
    """Return the code of the language of an NPC's lines that no model writes."""
    settings: NPCSettings = npc.ai.settings
    return settings.speaks or game_language()


def language_spoken(settings: NPCSettings, event: Event | None) -> str:
    """Return the name of the language that an NPC's model is told to speak, "" for none.

    Args:
        settings: The settings of the NPC.
        event: What a player said in private. The NPC then speaks that player's own language,
            unless a builder gave it one. In a room, the language depends on no player, so that all
            prompts there begin with the same bytes.
    """
    person = object_of(event.speaker_ref) if event is not None and event.speaker_ref else None
    theirs = chosen_language(getattr(person, "account", None))
    code = settings.speaks or theirs or conf().language
    return NAMES.get(code, "")


def translate(text: "str | Phrase", language: str) -> str:
    """Return a text of the game in a language, or unchanged if no catalogue has it.

    Without a catalogue of the language, the text is in the language of the game.

    A plain text is looked up and never filled in, so it may be a line that an owner wrote.
    """
    # Django has texts in many languages. They must not mix with ours in English.
    wanted = (language, game_language(), ENGLISH)
    readable = next(code for code in wanted if has_catalogue(code))
    catalogue = trans_real.translation(readable)
    if not isinstance(text, Phrase):
        return str(catalogue.gettext(text)) if text else ""

    def look_up(template: str, plural: str, number: int) -> str:
        if plural:
            return str(catalogue.ngettext(template, plural, number))
        return str(catalogue.gettext(template))

    try:
        return text.filled(look_up)
    except (LookupError, ValueError, AttributeError) as error:
        logger.log_err(
            f"evennia_ai: a translation into '{language}' does not fit its values"
            f" ({type(error).__name__}: {error}): {text.template!r}. The English text is shown."
        )
        return str(text)


@lru_cache(maxsize=1)
def catalogue_languages() -> tuple[str, ...]:
    """Return the codes of the languages in which players can read the game's texts."""
    found = {ENGLISH}
    for folder in (LOCALE, *map(Path, settings.LOCALE_PATHS)):
        for path in folder.glob("*/LC_MESSAGES/django.mo"):
            with path.open("rb") as file:
                header = GNUTranslations(file).info()
            # Evennia puts its own catalogues into LOCALE_PATHS.
            if header.get("project-id-version") == PROJECT:
                found.add(path.parent.parent.name.replace("_", "-").lower())
    return tuple(sorted(found))


def has_catalogue(code: str) -> bool:
    """True if players can read the game's texts in this language or a general form of it."""
    there = catalogue_languages()
    return code in there or code.partition("-")[0] in there


def language_name(code: str) -> Phrase:
    """Return the name of a language. Django's own catalogues translate it."""
    return Phrase(NAMES.get(code) or NAMES.get(code.partition("-")[0], code))
