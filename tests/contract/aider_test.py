"""aider in a folder of its own, with `paceline serve` as its model. Run by `make nightly`."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from agent_case import KEY, AgentCase, over_templates


class AiderCase:
    def test_a_message(self):
        for api in ("openai", "anthropic", *(("ollama_chat",) if "/api/chat" in self.paths else ())):
            with self.subTest(api=api), tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "story.py"
                file.write_text("print('The old house')\n")
                settings = Path(folder) / "settings.yml"
                settings.write_text(f"- name: {api}/{self.model}\n  edit_format: whole\n  use_temperature: 0\n"
                                    f"  weak_model_name: {api}/{self.model}\n  extra_params:\n    max_tokens: 40\n")
                environment = {**os.environ, "HOME": folder, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": KEY,
                               "OPENAI_API_BASE": self.url + "/v1", "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_API_BASE": self.url,
                               "OLLAMA_API_BASE": self.url, "OLLAMA_API_KEY": KEY}
                done = subprocess.run(
                    [sys.executable, "-m", "aider", "--model", f"{api}/{self.model}", "--model-settings-file", str(settings),
                     "--no-git", "--yes-always", "--no-stream" if api == "openai" else "--stream", "--no-check-update",
                     "--no-show-model-warnings", "--no-analytics", "--no-pretty", "--map-tokens", "0", "--no-auto-lint",
                     "--no-show-release-notes", "--no-detect-urls", "--no-suggest-shell-commands", "--message",
                     "Tell a story in this file.", str(file)],
                    cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                # What it tells after an answer, or after one that its own limit has cut.
                self.assertRegex(done.stdout, "Tokens: |Output tokens: ", done.stderr)


over_templates(__name__, AiderCase)

if __name__ == "__main__":
    unittest.main()
