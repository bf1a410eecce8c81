"""Who looks on: the request log, metrics and traces."""
