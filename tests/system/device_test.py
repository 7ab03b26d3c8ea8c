"""`--device`: what it refuses, and a GPU's emulation beside the CPU."""
import os
import unittest

from program import BUNDLED, IS_SANITIZED, ProgramTest, lines

EMULATION = {"PACELINE_CUDA_EMULATION": "1"}


class DeviceTest(ProgramTest):
    def test_unknown_devices_are_refused(self):
        for name in ["gpu", "cuda:", "cuda:x", "cuda:-1", "CUDA"]:
            message = self.fail_with(1, "generate", "-m", BUNDLED, "--device", name, "-p", "Hello")
            self.assertIn(f'--device: "{name}", expected auto, cpu, cuda or cuda:N', message)

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has a GPU")
    def test_a_machine_without_a_gpu_says_so(self):
        message = self.fail_with(1, "generate", "-m", BUNDLED, "--device", "cuda", "-p", "Hello")
        self.assertIn("GPU", message)

    def test_what_a_gpu_cannot_have_is_refused(self):
        for command, option, message in [
                ("generate", ["--weights-cache", self.directory / "w", "-p", "Hello"], "holds weights for the CPU"),
                ("serve", ["--enable-lora", "--port", "0"], "--device cuda has the adapters of --lora alone")]:
            error = self.fail_with(1, command, "-m", BUNDLED, "--device", "cuda", *option, env=EMULATION)
            self.assertIn(f"{option[0]}: {message}", error)

    def test_a_gpu_has_all_layers_or_none(self):
        options = ["generate", "-m", BUNDLED, "--device", "cuda", "-p", "Hello", "-n", "1", "-q"]
        error = self.fail_with(1, *options, "-ngl", "5", env=EMULATION)
        self.assertIn("--gpu-layers: 5 of the model's 6 layers; a GPU computes all of them, or none (0)", error)
        self.assertEqual(self.succeed(*options, "-ngl", "0").stderr, "")

    @unittest.skipIf(IS_SANITIZED, "a minute")
    def test_the_emulation_draws_the_tokens_of_the_cpu(self):
        items = [{"prompt": "It was a dark and stormy night", "max_tokens": 6, "temperature": 0, "seed": 1},
                 {"prompt": "The", "max_tokens": 4, "temperature": 0, "seed": 1}]
        command = ["generate", "-m", BUNDLED, "-t", "1", "--kv-cache-memory", "4M"]
        cpu = self.answers(*command, stdin=lines(*items))
        cuda = self.answers(*command, "--device", "cuda", stdin=lines(*items), env=EMULATION)
        self.assertEqual([a["token_ids"] for a in cuda], [a["token_ids"] for a in cpu])


if __name__ == "__main__":
    unittest.main()
