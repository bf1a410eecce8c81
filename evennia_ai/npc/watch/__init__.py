"""Who looks on: the request log, metrics, traces, and a watchdog for what is slow."""
