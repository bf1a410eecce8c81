"""One turn in the history: its draft, what is sent of it, its manifest, and rebuilding it later."""
