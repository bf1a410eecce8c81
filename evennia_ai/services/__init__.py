"""Settings, HTTP, model clients, sentence vectors and wikis."""
