"""Break the package on purpose, one requirement at a time, and check that a test fails.

`table.yaml` lists the mutations. Each has a file of `evennia_ai`, a text that is in the file
exactly once, its replacement, and the requirement of `docs/extend/requirements.md` that the change
breaks. For each mutation the tests run that cite this requirement, and one of them must fail:

    python -m tests.mutations [--only S4-20] [--list]

No file is changed. Each row is tried in its own process (`children.py`). First this is a fork of
the process that has collected all tests; its existing functions get the changed code. A change of a
constant, for example, has no effect there. If the tests pass, the changed module is imported in a
second process (`breaking.py`), which has loaded Evennia but none of our modules, and a test must
fail there. Tests that start other processes would not see the change, so they are left out.
"""
