"""Trains the bundled models; tools/train_bundled_model.py is the entry point."""

import os

# The libraries read these once, when they are loaded, so they are set before any module imports them.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # do not spin while others use the cores
os.environ.setdefault("KMP_BLOCKTIME", "0")
