"""The shapes of the bundled models and the settings each is trained with."""

from __future__ import annotations

from dataclasses import dataclass

from transformers import Qwen3Config

from .vocabulary import ORDINARY_TOKENS

CONTEXT = 1024  # tokens, of a block of the data and of the longest row


@dataclass(frozen=True)
class Preset:
    """Shape and optimiser settings of one of the bundled models."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    matrix_lr: float
    vector_lr: float
    tokens_per_step: int

    def config(self) -> Qwen3Config:
        """Return the transformers configuration of this shape."""
        return Qwen3Config(
            vocab_size=ORDINARY_TOKENS + 3,
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.head_dim,
            intermediate_size=self.intermediate,
            max_position_embeddings=CONTEXT,
            rms_norm_eps=1e-6,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=ORDINARY_TOKENS + 2,
            pad_token_id=ORDINARY_TOKENS,
        )


PRESETS = {
    "10m": Preset(384, 6, 6, 2, 64, 896, 0.012, 3e-3, 8192),
    "draft-1m": Preset(128, 3, 4, 2, 32, 320, 0.015, 4e-3, 8192),
}
