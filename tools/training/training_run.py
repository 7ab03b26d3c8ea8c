"""One run of training: steps until the time is up, with regular checkpoints."""

from __future__ import annotations

import argparse
import json
import time

import torch

from .corpus import prepare_corpus
from .evaluation import quick_eval
from .hardware import ThreadChooser
from .model import FastQwen3
from .optimiser import Optimiser
from .presets import CONTEXT, PRESETS
from .saving import save_atomically, save_model
from .vocabulary import token_byte_lengths

ROW_LENGTHS = ((0.85, 1024), (0.45, 512), (0.0, 256))  # (from this progress on, tokens per row)


def learning_rate(progress: float, step: int, warmup: int, decay: float) -> float:
    """Return the share of the peak rate: warm-up in steps, then the decay by the clock."""
    return min(1.0, (step + 1) / warmup, max(0.0, 1.0 - progress) / decay)


class TrainingRun:
    """Trains one preset for the given minutes and saves it."""

    def __init__(self, args: argparse.Namespace) -> None:
        torch.manual_seed(args.seed)
        self.args, self.preset = args, PRESETS[args.preset]
        args.work.mkdir(parents=True, exist_ok=True)
        self.tokenizer, self.corpus, self.valid = prepare_corpus(
            args.corpus, args.work, args.resume_from, args.seed
        )
        self.byte_lengths = token_byte_lengths(self.tokenizer)
        self.model = FastQwen3(self.preset.config())
        if args.resume_from:
            self.model.load_transformers(args.resume_from)
        self.model.to(args.device)
        self.optimiser = Optimiser(self.model, self.preset, torch.bfloat16)
        if args.compile:
            self.model.compile_parts()
        self.position, self.curve = args.first_position, []
        self.row_length = ROW_LENGTHS[-1][1]
        self.checkpoint = args.work / f"{args.preset}.pt"
        elapsed = 0.0
        if self.checkpoint.exists() and not args.resume_from:
            elapsed = self.restore()
        self.started = time.monotonic() - elapsed

    def restore(self) -> float:
        """Go on from the checkpoint; return the seconds spent before it."""
        state = torch.load(self.checkpoint, map_location=self.args.device)
        self.optimiser.load(state["optimiser"])
        self.position, self.curve = state["position"], state["curve"]
        return state["elapsed"]

    def progress(self) -> float:
        """Return the elapsed share of the time."""
        return (time.monotonic() - self.started) / (60 * self.args.minutes)

    def run(self) -> None:
        """Train until the time is up, then save the model."""
        args = self.args
        saved_at = time.monotonic() - args.checkpoint_seconds / 2
        chooser = ThreadChooser(args.threads) if args.device == "cpu" else None
        window_start, window_tokens = time.monotonic(), 0
        while (progress := self.progress()) < 1:
            step, step_start = self.optimiser.step_count, time.monotonic()
            if chooser:
                chooser.before(step)
            loss, num_tokens = self.step(progress)
            window_tokens += num_tokens
            if chooser:
                chooser.after(step, time.monotonic() - step_start)
            if step % 10 == 0:
                now = time.monotonic()
                self.report(step, progress, loss, window_tokens / (now - window_start))
                window_start, window_tokens = now, 0
            if time.monotonic() - saved_at > args.checkpoint_seconds:
                saved_at = time.monotonic()
                self.save_checkpoint()
        self.finish()

    def step(self, progress: float) -> tuple[float, int]:
        """Update the weights once; return the loss per token and the number of tokens."""
        args, device = self.args, self.args.device
        blocks = self.preset.tokens_per_step // CONTEXT
        self.row_length = next(length for start, length in ROW_LENGTHS if progress >= start)
        inputs, targets = self.corpus.batch(self.position, blocks, self.row_length)
        micro, loss = args.micro_tokens // self.row_length, 0.0
        for x, y in zip(inputs.to(device).split(micro), targets.to(device).split(micro)):
            nats = self.model(x, y)
            nats.backward()
            self.optimiser.accumulate()
            loss += nats.item()
        rate = learning_rate(progress, self.optimiser.step_count, args.warmup, args.decay)
        self.optimiser.step(args.rate_scale * rate, targets.numel())
        self.position += blocks
        return loss / targets.numel(), targets.numel()

    def report(self, step: int, progress: float, loss: float, speed: float) -> None:
        """Print the progress of the run."""
        print(
            f"step {step} progress {progress:.4f} tokens {self.position * CONTEXT:,}"
            f" loss {loss:.4f} {speed:.0f} tok/s threads {torch.get_num_threads()}",
            flush=True,
        )

    def measure(self) -> None:
        """Add a point to the learning curve."""
        bits = quick_eval(self.model, self.valid, self.byte_lengths, self.row_length)
        self.curve.append((self.position * CONTEXT, round(bits, 4)))

    def save_checkpoint(self) -> None:
        """Write a checkpoint for a later run, and the current model."""
        self.measure()
        print(f"valid (48 windows): {self.curve[-1]}", flush=True)
        state = {"position": self.position, "curve": self.curve}
        state |= {"optimiser": self.optimiser.state(), "elapsed": time.monotonic() - self.started}
        save_atomically(state, self.checkpoint)
        save_model(self.model, self.tokenizer, self.args.work / f"snapshot-{self.args.preset}")

    def finish(self) -> None:
        """Save the model and its learning curve, and remove the checkpoint."""
        self.measure()
        save_model(self.model, self.tokenizer, self.args.out)
        self.checkpoint.unlink(missing_ok=True)
        curve_path = self.args.work / f"curve-{self.args.preset}.json"
        curve_path.write_text(json.dumps(self.curve))
        print(f"done: {self.position * CONTEXT:,} tokens, curve {self.curve}", flush=True)
