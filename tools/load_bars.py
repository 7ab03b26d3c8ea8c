#!/usr/bin/env python3
"""make load: long loads on the paced server, each with a bar that it must pass."""
import argparse
import os
import sys

from serving_figures import Overload, measure_idle, measure_overload, measure_streams


class Bars:
    def __init__(self):
        self.failed = 0

    def check(self, what, value, most=None, least=None, unit=""):
        passes = (most is None or value <= most) and (least is None or value >= least)
        self.failed += not passes
        bar = f"at most {most:g}{unit}" if most is not None else f"at least {least:g}{unit}"
        print(f"{'pass' if passes else 'FAIL'}  {what:<58} {value:>12,.2f}{unit:<4} {bar}", flush=True)

    def check_flawless(self, what, measured):
        reasons = [tally[kind] for tally in (measured.streams, measured.requests) for kind in ("faults", "errors")
                   if tally[kind]]
        self.failed += not measured.is_flawless
        print(f"{'pass' if measured.is_flawless else 'FAIL'}  {what}: nothing lost, doubled, out of order or left behind "
              f"{reasons or ''}{measured.open_books or ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--stream-seconds", type=float, default=600)
    parser.add_argument("--connects", type=int, default=4000)
    parser.add_argument("--idle", type=int, default=8000)
    parser.add_argument("--idle-seconds", type=float, default=60)
    parser.add_argument("--overload-seconds", type=float, default=300)
    asked = parser.parse_args()
    bars = Bars()

    streams = measure_streams(asked.streams, asked.stream_seconds)
    bars.check_flawless(f"{streams.streams['sent']:,} streams, {asked.streams:,} at a time", streams)
    print(f"      others used {streams.others:.2f} of {os.cpu_count()} cores meanwhile")
    bars.check("added latency of tokens, p99", streams.streams["added_latency"]["p99_ms"], most=60, unit=" ms")
    bars.check("memory of a stream", streams.bytes_each / 1024, most=25, unit=" KB")

    connects = measure_idle(asked.connects, seconds_to_open=1, seconds=1)
    bars.check_flawless(f"{asked.connects:,} connects in 1 s", connects)
    bars.check("connect to first answer, p99", connects.idle["first_answer"]["p99_ms"], most=250, unit=" ms")

    idle = measure_idle(asked.idle, seconds_to_open=4, seconds=asked.idle_seconds)
    bars.check_flawless(f"{asked.idle:,} idle connections", idle)
    bars.check("memory of an idle connection", idle.bytes_each / 1024, most=25, unit=" KB")

    overload = measure_overload(10, asked.overload_seconds)
    bars.check_flawless(f"{overload.requests['sent']:,} requests at 10 times the capacity", overload)
    bars.check("answered, of the capacity", 100 * overload.goodput, least=90, unit=" %")
    bars.check("429, p99", overload.requests["refusal"]["p99_ms"], most=20, unit=" ms")
    bars.check("time to first token, p99", overload.requests["first_token"]["p99_ms"], most=1500 * Overload.QUEUE_BOUND_S,
               unit=" ms")
    print(f"{bars.failed} failed" if bars.failed else "all passed")
    return 1 if bars.failed else 0


if __name__ == "__main__":
    sys.exit(main())
