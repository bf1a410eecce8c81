"""The game's side of background jobs: requests them, runs them or queues them, applies results."""
