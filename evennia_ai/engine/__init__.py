"""The engine: it makes a prompt and its trace from values, without files or networks."""
