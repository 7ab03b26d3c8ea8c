"""The programs that the GPU check runs: built here, or carried in a directory with the libraries that they need."""
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from gpu import children

ROOT = Path(__file__).resolve().parents[2]
BUILD_DIRECTORY = ROOT / "build/release"  # of the preset
NAMES = ("paceline", "paceline_gpu_check", "paceline_load_client")
BUILT = {"paceline": "paceline", "paceline_gpu_check": "bench/gpu/paceline_gpu_check",
         "paceline_load_client": "traffic/paceline_load_client"}
REQUIRED = NAMES[:2]
MOST_BYTES = 40 * 2 ** 20  # of an archive
# Of glibc: used only where the machine's own is older than these programs need.
GLIBC = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|mvec|anl)\.so.*|libnss_.*)$")
LOADER = "ld-linux-x86-64.so.2"


class Programs:
    """How each program is called."""

    def __init__(self, paths, libraries=None, has_old_glibc=False):
        self._paths = paths
        self._libraries = libraries
        self._prefix = []
        if libraries is not None and (has_old_glibc or not self._starts()):
            glibc = libraries / "glibc"
            self._prefix = [glibc / LOADER, "--library-path", f"{libraries}:{glibc}"]

    def command(self, name, *arguments):
        # The GPU's driver loads libraries of the machine, so the programs' own come by variable, for them alone.
        return [*self._environment(), *self._prefix, self._paths[name], *arguments]

    def has(self, name):
        return os.access(self._paths[name], os.X_OK)

    def fault(self):
        """Why a program does not start; empty when they do."""
        for name in REQUIRED:  # the loader's own message would hide it
            if not self.has(name):
                return f"{self._paths[name]} is missing"
        return "" if self._starts() else children.run(self.command("paceline", "--version"), 20).fault()

    def _environment(self):
        return [] if self._libraries is None or self._prefix else ["env", f"LD_LIBRARY_PATH={self._libraries}"]

    def _starts(self):
        return children.run(self.command("paceline", "--version"), 20).code == 0


def in_build(directory):
    return Programs({name: directory / path for name, path in BUILT.items()})


def carried(directory):
    return Programs({name: directory / name for name in NAMES}, directory / "lib")


def build(limit_s, jobs, directory=BUILD_DIRECTORY, architectures=""):
    """Builds the programs with kernels for GPUs; a Finished. `architectures`: of CMake, empty for all."""
    options = [f"-DPACELINE_CUDA_ARCHITECTURES={architectures}"] if architectures else []
    configure = children.run(["cmake", "-S", ROOT, "-B", directory, "--preset", "release", "-DPACELINE_CUDA=ON", *options],
                             limit_s)
    if configure.code != 0:
        return configure
    return children.run(["cmake", "--build", directory, "--parallel", str(jobs), "--target", *NAMES],
                        limit_s - configure.seconds)


def collect(directory, build_directory=BUILD_DIRECTORY):
    """Copies the programs of a build and all their libraries."""
    libraries = directory / "lib"
    (libraries / "glibc").mkdir(parents=True, exist_ok=True)
    for name, path in BUILT.items():
        program = build_directory / path
        subprocess.run(["strip", "-o", directory / name, program], check=True)
        for library in libraries_of(program):
            folder = libraries / "glibc" if GLIBC.match(library.name) else libraries
            shutil.copy(library, folder / library.name)


def pack(file, build_directory=BUILD_DIRECTORY):
    """Packs into a .tar.xz; returns its bytes."""
    with tempfile.TemporaryDirectory() as directory:
        collect(Path(directory), build_directory)
        with tarfile.open(file, "w:xz") as archive:
            archive.add(directory, ".")
    return file.stat().st_size


def unpack(file, directory):
    with tarfile.open(file) as archive:
        archive.extractall(directory)


def libraries_of(program):
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return [Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+)", text, re.M)]
