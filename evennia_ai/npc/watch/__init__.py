"""Optional watchers: the request log, metrics, traces, and a watchdog for slow code."""
