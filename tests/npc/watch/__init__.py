"""Tests of `evennia_ai.npc.watch`: request log, metrics, traces and watchdog."""
