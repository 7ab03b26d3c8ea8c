#!/usr/bin/env python3
"""Makes tests/goldens/train: 100 steps of PyTorch's AdamW, and 50 steps of LoRA training with PEFT.

    python tools/goldens/make_train_goldens.py

Needs torch, transformers and peft. The models are those of tests/goldens/models, in float32; the adapter of the start is
kept beside the losses, so that another trainer can begin with it. No dropout; the loss is the mean over the tokens that
count; gradients are clipped to a length of 1.
"""
import json
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests/goldens/train"
MODELS = ["llama_bias", "gemma3_text_pattern2", "qwen3_tied"]
STEPS, SEQUENCES, LENGTH = 50, 2, 24
RATE, DECAY = 5e-3, 0.01


def adamw():
    """Parameters of several sizes under gradients that any program can compute."""
    parameters = torch.tensor([1.0, -0.5, 3e-3, 0.0, -20.0], dtype=torch.float32, requires_grad=True)
    optimizer = torch.optim.AdamW([parameters], lr=1e-2, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    for step in range(100):
        values = [0.5 - ((step * 7 + i * 13) % 32) / 32 for i in range(5)]  # exact in float32
        parameters.grad = torch.tensor(values, dtype=torch.float32)
        optimizer.step()
    return parameters.detach().tolist()


def batches(vocab):
    generator = torch.Generator().manual_seed(1)
    texts = torch.randint(3, vocab, (3 * SEQUENCES, LENGTH + 1), generator=generator)
    counts = (torch.rand((3 * SEQUENCES, LENGTH), generator=generator) < 0.8).int()
    for step in range(STEPS):
        first = step % 3 * SEQUENCES
        yield texts[first:first + SEQUENCES], counts[first:first + SEQUENCES]


def train(name):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(ROOT / "tests/goldens/models" / name, dtype=torch.float32,
                                                 attn_implementation="eager")
    model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", lora_dropout=0.0,
                                             task_type="CAUSAL_LM"))
    directory = GOLDENS / name
    shutil.rmtree(directory, ignore_errors=True)
    model.peft_config["default"].base_model_name_or_path = name
    model.save_pretrained(directory)
    (directory / "README.md").unlink(missing_ok=True)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=DECAY)
    steps, losses, norms = [], [], []
    for tokens, counts in batches(model.config.vocab_size):
        logits = model(tokens[:, :-1]).logits.float()
        each = torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
        loss = (each * counts).sum() / counts.sum()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(trained, 1.0)))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if len(steps) < 3:
            steps.append({"tokens": tokens.tolist(), "counts": counts.tolist()})
    (directory / "run.json").write_text(json.dumps(
        {"rate": RATE, "weight_decay": DECAY, "rank": 4, "alpha": 8, "max_gradient_norm": 1.0, "batches": steps,
         "losses": losses, "gradient_norms": norms}))


def main():
    GOLDENS.mkdir(parents=True, exist_ok=True)
    (GOLDENS / "adamw.json").write_text(json.dumps(adamw()))
    for name in MODELS:
        train(name)


if __name__ == "__main__":
    main()
