#!/usr/bin/env python3
"""Train the small Qwen3-shaped language models that are bundled with Paceline.

  tools/train_bundled_model.py --preset 10m --minutes 95          # train, then save to models/
  tools/train_bundled_model.py --preset draft-1m --minutes 12     # the draft sibling
  tools/train_bundled_model.py --resume-from models/paceline-10m --first-position 6064 --minutes 60
  tools/train_bundled_model.py --eval models/paceline-10m         # bits per byte, as JSON

The learning rate follows the clock (warm-up, stable, linear decay to zero at the end of --minutes),
so a run on a busy machine sees fewer tokens but always ends fully decayed. The order of the data
depends on the seed and the position alone. A run that was interrupted goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from training.evaluation import evaluate
from training.hardware import pick_device
from training.presets import PRESETS
from training.training_run import TrainingRun

REPO = Path(__file__).resolve().parent.parent


def main() -> None:
    """Parse the command line and train or evaluate."""
    parser = argparse.ArgumentParser(description="Train or evaluate Paceline's bundled models.")
    parser.add_argument("--corpus", type=Path, default=REPO.parent / "shared" / "corpus")
    parser.add_argument("--work", type=Path, default=REPO / "build" / "train", help="scratch")
    parser.add_argument("--preset", choices=PRESETS, default="10m")
    parser.add_argument("--out", type=Path, help="default: models/paceline-PRESET")
    parser.add_argument("--eval", type=Path, metavar="DIR", help="measure a saved model and stop")
    parser.add_argument("--resume-from", type=Path, metavar="DIR", help="start from saved weights")
    parser.add_argument("--first-position", type=int, default=0, help="first block of the data")
    parser.add_argument("--minutes", type=float, default=95.0)
    parser.add_argument("--decay", type=float, default=0.35, help="last share of the time")
    parser.add_argument("--rate-scale", type=float, default=1.0, help="factor on the peak rates")
    parser.add_argument("--warmup", type=int, default=100, help="steps")
    parser.add_argument("--micro-tokens", type=int, default=2048, help="tokens per forward pass")
    parser.add_argument("--checkpoint-seconds", type=float, default=300.0)
    parser.add_argument("--threads", type=int, default=min(os.cpu_count() or 1, 8))
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda")
    parser.add_argument("--seed", type=int, default=20)
    args = parser.parse_args()
    args.device = pick_device(args.device)
    if args.eval:
        print(json.dumps(evaluate(args.eval, args.corpus, args.device)))
    else:
        args.out = args.out or REPO / "models" / f"paceline-{args.preset}"
        TrainingRun(args).run()


if __name__ == "__main__":
    main()
