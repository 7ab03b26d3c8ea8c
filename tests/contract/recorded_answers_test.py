"""Every route's answers are those recorded in recorded_answers.jsonl.gz, byte for byte.

A request of the file is sent as it stands there, and its answer (status, headers, body; a stream with all its events) must
be the recorded one, except for ids, times, the build's marks and folders. The bits come from PACELINE_ISA=baseline.

  recorded_answers_test.py           replays the file
  recorded_answers_test.py --record  asks the requests of recorded_requests.py and writes the file; says which answers changed

Record again only where a change of an answer is meant, and look at what it prints.
"""
import gzip
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from adapter_files import MODEL as TINY, write_adapter  # noqa: E402
from program import BUNDLED, ROOT  # noqa: E402
from recorded_requests import FOLDER, Requests  # noqa: E402
from serving import Client, Server  # noqa: E402

GOLDEN = HERE / "recorded_answers.jsonl.gz"
NUM_ANSWERS = 300
TEMPLATE = HERE / "tool_template.jinja"
EMBEDDINGS = ROOT / "tests/goldens/embeddings"
PLAIN = ("--chat-template", TEMPLATE, "--no-adaptive-drafts", "--max-num-seqs", "8")
SERVERS = {
    "main": (BUNDLED, (*PLAIN, "--no-prefix-caching")),
    "cached": (BUNDLED, ("--max-num-seqs", "8")),
    "drafting": (BUNDLED, (*PLAIN, "--no-prefix-caching", "--speculative-method", "ngram")),
    "reasoning": (BUNDLED, (*PLAIN, "--no-prefix-caching", "--reasoning-field", "reasoning")),
    "lenient": (BUNDLED, (*PLAIN, "--no-prefix-caching", "--ignore-unknown-fields", "--allowed-origin", "https://a.example")),
    "limited": (BUNDLED, (*PLAIN, "--max-body-size", "1K", "--max-header-size", "1K", "--max-choices", "2")),
    "adapters": (TINY, ("--lora", f"one={FOLDER}/one", "--allow-runtime-lora", "--lora-directory", FOLDER, "--api-key", "k",
                        "--max-num-seqs", "8", "--no-prefix-caching")),
    "infill": (f"{FOLDER}/fim", ("--max-num-seqs", "8", "--no-prefix-caching")),
    "reranker": (EMBEDDINGS / "reranker", ("--max-num-seqs", "8")),
    "classifier": (EMBEDDINGS / "classifier", ("--max-num-seqs", "8")),
}
# What differs from run to run, or from build to build.
MARKS = [(re.compile(pattern), replacement) for pattern, replacement in [
    (r"\b([a-z]+)([-_])[0-9a-f]{24}\b", r"\1\2ID"),
    (r'"created":[0-9]+', '"created":0'),
    (r"\bfp_[0-9a-f]{16}\b", "fp_ID"),
    (r'"(\w+_ms|\w+_per_second)":[0-9.e+-]+', r'"\1":0'),
    (r'"(draft_n|draft_n_accepted|accepted_prediction_tokens|rejected_prediction_tokens)":[0-9]+', r'"\1":0'),
    (r'"(version|commit|build_info|device)":"[^"]*"', r'"\1":""'),
    (r"no such route[^\"]*", "no such route"),  # the message lists routes
]]
UNCOMPARED = {"/openapi.json", "/metrics", "/v1/requests", "/", "/page/page.js", "/page/page.css"}  # other tests read these
CHANGING_HEADERS = {"date", "content-length", "x-request-id", "request-id", "openai-processing-ms", "etag", "last-modified"}


def normalised(text, folder):
    for pattern, replacement in MARKS:
        text = pattern.sub(replacement, text)
    return text.replace(str(folder), FOLDER)


def by_choice(text):
    """A stream's events, those of each choice together: how those of several interleave is a matter of time."""
    if not text.startswith("data: "):
        return text

    def index(event):
        found = re.match(r'data: {(?:[^\[]*"choices":\[{)?"index":([0-9]+)', event)
        return int(found[1]) if found else 999
    return "\n\n".join(sorted(text.split("\n\n"), key=index))


