"""Adapters that are loaded and unloaded while 16 streams run: the trace of the steps shows that no stream waits."""
import json
import statistics
import struct
import threading
import time
import unittest

from program import BUNDLED, ProgramTest
from serving import Client, Server

NUM_STREAMS, NUM_TOKENS = 16, 400
NUM_BEGUN, NUM_LOADS = 20, 8  # tokens of each stream before the first load; loads and unloads
RANK = 256  # 39 MB in float32: loading it takes many steps
ATTEMPTS = 3  # another program may have the processors for a while


def write_adapter(directory):
    """In PEFT's format, on all modules of the bundled model."""
    config = json.loads((BUNDLED / "config.json").read_text())
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    queries, keys = (config["head_dim"] * config[f"num_{name}_heads"] for name in ("attention", "key_value"))
    sizes = {"self_attn.q_proj": (queries, hidden), "self_attn.k_proj": (keys, hidden), "self_attn.v_proj": (keys, hidden),
             "self_attn.o_proj": (hidden, queries), "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
             "mlp.down_proj": (hidden, inner)}
    header, data = {}, bytearray()
    for layer in range(config["num_hidden_layers"]):
        for module, (out, into) in sizes.items():
            for side, shape in [("A", [RANK, into]), ("B", [out, RANK])]:
                part = struct.pack("<8f", *(0.001 * ((i * 5 + layer) % 7 - 3) for i in range(8))) * (shape[0] * shape[1] // 8)
                header[f"base_model.model.model.layers.{layer}.{module}.lora_{side}.weight"] = {
                    "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
                data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    directory.mkdir(parents=True)
    (directory / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (directory / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": [name.split(".")[1] for name in sizes]}))


class Trace:
    """The steps that all streams are in."""

    def __init__(self, path):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        streams = {line["id"] for line in lines if line["type"] == "request" and line["max_tokens"] == NUM_TOKENS}
        steps = [line for line in lines if line["type"] == "step"]
        self.tokens = [sum(stream == token[0] for step in steps for token in step["tokens"]) for stream in streams]
        self.steps = [step for step in steps if streams <= {token[0] for token in step["tokens"]}]

    def gaps(self):
        """Microseconds from step to step, and what of it wasn't spent on the forward."""
        pairs = list(zip(self.steps, self.steps[1:]))
        whole = [after["at_us"] - before["at_us"] for before, after in pairs]
        return whole, [gap - before["forward_us"] for gap, (before, _) in zip(whole, pairs)]


class AdapterLoadingTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.shelf = self.directory / "shelf"
        for name in ("a", "b"):
            write_adapter(self.shelf / name)

    def run_once(self, index):
        """Streams, half of them with an adapter, while others are loaded and unloaded: the trace, the seconds of all loads,
        and the steps in these."""
        trace = self.directory / f"trace-{index}.jsonl"
        server = Server("--allow-runtime-lora", "--lora-directory", self.shelf, "--api-key", "k", "--lora",
                        f"held={self.shelf / 'a'}", "--max-num-seqs", NUM_STREAMS, "--served-model-name", "base", "--trace",
                        trace)
        self.addCleanup(server.stop)
        client = Client(server.port, key="k")
        have_begun = threading.Semaphore(0)
        seen = [0] * NUM_STREAMS  # events

        def read(stream, name):
            response = client.open("POST", "/v1/completions", {
                "model": name, "prompt": [50 + stream, 70, 90], "max_tokens": NUM_TOKENS, "temperature": 0, "ignore_eos": True,
                "stream": True})
            with response.connection:
                self.assertEqual(response.status, 200)
                while piece := response.read1(65536):
                    had_begun = seen[stream] > NUM_BEGUN
                    seen[stream] += piece.count(b"data: ")
                    if seen[stream] > NUM_BEGUN and not had_begun:
                        have_begun.release()

        threads = [threading.Thread(target=read, args=(i, ("base", "held")[i % 2])) for i in range(NUM_STREAMS)]
        for thread in threads:
            thread.start()
        for _ in threads:
            have_begun.acquire()
        seconds = steps = 0
        for i in range(NUM_LOADS):
            name = f"new-{i}"
            seen_before, begin = sum(seen), time.monotonic()
            self.assertEqual(client.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": "b"}).status, 200)
            seconds += time.monotonic() - begin
            steps += (sum(seen) - seen_before) / NUM_STREAMS
            self.assertEqual(client.post("/v1/unload_lora_adapter", {"lora_name": name}).status, 200)
            if i == 1:  # an adapter that streams use: they keep it to their end
                self.assertEqual(client.post("/v1/unload_lora_adapter", {"lora_name": "held"}).status, 200)
            self.assertTrue(all(thread.is_alive() for thread in threads), "the streams are too short for the loads")
        for thread in threads:
            thread.join()
        server.stop()
        return Trace(trace), seconds, steps

    def test_no_stream_has_a_gap_of_more_than_two_steps(self):
        for attempt in range(ATTEMPTS):
            trace, seconds, num_steps = self.run_once(attempt)
            self.assertEqual(trace.tokens, [NUM_TOKENS] * NUM_STREAMS)
            # A stream is in every step as soon as all have begun.
            numbers = [step["step"] for step in trace.steps]
            self.assertEqual(numbers, list(range(numbers[0], numbers[-1] + 1)))
            self.assertGreater(len(numbers), NUM_TOKENS // 2)
            whole, outside = trace.gaps()
            step_us = statistics.median(whole)
            # What other programs take of the processors is nearly all taken from the forward.
            figures = (f"a step takes {step_us / 1000:.1f} ms, at most {max(outside) / 1000:.1f} ms of it outside the forward; "
                       f"{NUM_LOADS} loads took {seconds:.2f} s, in which {num_steps:.0f} steps ended")
            if max(outside) <= 2 * step_us and num_steps >= 1e6 * seconds / step_us / 3:
                return
        self.fail(figures)


if __name__ == "__main__":
    unittest.main()
