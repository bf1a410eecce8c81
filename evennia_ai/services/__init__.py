"""Settings, HTTP, model clients and wikis."""
