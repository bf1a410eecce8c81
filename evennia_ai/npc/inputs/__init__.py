"""Gathers once what a prompt is made from, with the facts of the moment."""
