"""A model that Paceline refuses, and Pythons that compute it."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from program import BUNDLED, ROOT

SCRIPTED = ROOT / "tests" / "backends" / "scripted_child.py"


def make(path, family="unheard_of"):
    """The bundled model's small files, with another model_type."""
    path = Path(path)
    path.mkdir(parents=True)
    for file in BUNDLED.iterdir():
        if file.suffix in (".json", ".jinja"):
            shutil.copy(file, path)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "model_type": family, "architectures": ["Unheard"]}))
    return path


def python_with(module):
    """A Python that has the module: $PACELINE_BACKENDS_PYTHON or this one; None: neither has it."""
    for python in filter(None, (os.environ.get("PACELINE_BACKENDS_PYTHON"), sys.executable)):
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0:
            return python
    return None
