"""`train`: a run from data to an adapter; what is wrong with data; interrupted, killed and resumed runs."""
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import unittest

from program import BINARY, BUNDLED, ProgramTest, environment, lines

TEXTS = ["The keeper of the lighthouse counted his steps, as he did every evening.",
         "A dog slept on the stairs, and nobody dared to wake it.",
         "It rained for nine days, and on the tenth the river came into the kitchen.",
         "She wrote her name in the dust of the piano and went away."]
SHORT = ["--max-seq-length", "64", "--batch-size", "2", "--iters", "12", "--learning-rate", "1e-2", "--lora-rank", "4",
         "--steps-per-report", "2", "--steps-per-eval", "6", "--save-every", "4", "--valid-fraction", "0.25", "-t", "2"]


class TrainTest(ProgramTest):
    def data(self, count=24):
        return self.write("data.jsonl", lines(*({"text": TEXTS[i % len(TEXTS)]} for i in range(count))))

    def train(self, data, output, *more, **options):
        return self.succeed("train", "-m", BUNDLED, "--data", data, "-o", output, *SHORT, *more, **options)

    def kinds(self):
        """Both kinds of fine-tuning: the options of a short run, and the file of what it trains."""
        return {"lora": (["-m", BUNDLED, *SHORT], "adapter_model.safetensors"),
                "full": (["-m", self.tiny_model(), *SHORT, *self.FULL, "--from-scratch"], "model.safetensors")}

    @staticmethod
    def begin(*run):
        """A run in the background, with a report and a checkpoint at every step."""
        return subprocess.Popen([BINARY, "train", *map(str, run), "--steps-per-report", "1", "--save-every", "1"],
                                stderr=subprocess.PIPE, text=True, env=environment())

    @staticmethod
    def wait_for(process, text):
        seen = []
        for line in process.stderr:
            seen.append(line)
            if text in line:
                return
        raise AssertionError("".join(seen))

    def test_a_run_learns_and_leaves_all_its_files(self):
        out = self.directory / "run"
        done = self.train(self.data(), out)
        self.assertIn("24 examples (texts)", done.stderr)
        self.assertIn("done after 12 steps", done.stderr)
        points = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([point["step"] for point in points], [0, 2, 4, 6, 8, 10, 12])
        self.assertLess(points[-1]["loss"], 0.8 * points[1]["loss"])
        self.assertLess(points[-1]["validation_loss"], 0.8 * points[0]["validation_loss"])
        config = json.loads((out / "adapter_config.json").read_text())
        self.assertEqual((config["peft_type"], config["r"], config["lora_alpha"]), ("LORA", 4, 16))
        self.assertEqual(sorted(path.name for path in out.glob("checkpoint-*")), ["checkpoint-000008", "checkpoint-000012"])

    def test_a_resumed_run_has_the_bits_of_an_unbroken_one(self):
        data = self.data()
        for kind, (run, result) in self.kinds().items():
            with self.subTest(kind):
                whole, broken = self.directory / f"{kind}-whole", self.directory / f"{kind}-broken"
                self.succeed("train", *run, "--data", data, "-o", whole)
                process = self.begin(*run, "--data", data, "-o", broken)
                self.wait_for(process, "step 3 of")
                process.send_signal(signal.SIGINT)
                message = process.stderr.read()
                process.stderr.close()
                self.assertEqual(process.wait(), 130, message)
                self.assertIn("--resume continues from it", message)
                saved = max(broken.glob("checkpoint-*"))
                self.assertIn(f"step {int(saved.name[-6:])} is saved", message)
                self.assertTrue((saved / result).exists())
                self.assertFalse((broken / result).exists())
                process = self.begin(*run, "--data", data, "-o", broken, "--resume")
                self.wait_for(process, "step 7 of")
                process.kill()
                process.stderr.close()
                process.wait()
                # Other threads and micro-batches of the same steps.
                done = self.succeed("train", *run, "--data", data, "-o", broken, "--resume", "-t", "1", "--batch-size",
                                    "1", "--grad-accumulation-steps", "2")
                self.assertIn("continuing after step", done.stderr)
                self.assertEqual((broken / result).read_bytes(), (whole / result).read_bytes())

    def test_ranks_and_alphas_may_differ_by_module(self):
        data, out = self.data(), self.directory / "run"
        patterns = ["--rank-pattern", "q_proj=16", "--rank-pattern", r"layers\.[01]\.mlp\..*=2", "--alpha-pattern",
                    "self_attn.q_proj=64", "--target-modules", "q_proj,v_proj,up_proj"]
        self.train(data, out, *patterns, "--iters", "4")
        config = json.loads((out / "adapter_config.json").read_text())
        sizes, _ = self.tensors(out / "adapter_model.safetensors")
        for name, rank, alpha in (("layers.0.self_attn.q_proj", 16, 64), ("layers.0.self_attn.v_proj", 4, 16),
                                  ("layers.1.mlp.up_proj", 2, 16), ("layers.2.mlp.up_proj", 4, 16)):
            self.assertEqual(sizes[f"base_model.model.model.{name}.lora_A.weight"][0], rank, name)
            self.assertEqual(config["rank_pattern"].get(f"model.{name}", config["r"]), rank, name)
            self.assertEqual(config["alpha_pattern"].get(f"model.{name}", config["lora_alpha"]), alpha, name)
        more = ["train", "-m", BUNDLED, "--data", data, "-o", out, *SHORT, "--iters", "6", "--resume"]
        self.assertIn("rank_pattern", self.fail_with(1, *more, *patterns[4:]))
        self.succeed(*more, *patterns)
        self.assertIn("q_prj", self.fail_with(1, *more, "--rank-pattern", "q_prj=4"))

    @staticmethod
    def tensors(path):
        """The shapes in a safetensors file by name, and its metadata."""
        text = path.read_bytes()
        header = json.loads(text[8:8 + int.from_bytes(text[:8], "little")])
        metadata = header.pop("__metadata__", {})
        return {name: tensor["shape"] for name, tensor in header.items()}, metadata

    def test_a_config_file_of_mlx_lm_is_a_run(self):
        data = self.directory / "data"
        data.mkdir()
        (data / "train.jsonl").write_text(self.data().read_text())
        out = self.directory / "adapters"
        config = self.write("lora_config.yaml", f"""# As mlx_lm.lora -c reads it.
model: "{BUNDLED}"
train: true
fine_tune_type: lora
optimizer: adamw
data: "{data}"
seed: 0
num_layers: 2
batch_size: 2
iters: 4
val_batches: 25
learning_rate: 1e-3
steps_per_report: 2
steps_per_eval: 200
resume_adapter_file: null
adapter_path: "{out}"
save_every: 100
test: false
test_batches: 100
max_seq_length: 64
grad_checkpoint: false
lora_parameters:
  keys: ["self_attn.q_proj", "self_attn.v_proj"]
  rank: 8
  scale: 20.0
  dropout: 0.0
""")
        config.write_text(config.read_text() + "lr_schedule:\n  name: cosine_decay\n  warmup: 2\n  warmup_init: 1e-4\n"
                          "  arguments: [1e-3, 2, 1e-5]\n")
        self.succeed("train", "--config", config, "-t", "2", "--steps-per-report", "1")
        points = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        rates = [point["learning_rate"] for point in points if point.get("loss") is not None]
        for rate, expected in zip(rates, (1e-4, 5.5e-4, 1e-3, 1e-3), strict=True):  # mlx's
            self.assertAlmostEqual(rate, expected, delta=1e-9)
        written = json.loads((out / "adapter_config.json").read_text())
        self.assertEqual((written["r"], written["lora_alpha"]), (8, 160))
        self.assertEqual(sorted(written["target_modules"]), [f"model.layers.{layer}.self_attn.{name}_proj"
                                                             for layer in (4, 5) for name in "qv"])
        config.write_text("iters: 4\nlearning_rate: fast\n")
        self.assertIn("lora_config.yaml:2: learning_rate: found", self.fail_with(2, "train", "--config", config))

    def test_chats_and_completions_are_learnt(self):
        chats = self.write("chats.jsonl", lines(*({"messages": [{"role": "user", "content": "Where is it?"},
                                                                {"role": "assistant", "content": text}]}
                                                  for text in TEXTS * 3)))
        out = self.train(chats, self.directory / "chats", "--mask-prompt", "--iters", "2").stderr
        self.assertIn("12 examples (chats)", out)
        pairs = self.write("pairs.jsonl", lines(*({"prompt": "Go on: ", "completion": text} for text in TEXTS * 3)))
        self.assertIn("12 examples (prompts and completions)",
                      self.train(pairs, self.directory / "pairs", "--iters", "2").stderr)

    def test_a_dry_run_writes_nothing(self):
        done = self.succeed("train", "-m", BUNDLED, "--data", self.data(), "--dry-run", *SHORT)
        self.assertRegex(done.stdout, r"one step: \d+ tokens learnt, [\d.]+ s, loss [\d.]+\n12 steps: about .*, at most")

    def test_what_is_wrong_is_named_before_training(self):
        out = self.directory / "run"
        bad = self.write("bad.jsonl", lines({"text": "good"}, {"text": 7}, {"txt": "no"}))
        done = self.fail_with(1, "train", "-m", BUNDLED, "--data", bad, "-o", out)
        self.assertIn("bad.jsonl:2: text", done)
        self.assertIn("bad.jsonl:3", done)
        self.assertFalse(out.exists())
        self.assertIn("--data", self.fail_with(2, "train", "-m", BUNDLED, "-o", out))
        self.assertIn("--output", self.fail_with(2, "train", "-m", BUNDLED, "--data", self.data()))
        out.mkdir()
        (out / "notes.txt").write_text("mine")
        self.assertIn("--resume", self.fail_with(1, "train", "-m", BUNDLED, "--data", self.data(), "-o", out, *SHORT))
        self.assertEqual((out / "notes.txt").read_text(), "mine")

    def test_other_rows_are_learnt_or_refused_by_name(self):
        turns = [{"from": "human", "value": "Where is it?"}, {"from": "gpt", "value": TEXTS[0]}]
        rows = {"chats of ShareGPT": {"conversations": turns},
                "instructions of Alpaca": {"instruction": "Where is it?", "input": "", "output": TEXTS[0]}}
        for name, row in rows.items():
            data = self.write("rows.json", json.dumps([row] * 8, indent=1))
            done = self.succeed("train", "-m", BUNDLED, "--data", data, "--dry-run", *SHORT, "--mask-prompt")
            self.assertIn(f"8 examples ({name})", done.stderr)
        judged = {"judged answer": {"prompt": "Where?", "completion": "Nowhere.", "label": False},
                  "preference": {"prompt": "Where?", "chosen": "There.", "rejected": "Nowhere."}}
        for name, row in judged.items():
            data = self.write("judged.jsonl", lines(row))
            self.assertIn(f"judged.jsonl:1: found a {name}", self.fail_with(1, "train", "--data", data, "--dry-run"))
        table = self.write("rows.csv", "prompt,completion\nWhere?,There.\n")
        error = self.fail_with(1, "train", "--data", table, "--dry-run")
        self.assertIn("rows.csv: found a table (CSV), expected JSON Lines", error)
        command = re.search(r'python3 -c "(.*)" writes', error).group(1)
        made = subprocess.run([sys.executable, "-c", command], input=table.read_text(), capture_output=True, text=True)
        self.assertEqual(json.loads(made.stdout), {"prompt": "Where?", "completion": "There."})

    def test_epochs_are_steps(self):
        short = [option for pair in zip(SHORT[::2], SHORT[1::2]) if pair[0] != "--iters" for option in pair]
        run = ["train", "-m", BUNDLED, "--data", self.data(), *short, "--no-packing", "--dry-run"]
        # 18 of 24 examples are learnt, two a step.
        done = self.succeed(*run, "--epochs", "1.5")
        self.assertIn("1.5 epochs: 14 steps", done.stderr)
        self.assertIn("\n14 steps: about", done.stdout)
        self.assertIn("--epochs and --iters exclude each other", self.fail_with(2, *run, "--epochs", "1", "--iters", "9"))

    def test_options_that_a_run_would_not_obey_are_refused(self):
        run = ["train", "-m", BUNDLED, "--data", self.data(), "--dry-run", *SHORT]
        self.assertIn("--load-format dummy would train beside random weights: leave it out, or give --from-scratch",
                      self.fail_with(2, *run, "--load-format", "dummy"))

    def test_a_run_of_other_options_is_not_resumed(self):
        data, out = self.data(), self.directory / "run"
        self.train(data, out)
        done = self.fail_with(1, "train", "-m", BUNDLED, "--data", data, "-o", out, *SHORT, "--resume", "--seed", "9")
        self.assertIn("the run was begun with seed 0, found 9", done)
        more = ["train", "-m", BUNDLED, *SHORT, "--iters", "14", "--resume"]
        done = self.fail_with(1, *more, "--data", data, "-o", out, "--optimizer", "muon")
        self.assertIn('the run was begun without optimizer, found "muon"', done)
        done = self.fail_with(1, *more, "--data", data, "-o", out, "--quantize", "q8")
        self.assertIn('the run was begun with quantize "none", found "q8"', done)
        # As many examples and tokens as before.
        other = self.write("other.jsonl", data.read_text().replace("every evening", "every river"))
        self.assertIn("the run was begun with data", self.fail_with(1, *more, "--data", other, "-o", out))
        model = self.directory / "changed"
        shutil.copytree(BUNDLED, model)
        weights = bytearray((model / "model.safetensors").read_bytes())
        weights[-2] ^= 1
        (model / "model.safetensors").write_bytes(weights)
        done = self.fail_with(1, *more, "-m", model, "--data", data, "-o", out)
        self.assertIn("the run was begun with weights", done)
        self.succeed(*more, "--data", data, "-o", out)

    def test_one_process_trains_in_a_directory(self):
        data, out = self.data(), self.directory / "run"
        run = ["-m", BUNDLED, *SHORT, "--data", data, "-o", out]
        process = self.begin(*run, "--iters", "10000")
        self.wait_for(process, "step 2 of")
        self.assertIn("another `paceline train` is writing to it", self.fail_with(1, "train", *run, "--resume"))
        process.kill()
        process.stderr.close()
        process.wait()
        # What a process that was killed while it saved leaves.
        unfinished = out / ".checkpoint-000011.12345.partial"
        unfinished.mkdir(exist_ok=True)
        (unfinished / "optimizer.safetensors").write_bytes(b"half")
        self.succeed("train", *run, "--resume")
        self.assertEqual([path.name for path in out.iterdir() if path.name.startswith(".")], [])
        file = self.write("a_file", "x")
        done = self.fail_with(1, "train", *run[:-1], file)
        self.assertIn("a_file: found a file, expected a directory to write to", done)

    def tiny_model(self):
        """A config and the bundled tokenizer, no weights."""
        model = self.directory / "tiny"
        model.mkdir()
        for path in BUNDLED.iterdir():
            if path.name not in ("config.json", "model.safetensors"):
                (model / path.name).write_bytes(path.read_bytes())
        config = json.loads((BUNDLED / "config.json").read_text())
        config.update(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
                      num_key_value_heads=1, head_dim=32, layer_types=["full_attention"] * 2)
        (model / "config.json").write_text(json.dumps(config))
        return model

    def tiny_mixture(self):
        """Random weights, a layer with four experts and a dense one."""
        model = self.tiny_model()
        config = json.loads((model / "config.json").read_text())
        config.update(model_type="qwen3_moe", architectures=["Qwen3MoeForCausalLM"], moe_intermediate_size=32, num_experts=4,
                      num_experts_per_tok=2, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[1])
        (model / "config.json").write_text(json.dumps(config))
        shapes = {"embed_tokens": [4099, 64], "norm": [64]}
        for layer in ("layers.0.", "layers.1."):
            shapes |= {layer + name: [64] for name in ("input_layernorm", "post_attention_layernorm")}
            shapes |= {f"{layer}self_attn.{name}_norm": [32] for name in "qk"}
            shapes |= {f"{layer}self_attn.{name}_proj": [rows, 64] for name, rows in zip("qkvo", (64, 32, 32, 64))}
        experts = {f"layers.0.mlp.experts.{i}.": 32 for i in range(4)}
        for prefix, inner in {**experts, "layers.1.mlp.": 96}.items():
            shapes |= {prefix + "gate_proj": [inner, 64], prefix + "up_proj": [inner, 64], prefix + "down_proj": [64, inner]}
        shapes["layers.0.mlp.gate"] = [4, 64]
        draw, header, data = random.Random(5), {}, b""
        for name, shape in shapes.items():
            count = math.prod(shape)
            values = [1.0] * count if "norm" in name else [draw.uniform(-0.2, 0.2) for _ in range(count)]
            header[f"model.{name}.weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
            data += struct.pack(f"<{count}f", *values)
        text = json.dumps(header).encode()
        (model / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
        return model

    def test_a_mixture_learns_beside_its_frozen_experts(self):
        model, data, out = self.tiny_mixture(), self.data(), self.directory / "run"
        run = ["train", "-m", model, "--data", data, *SHORT, "--learning-rate", "3e-2"]
        self.succeed(*run, "-o", out)
        points = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        self.assertLess(points[-1]["loss"], 0.9 * points[1]["loss"])
        modules = [f"layers.{layer}.self_attn.{name}_proj" for layer in (0, 1) for name in "qkvo"]
        modules += [f"layers.1.mlp.{name}_proj" for name in ("gate", "up", "down")]
        self.assertEqual(sorted(json.loads((out / "adapter_config.json").read_text())["target_modules"]),
                         sorted(f"model.{name}" for name in modules))
        self.assertNotEqual(self.succeed("score", "-m", model, "-p", TEXTS[0], "--lora", out).stdout,
                            self.succeed("score", "-m", model, "-p", TEXTS[0]).stdout)

    def test_a_mixture_learns_with_all_its_weights(self):
        model, out = self.tiny_mixture(), self.directory / "all"
        self.succeed("train", "-m", model, "--data", self.data(), *SHORT, "--learning-rate", "3e-2", "-o", out,
                     "--fine-tune-type", "full")
        points = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        self.assertLess(points[-1]["loss"], 0.9 * points[1]["loss"])
        self.assertNotEqual(self.succeed("score", "-m", out, "-p", TEXTS[0]).stdout,
                            self.succeed("score", "-m", model, "-p", TEXTS[0]).stdout)

    FULL = ["--fine-tune-type", "full", "--optimizer", "muon", "--learning-rate", "1e-2", "--adamw-learning-rate", "3e-3",
            "--lr-schedule", "wsd", "--warmup-steps", "2"]

    def test_a_model_is_trained_from_scratch_resumed_and_served(self):
        model, whole, broken = self.tiny_model(), self.directory / "whole", self.directory / "broken"
        text = self.write("text.txt", "\n".join(TEXTS * 40))
        run = ["train", "-m", model, "--data", text, *SHORT, *self.FULL, "--from-scratch", "--max-seq-length", "65",
               "--first-token", "<|endoftext|>", "--sequence-lengths", "32:0.5"]
        done = self.succeed(*run, "-o", whole)
        self.assertIn("from scratch, in bfloat16", done.stderr)
        points = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
        self.assertLess(points[-1]["loss"], 0.8 * points[1]["loss"])
        process = subprocess.Popen([BINARY, *map(str, run), "-o", broken, "--steps-per-report", "1", "--save-every", "1"],
                                   stderr=subprocess.PIPE, text=True, env=environment())
        self.wait_for(process, "step 5 of")
        process.kill()
        process.stderr.close()
        process.wait()
        self.succeed(*run, "-o", broken, "--resume", "-t", "1")
        self.assertEqual((broken / "model.safetensors").read_bytes(), (whole / "model.safetensors").read_bytes())
        for name in ("config.json", "tokenizer.json", "chat_template.jinja"):
            self.assertTrue((whole / "checkpoint-000012" / name).exists(), name)
        self.assertIn("bits per byte", self.succeed("perplexity", "-m", whole, "-f", text).stdout)
        # Trained further, from its weights.
        more = self.succeed("train", "-m", whole, "--data", text, "-o", self.directory / "more", *SHORT,
                            "--fine-tune-type", "full", "--learning-rate", "1e-3", "--iters", "2")
        self.assertIn("all 324,224 parameters, in bfloat16", more.stderr)

    def test_what_cannot_be_trained_whole_is_named(self):
        data, out = self.data(), self.directory / "run"
        full = ["--data", data, "-o", out, *SHORT, "--fine-tune-type", "full"]
        self.assertIn("plain float32 or bfloat16", self.fail_with(1, "train", "-m", BUNDLED, *full, "--quantize", "q4"))
        self.assertIn("--dtype bfloat16", self.fail_with(1, "train", "-m", BUNDLED, *full, "--dtype", "float16"))
        self.assertIn("--use-rslora goes with LoRA", self.fail_with(2, "train", "-m", BUNDLED, *full, "--use-rslora"))
        self.assertIn("--fine-tune-type full", self.fail_with(2, "train", "-m", BUNDLED, "--data", data, "-o", out,
                                                              "--from-scratch"))
        self.assertIn("--optimizer muon", self.fail_with(2, "train", "-m", BUNDLED, *full, "--adamw-learning-rate", "1"))
        self.assertIn("--sequence-lengths: found", self.fail_with(2, "train", "-m", BUNDLED, *full, "--sequence-lengths",
                                                                  "256"))
        self.assertIn("--first-token", self.fail_with(1, "train", "-m", BUNDLED, *full, "--first-token", "<none>"))
        self.assertFalse(out.exists())

    def test_a_full_disk_loses_only_the_steps_since_the_last_checkpoint(self):
        data = self.data()
        for kind, (run, result) in self.kinds().items():
            if kind == "lora" and os.environ.get("PACELINE_TEST_SCALE") != "full":
                continue  # ten times the time of the other, for checkpoints that are written alike
            with self.subTest(kind):
                whole, out = self.directory / f"{kind}-whole", self.directory / f"{kind}-run"
                # A rate that depends on the last step would be another run.
                run = ["train", *run, "--data", data, "--lr-schedule", "constant"]
                self.succeed(*run, "-o", whole)
                self.succeed(*run, "-o", out, "--iters", "4")
                limit = max(path.stat().st_size for path in (out / "checkpoint-000004").iterdir()) // 2

                def limited(limit=limit):
                    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

                done = subprocess.run([BINARY, *map(str, run), "-o", out, "--resume"], capture_output=True, text=True,
                                      preexec_fn=limited, env=environment())
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("step 4 is saved", done.stderr)
                self.assertEqual([path.name for path in out.glob("checkpoint-*")], ["checkpoint-000004"])
                self.succeed(*run, "-o", out, "--resume")
                self.assertEqual((out / result).read_bytes(), (whole / result).read_bytes())


if __name__ == "__main__":
    unittest.main()
