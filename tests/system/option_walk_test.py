"""Every option of every command with a value that can't be honoured: it is refused, or a warning names it.

The options come from the binary (--dump-options). One without a row in ROWS fails the test."""
import concurrent.futures
import json
import os
import signal
import subprocess
import threading
import unittest

import adapter_files
import gguf_files
import program
import python_child
from program import BINARY, BUNDLED, ProgramTest

NOT_TEXT = os.fsdecode(b"\xff")  # is no UTF-8
HUGE = "999999999"
WRITES = ("generate", "chat")
LOADS = ("generate", "chat", "classify", "decide", "score", "embed", "perplexity", "verify", "bench", "batch", "serve")


class Row:
    """`arguments` to add to a command that works without them, and `says`, which the message or the warning has beside the
    option's name. `commands` limits the row to some of the option's commands."""

    def __init__(self, *arguments, says="", commands=None, but=()):
        self.arguments, self.says, self.commands, self.but = arguments, says, commands, but

    def is_for(self, command):
        return command not in self.but and (self.commands is None or command in self.commands)


def flag(name):
    return [Row(f"--{name}=perhaps", says='found "perhaps", expected true or false')]


def choice(name):
    return [Row(f"--{name}", "no-such", says='found "no-such", expected one of')]


def count(name, value="0", **row):
    return [Row(f"--{name}={value}", says=f'found "{value}", expected', **row)]


def size(name):
    return [Row(f"--{name}", "1X", says='found "1X", expected a number of bytes')]


def text(name):
    return [Row(f"--{name}", NOT_TEXT, says="is not UTF-8")]


def idle(name, *arguments, says="no effect", **row):
    """A row whose option is heard, but has no effect."""
    return [Row(f"--{name}", *arguments, says=says, **row)]


