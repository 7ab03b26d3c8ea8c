"""PyTorch's and transformers' speed at the shapes that paceline_gpu_check measures: JSON lines, as they are measured.

    torch_side.py operations|prefill|decode [--tiny]

Runs in a process of its own, by a Python that has torch; names of rows are those of paceline's. --tiny: small shapes on
the CPU, to try the script without a GPU.
"""
import argparse
import copy
import json
import statistics
import time

import torch

# hidden, mlp, heads, kv heads, head size, vocabulary
SHAPES = {"llama-3.2-1b": (2048, 8192, 32, 8, 64, 128256),
          "qwen3-0.6b": (1024, 3072, 16, 8, 128, 151936),
          "gemma-3-1b": (1152, 6912, 4, 1, 256, 262144)}
ROTATED_BYTES = 200e6
LAYERS = {"llama-3.2-1b": 16, "qwen3-0.6b": 28, "gemma-3-1b": 26}
CONTEXT = 1024
DECODED = 32  # tokens
PROMPT = 64
DEVICE = "cuda"


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


def measure_products(name, shape):
    hidden, mlp, heads, kv_heads, head, vocab = shape
    products = {"qkv": ((heads + 2 * kv_heads) * head, hidden), "o": (hidden, heads * head),
                "gate and up": (2 * mlp, hidden), "down": (hidden, mlp), "head": (vocab, hidden)}
    for product, (n, k) in products.items():
        copies = max(1, min(64, int(ROTATED_BYTES / (2 * n * k))))
        weights = [torch.randn(n, k, device=DEVICE, dtype=torch.bfloat16) for _ in range(copies)]
        for rows in (1, 8, 64, 256, 2048):
            if product == "head" and rows > 256:
                continue
            x = torch.randn(rows, k, device=DEVICE, dtype=torch.bfloat16)
            seconds = median_seconds(lambda i: torch.mm(x, weights[i % copies].T))
            say(f"{name} {product} bfloat16 x {rows}", microseconds=seconds * 1e6)


def measure_attention(name, shape):
    _, _, heads, kv_heads, head, _ = shape

    def tensor(rows, count, length):
        return torch.randn(rows, count, length, head, device=DEVICE, dtype=torch.bfloat16)

    def attend(q, k, v, is_causal):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=True)

    for rows in (1, 8, 64, 256):
        q, k, v = tensor(rows, heads, 1), tensor(rows, kv_heads, CONTEXT), tensor(rows, kv_heads, CONTEXT)
        say(f"{name} attention, {rows} rows behind {CONTEXT}",
            microseconds=median_seconds(lambda i: attend(q, k, v, False)) * 1e6)
    for length in (512, 2048, 8192):
        q, k, v = tensor(1, heads, length), tensor(1, kv_heads, length), tensor(1, kv_heads, length)
        say(f"{name} attention, a prompt of {length}",
            microseconds=median_seconds(lambda i: attend(q, k, v, True), 5) * 1e6)


def make_model(name):
    from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, Qwen3Config
    hidden, mlp, heads, kv_heads, head, vocab = SHAPES[name]
    kinds = {"llama-3.2-1b": LlamaConfig, "qwen3-0.6b": Qwen3Config, "gemma-3-1b": Gemma3TextConfig}
    config = kinds[name](hidden_size=hidden, intermediate_size=mlp, num_hidden_layers=LAYERS[name], vocab_size=vocab,
                         num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head,
                         max_position_embeddings=32768, tie_word_embeddings=True)
    with torch.device(DEVICE):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def measure_prefill(name, model):
    for length in (512, 2048, 8192):
        ids = torch.randint(3, 1000, (1, length), device=DEVICE)
        seconds = median_seconds(lambda i: model(input_ids=ids, use_cache=False, logits_to_keep=1), 2)
        say(f"{name} prefill {length}", tokens_per_second=length / seconds)


def measure_decode(name, model):
    """With a static cache and a compiled step; the first call of each number of sequences compiles."""
    for sequences in (1, 8, 64, 256):
        attempt(f"{name} decode {sequences} behind {PROMPT}", measure_decode_of, name, model, sequences)
        torch.compiler.reset()


def measure_decode_of(name, model, sequences):
    from transformers import StaticCache
    # Lengths that are numbers would be inputs of the step's graph, which is captured anew for each value of one: so positions
    # are tensors, and layers with a window, which nothing here reaches, have a cache like the others'.
    config = copy.deepcopy(model.config)
    config.layer_types = ["full_attention"] * config.num_hidden_layers
    cache = StaticCache(config=config, max_cache_len=PROMPT + 2 * DECODED)

    def step(ids, positions):
        logits = model(input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        return logits[:, -1].argmax(dim=-1, keepdim=True)

    compiled = torch.compile(step, mode="reduce-overhead", fullgraph=True)

    positions = torch.arange(PROMPT + 2 * DECODED, device=DEVICE).unsqueeze(0)

    def decode(token, first, count):
        """Each step's graph writes its output over that of the step before, which is copied for that."""
        for position in range(first, first + count):
            torch.compiler.cudagraph_mark_step_begin()
            token = compiled(token, positions[:, position:position + 1]).clone()
        return token

    token = step(torch.randint(3, 1000, (sequences, PROMPT), device=DEVICE), positions[:, :PROMPT]).clone()
    token = decode(token, PROMPT, DECODED // 2)
    synchronize()
    begin = time.perf_counter()
    decode(token, PROMPT + DECODED // 2, DECODED)
    synchronize()
    seconds = time.perf_counter() - begin
    say(f"{name} decode {sequences} behind {PROMPT}", tokens_per_second=DECODED * sequences / seconds)


def attempt(name, measure, *arguments):
    try:
        with torch.inference_mode():
            measure(*arguments)
    except Exception as error:  # whatever it is, the other measurements go on
        say(name, left_out=f"{type(error).__name__}: {error}"[:200])
    if DEVICE == "cuda":
        torch.cuda.empty_cache()


def measure_operations():
    for name, shape in SHAPES.items():
        attempt(f"{name} torch products", measure_products, name, shape)
        attempt(f"{name} torch attention", measure_attention, name, shape)


def measure_models(part):
    for name in SHAPES:
        try:
            model = make_model(name)
        except Exception as error:
            say(f"{name} transformers {part}", left_out=f"{type(error).__name__}: {error}"[:200])
            continue
        attempt(f"{name} transformers {part}", {"prefill": measure_prefill, "decode": measure_decode}[part], name, model)
        del model


def shrink():
    """For a trial on the CPU."""
    global DEVICE, ROTATED_BYTES, CONTEXT, DECODED
    DEVICE, ROTATED_BYTES, CONTEXT, DECODED = "cpu", 1e5, 64, 4
    for name, (_, _, heads, kv_heads, _, _) in SHAPES.items():
        SHAPES[name] = (64, 128, heads, kv_heads, 16, 1024)
        LAYERS[name] = 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("operations", "prefill", "decode"))
    parser.add_argument("--tiny", action="store_true")
    asked = parser.parse_args()
    if asked.tiny:
        shrink()
    if asked.part == "operations":
        measure_operations()
    else:
        measure_models(asked.part)


if __name__ == "__main__":
    main()
