"""Tests of the model clients. Some are pure, the others use a stub server on loopback."""
