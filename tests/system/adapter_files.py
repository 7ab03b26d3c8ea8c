"""An adapter for a tiny model, in PEFT's format."""
import json
import random
import struct

from program import ROOT

MODEL = ROOT / "tests/goldens/models/qwen3_tied"
PROMPT = [57, 75, 187, 186, 44, 182, 183, 254, 16, 122, 73, 82]
SIZES = {"self_attn.q_proj": (64, 32), "self_attn.v_proj": (32, 32), "mlp.down_proj": (32, 48)}
RANK = 4


def write_adapter(directory, seed):
    """In PEFT's format: float32 matrices on three modules of each layer."""
    draw = random.Random(seed)
    header, data = {}, b""
    for layer in range(3):
        for module, (out, into) in SIZES.items():
            for side, shape in [("A", [RANK, into]), ("B", [out, RANK])]:
                values = [draw.uniform(-0.4, 0.4) for _ in range(shape[0] * shape[1])]
                part = struct.pack(f"<{len(values)}f", *values)
                header[f"base_model.model.model.layers.{layer}.{module}.lora_{side}.weight"] = {
                    "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
                data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    directory.mkdir()
    (directory / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (directory / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK,
        "target_modules": [name.split(".")[1] for name in SIZES]}))
    return directory
