"""The table of scores on docs/extend/conformance-kit.md."""

import json
from pathlib import Path
from typing import Final

from conformance.run import LEVELS, percent

RESULTS: Final = Path(__file__).resolve().parents[2] / "conformance" / "results"


def render_scores() -> str:
    """Return the scores of every report: the share, and agreeing of answered cases, by level."""
    head = " | ".join(f"{level} {name}" for level, name in LEVELS.items())
    lines = [f"| program | date | {head} |", "|---|---|" + "---|" * len(LEVELS)]
    for path in sorted(RESULTS.glob("*.json")):
        report = json.loads(path.read_text("utf-8"))
        program = report["adapters"][0]
        cells = [_cell(report["levels"].get(level, {})) for level in LEVELS]
        name = f"{program['name']} {program['version'].partition('.dev')[0]}"
        lines.append(f"| {name} | {report['date']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(counts: dict[str, int]) -> str:
    share = percent(counts)
    asked = sum(counts.get(status, 0) for status in ("agree", "differ", "broken"))
    return "-" if share is None else f"{share:.1f} % ({counts.get('agree', 0)} of {asked})"
