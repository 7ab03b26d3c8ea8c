"""What is here: the GPU, its driver, the compiler, and tools and packages that parts need."""
import re
import shutil
import sys

from gpu import children
from gpu.outcome import Outcome

QUERY = "name,driver_version,compute_cap,memory.total,memory.free,clocks.max.sm,clocks.max.mem,power.limit,ecc.mode.current"
NVCC_PLACES = "/usr/local/cuda/bin"


def find_nvcc():
    return shutil.which("nvcc") or shutil.which("nvcc", path=NVCC_PLACES)


def find_sanitizer():
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=NVCC_PLACES)


def torch_version(python):
    """The version of torch and its CUDA where it sees a GPU; else empty."""
    code = "import torch; print(torch.__version__, torch.version.cuda) if torch.cuda.is_available() else None"
    return children.run([python, "-c", code], 60).output.strip()


def look(python=sys.executable):
    outcome = Outcome("machine")
    query = children.run(["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"], 15)
    for line in query.output.splitlines() if query.code == 0 else []:
        found = dict(zip(QUERY.split(","), [field.strip() for field in line.split(",")]))
        outcome.measured(found.pop("name"), **found)
    if query.code != 0:
        outcome.measured("nvidia-smi", fault=query.fault())
    nvcc = find_nvcc()
    version = re.search(r"release ([\d.]+)", children.run([nvcc, "--version"], 15).output) if nvcc else None
    outcome.measured("nvcc", found=f"{version[1]} ({nvcc})" if version else "none")
    outcome.measured("compute-sanitizer", found=find_sanitizer() or "none")
    outcome.measured("torch", found=torch_version(python) or "none that sees a GPU")
    outcome.summary = ", ".join(f"{row['name']} {row['found']}" for row in outcome.rows if "found" in row)
    return outcome
