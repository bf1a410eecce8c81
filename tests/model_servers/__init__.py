"""Imitations of common model servers, on loopback."""
