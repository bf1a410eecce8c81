"""Fits messages, roles and tools to what a provider takes, before the hash and the call."""
