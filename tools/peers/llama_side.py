"""One measurement of llama.cpp in a process of its own: a request as JSON on standard input, its answer on standard
output.

It calls llama_decode through the C interface that the package llama-cpp-python passes on, as llama-bench and
llama-batched-bench do: nothing is sampled, and no text is made. Requests:
  {"do": "describe"}                                     -> what was built
  {"do": "run", "file", "threads", "test", "settings"}   -> rates and memory
  {"do": "score", "file", "threads", "ids"}              -> the log-probability of each id but the first
A test is {"kind": "prefill", "prompt"}, {"kind": "decode", "output"}, {"kind": "batch", "sequences", "prompt",
"output"}, to which "length" may be added: tokens that each sequence has room for, or {"kind": "embed", "texts",
"tokens"}.
"""
import ctypes
import json
import sys
import time
from pathlib import Path

CACHE_TYPES = {"f32": 0, "f16": 1, "q8_0": 8, "bf16": 30}  # enum ggml_type
MAPPED, READ = 1, 0                                        # enum llama_load_mode
POOLING_LAST = 3                                           # enum llama_pooling_type
WARM_TOKENS = 16
CELLS = 256  # contexts of a sequence are rounded up to this


def status_bytes(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def some_ids(count, vocab_size, seed=0):
    return [(i + 1) * 7919 % (vocab_size - 2) for i in range(seed * count, (seed + 1) * count)]


def silence(lib):
    """Nothing of its log but errors."""
    @lib.llama_log_callback
    def keep_errors(level, text, _):
        if level == 4:  # GGML_LOG_LEVEL_ERROR
            sys.stderr.write(text.decode("utf-8", "replace"))
    lib.llama_log_set(keep_errors, None)
    return keep_errors  # which must live as long as the library


class Model:
    def __init__(self, lib, file, settings):
        self.lib = lib
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0
        # How the file is read: releases before 2026 have a flag in its place.
        is_mapped = settings.get("mapped", True)
        if hasattr(params, "load_mode"):
            params.load_mode = MAPPED if is_mapped else READ
        else:
            params.use_mmap = is_mapped
        if hasattr(params, "use_extra_bufts"):
            params.use_extra_bufts = settings.get("repacked", True)
        self.model = lib.llama_model_load_from_file(file.encode(), params)
        if not self.model:
            raise RuntimeError(f"{file}: llama.cpp can't load it (its reason is above)")
        self.vocab_size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))


class Context:
    """Sequences side by side, and their tokens through the model."""

    def __init__(self, model, threads, settings, sequences, tokens, batch):
        lib = self.lib = model.lib
        self.vocab_size = model.vocab_size
        params = lib.llama_context_default_params()
        unified = settings.get("unified", False)
        length = tokens if unified else -(-tokens // CELLS) * CELLS
        params.n_ctx = sequences * length
        params.n_seq_max = sequences
        params.n_batch = batch
        params.n_ubatch = min(settings.get("ubatch", 512), batch)
        if hasattr(params, "n_outputs_max"):
            params.n_outputs_max = max(sequences, settings.get("outputs", 1))
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = 1 if settings.get("flash", True) else 0
        params.type_k = params.type_v = CACHE_TYPES[settings.get("cache", "f16")]
        params.kv_unified = unified
        params.no_perf = True
        if settings.get("embeds"):
            params.embeddings, params.pooling_type = True, POOLING_LAST
        self.context = lib.llama_init_from_model(model.model, params)
        if not self.context:
            raise RuntimeError(f"llama.cpp makes no context with {settings} (its reason is above)")
        self.batch = lib.llama_batch_init(batch, 0, 1)

    def decode(self, tokens):
        """tokens: (id, position, sequence, whether its logits are wanted) of each."""
        batch = self.batch
        batch.n_tokens = len(tokens)
        for i, (token, position, sequence, wanted) in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, wanted
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
        began = time.perf_counter()
        code = self.lib.llama_decode(self.context, batch)
        if code != 0:
            raise RuntimeError(f"llama_decode returned {code}")
        self.lib.llama_synchronize(self.context)
        return time.perf_counter() - began

    def forget(self):
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), False)

    def prompt(self, count, sequence=0):
        ids = some_ids(count, self.vocab_size, sequence)
        return [(token, i, sequence, i == count - 1) for i, token in enumerate(ids)]


