"""An import report as plain JSON values, for programs."""

from dataclasses import asdict
from typing import Any

from evennia_ai.cards.report.values import ImportReport
from evennia_ai.prompt.components import in_order


def report_object(report: ImportReport) -> dict[str, Any]:
    """The report as the object that `--json` prints; see docs/cli.md."""
    values = asdict(report)
    warnings = [{**asdict(suspicion), "text": suspicion.text} for suspicion in report.suspicions]
    values.pop("suspicions")
    return {**values, "grants": list(in_order(report.grants)), "warnings": warnings}
