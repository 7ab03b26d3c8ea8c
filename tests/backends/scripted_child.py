#!/usr/bin/env python3
"""A child without a model that speaks docs/backends.md: the token after t is t + 1, within the vocabulary.

What the directory that it loads is called says how it loads; the first token of a prompt, how it answers.
"""
import json
import os
import sys
import threading
import time

FAULTS = {20: "dies", 21: "hangs", 22: "floods with lines", 23: "floods with bytes", 24: "writes garbage", 25: "fails",
          26: "is slow", 27: "answers another", 28: "draws a token that isn't there", 29: "ends afterwards",
          30: "ignores cancellations"}
OPTIONS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "logprobs", "min_tokens"]

lock = threading.Lock()
cancelled = set()
name, vocab = "", 32


def write(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def load(request):
    global name, vocab
    path = request["model"]
    name = os.path.basename(path)
    if name == "hangs":
        time.sleep(1000)
    if name == "dies":
        sys.exit("no such model")
    mark = os.path.join(path, "loaded")
    if name == "once":  # then it fails once
        if os.path.exists(mark):
            os.unlink(mark)
            return write({"error": "MemoryError: no memory is left"})
        open(mark, "w").close()
    if name == "refused":
        return write({"error": "ValueError: Model type odd not supported."})
    config = os.path.join(path, "config.json")
    if os.path.exists(config):
        with open(config, encoding="utf-8") as file:
            vocab = json.load(file).get("vocab_size", vocab)
    facts = {"version": "1.2.3", "vocab_size": vocab}
    if name != "plain":
        facts |= {"options": OPTIONS, "scores": True, "memory_bytes": 1000, "max_concurrent": 2 if name == "batches" else 1}
    write(facts)


def generate(request):
    number, token = request["id"], request["ids"][-1]
    fault = FAULTS.get(request["ids"][0])
    if fault == "fails":
        return write({"id": number, "error": "RuntimeError: it went wrong"})
    for i in range(request["max_tokens"]):
        if i == 2 and fault == "dies":
            print("the last words", file=sys.stderr, flush=True)
            os.kill(os.getpid(), 9)
        if i == 2 and fault == "hangs":
            time.sleep(1000)
        if i == 2 and fault == "floods with bytes":
            while True:
                os.write(1, b"x" * 65536)
        if i == 2 and fault == "writes garbage":
            print("Loading checkpoint shards: 100%", flush=True)
        if i == 2 and fault == "draws a token that isn't there":
            write({"id": number, "token": vocab})
        if i == 2 and fault == "answers another":
            write({"id": number + 1000, "token": 1})
        while i == 2 and fault == "floods with lines":
            os.write(1, b'{"id": %d, "token": 1}\n' % number * 1000)
        if fault in ("is slow", "ignores cancellations"):
            time.sleep(0.05)
        if number in cancelled and fault != "ignores cancellations":
            return write({"id": number, "done": "cancelled"})
        token = (token + 1) % vocab
        event = {"id": number, "token": token}
        if "logprobs" in request:
            event |= {"logprob": -0.5, "top": [[token, -0.5], [0, -1.5]][:request["logprobs"]]}
        write(event)
        if token in request["stop_token_ids"]:
            return write({"id": number, "done": "stop"})
    write({"id": number, "done": "length"})
    if fault == "ends afterwards":
        os._exit(3)


def score(request):
    ids, answer = request["ids"], {"id": request["id"]}
    first = max(request.get("from", 1), 1)
    if "from" in request:
        answer["logprobs"] = [-0.25 if ids[i] == (ids[i - 1] + 1) % vocab else -4.0 for i in range(first, len(ids))]
        if "top" in request:
            answer["top"] = [[[(ids[i - 1] + 1) % vocab, -0.25]] for i in range(first, len(ids))]
    row = [8.0 if i == (ids[-1] + 1) % vocab else 0.0 for i in range(vocab)]
    if "columns" in request:
        answer["columns"] = [row[i] for i in request["columns"]]
    if request.get("row"):
        answer["row"] = row
    write(answer)


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "quit":
            break
        if request["op"] == "cancel":
            cancelled.add(request["id"])
        elif request["op"] == "info":
            write({"info": {}, "memory_bytes": 2000})
        else:
            do = {"load": load, "generate": generate, "score": score}[request["op"]]
            if request["op"] == "load":
                do(request)
            else:
                threading.Thread(target=do, args=(request,), daemon=True).start()
    os._exit(0)


main()
