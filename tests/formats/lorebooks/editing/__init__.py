"""Tests of edits and lints."""
