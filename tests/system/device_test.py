"""`--device`: what it refuses, and a GPU's emulation beside the CPU."""
import concurrent.futures
import json
import os
import re
import unittest

from adapter_files import MODEL, PROMPT, write_adapter
from program import BUNDLED, IS_SANITIZED, ProgramTest, lines
from serving import Client, Server

EMULATION = {"PACELINE_CUDA_EMULATION": "1"}
DRAFT = BUNDLED.parent / "paceline-draft-1m"
ROUNDING = 0.02  # of bfloat16, in log-probabilities of the bundled model


def mebibytes(text, pattern):
    return int(re.search(pattern, text)[1])


class DeviceTest(ProgramTest):
    def test_unknown_devices_are_refused(self):
        for name in ["gpu", "cuda:", "cuda:x", "cuda:-1", "CUDA"]:
            message = self.fail_with(1, "generate", "-m", BUNDLED, "--device", name, "-p", "Hello")
            self.assertIn(f'--device: "{name}", expected auto, cpu, cuda or cuda:N', message)

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has a GPU")
    def test_a_machine_without_a_gpu_says_so(self):
        message = self.fail_with(1, "generate", "-m", BUNDLED, "--device", "cuda", "-p", "Hello")
        self.assertIn("GPU", message)

    def test_what_a_gpu_cannot_have_is_refused(self):
        error = self.fail_with(1, "generate", "-m", BUNDLED, "--device", "cuda", "--weights-cache", self.directory / "w", "-p",
                               "Hello", env=EMULATION)
        self.assertIn("--weights-cache: holds weights for the CPU", error)

    def test_blocks_that_another_kernel_would_read_are_refused(self):
        command = ["generate", "-m", MODEL, "--prompt-ids", "1,2", "-n", "1", "--device", "cuda", "--dtype", "bfloat16"]
        for size, dtype, least in [(4, "bfloat16", 8), (24, "bfloat16", 8), (8, "int8", 16)]:
            error = self.fail_with(1, *command, "--block-size", size, "--kv-cache-dtype", dtype, env=EMULATION)
            self.assertIn(f"--block-size: {size}, but GPUs read keys and values in {dtype} in blocks of a power of two of at "
                          f"least {least} tokens", error)

    @unittest.skipIf(IS_SANITIZED, "the emulation is slow")
    def test_auto_takes_a_gpu_that_is_there_and_says_so(self):
        options = ["generate", "-m", BUNDLED, "-p", "Hello", "-n", "1", "--kv-cache-memory", "1M"]
        found = "the GPU computes: --device auto found emulation"
        self.assertIn(found, self.succeed(*options, env=EMULATION).stderr)
        self.assertNotIn("computes:", self.succeed(*options, "--device", "cpu", env=EMULATION).stderr)
        self.assertIn("the CPU computes: --device auto: emulation: the model needs at least",
                      self.succeed(*options, "--gpu-memory-utilization", "0.001", env=EMULATION).stderr)

    def test_a_gpu_has_all_layers_or_none(self):
        options = ["generate", "-m", BUNDLED, "--device", "cuda", "-p", "Hello", "-n", "1", "-q"]
        error = self.fail_with(1, *options, "-ngl", "5", env=EMULATION)
        self.assertIn("--gpu-layers: 5 of the model's 6 layers; a GPU computes all of them, or none (0)", error)
        self.assertEqual(self.succeed(*options, "-ngl", "0").stderr, "")

    @unittest.skipIf(IS_SANITIZED, "the emulation is slow")
    def test_keys_and_values_leave_room_for_activations_and_a_draft_model(self):
        """More sequences than the emulation's GiB holds."""
        options = ["generate", "-m", BUNDLED, "--device", "cuda", "-p", "Hi", "-n", "1", "--max-num-seqs", "20000", "-b", "512", "-v"]
        errors = self.succeed(*options, "--gpu-memory-utilization", "1", env=EMULATION).stderr
        self.assertLess(mebibytes(errors, r"keys and values (\d+) MiB"), 31 / 32 * 1024 - 19)
        self.assertGreater(mebibytes(errors, r"peak memory (\d+) MiB"), 900)
        errors = self.succeed(*options, "--speculative-model", DRAFT, env=EMULATION).stderr
        own = mebibytes(errors, r"memory: .* keys and values (\d+) MiB")
        of_draft = mebibytes(errors, r"draft model: .* keys and values (\d+) MiB")
        self.assertGreater(of_draft, 0.15 * own)  # as many tokens of a quarter of the size
        self.assertGreater(own + of_draft, 850)

    @unittest.skipIf(IS_SANITIZED, "a minute")
    def test_the_emulation_draws_the_tokens_of_the_cpu(self):
        """Up to a tie: sums of a GPU are in another order, so one of two tokens that are alike may come from either."""
        items = [{"prompt": "It was a dark and stormy night", "max_tokens": 6, "temperature": 0, "logprobs": 2},
                 {"prompt": "The", "max_tokens": 4, "temperature": 0, "logprobs": 2}]
        command = ["generate", "-m", BUNDLED, "-t", "1", "--kv-cache-memory", "4M"]
        cpu = self.answers(*command, stdin=lines(*items))
        cuda = self.answers(*command, "--device", "cuda", stdin=lines(*items), env=EMULATION)
        for answer, expected in zip(cuda, cpu, strict=True):
            self.assertEqual(len(answer["logprobs"]), len(expected["logprobs"]))
            for drawn, own in zip(answer["logprobs"], expected["logprobs"]):
                values = {top["id"]: top["logprob"] for top in own["top"]}
                self.assertAlmostEqual(drawn["logprob"], values[drawn["id"]], delta=ROUNDING)
                if drawn["id"] != own["id"]:
                    self.assertLess(own["logprob"] - values[drawn["id"]], ROUNDING)
                    break

    @unittest.skipIf(IS_SANITIZED, "the emulation is slow")
    def test_a_server_on_a_gpu_takes_adapters_while_it_runs(self):
        shelf = self.directory / "shelf"
        shelf.mkdir()
        first, second = (write_adapter(shelf / name, seed) for name, seed in [("a", 1), ("b", 2)])
        words = ["--prompt-ids", ",".join(map(str, PROMPT)), "-n", "8", "--temperature", "0", "--ignore-eos", "-q"]

        def generated(*options, env=None):
            return [int(word) for word in self.succeed("generate", "-m", MODEL, *words, *options, env=env).stdout.split()]
        expected = {"base": generated(), "held": generated("--lora", first), "new": generated("--lora", second)}
        self.assertEqual(len({tuple(ids) for ids in expected.values()}), 3)
        self.assertEqual(generated("--lora", first, "--device", "cuda", env=EMULATION), expected["held"])

        server = Server("--device", "cuda", "--lora", f"held={first}", "--allow-runtime-lora", "--lora-directory", shelf,
                        "--api-key", "k", "--served-model-name", "base", "--kv-cache-memory", "1M", model=MODEL, env=EMULATION)
        self.addCleanup(server.stop)
        client = Client(server.port, key="k")

        def ask(name):
            answer = client.post("/v1/completions", {"model": name, "prompt": PROMPT, "max_tokens": 8, "temperature": 0,
                                                     "ignore_eos": True, "return_token_ids": True})
            return answer.json["choices"][0]["token_ids"] if answer.status == 200 else answer.body
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = [(name, pool.submit(ask, name)) for name in ["held", "base"] * 4]
            load = {"lora_name": "new", "lora_path": "b"}
            for _ in range(3):  # beside the engine
                self.assertEqual(client.post("/v1/load_lora_adapter", load).status, 200)
                self.assertEqual(ask("new"), expected["new"])
                self.assertEqual(client.post("/v1/unload_lora_adapter", {"lora_name": "new"}).status, 200)
            for name, answer in running:
                self.assertEqual(answer.result(), expected[name])


    def test_what_a_gpu_cannot_train_is_refused(self):
        data = self.write("data.txt", "It was a dark and stormy night. " * 20)
        command = ["train", "-m", DRAFT, "--data", data, "-o", self.directory / "run", "--device", "cuda"]
        for options, says in [(["--fine-tune-type", "full"], "leave --fine-tune-type full out"),
                              (["--optimizer", "muon"], "--optimizer muon")]:
            error = self.fail_with(1, *command, *options, env=EMULATION)
            self.assertIn("train: cuda/emulation trains", error)
            self.assertIn(says, error)
        self.assertFalse((self.directory / "run").exists())

    @unittest.skipUnless(os.environ.get("PACELINE_TEST_SCALE") == "full", "the emulation is slow")
    def test_a_run_on_a_gpu_is_near_the_cpus_and_resumed_there(self):
        data = self.write("data.txt", "It was a dark and stormy night, and the rain fell in torrents. " * 40)
        command = ["train", "-m", DRAFT, "--data", data, "--batch-size", "1", "--max-seq-length", "64", "--steps-per-report", "1",
                   "--learning-rate", "1e-3"]

        def losses(output, iters, *options):
            self.succeed(*command, "-o", output, "--iters", iters, *options, env=EMULATION)
            points = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
            return [point["loss"] for point in points if "loss" in point]
        cpu = losses(self.directory / "cpu", 3)
        self.assertEqual(len(losses(self.directory / "gpu", 2, "--device", "cuda")), 2)
        for loss, expected in zip(losses(self.directory / "gpu", 3, "--resume"), cpu, strict=True):
            self.assertAlmostEqual(loss, expected, delta=ROUNDING)


if __name__ == "__main__":
    unittest.main()
