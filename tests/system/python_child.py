"""Programs that stand for a Python with transformers, and speak its lines: docs/backends.md."""
import sys
from pathlib import Path

PROGRAM = """#!{python}
import json, os, subprocess, sys, time
mode = {mode!r}
open({pid!r}, "w").write(str(os.getpid()))
if mode == "dies at the start":
    sys.exit("no such model")
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "quit":
        break
    if mode == "cannot load":
        print(json.dumps({{"error": "ValueError: model_type odd"}}), flush=True)
    elif mode == "lacks the package":
        print(json.dumps({{"error": "ModuleNotFoundError: No module named 'transformers'"}}), flush=True)
    elif request["op"] == "load":
        print(json.dumps({{"version": "1.2.3"}}), flush=True)
    elif mode == "dies":
        print("the last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 9)
    elif mode == "hangs":
        time.sleep(1000)
    elif mode == "writes garbage":
        print("Loading checkpoint shards: 100%", flush=True)
    elif mode == "floods":
        while True:
            os.write(1, b"x" * 65536)
    elif mode == "says too little":
        print(json.dumps({{"logprobs": [0.5], "best": [1]}}), flush=True)
    elif mode == "says zeros":
        print(json.dumps({{"logprobs": [0] * (len(request["ids"]) - 1), "best": [0] * len(request["ids"])}}), flush=True)
    else:
        # What the program itself says: the two sides are equal, or so far apart.
        apart = 0.25 if mode == "is wrong" else 0
        done = subprocess.run([{binary!r}, "score", "-m", {model!r}, "--dtype", "float32", "--jsonl", "-q"], capture_output=True, check=True,
                              input=json.dumps({{"ids": request["ids"]}}).encode())
        found = json.loads(done.stdout)
        print(json.dumps({{"logprobs": [value + apart for value in found["logprobs"][1:]], "best": [0] * len(request["ids"])}}), flush=True)
"""


def make(path, mode, binary="", model=""):
    """A program in `path` that behaves so; its process id goes into path.pid."""
    path = Path(path)
    path.write_text(PROGRAM.format(python=sys.executable, mode=mode, pid=f"{path}.pid", binary=str(binary), model=str(model)))
    path.chmod(0o755)
    return path
