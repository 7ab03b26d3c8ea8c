"""A mixture of experts whose weights are larger than the memory that the process may have."""
import json
import os
import random
import struct
import subprocess
import unittest
import uuid
from pathlib import Path

from program import BINARY, IS_SANITIZED, ProgramTest, environment

HIDDEN, INNER, EXPERTS, LAYERS, VOCABULARY = 256, 256, 64, 8, 512
CONFIG = {"model_type": "qwen3_moe", "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": INNER,
          "moe_intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 32, "num_experts": EXPERTS, "num_experts_per_tok": 1,
          "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True,
          "hidden_act": "silu", "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
          "eos_token_id": VOCABULARY - 1, "torch_dtype": "bfloat16"}
LIMIT = 128 << 20


def shapes():
    """{name: shape} of all weights, 193 MiB of them experts."""
    named = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        block = f"model.layers.{layer}."
        for name, rows in (("q", 128), ("k", 64), ("v", 64)):
            named[f"{block}self_attn.{name}_proj.weight"] = (rows, HIDDEN)
        named[block + "self_attn.o_proj.weight"] = (HIDDEN, 128)
        for name in ("q_norm", "k_norm"):
            named[f"{block}self_attn.{name}.weight"] = (32,)
        for name in ("input_layernorm", "post_attention_layernorm"):
            named[f"{block}{name}.weight"] = (HIDDEN,)
        named[block + "mlp.gate.weight"] = (EXPERTS, HIDDEN)
        for expert in range(EXPERTS):
            for name in ("gate", "up", "down"):
                named[f"{block}mlp.experts.{expert}.{name}_proj.weight"] = (INNER, HIDDEN)
    return named


def random_bfloat16(generator, count):
    """`count` elements of 1/128 to 1/32 in magnitude, of either sign."""
    elements = bytearray(2 * count)
    elements[0::2] = generator.randbytes(count)
    elements[1::2] = bytes(0x3C if byte % 2 else 0xBC for byte in generator.randbytes(count))
    return bytes(elements)


def write_model(folder):
    """Returns the bytes of its weights."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    header, offset = {}, 0
    for name, shape in shapes().items():
        size = 2 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = random.Random(1)
    pool = random_bfloat16(generator, 1 << 19)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            if len(entry["shape"]) == 1:
                file.write(b"\x80\x3f" * entry["shape"][0])  # 1
            else:
                start = 2 * generator.randrange((len(pool) - (end - begin)) // 2)
                file.write(pool[start:start + end - begin])
    return offset


def make_memory_cgroup(limit):
    """The directory of a new cgroup that may take `limit` bytes; None where this process may not make one."""
    for root, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(root) / f"paceline-test-{uuid.uuid4()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(str(limit))
            return group
        except OSError:
            group.rmdir()
    return None


@unittest.skipIf(IS_SANITIZED, "a sanitizer's own memory would be most of it")
class LargerThanMemory(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = self.directory / "model"
        self.weight_bytes = write_model(self.model)
        self.cached = ["--weights-cache", self.directory / "cache"]

    def generate(self, *options, group=None):
        """(the answer with log-probabilities, the most resident bytes) of six tokens behind a prompt of four."""
        def join():
            if group:
                (group / "cgroup.procs").write_text(str(os.getpid()))
        arguments = ["generate", "-m", self.model, "--prompt-ids", "5,7,11,30", "-n", "6", "--temp", "0", "--seed", "1",
                     "--logprobs", "3", "--ignore-eos", "--jsonl", "--quiet", "-t", "2", *options]
        child = subprocess.Popen([BINARY, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 env=environment(), preexec_fn=join)
        with child.stdout:
            answer = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        return json.loads(answer), usage.ru_maxrss * 1024

    def test_experts_that_are_not_chosen_are_not_read(self):
        expected, whole = self.generate()
        self.assertGreater(whole, self.weight_bytes)
        first, _ = self.generate(*self.cached)
        mapped, resident = self.generate(*self.cached)
        self.assertEqual((first, mapped), (expected, expected))
        self.assertLess(resident, self.weight_bytes // 2)

    def test_it_runs_in_less_memory_than_its_weights(self):
        self.assertGreater(self.weight_bytes, 3 * LIMIT // 2)
        group = make_memory_cgroup(LIMIT)
        if group is None:
            self.skipTest("no memory cgroup may be made here")
        self.addCleanup(group.rmdir)
        expected, _ = self.generate()
        for start in ("writes the cache", "maps it"):
            with self.subTest(start):
                answer, _ = self.generate(*self.cached, group=group)
                self.assertEqual(answer, expected)


if __name__ == "__main__":
    unittest.main()