class Servers:
    """One of SERVERS at a time, and what it needs in a folder."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp())
        write_adapter(self.folder / "one", 1)
        write_adapter(self.folder / "two", 2)
        self.name, self.server = None, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder)

    def stop(self):
        if self.server is not None:
            self.server.stop()
        self.name, self.server = None, None

    def client(self, name):
        if name != self.name:
            self.stop()
            if name == "infill":
                self.write_infill_model()
            model, options = SERVERS[name]
            model, *options = [str(part).replace(FOLDER, str(self.folder)) for part in (model, *options)]
            self.server, self.name = Server(*options, model=model, env={"PACELINE_ISA": "baseline"}), name
        return Client(self.server.port)

    def write_infill_model(self):
        """The bundled model with tokens for infilling."""
        model = self.folder / "fim"
        shutil.copytree(BUNDLED, model)
        path = model / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        for token, name in zip(tokenizer["added_tokens"], ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]):
            token["content"] = name
        path.chmod(0o644)
        path.write_text(json.dumps(tokenizer))

    def answer(self, request):
        """The status, the headers and the body of an answer, less what changes."""
        body = request.get("body")
        if body is not None:
            body = body.replace(FOLDER, str(self.folder)).encode("utf-8", "surrogateescape")
        answer = self.client(request["server"]).ask(request["method"], request["path"], body, headers=request.get("headers"))
        head = [f"{name}: {'' if name.lower() in CHANGING_HEADERS else value}" for name, value in answer.headers.items()]
        if request["path"] in UNCOMPARED and answer.status == 200:
            return [f"{answer.status}", *head]
        return [f"{answer.status}", *head, "", *by_choice(normalised(answer.body.decode(), self.folder)).split("\n")]

    def answer_as(self, request, expected):
        """The answer, asked again while it isn't the expected one: a server that was late sends larger events."""
        for pause in [0, 0.5, 2] if '"stream": true' in request.get("body", "") else [0]:
            time.sleep(pause)
            answer = self.answer(request)
            if expected is None or answer == expected:
                break
        return answer


def recorded():
    with gzip.open(GOLDEN, "rt") as file:
        return [json.loads(line) for line in file]


def changes(request, expected, answer):
    """The request and the lines that differ, each from shortly before the first difference."""
    shown = [json.dumps(request)[:600]]
    for old, new in itertools.zip_longest(expected, answer):
        if old != new:
            start = max(0, len(os.path.commonprefix([old or "", new or ""])) - 60)
            shown += [f"- {(old or '')[start:start + 200]}", f"+ {(new or '')[start:start + 200]}"]
    return "\n".join(shown[:13])


def record():
    before = {json.dumps(pair["request"]): pair["answer"] for pair in recorded()} if GOLDEN.exists() else {}
    pairs = []
    with Servers() as servers:
        api = servers.client("main").get("/openapi.json").json
        for request in Requests(api, list(SERVERS)).made():
            if request["path"].startswith(("/v1/responses", "/api/")):
                continue  # full of times and ids; they have tests of their own
            old = before.get(json.dumps(request))
            answer = servers.answer_as(request, old)
            if old is not None and old != answer:
                print(changes(request, old, answer))
            pairs.append({"request": request, "answer": answer})
    with GOLDEN.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        packed.write("".join(json.dumps(pair) + "\n" for pair in pairs).encode())
    print(f"{len(pairs)} answers, {len(before)} before")


class RecordedAnswersTest(unittest.TestCase):
    def test_no_byte_moved(self):
        pairs = recorded()
        self.assertGreaterEqual(len(pairs), NUM_ANSWERS)
        with Servers() as servers:
            for index, pair in enumerate(pairs):
                answer = servers.answer_as(pair["request"], pair["answer"])
                with self.subTest(index=index):
                    self.assertTrue(answer == pair["answer"], changes(pair["request"], pair["answer"], answer))


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record()
    else:
        unittest.main()