def run_prefill(model, request):
    count = request["test"]["prompt"]
    context = Context(model, request["threads"], request["settings"], 1, count, count)
    context.decode(context.prompt(count))
    context.forget()
    return {"prefill": count / context.decode(context.prompt(count))}


def run_decode(model, request):
    count = request["test"]["output"]
    context = Context(model, request["threads"], request["settings"], 1, count + WARM_TOKENS, WARM_TOKENS)
    ids = some_ids(count + WARM_TOKENS, model.vocab_size)
    seconds = 0
    for position, token in enumerate(ids):
        took = context.decode([(token, position, 0, True)])
        seconds += took if position >= WARM_TOKENS else 0
    return {"decode": count / seconds}


def run_batch(model, request):
    test = request["test"]
    sequences, prompt, output = test["sequences"], test["prompt"], test["output"]
    length = test.get("length", prompt + output)
    context = Context(model, request["threads"], request["settings"], sequences, length, sequences * prompt)
    context.decode(context.prompt(prompt))
    context.forget()
    # The first token of each comes out of its prompt, so output - 1 steps follow.
    prefill = context.decode([one for sequence in range(sequences) for one in context.prompt(prompt, sequence)])
    ids, decode = some_ids(sequences * output, model.vocab_size), 0
    for step in range(output - 1):
        decode += context.decode([(ids[step * sequences + sequence], prompt + step, sequence, True)
                                  for sequence in range(sequences)])
    return {"total": sequences * (prompt + output) / (prefill + decode), "decode": sequences * (output - 1) / decode}


def run_embed(model, request):
    test, settings = request["test"], request["settings"]
    texts, length = test["texts"], test["tokens"]
    # A text's tokens must be computed together.
    together = max(1, settings["ubatch"] // length)
    settings = {**settings, "embeds": True, "outputs": together * length}
    context = Context(model, request["threads"], settings, together, length, together * length)

    def embed(first, count):
        context.forget()
        ids = some_ids(count * length, model.vocab_size, first)
        return context.decode([(ids[text * length + i], i, text, True) for text in range(count) for i in range(length)])
    embed(0, together)
    seconds = sum(embed(first, min(together, texts - first)) for first in range(0, texts, together))
    return {"embed": texts / seconds}


def run(lib, request):
    before = status_bytes("VmRSS")  # the interpreter and the libraries, which are not the peer's
    model = Model(lib, request["file"], request["settings"])
    kinds = {"prefill": run_prefill, "decode": run_decode, "batch": run_batch, "embed": run_embed}
    measure = kinds[request["test"]["kind"]]
    rates = measure(model, request)
    return {"rates": rates, "peak_bytes": status_bytes("VmHWM") - before}


def score(lib, request):
    import numpy as np
    ids = request["ids"]
    model = Model(lib, request["file"], {})
    context = Context(model, request["threads"], {"outputs": len(ids)}, 1, len(ids), len(ids))
    context.decode([(token, i, 0, True) for i, token in enumerate(ids)])
    logprobs = []
    for i, following in enumerate(ids[1:]):
        row = ctypes.cast(lib.llama_get_logits_ith(context.context, i), ctypes.POINTER(ctypes.c_float))
        logits = np.ctypeslib.as_array(row, (model.vocab_size,)).astype(np.float64)
        logprobs.append(float(logits[following] - logits.max() - np.log(np.exp(logits - logits.max()).sum())))
    return {"logprobs": logprobs}


def describe(lib, _):
    from importlib.metadata import version
    said = lib.llama_version().decode() if hasattr(lib, "llama_version") else None
    return {"package": version("llama-cpp-python"), "version": said, "system": lib.llama_print_system_info().decode()}


def main():
    request = json.load(sys.stdin)
    import llama_cpp.llama_cpp as lib
    kept = silence(lib)
    lib.llama_backend_init()
    answer = {"describe": describe, "run": run, "score": score}[request["do"]](lib, request)
    print(json.dumps(answer))
    del kept


if __name__ == "__main__":
    main()
