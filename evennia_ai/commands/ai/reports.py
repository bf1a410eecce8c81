"""`ai/reports`: what players reported about NPCs, with the command that shows each turn."""

from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.commands.base import CommandError, day_and_time, name_of
from evennia_ai.engine.text.columns import WIDTH, escape_controls, wrap_hanging, wrap_text
from evennia_ai.npc.mind.own_data import ListedReport, list_reports
from evennia_ai.store.history.reports import count_reports

PAGE: Final = 10
_HASH: Final = 12


def report_lines(caller: Any, page: int) -> list[str]:
    """Return a page of reports, the newest first."""
    count = count_reports()
    if not count:
        return ["No player has reported anything. Players report with: ai report <npc> = <why>"]
    pages = -(-count // PAGE)
    if page > pages:
        raise CommandError(f"There is no page {page}; the last one is {pages}.")
    lines = [f"Reports of players, {count}, page {page} of {pages}:"]
    for report in list_reports(caller, first=(page - 1) * PAGE, most=PAGE):
        lines += _report(report)
    if page < pages:
        lines.append(f"More: ai/reports {page + 1}")
    return lines


def _report(report: ListedReport) -> Iterator[str]:
    by = name_of(report.reporter_ref) if report.reporter_ref else "a player who was forgotten"
    yield from wrap_text(
        f"{report.id}  {day_and_time(report.reported_at)}, by {by}; prompt"
        f" {report.prompt_sha256[:_HASH]}: ai/context {report.npc.lower()}/{report.turn}",
        WIDTH,
    )
    for title, text in (("why", report.why), ("said", report.words)):
        yield from wrap_hanging(escape_controls(f"    {title}: {text}"))
