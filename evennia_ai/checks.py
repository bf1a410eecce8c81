"""System checks: wrong settings fail when the server starts, each with a hint."""

from typing import Any

from django.core import checks

from evennia_ai.settings.conf import conf, doubts, problems, unknown_names


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


@checks.register()
def check_tools(**_: Any) -> list[checks.CheckMessage]:
    """One error per tool of the game's that cannot be used."""
    if problems():
        return []
    from evennia_ai.game.tools.handling import use_problem
    from evennia_ai.game.tools.registry import registry_of

    set_to = conf()
    found: list[checks.CheckMessage] = [
        checks.Error(
            f"EVENNIA_AI_TOOLS: {problem}.",
            hint="Correct the class, or take it out of the setting; docs/tools.md has an example.",
            id="evennia_ai.E052",
        )
        for problem in registry_of(set_to.tools).problems
    ]
    wrong = use_problem(set_to.use_item)
    if wrong:
        hint = "It must be the dotted path of a function of user, item and target."
        found.append(
            checks.Error(f"EVENNIA_AI_USE_ITEM: {wrong}.", hint=hint, id="evennia_ai.E053")
        )
    return found


@checks.register()
def check_context_providers(**_: Any) -> list[checks.CheckMessage]:
    """One error per provider of facts that cannot be asked."""
    if problems():
        return []
    from evennia_ai.game.inputs.providers import SETTING, providers_of

    hint = "Correct it, or take it out of the setting; it must be a function of npc, event and"
    return [
        checks.Error(f"{SETTING}: {problem}.", hint=f"{hint} conversation.", id="evennia_ai.E063")
        for problem in providers_of(conf().context_providers).problems
    ]


@checks.register()
def check_connections(**_: Any) -> list[checks.CheckMessage]:
    """A warning for each way in which others can harm the game, or its wire is slow."""
    from evennia_ai.web.doubts import line_doubts, origin_doubts, wire_doubts

    return [
        checks.Warning(doubt.message, hint=doubt.hint, id=f"evennia_ai.{doubt.id}")
        for doubt in [*origin_doubts(), *line_doubts(), *wire_doubts()]
    ]
