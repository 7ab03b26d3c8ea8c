"""Adapters that are loaded and unloaded while 16 streams run: the trace of the steps shows that no stream waits."""
import json
import struct
import threading
import unittest

from program import BUNDLED, IS_SANITIZED, ProgramTest
from serving import Client, Server

NUM_STREAMS, NUM_TOKENS = 16, 800
NUM_QUIET, NUM_LOADS = 200, 8  # tokens of each stream before the first load; loads and unloads
RANK = 256  # 39 MB in float32: loading it takes many steps
ATTEMPTS = 3  # another program may take the processors for a while


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
    """When each stream got its tokens."""

    def __init__(self, path):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.streams = {line["id"]: [] for line in lines if line["type"] == "request" and line["max_tokens"] == NUM_TOKENS}
        for line in lines:
            if line["type"] != "step":
                continue
            for stream in {token[0] for token in line["tokens"]} & self.streams.keys():
                self.streams[stream].append((line["step"], line["at_us"] + line["total_us"]))

    def gaps(self, first, last, what):
        """Between neighbouring tokens [first, last) of each stream: in steps (what 0) or microseconds (1)."""
        return [after[what] - before[what] for tokens in self.streams.values()
                for before, after in zip(tokens[first:last], tokens[first + 1:last])]


class AdapterLoadingTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.shelf = self.directory / "shelf"
        for name in ("a", "b"):
            write_adapter(self.shelf / name)

    def run_once(self, index):
        """The trace of streams, half of them with an adapter, while others are loaded and unloaded."""
        trace = self.directory / f"trace-{index}.jsonl"
        server = Server("--allow-runtime-lora", "--lora-directory", self.shelf, "--api-key", "k", "--lora",
                        f"held={self.shelf / 'a'}", "--max-num-seqs", NUM_STREAMS, "--served-model-name", "base", "--trace",
                        trace)
        self.addCleanup(server.stop)
        client = Client(server.port, key="k")
        have_begun = threading.Semaphore(0)

        def read(name, ids):
            response = client.open("POST", "/v1/completions", {
                "model": name, "prompt": ids, "max_tokens": NUM_TOKENS, "temperature": 0, "ignore_eos": True, "stream": True})
            with response.connection:
                self.assertEqual(response.status, 200)
                seen, events = b"", 0
                while piece := response.read1(65536):
                    events += piece.count(b"data: ")
                    if events > NUM_QUIET:
                        have_begun.release()
                        events = -(1 << 30)
                    seen = (seen + piece)[-64:]
                self.assertIn(b"[DONE]", seen)

        threads = [threading.Thread(target=read, args=(("base", "held")[i % 2], [50 + i, 70, 90])) for i in range(NUM_STREAMS)]
        for thread in threads:
            thread.start()
        for _ in threads:
            have_begun.acquire()
        for i in range(NUM_LOADS):
            name = f"new-{i}"
            self.assertEqual(client.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": "b"}).status, 200)
            self.assertEqual(client.post("/v1/unload_lora_adapter", {"lora_name": name}).status, 200)
            if i == 1:  # an adapter that streams use: they keep it to their end
                self.assertEqual(client.post("/v1/unload_lora_adapter", {"lora_name": "held"}).status, 200)
            self.assertTrue(all(thread.is_alive() for thread in threads), "the streams are too short for the loads")
        for thread in threads:
            thread.join()
        server.stop()
        return Trace(trace)

    def test_no_stream_has_a_gap_of_more_than_two_steps(self):
        for attempt in range(ATTEMPTS):
            trace = self.run_once(attempt)
            self.assertEqual([len(tokens) for tokens in trace.streams.values()], [NUM_TOKENS] * NUM_STREAMS)
            # All streams are in every step.
            self.assertEqual(set(trace.gaps(NUM_QUIET, NUM_TOKENS, 0)), {1})
            quiet = max(trace.gaps(NUM_QUIET // 4, NUM_QUIET, 1))
            largest = max(trace.gaps(NUM_QUIET, NUM_TOKENS, 1))
            if IS_SANITIZED or largest <= 2 * quiet:
                return
        self.fail(f"gaps of {largest} us, with steps of at most {quiet} us before the first load")


if __name__ == "__main__":
    unittest.main()
