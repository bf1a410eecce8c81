"""One turn in the history: its draft, its sent messages, its manifest, and its replay."""
