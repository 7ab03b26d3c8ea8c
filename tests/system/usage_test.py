"""Help, version, misspellings, exit codes, environment and config file of the binary."""
import json
import os
import pty
import subprocess
import unittest

import program
from program import ProgramTest

COMMANDS = ["generate", "chat", "classify", "score", "batch", "serve", "render", "tokenize", "detokenize", "perplexity", "inspect", "bench",
            "quantize", "trace", "convert"]


class UsageTest(ProgramTest):
    def test_help_and_version(self):
        text = self.succeed("--help").stdout
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", text)
        self.assertEqual(self.succeed("-h").stdout, text)
        self.assertRegex(self.succeed("--version").stdout, r"^paceline \d+\.\d+\.\d+")

    def test_every_command_has_help(self):
        for command in COMMANDS:
            text = self.succeed(command, "--help").stdout
            self.assertIn(f"Usage: paceline {command}", text)
            self.assertEqual(self.succeed("help", command).stdout, text)
            self.assertEqual(self.succeed(command, "--top-p", "9", "-h", "--nonsense").stdout, text)

    def test_dumped_options_are_those_of_the_help(self):
        rows = [json.loads(line) for line in self.succeed("--dump-options").stdout.splitlines()]
        self.assertEqual(list(dict.fromkeys(row["command"] for row in rows)), ["", *COMMANDS])
        for row in rows:
            text = self.succeed(*filter(None, [row["command"], "--help"])).stdout if row["flags"] == ["-p"] else None
            self.assertEqual(set(row), {"command", "flags", "env", "help", "takes_value"})
            if text is not None:
                self.assertIn(row["flags"][-1], text)

    def test_no_command_is_bad_usage(self):
        self.assertIn("Usage: paceline COMMAND", self.fail_with(2))

    def test_misspellings_get_suggestions(self):
        self.assertIn("unknown command genrate; did you mean generate?", self.fail_with(2, "genrate"))
        self.assertIn("unknown option --max-tokns; did you mean --max-tokens?",
                      self.fail_with(2, "generate", "--max-tokns", "5", "-p", "x"))
        self.assertIn("unknown option --frobnicate", self.fail_with(2, "generate", "--frobnicate"))
        self.assertIn("unexpected argument", self.fail_with(2, "generate", "Once upon a time"))
        self.assertIn("--model stands before the command", self.fail_with(2, "--model", "x", "generate"))

    def test_values_out_of_range_name_flag_value_and_range(self):
        self.assertIn('--temperature: found "3", expected a number from 0 to 2',
                      self.fail_with(2, "generate", "-p", "x", "--temperature", "3"))
        self.assertIn("PACELINE_TOP_P: found", self.fail_with(2, "generate", "-p", "x", env={"PACELINE_TOP_P": "7"}))

    def test_variables(self):
        done = self.succeed("tokenize", "-m", program.BUNDLED, "-p", "a", env={
            "PACELINE_JSONL": "true", "PACELINE_PORT": "tcp://10.0.0.1:80", "PACELINE_MODLE": "x"})
        self.assertEqual(done.stderr,
                         "warning: the environment variable PACELINE_MODLE is no option; did you mean PACELINE_MODEL?\n")
        self.assertEqual(set(json.loads(done.stdout)), {"ids", "decoded"})

    def test_flag_wins_over_variable_over_file(self):
        model = self.tiny_model()
        config = self.write("c.toml", f'model = "{model}"\nload_format = "dummy"\nprompt_ids = [1]\njsonl = true\n'
                                      "quiet = true\n[generate]\nmax_tokens = 1\nignore_eos = true\n")

        def count(*flags, **env):
            done = self.succeed("generate", "--config", config, *flags, env=env)
            return json.loads(done.stdout)["usage"]["completion_tokens"]

        self.assertEqual(count(), 1)
        self.assertEqual(count(PACELINE_MAX_TOKENS="2"), 2)
        self.assertEqual(count("-n", "3", PACELINE_MAX_TOKENS="2"), 3)

    def test_wrong_config_files_are_bad_usage(self):
        config = self.write("c.toml", "max_tokens = 5\n\n[generate]\ntemprature = 1\n")
        self.assertIn("c.toml:4: unknown key temprature; did you mean temperature?",
                      self.fail_with(2, "generate", "-p", "x", "--config", config))
        self.assertIn("nowhere.toml", self.fail_with(2, "generate", "-p", "x", "--config", "nowhere.toml"))

    def test_prompt_and_file_exclude_each_other(self):
        self.assertIn("--file and a prompt", self.fail_with(2, "tokenize", "-p", "x", "-f", "y"))

    def test_closed_streams_are_errors(self):
        for stream, words in [("<&-", "standard input: Bad file descriptor"), (">&-", "standard output: Bad file descriptor")]:
            text = "-p x" if stream == ">&-" else ""
            done = subprocess.run(["sh", "-c", f'"$0" tokenize -m "$1" {text} {stream}', program.BINARY, program.BUNDLED],
                                  capture_output=True, text=True, timeout=program.TIMEOUT, env=program.environment())
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, f"paceline: {words}\n")

    def test_an_empty_standard_input_is_an_empty_prompt(self):
        for text in ["", "\n"]:
            self.assertEqual(self.fail_with(1, "generate", "-q", "-m", program.BUNDLED, stdin=text),
                             "paceline: prompt: empty, expected at least one token\n")

    def test_a_terminal_as_standard_input_is_bad_usage(self):
        reader, writer = pty.openpty()
        for command in ["generate", "tokenize", "perplexity"]:
            done = subprocess.run([program.BINARY, command], stdin=writer, capture_output=True, text=True,
                                  timeout=program.TIMEOUT, env=program.environment())
            self.assertEqual(done.returncode, 2)
            self.assertIn("pipe", done.stderr)
        os.close(reader)
        os.close(writer)


if __name__ == "__main__":
    unittest.main()
