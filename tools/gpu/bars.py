"""What a figure should reach, by the name of its row: the goals of docs/gpu.md."""
# Tokens and sentences a second: goals for one H100 or H200. TFLOP/s: what a trial with `wgmma` reached on an H100.
BARS = {"llama-3.2-1b decode 1 behind 64": 1200,
        "llama-3.2-1b decode 256 behind 64": 70_000,
        "gemma-3-1b sentences of 30": 10_000,
        "http, 256 streams of 64 in, 200 out": 85_000,
        "llama-3.2-1b qkv bfloat16 x 2048": 614, "llama-3.2-1b o bfloat16 x 2048": 584,
        "llama-3.2-1b gate and up bfloat16 x 2048": 666, "llama-3.2-1b down bfloat16 x 2048": 698,
        "llama-3.1-8b gate and up bfloat16 x 2048": 708, "llama-3.1-8b down bfloat16 x 2048": 711,
        "llama-3.2-1b attention, a prompt of 8192": 377, "llama-3.1-8b attention, a prompt of 8192": 501}
