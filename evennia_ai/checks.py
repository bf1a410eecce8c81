"""System checks: wrong settings fail when the server starts, each with a hint."""

from typing import Any

from django.core import checks

from evennia_ai.conf import doubts, problems, unknown_names


@checks.register()
def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """One error per setting with a value it cannot have, one warning per doubt or unknown name."""
    found: list[checks.CheckMessage] = [
        checks.Error(problem.message, hint=problem.hint, id=f"evennia_ai.{problem.id}")
        for problem in problems()
    ]
    found += [
        checks.Warning(doubt.message, hint=doubt.hint, id=f"evennia_ai.{doubt.id}")
        for doubt in doubts()
    ]
    found += [
        checks.Warning(
            f"{name} is not a setting of evennia_ai.",
            hint=f"Did you mean {near}?" if near else "Take it out, or correct its name.",
            id="evennia_ai.W001",
        )
        for name, near in unknown_names()
    ]
    return found
