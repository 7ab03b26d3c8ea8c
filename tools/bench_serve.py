#!/usr/bin/env python3
"""make bench-serve: the README's table of the server's figures."""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serving_figures import RATE, measure_idle, measure_overload, measure_streams, run_load, until
from program import BINARY, BUNDLED, environment  # noqa: E402  (serving_figures says where it is)
from serving import LISTENING, Client

# The sizes are those of the published config.json.
LLAMA_1B = {"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
            "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
            "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
            "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 8192},
            "tie_word_embeddings": True, "torch_dtype": "bfloat16"}


class RealServer:
    """`paceline serve`, and the seconds until it was ready."""

    def __init__(self, *options):
        began = time.monotonic()
        self.child = subprocess.Popen([BINARY, "serve", "--port", "0", "--served-model-name", "paced", "--log-format", "off",
                                       *map(str, options)],
                                      stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment())
        lines = []
        for line in self.child.stderr:
            lines.append(line)
            if LISTENING in line:
                break
        else:
            raise RuntimeError("".join(lines))
        self.port = int(lines[-1].strip().rsplit(":", 1)[1])
        until(lambda: Client(self.port).get("/ready").status == 200)
        self.seconds_to_ready = time.monotonic() - began

    def stop(self):
        self.child.terminate()
        self.child.wait()
        self.child.stderr.close()


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def pair(samples):
    return f"{samples['p50_ms']:,.1f}, {samples['p99_ms']:,.1f}"


def show_paced(seconds, overload_seconds):
    row(f"paced server: streams of {RATE} tokens per second", "1,000", "2,000")
    row("---", "---", "---")
    measured = [measure_streams(count, seconds) for count in (1000, 2000)]
    for one in measured:
        if not one.is_flawless:
            raise RuntimeError(f"a stream went wrong: {one.figures}")
    row("added latency of a token, ms, p50, p99", *(pair(one.streams["added_latency"]) for one in measured))
    row("time to first token, ms, p50, p99", *(pair(one.streams["first_token"]) for one in measured))
    row("server's share of one core", *(f"{100 * one.cpu_share:.0f} %" for one in measured))
    row("cores that others used meanwhile", *(f"{one.others:.2f}" for one in measured))
    row("memory of a stream, KB", *(f"{one.bytes_each / 1024:.1f}" for one in measured))
    row("memory of an idle connection, of 8,000, KB", f"{measure_idle(8000, 4, 5).bytes_each / 1024:.1f}", "")
    overload = measure_overload(10, overload_seconds)
    requests = overload.requests
    print()
    row("ten times what there is room for (1,000 requests per second, 100 can be answered, 100 may wait)", "")
    row("---", "---")
    row("answered, of the capacity", f"{100 * overload.goodput:.0f} %")
    row("429, ms, p50, p99", pair(requests["refusal"]))
    row("time to first token of those let in, ms, p50, p99", pair(requests["first_token"]))
    print()


def show_model(name, options, prompt_tokens, tokens, seconds):
    server = RealServer(*options)
    try:
        measured = {}
        for streams in (1, 8, 32):
            code, figures = run_load(server.port, "--any-tokens", "--prompt-tokens", prompt_tokens, "--streams", streams,
                                     "--stream-tokens", tokens, "--stream-seconds", seconds, "--stream-spread", 0,
                                     "--grace", 600)
            if code != 0:
                raise RuntimeError(f"{name}: {figures}")
            measured[streams] = figures
    finally:
        server.stop()
    row(f"{name}: {prompt_tokens} tokens in, {tokens} out; requests at once", *measured)
    row("---", *("---" for _ in measured))
    row("tokens out per second, all together",
        *(f"{one['streams']['tokens'] / one['seconds']:,.0f}" for one in measured.values()))
    row("time to first token, ms, p50, p99", *(pair(one["streams"]["first_token"]) for one in measured.values()))
    row("between tokens, ms, p50, p99", *(pair(one["streams"]["gap"]) for one in measured.values()))
    print()


def show_restart(name, options, times):
    seconds = []
    for _ in range(times):
        server = RealServer(*options)
        seconds.append(server.seconds_to_ready)
        server.stop()
    row(f"restart to ready, {name}, median of {times}", f"{statistics.median(seconds):.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stream-seconds", type=float, default=60)
    parser.add_argument("--overload-seconds", type=float, default=30)
    parser.add_argument("--model-seconds", type=float, default=20)
    parser.add_argument("--no-paced", action="store_true", help="only the real binary")
    parser.add_argument("--no-1b", action="store_true", help="without the dummy Llama-3.2-1B")
    asked = parser.parse_args()
    if not asked.no_paced:
        show_paced(asked.stream_seconds, asked.overload_seconds)
    bundled = ("-m", BUNDLED)
    show_model("bundled model", bundled, 128, 128, asked.model_seconds)
    if not asked.no_1b:
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "config.json").write_text(json.dumps(LLAMA_1B))
            # 32 prompts beside running answers take longer than the default timeout of 30 s.
            dummy = ("-m", directory, "--load-format", "dummy", "--max-model-len", 2048, "--queue-timeout", 600)
            show_model("dummy Llama-3.2-1B", dummy, 128, 64, asked.model_seconds)
    show_restart("bundled model", bundled, 5)
    return 0


if __name__ == "__main__":
    sys.exit(main())
