"""A worker: a process that does background jobs. It runs without Evennia and Twisted's reactor."""
