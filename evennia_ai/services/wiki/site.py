"""Sites: the address, the User-Agent and the limits of each wiki, from the game's settings.

pydantic reads the admin's dictionary; after that everything uses a `Site`. Settings never contain a
password, only the name of the environment variable that has it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import error_words, strict_model, suggest_name
from evennia_ai.engine.knowledge.pages.page import Namespace
from evennia_ai.services.net.http import is_address
from evennia_ai.services.net.secrets import SecretText

USER_AGENT: Final = "evennia_ai (knowledge of a game made with Evennia)"

_KEY: Final = re.compile(r"[\w.-]{1,80}")


def _an_address(value: str) -> str:
    if not is_address(value):
        raise ValueError("must be an address such as https://wiki.example/w/api.php")
    return value


def _a_name(value: str) -> str:
    if value and not value.isidentifier():
        raise ValueError("must be the name of an environment variable, not the password")
    return value


def _fits_a_header(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError("must be plain ASCII on one line")
    return value


def _are_for_texts(value: dict[Namespace, int]) -> dict[Namespace, int]:
    if "Talk" in value:
        raise ValueError("leave out Talk: the talk of a namespace has the number after its own")
    if any(number % 2 for number in value.values()):
        raise ValueError("must be even numbers: odd ones are talk pages")
    return value


_Number = Annotated[int, Field(ge=0, le=2**31)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A wiki and the game's account in it.

    The settings of a wiki have the same names as these fields.
    """

    key: str
    api: Annotated[str, AfterValidator(_an_address)]
    """The address of the wiki's API, which ends in api.php."""
    user: str = ""
    """The account to log in with. Without one, the wiki is read anonymously."""
    password_env: Annotated[str, AfterValidator(_a_name)] = ""
    password: SecretText = field(default_factory=SecretText)
    namespaces: Annotated[dict[Namespace, _Number], AfterValidator(_are_for_texts)] = field(
        default_factory=dict
    )
    """The wiki's ids of the namespaces Instructions and Sources.

    Ids that are not given are looked up by name.
    """
    request_seconds: Annotated[float, Field(gt=0, le=60)] = 10.0
    """The time limit of one request, in seconds."""
    whole_seconds: Annotated[float, Field(gt=0, le=600)] = 30.0
    """The time limit of one question of the game, with all its requests and pauses, in seconds."""
    max_retries: Annotated[int, Field(ge=0, le=10)] = 3
    user_agent: Annotated[
        str, Field(min_length=1, max_length=200), AfterValidator(_fits_a_header)
    ] = USER_AGENT

    @property
    def host(self) -> str:
        """The host and port of the wiki, by which error messages name it."""
        return urlsplit(self.api).netloc


Wikis = Mapping[str, Mapping[str, Any]]
"""The wikis in the settings. The key of the knowledge base leads to the wiki's fields."""

_NOT_SAID: Final = frozenset({"key", "password"})
_FIELDS: Final = tuple(name for name in strict_model(Site).model_fields if name not in _NOT_SAID)


def read_wikis(given: Any, *, where: str) -> Wikis:
    """Return the checked wikis of a setting.

    Raises:
        FormatError: a field is wrong; the text names it and its wiki.
    """
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary of wikis by their keys")
    return {
        key: _read_wiki(key, fields, where=f"{where}[{key!r}]") for key, fields in given.items()
    }


def site_of(key: str, fields: Mapping[str, Any], *, password: SecretText) -> Site:
    """Return the site of a knowledge base, from its fields in the result of `read_wikis`."""
    return Site(key=key, password=password, **fields)


def _read_wiki(key: Any, fields: Any, *, where: str) -> Mapping[str, Any]:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise FormatError("setting", f"{where}: must be the key of a knowledge base")
    if not isinstance(fields, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary with an api")
    given = {name: fields[name] for name in _FIELDS if name in fields}
    wrong: list[str] = []
    try:
        read = (
            strict_model(Site)
            .model_validate({**given, "key": key})
            .model_dump(include=set(_FIELDS))
        )
    except ValidationError as error:
        wrong = [f"{where}{_in_words(one)}" for one in error.errors()]
    wrong += [f"{where}{_unknown(str(name))}" for name in fields if name not in _FIELDS]
    if wrong:
        raise FormatError("setting", "; ".join(wrong))
    if bool(read["user"]) != bool(read["password_env"]):
        raise FormatError("setting", f"{where}: user and password_env go together, or neither")
    return read


def _in_words(error: ErrorDetails) -> str:
    """Return the problem of one field. The value is never shown, because it might be a password."""
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f".{place}: is missing: the wiki's address, which ends in api.php"
    return f".{place}: {error_words(error)}"


def _unknown(name: str) -> str:
    if "pass" in name.lower():
        return f".{name}: never put a password in settings; use password_env"
    return f": there is no field {name!r}{suggest_name(name, _FIELDS)}"
