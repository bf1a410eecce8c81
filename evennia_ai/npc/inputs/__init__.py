"""Gathers what a prompt is made from, once for each turn. Also makes the facts of the moment."""
