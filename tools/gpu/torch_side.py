"""PyTorch's and transformers' speed at the shapes that paceline_gpu_check measures: JSON lines, as they are measured.

Runs in a process of its own, by a Python that has torch; names of rows are those of paceline's.
"""
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


def say(name, **figures):
    print(json.dumps({"name": name, **figures}), flush=True)


def median_seconds(call, calls=20):
    """The median of 5 batches of calls that don't wait for each other."""
    for index in range(3):
        call(index)
    torch.cuda.synchronize()
    batches = []
    for _ in range(5):
        begin = time.perf_counter()
        for index in range(calls):
            call(index)
        torch.cuda.synchronize()
        batches.append((time.perf_counter() - begin) / calls)
    return statistics.median(batches)


def measure_products(name, shape):
    hidden, mlp, heads, kv_heads, head, vocab = shape
    products = {"qkv": ((heads + 2 * kv_heads) * head, hidden), "o": (hidden, heads * head),
                "gate and up": (2 * mlp, hidden), "down": (hidden, mlp), "head": (vocab, hidden)}
    for product, (n, k) in products.items():
        copies = max(1, min(64, int(ROTATED_BYTES / (2 * n * k))))
        weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(copies)]
        for rows in (1, 8, 64, 256, 2048):
            if product == "head" and rows > 256:
                continue
            x = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
            seconds = median_seconds(lambda i: torch.mm(x, weights[i % copies].T))
            say(f"{name} {product} bfloat16 x {rows}", microseconds=seconds * 1e6)


def measure_attention(name, shape):
    _, _, heads, kv_heads, head, _ = shape

    def tensor(rows, count, length):
        return torch.randn(rows, count, length, head, device="cuda", dtype=torch.bfloat16)

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
    with torch.device("cuda"):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def measure_prefill(name, model):
    for length in (512, 2048, 8192):
        ids = torch.randint(3, 1000, (1, length), device="cuda")
        seconds = median_seconds(lambda i: model(input_ids=ids, use_cache=False, logits_to_keep=1), 2)
        say(f"{name} prefill {length}", tokens_per_second=length / seconds)


def measure_decode(name, model):
    """With a static cache and a compiled forward; the first call compiles."""
    model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)
    for sequences in (1, 8, 64, 256):
        ids = torch.randint(3, 1000, (sequences, 64), device="cuda")

        def seconds_of(tokens):
            begin = time.perf_counter()
            model.generate(ids, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                           cache_implementation="static", pad_token_id=0)
            torch.cuda.synchronize()
            return time.perf_counter() - begin

        seconds_of(33)
        seconds = seconds_of(65) - seconds_of(33)
        say(f"{name} decode {sequences} behind 64", tokens_per_second=32 * sequences / seconds)


def attempt(name, measure, *arguments):
    try:
        with torch.inference_mode():
            measure(*arguments)
    except Exception as error:  # whatever it is, the other measurements go on
        say(name, left_out=f"{type(error).__name__}: {error}"[:200])
    torch.cuda.empty_cache()


def main():
    for name, shape in SHAPES.items():
        attempt(f"{name} torch products", measure_products, name, shape)
        attempt(f"{name} torch attention", measure_attention, name, shape)
    for name in SHAPES:
        try:
            model = make_model(name)
        except Exception as error:
            say(f"{name} transformers", left_out=f"{type(error).__name__}: {error}"[:200])
            continue
        attempt(f"{name} transformers prefill", measure_prefill, name, model)
        attempt(f"{name} transformers decode", measure_decode, name, model)
        del model
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
