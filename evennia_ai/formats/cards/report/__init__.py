"""The import report: what a card is, what becomes of it, and what to look at before it is approved.

Made without storing anything (`making`), and shown as lines or JSON values (`import_report`), the
same for the game and the command line.
"""
