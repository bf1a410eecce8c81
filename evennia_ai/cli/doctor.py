"""`evennia-ai doctor`: try the model server of a profile, with or without a game."""

import json
import time
from collections.abc import Awaitable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from evennia_ai.cli.game import is_game, need, opened_with, settings_without_game
from evennia_ai.cli.options import FILE, JSON
from evennia_ai.engine.errors import FormatError

if TYPE_CHECKING:
    from evennia_ai.services.llm.doctor import Finding
    from evennia_ai.services.llm.probes import Answer, Probe
    from evennia_ai.services.llm.profiles import ModelProfile
    from evennia_ai.services.settings.game import Conf

GIVEN: Final = "given"
"""The name of the profile that is described by options or by a file."""
RESTART: Final = "then type this again; a running game reads it after `evennia reboot` there"


@click.command("doctor")
@click.argument("name", default="", metavar="[PROFILE]")
@click.option("--game", type=FILE, metavar="DIR", default=".", help="The game's folder.")
@click.option("--profile", "file", type=FILE, metavar="FILE", help="The profile's fields as JSON.")
@click.option("--base-url", metavar="URL", help="The address of the server.")
@click.option("--model", help="The model's name on the server.")
@click.option("--client", type=click.Choice(["openai", "anthropic"]), help="Default: openai.")
@click.option("--api-key-env", metavar="NAME", help="The environment variable with the key.")
@JSON
def doctor(name: str, *, game: Path, file: Path | None, as_json: bool, **fields: str | None) -> int:
    """Try the server of a profile for at most ten seconds. The status is 1 if something fails.

    PROFILE is a profile of the game, by default the one with which NPCs speak. Without a game,
    describe a profile with --profile FILE or with options such as --base-url and --model.
    """
    need("django", "twisted", "httpx2")
    given = {field: value for field, value in fields.items() if value is not None}
    if file is not None:
        given = {**_fields_in(file), **given}
    if given and name:
        raise click.UsageError("name a profile of the game, or describe one; not both")
    if given and "base_url" not in given and given.get("client") != "anthropic":
        raise click.UsageError("say where the model is: --base-url URL")
    conf = _conf(game, given)
    name = name or (GIVEN if given else conf.model_roles["speaker"][0])
    if name not in conf.profiles:
        known = ", ".join(conf.profiles)
        raise click.UsageError(f"there is no profile '{name}'; the profiles are {known}")
    import asyncio

    findings = asyncio.run(_examined(conf.profiles[name], conf))
    if as_json:
        click.echo(json.dumps([asdict(one) for one in findings], ensure_ascii=False, indent=2))
    else:
        for one in findings:
            click.echo(one.line())
    return int(any(one.state == "FAIL" for one in findings))


def _fields_in(file: Path) -> dict[str, Any]:
    from evennia_ai.services.net.http import json_object

    try:
        found = json_object(file.read_bytes())
    except OSError as error:
        raise FormatError("profile", f"{file}: cannot be read: {error.strerror}") from error
    if found is None:
        raise FormatError("profile", f"{file}: is no JSON object of a profile's fields")
    return found


def _conf(game: Path, given: dict[str, Any]) -> "Conf":
    """Return the settings of a game, or settings that have only the given profile."""
    if given:
        settings_without_game(EVENNIA_AI_PROFILES={GIVEN: given})
    elif is_game(game):
        opened_with(game, lambda own: own)
    else:
        raise click.UsageError(
            f"{game}: no game is here; name its folder with --game, or describe the profile with"
            " --base-url and --model, or --profile FILE"
        )
    from evennia_ai.services.settings.conf import conf

    return conf()


async def _examined(profile: "ModelProfile", conf: "Conf") -> "tuple[Finding, ...]":
    from evennia_ai.services.endpoints import access_in_loop
    from evennia_ai.services.llm.doctor import examine
    from evennia_ai.services.llm.learned import Learned
    from evennia_ai.services.llm.probes import send_probes

    def unasked(*_: Any, **__: Any) -> Any:
        raise AssertionError("a profile without a server is not asked")

    if profile.client not in ("openai", "anthropic"):
        return await examine(
            profile,
            has_key=False,
            restart=RESTART,
            fetch=unasked,
            request=unasked,
            learned=Learned(),
            ask=unasked,
            now=time.monotonic,
        )
    access = access_in_loop(profile, conf)
    chat: Any = access.client

    def fetch(probes: "Sequence[Probe]", seconds: float) -> "Awaitable[tuple[Answer, ...]]":
        return send_probes(probes, headers=chat.headers(), seconds=seconds)

    try:
        return await examine(
            profile,
            has_key=bool(chat.endpoint.api_key),
            restart=RESTART,
            fetch=fetch,
            request=access.request,
            learned=chat.learned,
            ask=lambda request, hear: chat.answer(request, hear if profile.stream else None),
            now=time.monotonic,
        )
    finally:
        await chat.aclose()
