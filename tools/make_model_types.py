#!/usr/bin/env python3
"""Writes the table of docs/model_types.md: which of transformers' causal types run, and why the others don't.

    python3 tools/make_model_types.py [build/release/paceline]
"""
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TYPES = ROOT / "tests/goldens/configs/causal_types.json"
PAGE = ROOT / "docs/model_types.md"


def reason(binary: str, model_type: str, directory: Path) -> str:
    """Nothing where the type runs."""
    (directory / "config.json").write_text(json.dumps({"model_type": model_type}))
    done = subprocess.run([binary, "inspect", "-m", str(directory)], capture_output=True, text=True, check=False)
    found = re.search(r'model_type: "[^"]+" isn\'t supported, because (.*?);', done.stderr)
    return found[1] if found else ""


def main() -> None:
    binary = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/paceline")
    types = json.loads(TYPES.read_text())
    with tempfile.TemporaryDirectory() as directory:
        reasons = {name: reason(binary, name, Path(directory)) for name in types}
    running = sorted(name for name, why in reasons.items() if not why)
    rows = {}
    for name, why in reasons.items():
        if why:
            rows.setdefault(why, []).append(name)
    table = "\n".join(f"| {', '.join(names)} | {why} |" for why, names in sorted(rows.items(), key=lambda row: row[1]))
    text = textwrap.fill(
        f"transformers knows {len(types)} types of causal language models (`MODEL_FOR_CAUSAL_LM_MAPPING_NAMES` of 5.24; "
        f"`tests/goldens/configs/causal_types.json`). {len(running)} of them run: {', '.join(running)}. What they have beside "
        "each other is in [models.md](models.md). The others are refused, with the reason. The table is made by "
        "`tools/make_model_types.py`.", 120, break_on_hyphens=False, break_long_words=False)
    PAGE.write_text(f"""\
# Types of models

{text}

| `model_type` | isn't supported, because |
| --- | --- |
{table}
""")


if __name__ == "__main__":
    main()
