"""One turn in the history: its draft, the sent messages, its manifest, and its replay."""
