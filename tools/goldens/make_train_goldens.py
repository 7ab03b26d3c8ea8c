#!/usr/bin/env python3
"""Makes tests/goldens/train: 100 steps of PyTorch's AdamW, 30 of Muon, 50 of LoRA training with PEFT and 50 of full training.

    python tools/goldens/make_train_goldens.py

Needs torch, transformers and peft. The models are those of tests/goldens/models and hybrids, in float32; the adapter of the start is
kept beside the losses, so that another trainer can begin with it. Runs of the bundled draft model are made in bfloat16, too, with autocast. No dropout; the loss is the mean over the tokens that
count; gradients are clipped to a length of 1.
"""
import json
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests/goldens/train"
MODELS = ["llama_bias", "gemma3_text_pattern2", "qwen3_tied", "qwen3_5_text", "lfm2_tied"]
STEPS, SEQUENCES, LENGTH = 50, 2, 24
RATE, DECAY = 5e-3, 0.01
PERTURBED = 13
# At 5e-3 its losses from step 43 on depend on the last bits of sums: another number of threads moves PyTorch's by 4e-5.
# At 2e-3 a start that differs by 1e-6 moves a loss of qwen3_5_text by 9e-4, at 5e-4 by 2e-6; of lfm2_tied at 2e-3 by 3e-6.
CALM_RATES = {"gemma3_text_pattern2": 2e-3, "qwen3_5_text": 5e-4, "lfm2_tied": 2e-3}
SMALL_MODEL = ROOT / "models/paceline-draft-1m"
TEXT_ROWS, TEXT_LENGTH = 4, 64


