"""Break the package on purpose, one requirement at a time, and check that a test fails.

`table.yaml` holds the mutations: a file of `evennia_ai`, a text that stands in it exactly once,
what it becomes, and the requirement of `docs/extend/requirements.md` that is broken by it.
For each of them exactly the tests that cite this requirement run, and one of them must fail:

    python -m tests.mutations [--only S4-20] [--list]

No file is changed. Each row is tried in a process of its own (`children.py`), first in one forked
from where all these tests are collected: the functions that live there get their changed code. What
survives that, as a changed constant does, is handed to Python where it imports the module
(`breaking.py`), in a process that has Evennia loaded and nothing of ours, and must be killed there.
Tests that start other processes cannot see either and are left out.
"""
