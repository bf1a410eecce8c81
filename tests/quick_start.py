"""Starts Evennia in half the time, for the processes that tests start by the dozen.

Evennia needs `inflect`, which has `typeguard` check the arguments of two dozen of its functions;
for each of them the four thousand lines of `inflect` are parsed again, in every process. The
tests that run inside pytest, `make play` as a newcomer types it and players' games keep the checks.
"""

SETTINGS = """
import typeguard

typeguard.typechecked = lambda function: function
"""
"""Lines for a game's settings, which are read before `inflect` is."""
