"""PyTorch's speed at what Paceline is measured by: JSON lines, as they are measured.

    torch_side.py kernels|products|attention|prompts|decode [--seconds N] [--tiny]

Runs in a process of its own, by a Python that has torch; names of rows are those of paceline's. decode and prompts are
Llama-3.2-1B's shape in plain PyTorch as gpt-fast does it: a static cache, torch.compile, a CUDA graph. One layer is compiled,
with the next layer's norm behind it, so that sixteen layers take one compilation and fuse what a compiled model fuses; where
the time is too short for that, the graph alone is measured. --tiny: small shapes on the CPU, to try the script without a GPU.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F

# hidden, mlp, heads, kv heads, head size, vocabulary
SHAPES = {"llama-3.2-1b": (2048, 8192, 32, 8, 64, 128256),
          "qwen3-0.6b": (1024, 3072, 16, 8, 128, 151936),
          "gemma-3-1b": (1152, 6912, 4, 1, 256, 262144)}
LARGE_SHAPE = {"llama-3.1-8b": (4096, 14336, 32, 8, 128, 128256)}
MODEL, LAYERS = "llama-3.2-1b", 16
ROTATED_BYTES = 200e6
CONTEXT = 1024
PROMPTS = (512, 2048, 8192)
PROMPT_ROWS = 2048
# (sequences, position), the most telling first.
DECODED = ((256, 64), (1, 64), (64, 64), (8, 64), (256, 1024), (64, 1024), (1, 1024), (8, 1024))
MOST_COMPILE_S = 45.0
DEVICE = "cuda"
BACKEND = "inductor"


def say(name, **figures):
    print(json.dumps({"name": name, **figures}), flush=True)


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def median_seconds(call, calls=20):
    """The median of 5 batches of calls that don't wait for each other."""
    for index in range(3):
        call(index)
    synchronize()
    batches = []
    for _ in range(5):
        begin = time.perf_counter()
        for index in range(calls):
            call(index)
        synchronize()
        batches.append((time.perf_counter() - begin) / calls)
    return statistics.median(batches)


def products_of(shape):
    hidden, mlp, heads, kv_heads, head, vocab = shape
    return {"qkv": ((heads + 2 * kv_heads) * head, hidden), "o": (hidden, heads * head), "gate and up": (2 * mlp, hidden),
            "down": (hidden, mlp), "head": (vocab, hidden)}


def measure_products(name, shape, all_rows):
    for product, (n, k) in products_of(shape).items():
        copies = max(1, min(64, int(ROTATED_BYTES / (2 * n * k))))
        weights = [torch.randn(n, k, device=DEVICE, dtype=torch.bfloat16) for _ in range(copies)]
        for rows in all_rows:
            if product == "head" and rows > 256:
                continue
            x = torch.randn(rows, k, device=DEVICE, dtype=torch.bfloat16)
            seconds = median_seconds(lambda i: torch.mm(x, weights[i % copies].T))
            say(f"{name} {product} bfloat16 x {rows}", microseconds=seconds * 1e6, flops_per_second=2 * n * k * rows / seconds)


def heads_of(shape, sequences, queries, keys):
    _, _, heads, kv_heads, head, _ = shape
    sizes = ((heads, queries), (kv_heads, keys), (kv_heads, keys))
    return [torch.randn(sequences, count, length, head, device=DEVICE, dtype=torch.bfloat16) for count, length in sizes]


