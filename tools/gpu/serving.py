"""A server on the device: a completion and a streamed chat have the tokens of `paceline generate`, and SIGTERM ends it."""
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

from gpu import children, generation
from gpu.outcome import Outcome
from gpu.programs import ROOT

MODEL = ROOT / "models/paceline-10m"
LISTENING = "listening on "
PROMPT = "The old house"
MESSAGES = [{"role": "user", "content": "Tell me."}]


class Server:
    def __init__(self, url, end):
        self._url, self._end = url, end
        self.port = int(url.rsplit(":", 1)[1])

    def ask(self, path, body=None):
        """The answer's bytes. Raises NoAnswer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=max(1.0, self._end - time.monotonic())) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            raise generation.NoAnswer(f"{path}: {error.code} {error.read()[:200]!r}") from error
        except OSError as error:
            raise generation.NoAnswer(f"{path}: {error}") from error

    def wait_until_ready(self):
        while True:
            try:
                return self.ask("/ready")
            except generation.NoAnswer:
                if time.monotonic() > self._end:
                    raise
                time.sleep(0.05)

    def complete(self, **fields):
        answer = json.loads(self.ask("/v1/completions", {"prompt": PROMPT, "return_token_ids": True, **fields}))
        return answer["choices"][0]["token_ids"]

    def stream_chat(self, **fields):
        body = {"messages": MESSAGES, "return_token_ids": True, "stream": True, **fields}
        tokens, is_done = [], False
        for line in self.ask("/v1/chat/completions", body).decode().splitlines():
            if line.startswith("data: "):
                is_done = line == "data: [DONE]"
                event = {"choices": []} if is_done else json.loads(line.removeprefix("data: "))
                tokens += [token for choice in event["choices"] for token in choice.get("token_ids") or []]
        if not is_done:
            raise generation.NoAnswer("a chat's stream ended without [DONE]")
        return tokens

    def tokenize(self, **fields):
        return json.loads(self.ask("/tokenize", fields))["tokens"]


def last_line(file):
    file.seek(0)
    return (file.read().strip().splitlines() or [""])[-1]


@contextmanager
def serve(programs, setting, model, options, end):
    """(Server, its process). The process group is ended in any case."""
    command = programs.command("paceline", "serve", "-m", model, "--port", "0", "--device", setting.device, *options)
    variables = {"PACELINE_CUDA_EMULATION": "1"} if setting.emulated else {}
    with tempfile.TemporaryFile("a+") as errors:  # the child appends wherever this process reads
        child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=errors, start_new_session=True, env={**os.environ, **variables})
        try:
            while True:
                errors.seek(0)
                found = [line for line in errors.read().splitlines(keepends=True) if LISTENING in line and line.endswith("\n")]
                if found:
                    break
                if child.poll() is not None or time.monotonic() > end:
                    raise generation.NoAnswer(f"the server doesn't listen: {last_line(errors)}")
                time.sleep(0.05)
            server = Server(found[0].split(LISTENING)[1].strip(), end)
            server.wait_until_ready()
            yield server, child
        finally:
            children.end_group(child)


def run(programs, setting, limit_s):
    outcome = Outcome("serve")
    if not generation.has_devices(programs):
        return generation.lacks_devices(outcome, setting)
    end = time.monotonic() + limit_s
    count = 2 if setting.emulated else 32
    options = ["--kv-cache-memory-bytes", "4M"] if setting.emulated else []
    fields = {"max_tokens": count, "temperature": 0, "seed": 1}
    try:
        with serve(programs, setting, MODEL, options, end) as (server, child):
            completion, chat = server.complete(**fields), server.stream_chat(**fields)
            prompts = [server.tokenize(prompt=PROMPT), server.tokenize(messages=MESSAGES, add_generation_prompt=True)]
            child.send_signal(signal.SIGTERM)
            outcome.check("SIGTERM ends the server with 0", wait_for(child, end) == 0, found=child.poll())
        items = [{"prompt_ids": prompt, **fields} for prompt in prompts]
        expected = generation.generate(programs, MODEL, items, setting.device, end - time.monotonic(), *options,
                                       emulated=setting.emulated)
        for name, found, tokens in zip(("a completion", "a streamed chat"), (completion, chat), expected):
            outcome.check(f"{name} of {count} tokens", found == tokens[0], found=found, expected=tokens[0])
    except generation.NoAnswer as error:
        outcome.check("answers", False, fault=str(error))
    return outcome.judge()


def wait_for(child, end):
    """Its exit code; None where it does not end."""
    try:
        return child.wait(max(1.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
