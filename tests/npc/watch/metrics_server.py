"""A process that serves metrics without a game, for a test that scrapes them over HTTP.

It prints its port. Run it with `python -m tests.npc.watch.metrics_server`.
"""


def serve() -> None:
    """Serve metrics with fixed gauges until the process is ended."""
    import django

    django.setup()
    from twisted.internet import reactor

    from evennia_ai.npc.model_calls.watching import Gauges
    from evennia_ai.npc.watch.metrics import Metrics

    gauges = Gauges(waiting=3, in_flight=0, breakers={}, is_stopped=False)
    metrics = Metrics(lambda: gauges, port=0, reactor=reactor)
    metrics.open()
    print("port", metrics.port, flush=True)
    reactor.run()


if __name__ == "__main__":
    serve()
