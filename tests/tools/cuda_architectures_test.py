"""Which compute capabilities kernels are compiled for: a list, all, or those of the GPUs that nvidia-smi names."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "cmake/CudaArchitectures.cmake"


class CudaArchitecturesTest(unittest.TestCase):
    def chosen(self, asked, nvidia_smi="exit 9"):
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / "nvidia-smi"
            program.write_text(f"#!/bin/sh\n{nvidia_smi}\n")
            program.chmod(0o755)
            done = subprocess.run(["cmake", f"-DASKED={asked}", "-P", SCRIPT], capture_output=True, text=True, check=True,
                                  env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"})
        return done.stderr.strip()

    def test_a_list_is_taken_as_it_is(self):
        self.assertEqual(self.chosen("80;90a"), "80;90a")

    def test_all_are_those_of_packages(self):
        self.assertEqual(self.chosen("all", "echo 8.6"), "80;89;90a")

    def test_native_is_each_gpu_of_the_machine_once(self):
        self.assertEqual(self.chosen("native", "echo 9.0"), "90a")
        self.assertEqual(self.chosen("native", "echo 8.6; echo 9.0; echo 8.6"), "86;90a")

    def test_native_without_a_gpu_is_nothing(self):
        self.assertEqual(self.chosen("native"), "")
        self.assertEqual(self.chosen("native", "echo No devices were found; exit 6"), "")
        self.assertEqual(self.chosen("native", "echo No devices were found"), "")


if __name__ == "__main__":
    unittest.main()
