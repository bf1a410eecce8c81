"""The import report, which a builder reads before approving a card.

`making` builds the report without storing anything. `import_report` renders it as lines or JSON,
the same for the game and the command line.
"""
