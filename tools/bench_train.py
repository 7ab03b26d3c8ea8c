#!/usr/bin/env python3
"""make bench-train: LoRA training steps of Paceline beside PEFT and PyTorch, or mlx-lm, on the same shape in one run.

    tools/bench_train.py [--shape llama-3.2-1b] [--sequences 4] [--length 512] [--rounds 2] [--rank 8] [--quantize q4]

Needs torch, transformers and peft (PyPI) in the environment that --python names, and build/release/bench/
paceline_bench_training. Both sides train LoRA on all linear modules of a model with random weights in bfloat16, with
checkpointed activations; the sides take turns. Prints tokens a second, the share of the matrix rate counted as 6
operations a weight and token, and the peak of resident memory.

--mlx PYTHON: the peer is mlx-lm (PyPI: mlx[cpu], mlx-lm) in the environment of that interpreter, with 4-bit weights in
groups of 64, as Paceline's become; the faster of its steps with and without checkpointed activations counts.
"""
import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHAPES = {
    "llama-3.2-1b": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
        "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
        "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
        "tie_word_embeddings": True, "hidden_act": "silu", "torch_dtype": "bfloat16"},
    "tiny": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1024,
        "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
        "hidden_act": "silu", "torch_dtype": "bfloat16"}}


def train_with_peft(options):
    """In a process of its own: prints a JSON line with the seconds of each step and the peak of memory."""
    import time

    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(options.peft)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model = get_peft_model(model, LoraConfig(r=options.rank, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    tokens = torch.randint(0, config.vocab_size, (options.sequences, options.length + 1))
    seconds = []
    for _ in range(options.rounds):
        begin = time.perf_counter()
        loss = model(input_ids=tokens[:, :-1], labels=tokens[:, :-1], use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                      "torch": torch.__version__}))


def train_with_mlx(options):
    """Likewise, with mlx-lm; options.mlx_checkpoint says whether activations are checkpointed."""
    import time

    import mlx.core as mx
    import mlx.nn as nn
    import mlx.optimizers
    from mlx.utils import tree_map
    from mlx_lm.models import llama
    from mlx_lm.tuner.trainer import default_loss, grad_checkpoint
    from mlx_lm.tuner.utils import linear_to_lora_layers

    config = json.loads(Path(options.mlx_side, "config.json").read_text())
    model = llama.Model(llama.ModelArgs.from_dict(config))
    model.update(tree_map(lambda weight: weight.astype(mx.bfloat16), model.parameters()))
    nn.quantize(model, group_size=64, bits=4)
    model.freeze()
    keys = [f"self_attn.{name}_proj" for name in "qkvo"] + [f"mlp.{name}_proj" for name in ("gate", "up", "down")]
    linear_to_lora_layers(model, len(model.layers), {"rank": options.rank, "scale": 2.0, "dropout": 0.0, "keys": keys})
    if options.mlx_checkpoint:
        grad_checkpoint(model.layers[0])
    model.train()
    optimizer = mlx.optimizers.AdamW(learning_rate=1e-4)
    tokens = mx.random.randint(0, config["vocab_size"], (options.sequences, options.length + 1))
    lengths = mx.array([[0, options.length]] * options.sequences)
    value_and_grad = nn.value_and_grad(model, default_loss)
    seconds = []
    for _ in range(options.rounds):
        begin = time.perf_counter()
        (loss, _), gradients = value_and_grad(model, tokens, lengths)
        optimizer.update(model, gradients)
        mx.eval(model.trainable_parameters(), optimizer.state, loss)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                      "version": mx.__version__}))


def run_mlx(directory, options):
    """The faster of the steps with and without checkpoints."""
    runs = []
    for checkpoint in ([], ["--mlx-checkpoint"]):
        done = subprocess.run([options.mlx, __file__, "--mlx-side", directory, *checkpoint, "--sequences", str(options.sequences),
                               "--length", str(options.length), "--rounds", str(options.rounds), "--rank", str(options.rank)],
                              check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return min(runs, key=lambda run: min(run["seconds"]))


def run_peft(directory, options):
    done = subprocess.run([options.python, __file__, "--peft", directory, "--sequences", str(options.sequences), "--length",
                           str(options.length), "--rounds", str(options.rounds), "--rank", str(options.rank)],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_paceline(directory, options):
    command = [str(options.program), directory, "--dummy", f"--sequences={options.sequences}", f"--length={options.length}",
               f"--rounds={options.rounds}", f"--rank={options.rank}"]
    if options.quantize:
        command.append(f"--quantize={options.quantize}")
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    steps = [(float(a), float(b)) for a, b in re.findall(r"^  ([\d.]+) s .*?([\d.]+) GFLOP/s", text, re.M)]
    peak = re.search(r"resident at most (\d+) MiB", text)
    if not steps or not peak:
        sys.exit(f"bench_train: unexpected output:\n{text}")
    return {"seconds": [a for a, _ in steps], "gflops": [b for _, b in steps], "peak_mib": float(peak.group(1))}


def matrix_rate(options):
    text = subprocess.run([str(options.paceline), "bench", "--roofline"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"vdpbf16ps\D*([\d.,]+) (G|T)FLOP/s", text) or re.search(r"([\d.,]+) (G|T)FLOP/s", text)
    return float(found.group(1).replace(",", "")) * (1000 if found.group(2) == "T" else 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", choices=SHAPES, default="llama-3.2-1b")
    parser.add_argument("--sequences", type=int, default=4)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--quantize", default="", help="q4 or q8: of Paceline's weights; the peer keeps bfloat16")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with torch, transformers and peft")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bench/paceline_bench_training")
    parser.add_argument("--paceline", type=Path, default=ROOT / "build/release/paceline")
    parser.add_argument("--mlx", help="an interpreter with mlx and mlx-lm: the peer on 4-bit weights, instead of PEFT")
    parser.add_argument("--peft", help=argparse.SUPPRESS)
    parser.add_argument("--mlx-side", help=argparse.SUPPRESS)
    parser.add_argument("--mlx-checkpoint", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mlx_side:
        train_with_mlx(options)
        return
    if options.mlx:
        options.quantize = "q4"
    if options.peft:
        train_with_peft(options)
        return
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "config.json").write_text(json.dumps(SHAPES[options.shape]))
        rate = matrix_rate(options)
        ours = run_paceline(directory, options)
        theirs = run_mlx(directory, options) if options.mlx else run_peft(directory, options)
    tokens = options.sequences * options.length
    best, peer = min(ours["seconds"]), min(theirs["seconds"])
    print(f"{options.shape}{' ' + options.quantize if options.quantize else ''}, LoRA of rank {options.rank} on all linear "
          f"modules, {options.sequences} x {options.length} tokens, checkpointed; the best of {options.rounds} steps")
    print(f"  Paceline  {tokens / best:8.1f} tokens/s  {max(ours['gflops']) / rate:5.0%} of {rate:.0f} GFLOP/s  "
          f"{ours['peak_mib']:8.0f} MiB")
    name, version = ("mlx-lm", f"mlx {theirs['version']}") if options.mlx else ("PEFT", f"PyTorch {theirs['torch']}")
    print(f"  {name:8}  {tokens / peer:8.1f} tokens/s  {'':23}{theirs['peak_mib']:8.0f} MiB  ({version})")
    print(f"  ratio     {peer / best:8.2f} (bar {2.0 if options.mlx else 1.5})       share of memory "
          f"{ours['peak_mib'] / theirs['peak_mib']:.0%}{'' if options.mlx else ' (bar 60 %)'}")


if __name__ == "__main__":
    main()
