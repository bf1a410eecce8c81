"""The import report: what a card is, what becomes of it, and what to look at before it is approved.

Made without storing anything (`import_report`), and shown as lines (`report_lines`) or as JSON
values (`report_object`), the same for the game and the command line.
"""

from evennia_ai.cards.report.making import import_report
from evennia_ai.cards.report.report import ImportReport, report_lines, report_object

__all__ = ["ImportReport", "import_report", "report_lines", "report_object"]
