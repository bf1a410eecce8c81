"""The pure engine: values in, a prompt and its trace out. Nothing here reads files or networks."""