def measure_decoded_attention(name, shape):
    for rows in (1, 8, 64, 256):
        q, k, v = heads_of(shape, rows, 1, CONTEXT)
        seconds = median_seconds(lambda i: F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
        say(f"{name} attention, {rows} rows behind {CONTEXT}", microseconds=seconds * 1e6)


def measure_prompt_attention(name, shape, lengths):
    """The faster of FlashAttention and cuDNN."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    kinds = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION} if DEVICE == "cuda" else {
        "math": SDPBackend.MATH}
    for length in lengths:
        q, k, v = heads_of(shape, 1, length, length)
        seconds, faults = {}, []
        for kind, backend in kinds.items():
            try:
                with sdpa_kernel([backend]):
                    seconds[kind] = median_seconds(
                        lambda i: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), 5)
            except Exception as error:
                faults.append(f"{kind}: {error}")
        row = f"{name} attention, a prompt of {length}"
        if not seconds:
            say(row, left_out="; ".join(faults)[:200])
            continue
        best = min(seconds, key=seconds.get)
        flops = 4 * shape[2] * shape[4] * length * (length + 1) / 2
        say(row, microseconds=seconds[best] * 1e6, flops_per_second=flops / seconds[best], how=best)


class Llama:
    """Random weights, and the three functions of which a forward pass consists."""

    def __init__(self, shape, layers):
        self.hidden, self.mlp, self.heads, self.kv_heads, self.head, self.vocab = shape
        generator = torch.Generator(device=DEVICE).manual_seed(1)

        def weight(*sizes, add=0.0):
            numbers = torch.randn(*sizes, device=DEVICE, generator=generator, dtype=torch.float32)
            return (numbers * 0.02 + add).to(torch.bfloat16)

        kv = self.kv_heads * self.head
        self.embedding = weight(self.vocab, self.hidden)
        norms = [weight(self.hidden, add=1.0) for _ in range(2 * layers + 1)]
        self.first_norm = norms[0]
        self.layers = [(weight(self.heads * self.head + 2 * kv, self.hidden), weight(self.hidden, self.heads * self.head),
                        norms[2 * i + 1], weight(2 * self.mlp, self.hidden), weight(self.hidden, self.mlp), norms[2 * i + 2])
                       for i in range(layers)]
        self.frequencies = 1.0 / (500000 ** (torch.arange(0, self.head, 2, device=DEVICE).float() / self.head))
        self.functions = (self.begin, self.layer, self.end)

    def use(self, convert):
        """Converts each function, as torch.compile does."""
        self.functions = tuple(convert(function) for function in (self.begin, self.layer, self.end))

    def forward(self, ids, positions, caches, mask):
        """Token ids; `caches` of keys and values of each layer, or None for a prompt without one."""
        begin, layer, end = self.functions
        x, h, cosine, sine = begin(ids, positions)
        for index, weights in enumerate(self.layers):
            x, h = layer(x, h, cosine, sine, weights, positions, caches[index] if caches else None, mask)
        return end(h)

    def begin(self, ids, positions):
        x = F.embedding(ids, self.embedding)
        angles = positions[:, :, None].float() * self.frequencies
        return x, norm(x, self.first_norm), *(part[:, :, None].to(x.dtype) for part in (torch.cos(angles), torch.sin(angles)))

    def layer(self, x, h, cosine, sine, weights, positions, cache, mask):
        qkv, o, mlp_norm, gate_up, down, next_norm = weights
        count, length, _ = x.shape
        q, k, v = (h @ qkv.T).view(count, length, -1, self.head).split([self.heads, self.kv_heads, self.kv_heads], 2)
        q, k, v = (part.transpose(1, 2) for part in (rotate(q, cosine, sine), rotate(k, cosine, sine), v))
        if cache is not None:
            keys, values = cache
            keys.index_copy_(2, positions[0], k)
            values.index_copy_(2, positions[0], v)
            out = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
        else:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + out.transpose(1, 2).reshape(count, length, -1) @ o.T
        gate, up = (norm(x, mlp_norm) @ gate_up.T).chunk(2, -1)
        x = x + (F.silu(gate) * up) @ down.T
        return x, norm(x, next_norm)

    def end(self, h):
        return (h[:, -1] @ self.embedding.T).argmax(-1)


def norm(x, weight):
    return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight


def rotate(x, cosine, sine):
    low, high = x.chunk(2, -1)
    return torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1)


class Compilations:
    """Compiles the model's functions as long as there is time for it."""

    def __init__(self, model, seconds):
        self._model = model
        self._end = time.monotonic() + seconds
        self._slowest = 0.0

    def left(self):
        return self._end - time.monotonic()

    def prepare(self, call):
        """Runs the call until it is compiled and captured; (a function that repeats it, how)."""
        how = "CUDA graph without torch.compile"
        if self.left() > max(10.0, 1.3 * self._slowest):
            begin = time.monotonic()
            try:
                torch.compiler.reset()
                self._model.use(lambda f: torch.compile(f, fullgraph=True, dynamic=False, backend=BACKEND))
                call()
                synchronize()
                how = "torch.compile, CUDA graph"
            except Exception as error:
                how += f" ({type(error).__name__}: {error})"[:150]
                self._model.use(lambda f: f)
            self._slowest = max(self._slowest, time.monotonic() - begin)
        else:
            self._model.use(lambda f: f)
        return captured(call), how


def captured(call):
    if DEVICE != "cuda":
        return call
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def measure_decode(model, compilations, sequences, position):
    capacity = 2 * position
    caches = [tuple(torch.zeros(sequences, model.kv_heads, capacity, model.head, device=DEVICE, dtype=torch.bfloat16)
                    for _ in range(2)) for _ in model.layers]
    ids = torch.ones(sequences, 1, dtype=torch.long, device=DEVICE)
    positions = torch.full((sequences, 1), position, dtype=torch.long, device=DEVICE)
    mask = (torch.arange(capacity, device=DEVICE) <= position)[None, None, None].expand(sequences, 1, 1, capacity)
    begin = time.monotonic()
    call, how = compilations.prepare(lambda: model.forward(ids, positions, caches, mask))
    prepared = time.monotonic() - begin
    seconds = median_seconds(lambda i: call(), 30)
    say(f"{MODEL} decode {sequences} behind {position}", tokens_per_second=sequences / seconds, how=how,
        prepared_seconds=round(prepared, 1))


def measure_prompt(model, compilations, length):
    ids = torch.ones(1, length, dtype=torch.long, device=DEVICE)
    positions = torch.arange(length, device=DEVICE)[None]
    begin = time.monotonic()
    call, how = compilations.prepare(lambda: model.forward(ids, positions, None, None))
    prepared = time.monotonic() - begin
    seconds = median_seconds(lambda i: call(), 5)
    say(f"{MODEL} prefill {length}", tokens_per_second=length / seconds, how=how, prepared_seconds=round(prepared, 1))


def attempt(name, measure, *arguments):
    try:
        with torch.no_grad():
            measure(*arguments)
    except Exception as error:  # whatever it is, the other measurements go on
        say(name, left_out=f"{type(error).__name__}: {error}"[:200])
    if DEVICE == "cuda":
        torch.cuda.empty_cache()


def measure_models(part, seconds):
    compilations = None
    model = Llama(SHAPES[MODEL], LAYERS)
    compilations = Compilations(model, seconds)
    for case in DECODED if part == "decode" else PROMPTS:
        if compilations.left() < 3:
            say(f"{MODEL} {part} {case}", left_out="no time was left")
        elif part == "decode":
            attempt(f"{MODEL} decode {case[0]} behind {case[1]}", measure_decode, model, compilations, *case)
        else:
            attempt(f"{MODEL} prefill {case}", measure_prompt, model, compilations, case)


def measure_kernels():
    for name, shape in SHAPES.items():
        attempt(f"{name} torch products", measure_products, name, shape, (1, 8, 64, 256, 2048))
        attempt(f"{name} torch attention", measure_decoded_attention, name, shape)
        attempt(f"{name} torch attention of prompts", measure_prompt_attention, name, shape, PROMPTS)


def measure_operations(part):
    for name, shape in {MODEL: SHAPES[MODEL], **LARGE_SHAPE}.items():
        if part == "products":
            attempt(f"{name} torch products", measure_products, name, shape, (PROMPT_ROWS,))
        else:
            attempt(f"{name} torch attention", measure_prompt_attention, name, shape, PROMPTS)


def shrink():
    """For a trial on the CPU."""
    global DEVICE, ROTATED_BYTES, CONTEXT, DECODED, LAYERS, PROMPTS, PROMPT_ROWS, BACKEND
    DEVICE, ROTATED_BYTES, CONTEXT, LAYERS, BACKEND = "cpu", 1e5, 64, 2, "aot_eager"
    DECODED, PROMPTS, PROMPT_ROWS = ((2, 4), (1, 4)), (16, 32), 16
    for shapes in (SHAPES, LARGE_SHAPE):
        for name, (_, _, heads, kv_heads, _, _) in shapes.items():
            shapes[name] = (64, 128, heads, kv_heads, 16, 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("kernels", "products", "attention", "prompts", "decode"))
    parser.add_argument("--seconds", type=float, default=300, help="after which nothing else is compiled")
    parser.add_argument("--tiny", action="store_true")
    asked = parser.parse_args()
    if asked.tiny:
        shrink()
    if asked.part == "kernels":
        measure_kernels()
    elif asked.part in ("products", "attention"):
        measure_operations(asked.part)
    else:
        measure_models(asked.part, asked.seconds)


if __name__ == "__main__":
    main()
