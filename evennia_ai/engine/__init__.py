"""The engine: makes a prompt and its trace from values, and reads no files, clocks or networks."""
