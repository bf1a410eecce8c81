"""The layer that talks to the outside: settings, HTTP, model clients and wikis."""
