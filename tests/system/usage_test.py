"""Help, version, misspellings, exit codes, environment and config file of the binary."""
import json
import os
import pty
import re
import subprocess
import unittest

import program
from program import ProgramTest

COMMANDS = ["generate", "chat", "classify", "decide", "score", "embed", "batch", "serve", "render", "tokenize", "detokenize",
            "grammar", "perplexity", "verify", "inspect", "list", "bench", "quantize", "trace", "convert", "train", "adapter", "fuse"]


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
            self.assertLessEqual(text.count("\n"), 45, command)
            everything = self.succeed(command, "--help-all", "--nonsense").stdout
            self.assertGreater(len(everything), len(text))
            self.assertIn("PACELINE_MAX_TOKENS", everything)

    def test_dumped_options_are_those_of_the_help(self):
        rows = [json.loads(line) for line in self.succeed("--dump-options").stdout.splitlines()]
        self.assertEqual(list(dict.fromkeys(row["command"] for row in rows)), ["", *COMMANDS])
        for row in rows:
            text = self.succeed(*filter(None, [row["command"], "--help"])).stdout if row["flags"] == ["-p"] else None
            self.assertEqual(set(row), {"command", "flags", "env", "help", "placeholder", "value", "choices"})
            if text is not None:
                self.assertIn(row["flags"][-1], text)

    def test_no_command_is_bad_usage(self):
        self.assertIn("Usage: paceline COMMAND", self.fail_with(2))

    def test_misspellings_get_suggestions(self):
        self.assertIn("unknown command genrate; did you mean generate?", self.fail_with(2, "genrate"))
        self.assertIn("unknown option --max-tokns; did you mean --max-tokens?",
                      self.fail_with(2, "generate", "--max-tokns", "5", "-p", "x"))
        self.assertIn("unknown option --frobnicate", self.fail_with(2, "generate", "--frobnicate"))
        self.assertIn("unknown option --max-tokens; a request sets it: max_tokens\n", self.fail_with(2, "serve", "--max-tokens", "5"))
        self.assertIn("quote a text of several words", self.fail_with(2, "generate", "Once", "upon"))
        self.assertIn("found --model before the command", self.fail_with(2, "--model", "x", "generate"))
        self.assertIn("unknown option --verison; did you mean --version?", self.fail_with(2, "--verison"))

    def test_words_of_other_programs_work_or_get_the_way_that_exists(self):
        one_token = ("-n", "1", "--temperature", "0", "-q")
        said = self.succeed("generate", "Once upon", *one_token, "-m", program.BUNDLED).stdout
        self.assertEqual(self.succeed("generate", "-p", "Once upon", *one_token, "-m", program.BUNDLED).stdout, said)
        answer = self.succeed("chat", "Hi", *one_token, "-m", program.BUNDLED).stdout
        self.assertEqual(self.succeed("run", program.BUNDLED, "Hi", *one_token).stdout, answer)
        self.assertEqual(self.succeed("tokenize", "hi", "-m", program.BUNDLED).stdout,
                         self.succeed("tokenize", "-p", "hi", "-m", program.BUNDLED).stdout)
        shown, inspected = (re.sub(r"[\d.]+ GiB free", "", self.succeed(*words).stdout)
                            for words in [("show", program.BUNDLED), ("inspect", "-m", program.BUNDLED)])
        self.assertEqual(shown, inspected)
        self.assertIn(f"is a model: name it with -m {program.BUNDLED}", self.fail_with(2, "chat", program.BUNDLED))
        self.assertIn("hf download Qwen/Qwen3-0.6B", self.fail_with(2, "pull", "Qwen/Qwen3-0.6B"))
        self.assertIn("curl http://127.0.0.1:8080/slots", self.fail_with(2, "ps"))

    def test_list_shows_the_models_of_every_cache(self):
        """Whole, unusable and incomplete ones, in the places where each program keeps them."""
        home = self.directory
        hub = home / ".cache/huggingface/hub/models--org--whole"
        snapshot = hub / "snapshots/abc"
        snapshot.parent.mkdir(parents=True)
        program.shutil.copytree(program.BUNDLED, snapshot)
        self.write(".cache/huggingface/hub/models--org--whole/refs/main", "abc")
        (home / ".cache/huggingface/hub/models--org--partial").mkdir()
        self.write(".lmstudio/models/someone/odd/config.json", '{"model_type": "no_such_family"}')
        self.write(".cache/llama.cpp/broken.gguf", b"GGUF")
        self.write(".ollama/models/manifests/registry.ollama.ai/library/llama3.2/1b", json.dumps(
            {"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:12"}]}))
        self.write(".ollama/models/blobs/sha256-12", b"GGUF")
        clean = {"HOME": str(home), "HF_HOME": "", "HF_HUB_CACHE": "", "XDG_CACHE_HOME": "", "LLAMA_CACHE": "", "OLLAMA_MODELS": ""}
        models = json.loads(self.succeed("list", "--json", env=clean).stdout)["models"]
        self.assertEqual([(m["name"], m["cache"], m["problem"] is None) for m in models], [
            ("org/partial", "Hugging Face", False), ("org/whole", "Hugging Face", True),
            (str(home / ".cache/llama.cpp/broken.gguf"), "llama.cpp", False),
            (str(home / ".lmstudio/models/someone/odd"), "LM Studio", False),
            (str(home / ".ollama/models/blobs/sha256-12"), "Ollama (llama3.2:1b)", False)])
        self.assertEqual(models[1]["bytes"], sum(f.stat().st_size for f in program.BUNDLED.iterdir() if f.is_file()))
        text = self.succeed("list", env=clean).stdout
        self.assertRegex(text, r"\norg/whole +\d+\.\d MiB  Hugging Face +yes\n")
        self.assertRegex(text, r"someone/odd .* LM Studio +no: ")
        nothing = self.succeed("list", env={**clean, "HOME": str(home / "empty")})
        self.assertIn("`hf download OWNER/NAME` brings one", nothing.stderr)

    def test_quiet_commands_print_errors_alone(self):
        self.assertEqual(self.succeed("generate", "a", "-n", "1", "-q", "--max-run-steps", "3", "--threads", "500", "-m", program.BUNDLED).stderr, "")

    def test_an_empty_model_is_not_the_bundled_one(self):
        """A script that forgot to set MODEL: `paceline serve -m "$MODEL"`."""
        self.assertIn("--model: empty, expected a directory", self.fail_with(2, "generate", "-p", "x", "-m", ""))

    def test_values_out_of_range_name_flag_value_and_range(self):
        self.assertIn('--temperature: found "3", expected a number from 0 to 2',
                      self.fail_with(2, "generate", "-p", "x", "--temperature", "3"))
        self.assertIn("PACELINE_TOP_P: found", self.fail_with(2, "generate", "-p", "x", env={"PACELINE_TOP_P": "7"}))

    def test_variables(self):
        done = self.succeed("tokenize", "-m", program.BUNDLED, "-p", "a", env={
            "PACELINE_JSONL": "true", "PACELINE_PORT": "tcp://10.0.0.1:80", "PACELINE_MODLE": "x"})
        self.assertEqual(done.stderr,
                         "warning: unknown environment variable PACELINE_MODLE; did you mean PACELINE_MODEL?\n")
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

    def test_input_that_is_no_text_is_an_error(self):
        binary = b"PK\x03\x04 text \xff\xfe\x00"
        for command in ["generate", "tokenize", "perplexity", "score", "classify", "render", "chat"]:
            done = program.run(command, "-q", "-m", program.BUNDLED, stdin=binary)
            self.assertEqual((done.returncode, done.stdout), (1, ""), command)
            self.assertIn("standard input: byte 10 (0xff) is not UTF-8, expected text\n", done.stderr)
        file = self.write("binary", binary)
        self.assertIn("/binary: byte 10 (0xff) is not UTF-8", self.fail_with(1, "tokenize", "-f", file))
        done = subprocess.run([program.BINARY, "tokenize", "-p", b"caf\xe9"], capture_output=True, env=program.environment())
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"paceline: --prompt: byte 3 (0xe9) is not UTF-8, expected text\n", done.stderr)

    def test_more_threads_than_cores_are_a_warning(self):
        done = self.succeed("score", "-m", program.BUNDLED, "-p", "a b", "--threads", "1000")
        cores = len(os.sched_getaffinity(0))
        self.assertIn(f"warning: --threads 1000: slower, because only {cores} cores are usable\n", done.stderr)
        self.assertEqual(self.succeed("score", "-m", program.BUNDLED, "-p", "a b", "--threads", "1").stderr, "")

    def test_a_cache_too_small_for_the_context_is_said(self):
        options = ("generate", "-m", program.BUNDLED, "-p", "a", "-n", "1")
        self.assertIn("--kv-cache-memory-bytes: 1024 bytes, expected at least",
                      self.fail_with(1, *options, "-q", "--kv-cache-memory", "1K"))
        done = self.succeed(*options, "--kv-cache-memory", "1M")
        self.assertRegex(done.stderr, r"note: the context is \d+ tokens, which is all that --kv-cache-memory-bytes 1\.0 MiB holds; "
                                      r"the model's is 1024\n")
        self.assertNotIn("context is", self.succeed(*options, "--kv-cache-memory", "1M", "-c", "64").stderr)

    def test_the_cache_is_as_large_as_the_command_can_use(self):
        def cache_bytes(*options):
            text = self.succeed(*options, "-m", program.BUNDLED, "-v").stderr
            number, unit = re.search(r"keys and values ([\d.]+) (\w+)", text).groups()
            return float(number) * {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]

        one = cache_bytes("generate", "-p", "a", "-n", "1")
        self.assertLess(one, 4 << 20)
        self.assertEqual(cache_bytes("chat", "-p", "a", "-n", "1"), one)
        self.assertEqual(cache_bytes("score", "-p", "a b", "-p", "b c"), 2 * one)
        self.assertEqual(cache_bytes("generate", "-p", "a", "-n", "1", "--max-num-seqs", "4"), 4 * one)

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
