"""Saves models in transformers' layout, and checkpoints of a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig, PreTrainedTokenizerFast

from .model import FastQwen3
from .presets import CONTEXT
from .vocabulary import EOT, IM_END, IM_START, ORDINARY_TOKENS

CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""


def save_model(model: FastQwen3, tokenizer: Tokenizer, path: Path) -> None:
    """Save weights, configuration and tokenizer in transformers' layout."""
    path.mkdir(parents=True, exist_ok=True)
    saved = model.to_transformers().to(torch.bfloat16)
    saved.config.dtype = torch.bfloat16
    stop = [ORDINARY_TOKENS + 2, ORDINARY_TOKENS]
    saved.generation_config = GenerationConfig(
        do_sample=True, temperature=0.8, top_p=0.95, eos_token_id=stop, pad_token_id=stop[1]
    )
    saved.save_pretrained(path)
    (path / "model.safetensors").chmod(0o644)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=IM_END,
        pad_token=EOT,
        additional_special_tokens=[IM_START, IM_END],
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )
    fast.save_pretrained(path)


def save_atomically(state: dict[str, Any], path: Path) -> None:
    """Write a checkpoint atomically."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)
