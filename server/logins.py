"""The first accounts of the demo game, with random passwords.

The passwords are made at the first start and stored in a file that only its owner can read.
Standard library only, because `make play` reads it in the machine's Python; the game reads it in
its settings.
"""

import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from server.steps import StepError

FILE: Final = Path("server", "demo_logins.json")
"""The file with the passwords, in the folder of the game. Git ignores it."""

ONE_PASSWORD: Final = "EVENNIA_AI_DEMO_PASSWORD"  # noqa: S105 - the name of a variable
"""The environment variable that sets one password for all accounts."""

SUPERUSER: Final = ("EVENNIA_SUPERUSER_USERNAME", "EVENNIA_SUPERUSER_PASSWORD")
"""Evennia's own environment variables for its first account."""

_CHOSEN: Final = re.compile(r"[A-Za-z0-9_.+@-]{8,64}")

Login = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logins:
    """The name and the password of each account.

    `edition` changes whenever a name or a password changes. The game gives the passwords of an
    edition to its accounts once. Later changes by players stay.
    """

    superuser: Login
    builder: Login
    player: Login
    edition: str

    @classmethod
    def made(cls, environment: Mapping[str, str], *, kept: Self | None = None) -> Self:
        """Return logins: from the environment, else the stored ones, else with new passwords.

        Raises:
            StepError: nobody could type the chosen password to log in.
        """
        one = _one_password(environment)
        name, password = (environment.get(variable, "") for variable in SUPERUSER)
        old = kept or cls(
            superuser=("admin", _password()),
            builder=("builder", _password()),
            player=("anna", _password()),
            edition="",
        )
        new = cls(
            superuser=(name or old.superuser[0], password or one or old.superuser[1]),
            builder=(old.builder[0], one or old.builder[1]),
            player=(old.player[0], one or old.player[1]),
            edition=old.edition,
        )
        if new == kept:
            return kept
        return replace(new, edition=secrets.token_hex(8))


def read_logins(root: Path) -> Logins | None:
    """Return the logins of the game in this folder, or None if none were made yet.

    Raises:
        StepError: the file exists and has other content.
    """
    path = root / FILE
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        accounts = {role: _login(kept[role]) for role in ("superuser", "builder", "player")}
        return Logins(**accounts, edition=str(kept["edition"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StepError(
            f"{path} does not contain logins: {error!r}. Delete it:"
            " the next `make play` makes new ones."
        ) from error


def keep_logins(root: Path, environment: Mapping[str, str] = os.environ) -> Logins:
    """Return the logins of this game, after making or updating the file.

    Raises:
        StepError: the file or the chosen password cannot be used.
    """
    kept = read_logins(root)
    logins = Logins.made(environment, kept=kept)
    if logins != kept:
        _write(root / FILE, logins)
    return logins


def _write(path: Path, logins: Logins) -> None:
    """Replace the file with a new one that only its owner can ever read."""
    text = json.dumps(
        {
            "edition": logins.edition,
            "superuser": logins.superuser,
            "builder": logins.builder,
            "player": logins.player,
        },
        indent=2,
    )
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    beside.touch(mode=0o600, exist_ok=False)
    with beside.open("w", encoding="utf-8") as file:
        file.write(f"{text}\n")
    beside.replace(path)


def _one_password(environment: Mapping[str, str]) -> str:
    chosen = environment.get(ONE_PASSWORD, "")
    if chosen and not _CHOSEN.fullmatch(chosen):
        raise StepError(
            f"{ONE_PASSWORD} must be 8 to 64 letters, digits and _ . + @ -, so that it can be"
            " typed to log in. Choose another."
        )
    return chosen


def _password() -> str:
    """Return a random password of 96 bits.

    It has only characters that a double click in a terminal selects as one word.
    """
    return secrets.token_hex(12)


def _login(pair: object) -> Login:
    match pair:
        case [str(name), str(password)] if name and password:
            return name, password
    raise ValueError("an account is no pair of a name and a password")
