"""Models that can be asked: over HTTP (what they share, then each protocol), scripted, offline."""
