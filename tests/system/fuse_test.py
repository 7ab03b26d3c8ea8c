"""`paceline fuse`: what it makes of plain, packed and GGUF bases, what it refuses, and what interruptions leave."""
import json
import random
import shutil
import signal
import struct
import subprocess
import time
import unittest

import program
from gguf_files import convert, floats, read_safetensors, text_config
from program import BINARY, BUNDLED, ROOT, ProgramTest, lines

ADAPTERS = ROOT / "tests/goldens/adapters"
MODELS = ROOT / "tests/goldens/models"
FUSED = ROOT / "tests/goldens/fused"
PACKED = ROOT / "tests/goldens/mlx/model"


def write_adapter(folder, pairs, rank):
    """A PEFT adapter of float32 numbers: {module: (A, B)} with lists of rows."""
    header, data = {}, b""
    for module, matrices in pairs.items():
        for letter, matrix in zip("AB", matrices, strict=True):
            content = b"".join(struct.pack(f"<{len(row)}f", *row) for row in matrix)
            header[f"base_model.model.{module}.lora_{letter}.weight"] = {
                "dtype": "F32", "shape": [len(matrix), len(matrix[0])], "data_offsets": [len(data), len(data) + len(content)]}
            data += content
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "target_modules": sorted({m.split(".")[-1] for m in pairs})}))
    return folder


def numbers(entry):
    dtype, _, content = entry
    return floats(content, dtype)


def text_name(name):
    """A tensor's name without what stands in front of "layers."; other names as they are."""
    return name[name.index("layers."):] if "layers." in name else name


class FuseTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.directory / "out"

    def fuse(self, model, adapter, *options, out=None):
        return self.succeed("fuse", "-m", model, "--lora", adapter, "-o", out or self.out, *options).stderr

    def config(self, folder=None):
        return json.loads(((folder or self.out) / "config.json").read_text())

    def scores(self, model):
        ids = json.loads((MODELS / "llama_plain/golden.json").read_text())["prompt_ids"]
        return self.answers("score", "-m", model, "--kv-cache-dtype", "float32", "--activations", "bfloat16",
                            stdin=lines({"ids": ids}))[0]["logprobs"][1:]

    def distance(self, model, other):
        """The mean difference of two models' log-probabilities."""
        pairs = list(zip(self.scores(model), self.scores(other), strict=True))
        return sum(abs(a - b) for a, b in pairs) / len(pairs)

    def bundled_adapter(self):
        generator = random.Random(3)

        def drawn(rows, columns):
            return [[generator.uniform(-0.1, 0.1) for _ in range(columns)] for _ in range(rows)]

        return write_adapter(self.directory / "adapter", {f"model.layers.{i}.mlp.down_proj": (drawn(4, 896), drawn(384, 4))
                                                          for i in range(6)}, 4)

    def left(self):
        return sorted(path.name for path in self.directory.iterdir() if path.name != "adapter")

    def test_a_plain_base(self):
        said = self.fuse(MODELS / "llama_plain", ADAPTERS / "peft_llama")
        self.assertRegex(said, r"out: 9 matrices fused, [\d,]+ parameters, [\d.]+ KiB of weights\n$")
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         sorted({"model.safetensors", *(path.name for path in (MODELS / "llama_plain").glob("*.json"))}))
        self.assertEqual(self.config(), json.loads((MODELS / "llama_plain/config.json").read_text()))
        base, fused = read_safetensors(MODELS / "llama_plain"), read_safetensors(self.out)
        golden = read_safetensors(FUSED / "peft_llama")
        self.assertEqual(sorted(fused), sorted(base))
        for name, entry in fused.items():
            if name not in golden:
                self.assertEqual(entry, base[name], name)
                continue
            pairs = list(zip(numbers(entry), numbers(golden[name]), strict=True))
            self.assertLess(max(abs(ours - theirs) for ours, theirs in pairs), 1e-6, name)
        self.assertNotEqual(self.scores(self.out), self.scores(MODELS / "llama_plain"))
        self.assertEqual(self.fuse(MODELS / "llama_plain", ADAPTERS / "mlx_llama", "-q", out=self.directory / "mlx"), "")
        self.fuse(MODELS / "llama_plain", ADAPTERS / "llama.gguf", out=self.directory / "gguf")
        self.assertEqual(self.left(), ["gguf", "mlx", "out"])

    def test_a_packed_base(self):
        """With float32 the values of every matrix can be compared: another adapter leaves them as they are."""
        self.fuse(PACKED, ADAPTERS / "peft_llama", "--dtype", "float32")
        self.fuse(PACKED, ADAPTERS / "peft_llama_head", "--dtype", "float32", out=self.directory / "other")
        fused, other = read_safetensors(self.out), read_safetensors(self.directory / "other")
        self.assertNotIn("quantization", self.config())
        self.assertNotIn("quantization_config", self.config())
        self.assertEqual({entry[0] for entry in fused.values()}, {"F32"})
        shown = json.loads(self.succeed("adapter", ADAPTERS / "peft_llama", "--json").stdout)["pairs"]
        stored = read_adapter_tensors(ADAPTERS / "peft_llama")
        for pair in shown:
            name = f"model.{pair['module']}.weight"
            a, b = (numbers(stored[f"base_model.model.model.{pair['module']}.lora_{letter}.weight"]) for letter in "AB")
            base, found, width = numbers(other[name]), numbers(fused[name]), pair["in"]
            rank = len(a) // width
            for i, value in enumerate(found):
                row, column = divmod(i, width)
                delta = sum(b[row * rank + r] * a[r * width + column] for r in range(rank))
                self.assertAlmostEqual(value, base[i] + pair["scale"] * delta, delta=2e-6)
        unchanged = set(fused) - {f"model.{pair['module']}.weight" for pair in shown} - {
            name for name in fused if "k_proj" in name or "lm_head" in name}
        self.assertGreater(len(unchanged), 10)
        for name in unchanged:
            self.assertEqual(fused[name], other[name], name)

        mixed = self.directory / "mixed"
        self.fuse(PACKED, ADAPTERS / "peft_llama", out=mixed)
        written, base = read_safetensors(mixed), read_safetensors(PACKED)
        quantization = self.config(mixed)["quantization"]
        self.assertEqual(quantization["bits"], 4)
        for pair in shown:
            before = base[f"model.{pair['module']}.weight"][0]  # one of them isn't packed
            self.assertEqual(written[f"model.{pair['module']}.weight"][0], "BF16" if before == "U32" else before)
            self.assertIs(quantization["model." + pair["module"]], False)
        kept = [name for name in written if written[name][0] == "U32"]
        self.assertGreater(len(kept), 5)
        for name in kept:
            self.assertEqual(written[name], base[name])
        self.assertLess(self.distance(mixed, self.out), 0.1)
        self.assertGreater(self.distance(PACKED, self.out), 0.3)

        again = self.directory / "again"
        said = self.fuse(PACKED, ADAPTERS / "peft_llama", "--bits", "8", "--group-size", "32", out=again)
        self.assertRegex(said, r"again: 9 matrices fused, [\d,]+ parameters, [\d,]+ of them quantised, ")
        self.assertEqual(self.config(again)["quantization"]["bits"], 8)
        self.assertEqual(read_safetensors(again)["model.layers.0.self_attn.q_proj.weight"][0], "U32")
        self.assertLess(self.distance(again, self.out), 0.1)

    def test_a_gguf_base_is_the_same_as_its_directory(self):
        for name, adapter in (("llama_plain", "peft_llama"), ("gemma3_language_model_prefix", "peft_gemma3")):
            with self.subTest(name):
                gguf = convert(MODELS / name, self.directory / f"{name}.gguf", text_config(MODELS / name))
                self.fuse(gguf, ADAPTERS / adapter, out=self.directory / f"{name}-gguf")
                self.fuse(MODELS / name, ADAPTERS / adapter, out=self.directory / f"{name}-directory")
                of_gguf = read_safetensors(self.directory / f"{name}-gguf")
                of_directory = {text_name(key): value
                                for key, value in read_safetensors(self.directory / f"{name}-directory").items()
                                if "vision" not in key and "projector" not in key}
                self.assertEqual(len(of_gguf), len(of_directory))
                compared = 0
                for key, entry in of_gguf.items():
                    if "layers." not in key:
                        continue
                    compared += 1
                    other = of_directory[text_name(key)]
                    if not key.endswith("norm.weight"):
                        self.assertEqual(entry, other, key)
                        continue
                    for ours, theirs in zip(numbers(entry), numbers(other), strict=True):
                        self.assertAlmostEqual(ours, theirs, delta=1e-6)  # w of a rounded 1 + w
                self.assertGreater(compared, 20)

    def test_a_quantised_gguf_base(self):
        gguf = convert(MODELS / "llama_plain", self.directory / "q8.gguf", text_config(MODELS / "llama_plain"), quantized=True)
        plain = self.directory / "plain"
        self.succeed("convert", "-m", gguf, "-o", plain, "-q")
        self.fuse(plain, ADAPTERS / "peft_llama", out=self.directory / "two-steps")
        self.fuse(gguf, ADAPTERS / "peft_llama", "--dtype", "float32")
        two_steps = read_safetensors(self.directory / "two-steps")
        self.assertEqual(read_safetensors(self.out), two_steps)
        self.assertEqual(self.config()["dtype"], "float32")
        rounded = self.directory / "rounded"
        self.fuse(gguf, ADAPTERS / "peft_llama", out=rounded)
        self.assertEqual(self.config(rounded)["dtype"], "bfloat16")
        written = read_safetensors(rounded)
        self.assertEqual({entry[0] for name, entry in written.items() if name.endswith("proj.weight")}, {"BF16"})
        for name, entry in written.items():
            for ours, exact in zip(numbers(entry), numbers(two_steps[name]), strict=True):
                self.assertAlmostEqual(ours, exact, delta=abs(exact) / 256)
        packed = self.directory / "packed"
        self.fuse(gguf, ADAPTERS / "peft_llama", "--bits", "8", "--group-size", "32", out=packed)
        for other in (packed, rounded):
            self.assertLess(self.distance(other, self.out), 0.1)
        self.assertGreater(self.distance(gguf, self.out), 0.3)

    def test_tokenizer_and_templates_are_copied(self):
        self.fuse(BUNDLED, self.bundled_adapter())
        for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
            self.assertEqual((self.out / name).read_bytes(), (BUNDLED / name).read_bytes())
        self.assertEqual(self.config(), json.loads((BUNDLED / "config.json").read_text()))

        def written(model):
            return self.succeed("generate", "-m", model, "-p", "Once upon a time", "-n", "24", "--temp", "0", "-q").stdout

        self.assertNotEqual(written(self.out), written(BUNDLED))

    def test_refusals(self):
        base, adapter = MODELS / "llama_plain", ADAPTERS / "peft_llama"
        self.assertIn("give --lora PATH", self.fail_with(2, "fuse", "-m", base, "-o", self.out))
        self.assertIn("give --output DIR", self.fail_with(2, "fuse", "-m", base, "--lora", adapter))
        command = ("fuse", "-o", self.out, "--lora")
        self.assertIn("give --bits too", self.fail_with(2, *command, adapter, "-m", base, "--group-size", "32"))
        self.assertIn("--bits: found", self.fail_with(2, *command, adapter, "-m", base, "--bits", "7"))
        self.assertIn("whole groups of 128",
                      self.fail_with(1, *command, adapter, "-m", base, "--bits", "4", "--group-size", "128"))
        self.assertIn("nowhere", self.fail_with(1, *command, self.directory / "nowhere", "-m", base))
        message = self.fail_with(1, *command, ADAPTERS / "peft_gemma3", "-m", base)
        self.assertIn("peft_gemma3/adapter_model.safetensors", message)
        self.assertIn("layers.0.self_attn.o_proj", message)
        damaged = self.directory / "adapter"
        shutil.copytree(base, damaged)
        content = (damaged / "model.safetensors").read_bytes()
        (damaged / "model.safetensors").write_bytes(content[:-100])
        self.assertIn("model.safetensors", self.fail_with(1, *command, adapter, "-m", damaged))
        self.assertEqual(self.left(), [])
        self.out.mkdir()
        self.assertIn("out: exists already", self.fail_with(1, *command, adapter, "-m", base))
        self.assertEqual(list(self.out.iterdir()), [])

    def test_a_full_disk_leaves_nothing(self):
        # A limit on the size of files simulates a full disk; its signal is ignored.
        script = 'trap "" XFSZ; ulimit -f 8; exec "$@"'
        command = [BINARY, "fuse", "-m", BUNDLED, "--lora", self.bundled_adapter(), "-o", self.out]
        done = subprocess.run(["bash", "-c", script, "bash", *map(str, command)], capture_output=True, text=True,
                              timeout=program.TIMEOUT, env=program.environment())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"paceline: .*model.safetensors.*File too large")
        self.assertEqual(self.left(), [])

    def test_an_interruption_leaves_a_whole_model_or_nothing(self):
        command = [BINARY, "fuse", "-m", BUNDLED, "--lora", self.bundled_adapter(), "-o", self.out, "--bits", "8", "-t", "1"]
        found, explained = set(), 0
        for seconds in [0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5]:
            for number in (signal.SIGINT, signal.SIGTERM):
                child = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, env=program.environment(), text=True)
                time.sleep(seconds)
                child.send_signal(number)
                _, errors = child.communicate(timeout=program.TIMEOUT)
                self.assertIn(child.returncode, [0, 128 + number, -number], errors)
                # A signal may come between the last write and the exit: the model is whole then, and the program says so.
                whole = child.returncode == 0 or errors.endswith("is complete\n")
                self.assertEqual(self.left(), ["out"] if whole else [], (seconds, number, errors))
                if child.returncode > 0 and not whole:
                    # Before it knows what it would write, there is nothing to say of that.
                    self.assertRegex(errors, r"^paceline: interrupted(; nothing was written)?\n$")
                    explained += errors.endswith("written\n")
                found.add(child.returncode)
                if whole:
                    self.assertTrue((self.out / "config.json").exists())
                    shutil.rmtree(self.out)
        self.assertTrue(found - {0}, "no signal came in time")
        self.assertGreater(explained, 0)


def read_adapter_tensors(folder):
    with open(folder / "adapter_model.safetensors", "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


if __name__ == "__main__":
    unittest.main()
