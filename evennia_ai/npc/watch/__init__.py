"""Optional watchers: a log of requests, metrics, traces, and a watchdog for slow code."""
