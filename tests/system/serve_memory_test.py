"""The memory of `paceline serve` with clients that read slowly, large responses, and an unread log."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from program import BINARY, BUNDLED, ROOT, ProgramTest, environment, is_sanitized
from serving import Client, Server, until

VOCABULARY = 4099  # of the bundled model
NUMBER_BYTES = 12  # of a logit in JSON, about
ATTEMPTS = 3  # another program may have the processors for a while


def metrics(client):
    """Name -> value of the samples without further labels."""
    values = {}
    for line in client.get("/metrics").body.decode().splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name.split("{")[0]] = float(value)
    return values


def resident_bytes(server):
    with open(f"/proc/{server.child.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon:"))


class MemoryTest(ProgramTest):
    def start(self, *options, **more):
        server = Server(*options, **more)
        self.addCleanup(server.stop)
        return server

    def open_unread(self, port, body):
        """A client that sends a request and reads nothing."""
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", port))
        self.addCleanup(raw.close)
        text = json.dumps(body)
        raw.sendall(f"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        return raw

    def test_a_response_beyond_the_limit_is_not_computed(self):
        client = Client(self.start("--max-response-size", "1M").port)
        most = (1 << 20) // (VOCABULARY * NUMBER_BYTES)
        refused = client.post("/v1/classify", {"input": [[5]] * 1024, "with_logits": True})
        self.assertEqual((refused.status, refused.error["param"]), (400, "with_logits"))
        self.assertIn("--max-response-size", refused.error["message"])
        self.assertEqual(metrics(client)["paceline:prompt_tokens_total"], 0)
        allowed = client.post("/v1/classify", {"input": [[5]] * most, "with_logits": True})
        self.assertEqual(allowed.status, 200, allowed.body[:200])
        self.assertLess(len(allowed.body), 2 << 20)
        refused = client.post("/v1/score_tokens", {"input": [[5] * 1000] * 16, "top_logprobs": 20})
        self.assertEqual((refused.status, refused.error["param"]), (400, "input"))
        refused = client.post("/v1/completions", {"prompt": [[5] * 1000] * 16, "max_tokens": 1, "prompt_logprobs": 20})
        self.assertEqual((refused.status, refused.error["param"]), (400, "prompt"))
        self.assertIn("--max-response-size", refused.error["message"])

    def health_beside_a_large_response(self, client):
        """The most seconds that /health took, and the most bytes that the responses being computed may have."""
        body = {"input": [[5]] * 512, "with_logits": True}
        answers, worst, most = [], 0, 0
        asking = threading.Thread(target=lambda: answers.append(client.post("/v1/classify", body)))
        asking.start()
        while asking.is_alive():
            begin = time.monotonic()
            self.assertEqual(client.get("/health").status, 200)
            worst = max(worst, time.monotonic() - begin)
            most = max(most, metrics(client)["paceline:response_bytes"])
            time.sleep(0.01)
        self.assertEqual(len(answers[0].json["data"]), 512)
        return worst, most

    def test_health_answers_beside_large_responses_and_their_memory_comes_back(self):
        server = self.start("--max-num-seqs", "64")
        client = Client(server.port)
        client.post("/v1/classify", {"input": [[5]], "with_logits": True})
        before = resident_bytes(server)
        for _ in range(ATTEMPTS):
            worst, most = self.health_beside_a_large_response(client)
            if worst < 1 and most > 0:
                break
        self.assertLess(worst, 1)
        self.assertEqual(most, 512 * VOCABULARY * NUMBER_BYTES)
        self.assertTrue(until(lambda: metrics(client)["paceline:response_bytes"] == 0))
        if not is_sanitized():
            self.assertTrue(until(lambda: resident_bytes(server) < before + (16 << 20)), resident_bytes(server) - before)

    def test_clients_that_do_not_read_finished_responses_hold_no_places(self):
        server = self.start("--max-requests", "2")
        client = Client(server.port)
        for _ in range(4):
            self.open_unread(server.port, {"input": [[5]] * 256, "with_logits": True})
            self.assertTrue(until(lambda: metrics(client)["paceline:requests_open"] == 0))
        self.assertGreater(metrics(client)["paceline:unsent_bytes"], 4 << 20)
        self.assertEqual(client.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status, 200)

    def test_an_unread_log_blocks_nothing(self):
        reader, writer = os.pipe()
        child = subprocess.Popen([BINARY, "serve", "-m", BUNDLED, "--port", "0", "--threads", "1"],
                                 stdin=subprocess.DEVNULL, stderr=writer, env=environment())
        self.addCleanup(child.wait, 30)
        self.addCleanup(child.kill)
        os.close(writer)
        said = b""
        while b"listening on " not in said or not said.endswith(b"\n"):
            said += os.read(reader, 4096)
        self.addCleanup(os.close, reader)
        client = Client(int(said.decode().rsplit(":", 1)[1]))
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
        self.addCleanup(connection.close)
        for _ in range(16000):  # a line has about 100 bytes; 1 MiB of them waits, and 64 KiB are in the pipe
            connection.request("GET", "/live")
            response = connection.getresponse()
            response.read()
            self.assertEqual(response.status, 200)
        self.assertGreater(metrics(client)["paceline:log_lines_dropped_total"], 1000)
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(20), 0)

    def test_a_weights_cache_truncated_while_serving_is_named(self):
        cache = self.directory / "cache"
        self.start("--weights-cache", cache).stop()
        server = self.start("--weights-cache", cache)
        client = Client(server.port)
        self.assertEqual(client.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status, 200)
        files = [file for file in cache.iterdir() if file.stat().st_size > 1 << 20]
        self.assertEqual(len(files), 1)
        os.truncate(files[0], 4096)
        try:
            client.post("/v1/completions", {"prompt": "x", "max_tokens": 4})
        except OSError:
            pass
        self.assertEqual(server.wait(), 70)
        server.stop()
        self.assertIn(f"{files[0].name}: a part of this mapped file can't be read any more", "\n".join(server.lines))

    @unittest.skipIf(is_sanitized(), "sanitizers reserve more address space")
    def test_an_address_space_limit_bounds_the_caches_default(self):
        script = f'ulimit -v 1500000; exec "{BINARY}" generate -m "{BUNDLED}" -p x -n 1'
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=environment(), timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)


class MetricsTest(unittest.TestCase):
    def test_vllms_names_under_vllms_prefix(self):
        server = Server("--metrics-prefix", "vllm")
        self.addCleanup(server.stop)
        client = Client(server.port)
        client.post("/v1/completions", {"prompt": [1, 2, 3], "max_tokens": 4, "n": 2, "ignore_eos": True})
        values = metrics(client)
        self.assertEqual(values["vllm:request_prompt_tokens_sum"], 3)
        self.assertEqual((values["vllm:request_generation_tokens_count"], values["vllm:request_generation_tokens_sum"]),
                         (2, 8))
        self.assertEqual(values["vllm:time_per_output_token_seconds_count"], 6)
        self.assertEqual(values["vllm:inter_token_latency_seconds_count"], 6)
        self.assertEqual((values["vllm:request_params_n_sum"], values["vllm:request_params_max_tokens_sum"]), (2, 4))
        self.assertEqual(values["vllm:iteration_tokens_total_sum"], 3 + 2 * 3)
        self.assertEqual(values["vllm:iteration_tokens_total_count"], values["vllm:engine_steps_total"])
        for name in ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "cache_config_info",
                     "prompt_tokens_total", "generation_tokens_total", "request_success_total",
                     "time_to_first_token_seconds_bucket", "e2e_request_latency_seconds_bucket",
                     "request_queue_time_seconds_sum", "request_prefill_time_seconds_sum",
                     "request_decode_time_seconds_sum", "request_inference_time_seconds_sum",
                     "spec_decode_num_drafts_total", "spec_decode_num_draft_tokens_total",
                     "spec_decode_num_accepted_tokens_total", "spec_decode_num_accepted_tokens_per_pos_total"]:
            self.assertIn("vllm:" + name, values)
        self.assertFalse([name for name in values if name.startswith("paceline:")])

    def test_the_caches_type_is_the_one_in_use(self):
        for option, dtype in [("auto", "bfloat16"), ("int8", "int8"), ("f32", "float32")]:
            server = Server("--kv-cache-dtype", option)
            self.addCleanup(server.stop)
            text = Client(server.port).get("/metrics").body.decode()
            [labels] = re.findall(r"^paceline:cache_config_info\{(.*)\} 1$", text, re.M)
            self.assertIn(f'cache_dtype="{dtype}"', labels.split(","))

    def test_states_have_pools_of_their_own(self):
        hybrid = Server("--max-num-seqs", 4, model=ROOT / "tests" / "goldens" / "hybrids" / "qwen3_5_text")
        self.addCleanup(hybrid.stop)
        values = metrics(Client(hybrid.port))
        states, rows = values["paceline:states_limit"], values["paceline:state_open_rows_limit"]
        self.assertEqual((values["paceline:states_used"], values["paceline:state_open_rows_used"]), (0, 0))
        self.assertEqual((states, rows), (8, 4), "another state of each sequence is saved")
        plain = Server()
        self.addCleanup(plain.stop)
        self.assertNotIn("paceline:states_limit", metrics(Client(plain.port)))

    def test_the_process(self):
        server = Server()
        self.addCleanup(server.stop)
        values = metrics(Client(server.port))
        self.assertGreater(values["process_cpu_seconds_total"], 0)
        self.assertGreater(values["process_virtual_memory_bytes"], values["process_resident_memory_bytes"])
        self.assertGreater(values["process_resident_memory_bytes"], 1 << 20)
        self.assertGreater(values["process_open_fds"], 3)
        self.assertGreaterEqual(values["process_max_fds"], values["process_open_fds"])
        self.assertLess(abs(values["process_start_time_seconds"] - time.time()), 120)

    def test_a_prefix_that_is_no_name(self):
        done = subprocess.run([BINARY, "serve", "-m", BUNDLED, "--metrics-prefix", "a-b", "--port", "0"],
                              capture_output=True, text=True, env=environment(), timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--metrics-prefix", done.stderr)


if __name__ == "__main__":
    unittest.main()
