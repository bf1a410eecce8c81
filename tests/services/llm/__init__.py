"""Tests of the models: pure ones, and a stub server on loopback for the rest."""
