"""Tests of whole turns with hostile texts: a corpus, the ways in, and the invariants afterwards."""
