"""Tests of how keys are found."""
