"""`paceline trace`: the file as argument, flag or standard input, the events and the totals, errors."""
import json
import unittest

from program import BUNDLED, ProgramTest, lines, run

START = {"type": "start", "model": "<tiny>", "block_size": 4, "groups": [{"window": 0, "blocks": 8}], "max_num_seqs": 4,
         "max_batched_tokens": 16}
REQUEST = {"type": "request", "id": 7, "step": 0, "prompt_ids": [5, 6, 7], "prompt_tokens": 3, "max_tokens": 2,
           "temperature": 1, "top_p": 1, "top_k": 0, "min_p": 0, "repetition_penalty": 1, "frequency_penalty": 0,
           "presence_penalty": 0, "logit_bias": [], "seed": 42, "stop_token_ids": [], "stop": [], "eos_token_ids": [2],
           "ignore_eos": False, "priority": 0}
STEP = {"type": "step", "step": 0, "at_us": 100, "plan_us": 1, "forward_us": 900, "total_us": 1000, "num_rows": 3,
        "num_waiting": 0, "free_blocks": [7], "cached_blocks": [0], "admitted": [[7, 0]], "preempted": [],
        "slices": [[7, 0, 3]], "blocks": [[7, 1]], "tokens": [[7, 9]], "finished": []}
LAST = {**STEP, "step": 1, "at_us": 1100, "admitted": [], "slices": [[7, 3, 1]], "tokens": [[7, 2]],
        "finished": [[7, "stop"]]}
RESTRICTED = [{}, {"bad_words": [",", "in the"]}, {"allowed_token_ids": list(range(256, 400))}]
TRACE = lines(START, REQUEST, STEP, LAST)


class TraceTest(ProgramTest):
    def test_the_events_are_the_same_from_everywhere(self):
        path = self.write("trace.jsonl", TRACE)
        events = self.succeed("trace", path).stdout
        track = [(e["name"], e["ts"], e["dur"]) for e in json.loads(events)["traceEvents"] if e["ph"] == "X" and e["tid"] == 7]
        self.assertEqual(track, [("stop", 0, 2000), ("prefill", 0, 1000), ("decode", 1000, 1000)])
        self.assertEqual(self.succeed("trace", "-f", path).stdout, events)
        self.assertEqual(self.succeed("trace", "-", stdin=TRACE).stdout, events)
        self.assertEqual(self.succeed("trace", stdin=TRACE).stdout, events)
        done = self.succeed("trace", path, "-o", self.directory / "events.json")
        self.assertEqual(done.stdout, "")
        self.assertIn("1 request · 2 tokens out of 3 in · 2 steps", done.stderr)
        self.assertEqual((self.directory / "events.json").read_text(), events)

    def test_totals(self):
        path = self.write("trace.jsonl", TRACE)
        totals = json.loads(self.succeed("trace", "--json", path).stdout)
        self.assertEqual({key: totals[key] for key in ("model", "requests", "steps", "output_tokens", "seconds")},
                         {"model": "<tiny>", "requests": 1, "steps": 2, "output_tokens": 2, "seconds": 0.002})
        done = self.succeed("trace", path, "--json", "-q", "-o", self.directory / "events.json")
        self.assertEqual((json.loads(done.stdout), done.stderr), (totals, ""))
        self.assertEqual(json.loads((self.directory / "events.json").read_text())["otherData"], totals)

    def test_errors(self):
        cut = self.write("cut.jsonl", TRACE[:-20])
        self.assertIn("cut.jsonl, line 4: ", self.fail_with(1, "trace", cut))
        self.assertIn("nowhere.jsonl: No such file", self.fail_with(1, "trace", "nowhere.jsonl"))
        self.assertIn("standard input: empty", self.fail_with(1, "trace"))
        self.assertIn("No such file", self.fail_with(1, "trace", "-", "-o", "/nowhere/x.json", stdin=TRACE))
        self.assertIn("No space left", self.fail_with(1, "trace", "-", "-o", "/dev/full", stdin=TRACE))
        self.assertIn('unexpected argument "b"', self.fail_with(2, "trace", "a", "b"))
        self.assertIn("unknown option --threads", self.fail_with(2, "trace", cut, "--threads", "1"))

    def test_a_recorded_batch_is_the_same_again_one_by_one(self):
        items = lines(*({"prompt": f"It was {i} o'clock", "max_tokens": 5 + i, "seed": i, **RESTRICTED[i % 3]}
                        for i in range(6)))
        recorded = self.directory / "recorded.jsonl"
        self.succeed("generate", "-m", BUNDLED, "--jsonl", "-q", "--trace", recorded, stdin=items)
        self.assertIn("6 requests replayed one by one", self.succeed("trace", recorded, "--replay").stdout)
        changed = self.write("changed.jsonl", recorded.read_text().replace('"seed":3', '"seed":4'))
        done = run("trace", changed, "--replay")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 requests differ", done.stdout)


if __name__ == "__main__":
    unittest.main()
