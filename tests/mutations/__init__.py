"""Breaks the package on purpose, one requirement at a time, to see the tests that cite it fail.

`table.yaml` holds the mutations: a file of `evennia_ai`, a text that stands in it exactly once,
what it becomes, and the requirement of `docs/requirements.md` that is broken by it. For each of
them exactly the tests that cite this requirement run, and one of them must fail:

    python -m tests.mutations [--only S4-20] [--list]

No file is changed. The broken text is handed to Python where it imports the module
(`breaking.py`), in a process of its own (`children.py`) that is forked from one which has Evennia
loaded and nothing of ours. Tests that start other processes cannot see it and are left out.
"""
