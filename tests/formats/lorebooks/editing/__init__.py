"""Tests of edits and lints of lorebooks."""