def adamw():
    """Parameters of several sizes under gradients that any program can compute."""
    parameters = torch.tensor([1.0, -0.5, 3e-3, 0.0, -20.0], dtype=torch.float32, requires_grad=True)
    optimizer = torch.optim.AdamW([parameters], lr=1e-2, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    for step in range(100):
        values = [0.5 - ((step * 7 + i * 13) % 32) / 32 for i in range(5)]  # exact in float32
        parameters.grad = torch.tensor(values, dtype=torch.float32)
        optimizer.step()
    return parameters.detach().tolist()


def orthogonalise(matrix):
    """Newton-Schulz in float64, as torch.optim.Muon does it in bfloat16."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def muon_gradient(step, shape):
    """Exact in float32; of full rank."""
    n, k = shape
    values = [[((step * 5 + i * 7 + j * 11 + i * j * 3) % 32) / 32 - 0.5 for j in range(k)] for i in range(n)]
    return torch.tensor(values, dtype=torch.float64)


def muon():
    """A wide and a tall matrix: in float64 by the definition, and by PyTorch's Muon, which rounds to bfloat16."""
    options = {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1}
    result = {"steps": 30, **options}
    for name, shape in [("wide", (4, 10)), ("tall", (6, 3))]:
        start = torch.arange(shape[0] * shape[1], dtype=torch.float32).reshape(shape) / 64 - 0.25
        p, momentum = start.double(), torch.zeros(shape, dtype=torch.float64)
        other = start.clone().requires_grad_()
        optimizer = torch.optim.Muon([other], **options)
        for step in range(result["steps"]):
            gradient = muon_gradient(step, shape)
            momentum.lerp_(gradient, 1 - options["momentum"])
            update = orthogonalise(gradient.lerp(momentum, options["momentum"]))
            p.mul_(1 - options["lr"] * options["weight_decay"])
            p.sub_(update, alpha=options["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5)
            other.grad = gradient.float()
            optimizer.step()
        result[name] = {"float64": p.flatten().tolist(), "bfloat16": other.detach().flatten().tolist()}
    return result


def batches(vocab):
    generator = torch.Generator().manual_seed(1)
    texts = torch.randint(3, vocab, (3 * SEQUENCES, LENGTH + 1), generator=generator)
    counts = (torch.rand((3 * SEQUENCES, LENGTH), generator=generator) < 0.8).int()
    for step in range(STEPS):
        first = step % 3 * SEQUENCES
        yield texts[first:first + SEQUENCES], counts[first:first + SEQUENCES]


def loss_of(model, tokens, counts):
    logits = model(tokens[:, :-1]).logits.float()
    each = torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
    return (each * counts).sum() / counts.sum()


def text_batches():
    """Three steps of a page of the validation text of models/README.md, again and again."""
    tokenizer = AutoTokenizer.from_pretrained(SMALL_MODEL)
    text = (ROOT / "tests/goldens/train/text.txt").read_text()
    ids = torch.tensor(tokenizer(text)["input_ids"][:3 * TEXT_ROWS * (TEXT_LENGTH + 1)])
    return ids.reshape(3, TEXT_ROWS, TEXT_LENGTH + 1)


def run_steps(model, batches, dtype, rate):
    """Losses and lengths of gradients of 50 steps; under autocast if `dtype` is bfloat16."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate, weight_decay=DECAY)
    losses, norms = [], []
    for step in range(STEPS):
        tokens = batches[step % 3]
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = loss_of(model, tokens, torch.ones(tokens.shape[0], tokens.shape[1] - 1))
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(trained, 1.0)))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return {"losses": losses, "gradient_norms": norms}


def small_model():
    return AutoModelForCausalLM.from_pretrained(SMALL_MODEL, dtype=torch.float32, attn_implementation="eager")


def small_lora():
    """A has values that any program can compute; B is zero."""
    model = get_peft_model(small_model(), LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"))
    for name, p in model.named_parameters():
        if "lora_A" in name:
            i, j = torch.meshgrid(torch.arange(p.shape[0]), torch.arange(p.shape[1]), indexing="ij")
            p.data = (((i * 7 + j * 13 + i * j) % 32) / 128 - 0.125).float()
    return model


def small_runs():
    """The bundled draft model: all weights and LoRA, in float32 and under autocast."""
    batches = text_batches()
    runs = {"weight_decay": DECAY, "tokens": batches.tolist()}
    for name, make, rate in [("full", small_model, 2e-4), ("lora", small_lora, 1e-3)]:
        runs[name] = {"rate": rate, "float32": run_steps(make(), batches, torch.float32, rate),
                      "bfloat16": run_steps(make(), batches, torch.bfloat16, rate)}
    return runs


def peft_run(model, rate, dtype=torch.float32):
    """Batches of three steps, losses and lengths of gradients of all; under autocast if `dtype` is bfloat16."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate, weight_decay=DECAY)
    steps, losses, norms = [], [], []
    for tokens, counts in batches(model.config.vocab_size):
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = loss_of(model, tokens, counts)
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(trained, 1.0)))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if len(steps) < 3:
            steps.append({"tokens": tokens.tolist(), "counts": counts.tolist()})
    return steps, {"losses": losses, "gradient_norms": norms}


def perturb(parameters, start, seed):
    """The start, but for what bfloat16 hardly sees; seed 0: the start itself."""
    generator = torch.Generator().manual_seed(seed)
    for name, p in parameters:
        if name in start:
            noise = torch.randn(p.shape, generator=generator) if seed > 0 else 0
            p.data.copy_(start[name] * (1 + 1e-5 * noise))


def autocast_errors(model, start, rate, exact):
    """How far autocast's steps are from float32's, at most, over PERTURBED starts."""
    largest = {"loss": 0.0, "mean_loss": 0.0, "early_loss": 0.0, "norm": 0.0, "mean_norm": 0.0}
    for seed in range(PERTURBED):
        perturb(model.named_parameters(), start, seed)
        run = peft_run(model, rate, torch.bfloat16)[1]
        losses = [abs(x - y) for x, y in zip(run["losses"], exact["losses"])]
        norms = [abs(x - y) / y for x, y in zip(run["gradient_norms"], exact["gradient_norms"])]
        for key, found in {"loss": max(losses), "mean_loss": sum(losses) / STEPS, "early_loss": max(losses[:10]),
                           "norm": max(norms), "mean_norm": sum(norms) / STEPS}.items():
            largest[key] = max(largest[key], float(f"{found:.3g}"))
    return largest


def write_run(directory, model, rate=RATE, bfloat16_rate=None):
    """Trains a model whose adapter of the start stands in `directory`, and writes run.json beside it. With a
    `bfloat16_rate` once more from there with weights rounded to bfloat16, and how far PyTorch's own steps under autocast are
    from these."""
    start = {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}
    steps, run = peft_run(model, rate)
    run = {"rate": rate, "weight_decay": DECAY, "rank": 4, "alpha": 8, "max_gradient_norm": 1.0, "batches": steps, **run}
    if bfloat16_rate is not None:
        for p in model.parameters():
            if not p.requires_grad:
                p.data = p.data.bfloat16().float()
        perturb(model.named_parameters(), start, 0)
        exact = peft_run(model, bfloat16_rate)[1]
        run["bfloat16"] = {"rate": bfloat16_rate, **exact,
                           "autocast_errors": autocast_errors(model, start, bfloat16_rate, exact)}
    (directory / "run.json").write_text(json.dumps(run))


def model_path(name):
    paths = [ROOT / "tests/goldens" / kind / name for kind in ("models", "hybrids")]
    return next(path for path in paths if path.is_dir())


def train(name):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(model_path(name), dtype=torch.float32, attn_implementation="eager")
    model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", lora_dropout=0.0,
                                             task_type="CAUSAL_LM"))
    directory = GOLDENS / name
    shutil.rmtree(directory, ignore_errors=True)
    model.peft_config["default"].base_model_name_or_path = name
    model.save_pretrained(directory)
    (directory / "README.md").unlink(missing_ok=True)
    write_run(directory, model, CALM_RATES.get(name, RATE))


def main():
    GOLDENS.mkdir(parents=True, exist_ok=True)
    (GOLDENS / "adamw.json").write_text(json.dumps(adamw()))
    (GOLDENS / "muon.json").write_text(json.dumps(muon()))
    for name in MODELS:
        train(name)
    (GOLDENS / "draft_1m.json").write_text(json.dumps(small_runs()))


if __name__ == "__main__":
    main()
