"""How the bundled models are trained; tools/train_bundled_model.py is the way in."""

import os

# Read once, when the libraries are loaded: so here, before any module of the package imports them.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # do not spin while others use the cores
os.environ.setdefault("KMP_BLOCKTIME", "0")