def rows(nowhere, busy):
    """By option. `nowhere` is a path that can't be made, `busy` a file that is in the way."""
    missing = {"says": str(nowhere)}
    table = {}
    for name in ("help-all", "no-special", "include-stop-str-in-output", "ignore-eos", "mlock", "no-prefix-caching", "jsonl",
                 "verbose", "special", "specials-as-text", "insecure", "ignore-unknown-fields", "keep-client-counters", "roofline", "plan", "no-packing",
                 "from-scratch", "use-rslora", "no-grad-checkpoint", "resume", "dry-run", "enable-lora", "with-token-id", "help",
                 "typed-special-tokens", "stop-with-parent", "error-codes"):
        table[name] = flag(name)
    for name in ("speculation", "skip-special-tokens"):
        table[name] = [Row(f"--{name}", "perhaps", says='found "perhaps", expected true or false')]
    for name in ("sampler-order", "dtype", "quantize", "kv-cache-dtype", "state-dtype", "log-format", "shape", "tests", "formats", "prompt-texts",
                 "bits", "group-size", "recipe", "gguf-type", "fine-tune-type", "lora-dtype", "lr-schedule", "optimizer", "loss-on", "to",
                 "target-modules", "spec-accept", "activations", "load-format", "reasoning-field", "unknown-model"):
        table[name] = choice(name)
    for name, value in [("temperature", "3"), ("top-p", "1.5"), ("top-k", "x"), ("min-p", "2"), ("typical-p", "2"),
                        ("top-n-sigma", "x"), ("repetition-penalty", "-1"), ("frequency-penalty", "9"), ("presence-penalty", "9"),
                        ("max-kv-size", "0"), ("block-size", "0"), ("max-num-batched-tokens", "0"), ("prefill-chunk", "0"),
                        ("max-num-queued-reqs", "0"), ("max-num-queued-tokens", "0"), ("max-connections", "0"),
                        ("max-connections-per-address", "0"), ("max-requests", "0"), ("max-choices", "0"),
                        ("header-timeout", "0"), ("body-timeout", "0"), ("keep-alive-timeout", "0"), ("queue-timeout", "1e9"),
                        ("request-timeout", "1e9"), ("drain-timeout", "1e9"), ("drain-delay", "1e9"), ("sleep-idle-seconds", "1e9"), ("repetitions", "0"),
                        ("max-positions", "0"), ("gpu-memory-utilization", "2"), ("max-run-steps", "0"),
                        ("num-speculative-tokens", "0"), ("prompt-lookup-max", "99"), ("max-lora-rank", "0"), ("max-loras", "0"),
                        ("max-cpu-loras", "0"), ("batch-size", "0"), ("batch-timeout-ms", "-1"), ("valid-fraction", "1"),
                        ("max-seq-length", "1"), ("lora-rank", "0"), ("lora-alpha", "0"), ("lora-scale", "0"),
                        ("lora-dropout", "1"), ("iters", "0"), ("grad-accumulation-steps", "0"), ("learning-rate", "11"),
                        ("decay-fraction", "2"), ("warmup-steps", "-1"), ("weight-decay", "11"), ("muon-momentum", "1"),
                        ("adamw-learning-rate", "11"), ("adamw-weight-decay", "11"), ("adam-beta1", "1"), ("adam-beta2", "1"),
                        ("adam-epsilon", "0"), ("max-grad-norm", "-1"), ("patience", "-1"), ("steps-per-report", "0"),
                        ("steps-per-eval", "-1"), ("val-batches", "-2"), ("save-every", "0"), ("prompt-tokens", "0"),
                        ("contexts", "0"), ("sequences", "0"), ("output-tokens", "1"), ("acceptance", "2"), ("draft-lengths", "0"),
                        ("temperatures", "3"), ("max-tokens", "x"), ("truncate-prompt-tokens", "0"), ("seed", "x"), ("port", "70000"),
                        ("max-num-seqs", "0"), ("max-tokens-per-sequence", "0"), ("max-step-slowdown", "-1"),
                        ("prompt-lookup-min", "0"), ("num-layers", "-2"), ("logprobs", "99"), ("epochs", "0"), ("warmup-init", "11"),
                        ("decision-temperature", "0"), ("hold-steps", "-1"), ("decay-steps", "0"), ("final-learning-rate", "11"),
                        ("max-stored-responses", "-1"), ("max-compaction-tokens", "0"), ("stored-time", "1e9")]:
        table[name] = count(name, value)
    for name in ("cache-limit", "kv-cache-memory-bytes", "memory-limit", "max-body-size", "max-header-size", "max-response-size",
                 "max-resident-memory", "max-stored-size"):
        table[name] = size(name)
    for name in ("prompt", "system", "label", "stop", "bad-words", "regex", "choice", "first-token", "served-model-name",
                 "metrics-prefix", "chat-template-kwargs", "prompt-name", "speculative-config", "predicate", "content-free-input"):
        table[name] = text(name)

    # What the model, the machine or the files don't have.
    add = table.setdefault
    add("model", []).extend([Row("--model", nowhere, **missing, but=("trace",))])
    add("device", []).extend([Row("--device", "cuda:99", says="--device cuda:99"), Row("--device", "tpu", says='--device: "tpu"')])
    table["load-format"] += [Row("--load-format", "gguf", says="--load-format: gguf, but the model is in safetensors", but=("train",))]
    table["kv-cache-memory-bytes"] += [
        Row("--kv-cache-memory-bytes", "1000000G", says="of memory"),
        Row("--kv-cache-memory-bytes", "1K", says="expected at least"),
        Row("--kv-cache-memory-bytes", "900M", says="--kv-cache-memory-bytes gives them 900", commands=("generate", "serve"))]
    table["memory-limit"] += [Row("--memory-limit", "1K", says="1024 bytes are allowed by --memory-limit")]
    table["gpu-layers"] = [Row("--gpu-layers", "5", says="--gpu-layers: 5, but --device auto computes all layers on the CPU")]
    table["gpu-memory-utilization"] += idle("gpu-memory-utilization", "0.5", "--device", "cpu", says="no effect beside --device cpu")
    table["max-run-steps"] += idle("max-run-steps", "5", "--device", "cpu", says="no effect beside --device cpu")
    table["max-model-len"] = [Row("--max-model-len", "100000", says="the model was made for contexts of up to 1024", but=("quantize",)),
                              *idle("max-model-len", "64", says="no effect without --check", commands=("quantize",))]
    table["activations"] += idle("activations", "int8", says="no effect without --check", commands=("quantize",))
    table["max-tokens-per-sequence"] += [Row("--max-tokens-per-sequence", "1", says="limit: --max-tokens-per-sequence",
                                             commands=("generate", "chat", "score", "perplexity", "verify", "bench"))]
    table["threads"] = [Row("--threads", "1000", says="warning: --threads 1000: slower", but=("bench", "train")),
                        Row("--threads", "-1", says="found \"-1\", expected")]
    table["pin-threads"] = [Row("--pin-threads", "--threads", "1000", says="no effect with more threads than cores",
                                but=("bench", "train")), *flag("pin-threads")]
    table["weights-cache"] = [Row("--weights-cache", busy, says="can't be made", but=("train",)),
                              Row("--weights-cache", nowhere, "--load-format", "dummy", says="warning: --weights-cache: not used", but=("train",)),
                              Row("--weights-cache", busy, "--dry-run", says="can't be made", commands=("train",))]
    table["chat-template"] = [Row("--chat-template", nowhere, says="--chat-template: found")]
    table["lora"] = [Row("--lora", nowhere, **missing, but=("batch", "serve", "fuse")),
                     Row("--lora", f"a={nowhere}", **missing, commands=("batch", "serve")),
                     Row("--lora", "another", says="fuse takes one adapter", commands=("fuse",))]
    table["lora-scaled"] = [Row("--lora-scaled", f"a={nowhere}:x", says="--lora-scaled: found")]
    table["lora-modules"] = [Row("--lora-modules", f"a={nowhere}", says=f"--lora: {nowhere}")]
    for name in ("max-lora-rank", "max-loras"):
        table[name] += idle(name, "3", says="no effect without --lora, --lora-scaled, --lora-modules, --enable-lora or --allow-runtime-lora")
    table["lora-directory"] = idle("lora-directory", nowhere, says="no effect without --allow-runtime-lora") + [
        Row("--lora-directory", nowhere, "--allow-runtime-lora", "--api-key", "k", says=str(nowhere))]
    table["max-cpu-loras"] += idle("max-cpu-loras", "3", says="no effect without --allow-runtime-lora")
    table["allow-runtime-lora"] = [Row("--allow-runtime-lora", says="give --api-key")]
    table["speculative-model"] = [Row("--speculative-model", nowhere, **missing)]
    table["speculative-method"] = [Row("--speculative-method", "eagle", says="found eagle")]
    drafter = "no effect without --speculative-model, --speculative-method or --speculative-config"
    for name, value in [("num-speculative-tokens", ["3"]), ("spec-accept", ["rejection"])]:
        table[name] += idle(name, *value, says=drafter)
    table["no-adaptive-drafts"] = idle("no-adaptive-drafts", says=drafter)
    for name in ("prompt-lookup-min", "prompt-lookup-max"):
        table[name] += idle(name, "3", says="no effect without --speculative-method ngram or --speculative-config")
    table["prompt-lookup-min"] += [Row("--prompt-lookup-min", "9", "--speculative-method", "ngram", says="--prompt-lookup-min is 9")]
    table["batch-size"] += idle("batch-size", "8", says="no effect without --batch-timeout-ms", but=("train",))
    table["batch-timeout-ms"] += idle("batch-timeout-ms", "8", says="no effect without --batch-size")
    table["max-step-slowdown"] += [Row("--max-step-slowdown", "0.5", says="expected 0, or 1 and more")]
    table["trace"] = [Row("--trace", nowhere, **missing)]
    table["config"] = [Row("--config", nowhere, **missing)]
    table["quiet"] = [Row("--quiet", "--verbose", says="--quiet and --verbose exclude each other")]
    table["seed"] += idle("seed", "3", says="no effect without --load-format dummy", commands=("decide", "score", "embed", "perplexity", "verify", "bench", "serve"))

    # Token ids, and texts that are to be written.
    for name in ("allowed-token-ids", "stop-token-ids", "logprob-token-ids"):
        table[name] = [Row(f"--{name}", HUGE, says=HUGE)]
    table["logprobs"] += idle("logprobs", "3", says="no effect without --jsonl")
    table["logprob-token-ids"] += idle("logprob-token-ids", "3", says="no effect without --logprobs or --jsonl")
    table["logit-bias"] = [Row("--logit-bias", f"{HUGE}=1", says=HUGE)]
    table["prompt-ids"] = [Row("--prompt-ids", HUGE, says=HUGE, but=("verify",)), Row("--prompt-ids", f"1,{HUGE}", says=HUGE, commands=("verify",))]
    table["min-tokens"] = [Row("--min-tokens", "1000", says="expected 0 to max_tokens")]
    table["temperature"] += idle("temperature", "0.5", says="no effect beside --label", commands=("classify",))
    table["questions"] = [Row("--questions", nowhere, **missing)]
    table["predicate"] += [Row("--predicate", "", says="expected what is asked")]
    table["label"] += [Row("--label", "x", says="the same tokens")]
    table["stop"] += [Row("--stop", "", says="expected some text")]
    table["with-logits"] = idle("with-logits", says="no effect without --jsonl")
    table["masks"] = idle("masks", says="no effect without --jsonl")
    table["spans"] = idle("spans", says="no effect without --jsonl")
    table["strict"] = idle("strict", says="no effect without --json-schema or --jsonl")
    table["json-schema"] = [Row("--json-schema", nowhere, **missing)]
    table["grammar"] = [Row("--grammar", nowhere, **missing)]
    table["jsonl"] += [Row("--jsonl", says="--jsonl reads", commands=("chat", "grammar"))]
    table["file"] = [Row("--file", nowhere, says="--file and a prompt were both given", but=("perplexity", "trace", "verify")),
                     Row("--file", nowhere, **missing, commands=("perplexity", "trace", "verify"))]
    table["system-prompt"] = [Row("--system-prompt", nowhere, **missing),
                              *idle("system-prompt", busy, "--system", "x", says="no effect beside --system", commands=("chat",))]
    table["template"] = [Row("--template", nowhere, **missing), Row("--template", busy, "--chat-template", "chatml", says="exclude each other")]
    table["chat-template-kwargs"] += [Row("--chat-template-kwargs", "{", says="not valid JSON")]
    table["prompt-name"] += [Row("--prompt-name", "nope", says="the model has no prompts")]
    table["dimensions"] = [Row("--dimensions", "1000000", says="isn't trained for embeddings of other sizes")]
    table["input"] = [Row("--input", nowhere, **missing)]
    table["output"] = [Row("--output", nowhere, **missing, but=("adapter",)),
                       Row("--output", nowhere, "--to", "peft", **missing, commands=("adapter",)),
                       Row("--output", busy, "--replay", says="exclude each other", commands=("trace",))]
    table["to"] += [Row("--to", "peft", says="give --output DIR")]
    table["json"] = flag("json") + [Row("--json", "--to", "peft", says="--json and --to exclude each other", commands=("adapter",)),
                                    Row("--json", "--replay", says="--json and --replay exclude each other", commands=("trace",))]
    table["replay"] = flag("replay")
    table["model"] += idle("model", BUNDLED, says="no effect without --replay", commands=("trace",))
    table["dump-logits"] = [Row("--dump-logits", nowhere, **missing)]
    table["adapter"] = [Row("--adapter", nowhere, **missing)]
    table["against"] = choice("against")
    table["tolerance"] = count("tolerance", "-1")
    table["python"] = [Row("--python", nowhere, says="can't be started", commands=("verify",)),
                       Row("--python", nowhere, "--backend", "mlx_lm", says="can't be started", but=("verify",)),
                       *idle("python", "python3", says="no effect without --backend", but=("verify",))]
    table["backend"] = choice("backend") + [Row("--backend", "mlx_lm", "--python", nowhere, says="can't be started"),
                                            Row("--backend", "mlx_lm", "--quantize", "q8", says="--quantize: --backend mlx_lm can't obey it")]
    table["backend-timeout"] = count("backend-timeout") + idle("backend-timeout", "9", says="no effect without --backend")
    table["check"] = [Row("--check", nowhere, **missing)]
    table["calibrate"] = [Row("--calibrate", nowhere, **missing)]
    table["gguf-type"] += [Row("--gguf-type", "q8_0", says="give --output FILE.gguf too")]
    table["bits"] += [Row("--bits", "4", "--recipe", "mixed_2_6", says="--bits and --recipe", commands=("quantize",))]
    table["group-size"] += [Row("--group-size", "32", says="give --bits too", commands=("fuse",))]

    # The server.
    table["addr"] = [Row("--addr", "x:y", says='found "x:y", expected HOST:PORT'), Row("--addr", "localhost:0", "--unix-socket", "s", says="exclude each other")]
    table["host"] = [Row("--host", "no-such.invalid", says="open to other machines"), Row("--host", "localhost", "--unix-socket", "s", says="exclude each other")]
    table["port"] += [Row("--unix-socket", "s", says="--port and --unix-socket exclude each other")]
    table["unix-socket"] = [Row("--unix-socket", "s", says="exclude each other")]
    table["api-key"] = [Row("--api-key", "", says="--api-key: empty")]
    table["allowed-host"] = [Row("--allowed-host", "", says="--allowed-host: empty"), *idle("allowed-host", "x", "--api-key", "k", says="no effect beside --api-key")]
    table["allowed-origin"] = [Row("--allowed-origin", "x", says='--allowed-origin: found "x"')]
    table["tls-cert"] = [Row("--tls-cert", nowhere, says="found --tls-cert alone"), Row("--tls-cert", nowhere, "--tls-key", nowhere, **missing)]
    table["tls-key"] = [Row("--tls-key", nowhere, says="found --tls-key alone")]
    table["max-connections"] += [Row("--max-connections", "1000000", says="note: --max-connections is 1000000")]
    table["seal-key-file"] = [Row("--seal-key-file", "/dev/null", says="not a regular file")]
    table["compaction-prompt"] = [Row("--compaction-prompt", nowhere, **missing)]
    for name in ("max-body-size", "max-header-size", "max-response-size"):
        table[name] += [Row(f"--{name}", "1", says="1 bytes, expected 1024 to")]
    table["max-resident-memory"] += [Row("--max-resident-memory", "1M", says="with the model loaded")]
    table["metrics-prefix"] += [Row("--metrics-prefix", "9", says='found "9", expected letters')]
    add("models-dir", []).append(Row("--models-dir", nowhere, **missing))
    table["served-model-name"] += [Row("--served-model-name", "", says="--served-model-name: empty", commands=("serve",))]

    # Measuring.
    for name, value in [("contexts", "9"), ("sequences", "3"), ("output-tokens", "9"), ("acceptance", "0.5"), ("draft-lengths", "2"),
                        ("temperatures", "1"), ("prompt-texts", "random")]:
        table[name] += idle(name, value, says=f"warning: --{name}: no effect on what is measured")
    table["prompt-tokens"] += idle("prompt-tokens", "9", "--tests", "decode", says="no effect on what is measured")
    table["shape"] += [Row("--shape", "small", says="--shape and --model exclude each other")]
    table["formats"] += [Row("--formats", "q4", "--quantize", "q8", says="--formats and --quantize exclude each other")]

    # Training.
    table["data"] = [Row("--data", nowhere, **missing)]
    table["valid-data"] = [Row("--valid-data", nowhere, **missing)]
    table["valid-fraction"] += [Row("--valid-fraction", "0.5", "--valid-data", busy, says="exclude each other")]
    table["mask-prompt"] = [Row("--mask-prompt", says="a plain text has no prompt"), Row("--mask-prompt", "--loss-on", "all", says="exclude each other")]
    table["loss-on"] += [Row("--loss-on", "completion", says="a plain text has no prompt")]
    table["first-token"] += [Row("--first-token", "nope", says='--first-token: found "nope"')]
    table["sequence-lengths"] = [Row("--sequence-lengths", "5:9", says='--sequence-lengths: found "5:9"')]
    table["num-layers"] += [Row("--num-layers", "1000", says="--num-layers: 1000, but the model has 6 layers")]
    table["target-modules"] += [Row("--target-modules", "c_fc", says="none of the model's linear modules")]
    for name in ("rank-pattern", "alpha-pattern"):
        table[name] = [Row(f"--{name}", "zzz=3", says="is used by no module")]
    table["lora-scale"] += [Row("--lora-scale", "2", "--lora-alpha", "3", says="exclude each other")]
    for name in ("lora-rank", "lora-alpha"):
        table[name] += idle(name, "9", "--fine-tune-type", "full", "--dry-run", says="no effect beside --fine-tune-type full")
    table["from-scratch"] += [Row("--from-scratch", says="give --fine-tune-type full, too")]
    table["initial-adapter"] = [Row("--initial-adapter", nowhere, **missing)]
    table["decay-fraction"] += idle("decay-fraction", "0.5", "--dry-run", says="no effect without --lr-schedule wsd")
    for name in ("hold-steps", "decay-steps"):
        table[name] += idle(name, "9", "--lr-schedule", "wsd", "--dry-run", says="no effect without --lr-schedule linear or --lr-schedule cosine")
    table["final-learning-rate"] += idle("final-learning-rate", "1e-6", "--dry-run", says="no effect without --lr-schedule linear")
    table["warmup-init"] += idle("warmup-init", "1e-6", "--dry-run", says="no effect without --warmup-steps")
    table["epochs"] += [Row("--epochs", "1", says="--epochs and --iters exclude each other")]
    for name in ("muon-momentum", "adamw-weight-decay"):
        table[name] += idle(name, "0.5", "--dry-run", says="no effect without --optimizer muon")
    table["adamw-learning-rate"] += [Row("--adamw-learning-rate", "0.5", says="goes with --optimizer muon")]
    table["warmup-steps"] += [Row("--warmup-steps", "9", "--dry-run", says="--warmup-steps: the learning rate doesn't reach its peak")]
    for name in ("patience", "val-batches", "steps-per-eval"):
        table[name] += idle(name, "3", "--valid-fraction", "0", "--dry-run", says="no effect without examples for evaluation")
    return table


class OptionWalkTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = self.write("text", "The old man sat by the sea. " * 40)
        self.adapter = adapter_files.write_adapter(self.directory / "adapter", 1)
        self.requests = self.write("requests.jsonl", json.dumps({
            "custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "a", "max_tokens": 1}}) + "\n")
        self.gguf = gguf_files.convert(adapter_files.MODEL, self.directory / "model.gguf")
        self.trace = self.directory / "trace"
        self.python = python_child.make(self.directory / "python", "says zeros")
        self.succeed("generate", "-m", BUNDLED, "-q", "-p", "a", "-n", "1", "--trace", self.trace)
        self.lock, self.num_outputs = threading.Lock(), 0

    def output(self):
        with self.lock:
            self.num_outputs += 1
            return self.directory / f"output-{self.num_outputs}"

    def working_arguments(self, command):
        """With these the command succeeds."""
        return {"generate": ["-p", "a b", "-n", "1"], "chat": ["-p", "a b", "-n", "1"], "score": ["-p", "a b"], "embed": ["-p", "a"],
                "classify": ["-p", "a", "--label", "x", "--label", "y"], "decide": ["-p", "a", "--predicate", "x"], "render": ["-p", "a"], "tokenize": ["-p", "a"],
                "batch": ["-i", self.requests, "-o", self.output()], "serve": ["--port", "0"], "detokenize": ["--prompt-ids", "1"],
                "grammar": ["--regex", "a", "a"], "perplexity": ["-f", self.text], "inspect": [], "list": [],
                "verify": ["--python", self.python, "--tolerance", "1e6"],
                "bench": ["--tests", "prefill", "--prompt-tokens", "1", "--repetitions", "1", "-m", BUNDLED],
                "quantize": ["-o", self.output()], "trace": ["--file", self.trace], "convert": ["-m", self.gguf, "-o", self.output()],
                "train": ["--data", self.text, "-o", self.output(), "--iters", "1", "--max-seq-length", "32"],
                "adapter": ["--adapter", self.adapter],
                "fuse": ["-m", adapter_files.MODEL, "--lora", self.adapter, "-o", self.output()]}[command]

    def run_command(self, command, arguments):
        """The exit code and standard error. A server is ended once it listens."""
        child = subprocess.Popen([BINARY, command, *map(str, self.working_arguments(command) + list(arguments))],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 env=program.environment(), text=True, errors="replace", cwd=self.directory)
        timer = threading.Timer(program.TIMEOUT, child.kill)
        timer.start()
        errors = ""
        for line in child.stderr:
            errors += line
            if "listening on " in line:
                child.send_signal(signal.SIGTERM)
        child.stderr.close()
        code = child.wait()
        timer.cancel()
        program.assert_no_report(errors)
        return code, errors

    def check(self, command, name, row):
        """What is wrong with the answer to the row; None: nothing."""
        code, errors = self.run_command(command, row.arguments)
        where = f"{command} {' '.join(map(repr, map(str, row.arguments)))}: exit code {code}: {errors[-600:]}"
        said = [line for line in errors.splitlines() if row.says in line]
        given = [str(argument).rpartition("=")[2] for argument in row.arguments if not str(argument).startswith("--")]
        names = (f"--{name}", name, name.replace("-", "_"), *filter(None, given))
        if not said or not any(one in line for line in said for one in names):
            return f"nothing names the option and says {row.says!r}: {where}"
        is_warned = any(line.startswith(("warning: ", "note: ")) for line in said)
        if code not in ((0,) if is_warned else (1, 2)):
            return where
        return None

    def options(self):
        """(command, name) of each option, in the order of the help."""
        for line in self.succeed("--dump-options").stdout.splitlines():
            row = json.loads(line)
            if row["command"]:
                yield row["command"], next(flag for flag in row["flags"] if flag.startswith("--"))[2:]

    def test_each_option_of_each_command_is_heard(self):
        table = rows(self.text / "nowhere", self.text)
        options = list(self.options())
        self.assertEqual(sorted({name for _, name in options} - set(table)), [], "options without a row")
        self.assertEqual(sorted(set(table) - {name for _, name in options}), [], "rows without an option")
        jobs = [(command, name, row) for command, name in options for row in table[name] if row.is_for(command)]
        covered = {(command, name) for command, name, _ in jobs}
        self.assertEqual([option for option in options if option not in covered], [], "options without a row for the command")
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            problems = list(filter(None, pool.map(lambda job: self.check(*job), jobs)))
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_the_commands_work_without(self):
        """Else a refusal of the walk could have another reason."""
        for command in dict.fromkeys(command for command, _ in self.options()):
            code, errors = self.run_command(command, [])
            self.assertEqual(code, 0, (command, errors))
            self.assertNotIn("warning", errors, command)


if __name__ == "__main__":
    unittest.main()
