"""Measures the paced server under load: latency of tokens, cost of a stream, behaviour under overload."""
import os
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "traffic"))
from pacing import LoadClient, PacedServer, open_books, run_load, until  # noqa: E402

RATE = 20  # tokens per second of a stream
STREAM_TOKENS = 1000
SPREAD = 10  # seconds over which streams begin
BLOCK_SIZE = 16


class Measured:
    """One load: the client's figures, and the server's use of memory and CPU."""

    def __init__(self, code, figures, **more):
        self.is_flawless = code == 0
        self.figures = figures
        self.__dict__.update(more)

    def __getattr__(self, name):
        return self.figures[name]


def machine_seconds():
    """Core seconds used by all processes since boot."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split(maxsplit=8)[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def serve(measure, *options):
    """The result of `measure(server)`; afterwards the server must be idle and its metrics consistent."""
    server = PacedServer(*options)
    try:
        measured = measure(server)
        until(lambda: not open_books(server.client), 30)
        measured.open_books = open_books(server.client)
        measured.is_flawless = measured.is_flawless and not measured.open_books
        return measured
    finally:
        server.stop()


def measure_streams(count, seconds):
    """A number of concurrent streams. `bytes_each`: growth of resident memory per stream; `others`: cores used by other
    processes than server and client, since tokens are late on a busy machine."""
    def measure(server):
        server.client.post("/v1/completions", {"prompt": "a", "max_tokens": 2})
        before, cpu, began = server.resident_bytes(), server.cpu_seconds(), time.monotonic()
        machine, children = machine_seconds(), children_seconds()
        client = LoadClient(server.port, "--rate", RATE, "--streams", count, "--stream-tokens", STREAM_TOKENS,
                            "--stream-seconds", seconds, "--stream-spread", SPREAD)
        client.wait_for("streams open")
        time.sleep(2)
        bytes_each = (server.resident_bytes() - before) / count
        code, figures = client.finish()
        took, cpu = time.monotonic() - began, server.cpu_seconds() - cpu
        others = machine_seconds() - machine - cpu - (children_seconds() - children)
        return Measured(code, figures, bytes_each=bytes_each, cpu_share=cpu / took, others=max(0, others / took))
    blocks = count * (STREAM_TOKENS // BLOCK_SIZE + 2)
    return serve(measure, "--rate", RATE, "--max-num-seqs", count + 16, "--num-blocks", blocks)


def measure_idle(count, seconds_to_open, seconds):
    """Connections that send one request each and stay open."""
    def measure(server):
        server.client.get("/live")
        before = server.resident_bytes()
        client = LoadClient(server.port, "--idle", count, "--idle-spread", seconds_to_open, "--idle-seconds", seconds)
        client.wait_for("idle open")
        bytes_each = (server.resident_bytes() - before) / count
        code, figures = client.finish()
        return Measured(code, figures, bytes_each=bytes_each)
    return serve(measure, "--keep-alive-time", seconds + seconds_to_open + 60)


class Overload:
    """100 sequences at 100 tokens per second, and answers of 100 tokens: 100 requests per second; as many may wait."""
    RATE = SEQUENCES = QUEUED = TOKENS = 100
    CAPACITY = SEQUENCES * RATE / TOKENS
    # The last request in a full queue of an unloaded server waits until all earlier ones were admitted, and for a step.
    QUEUE_BOUND_S = QUEUED / CAPACITY + 2 / RATE


def measure_overload(times, seconds):
    """A load of `times` the capacity. `goodput`: completed answers relative to the capacity."""
    offered = times * Overload.CAPACITY

    def measure(server):
        code, figures = run_load(server.port, "--rate", Overload.RATE, "--requests", int(offered * seconds), "--request-rate",
                                 offered, "--request-tokens", Overload.TOKENS, "--stream-requests", "--may-refuse")
        completed = figures["requests"]["completed"]
        return Measured(code, figures, goodput=completed / figures["request_seconds"] / Overload.CAPACITY)
    return serve(measure, "--rate", Overload.RATE, "--max-num-seqs", Overload.SEQUENCES, "--max-num-queued-reqs",
                 Overload.QUEUED)
