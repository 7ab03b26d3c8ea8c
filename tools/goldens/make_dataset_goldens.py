#!/usr/bin/env python3
"""Makes tests/goldens/dataset/mlx_lm.jsonl: training examples as mlx_lm.lora tokenises them.

    python tools/goldens/make_dataset_goldens.py --tokenizers DIR [--out FILE]

Needs mlx-lm, transformers and jinja2 of requirements.txt. DIR has a folder for each of SHARED with
tokenizer.json and tokenizer_config.json. A row has the tokenizer, the line of the file, whether the
prompt is masked, the tokens and the offset: mlx_lm's loss begins at the token of this index. The
clock of templates stands at NOW.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.tuner.datasets import create_dataset
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = "paceline-10m"
SHARED = ("qwen3", "llama3.2", "gemma3", "deepseek_v3", "gpt2", "mistral_v1")
WITHOUT_TEMPLATE = ("gpt2", "mistral_v1")
WITH_TOOLS = ("qwen3",)
NOW = datetime.datetime(2026, 3, 7, 12, 0, 0)

Line = dict[str, Any]


def message(role: str, content: str, **more: Any) -> Line:
    return {"role": role, "content": content, **more}


TEXTS: tuple[Line, ...] = (
    {"text": "The cat sat on the mat."},
    {"text": "  Zwölf Boxkämpfer\r\njagen\tViktor – 十二 🦊🦊\n\n\n"},
    {"text": "x" * 300},
)
COMPLETIONS: tuple[Line, ...] = (
    {"prompt": "What is the capital of France?", "completion": "Paris."},
    {"prompt": "Übersetze: cat", "completion": "Katze 🐈, sagt man."},
    {"prompt": "", "completion": "Nothing was asked."},
)
CHATS: tuple[Line, ...] = (
    {"messages": [message("user", "Hi"), message("assistant", "Hello! How can I help?")]},
    {
        "messages": [
            message("system", "Answer briefly."),
            message("user", "1 + 1?"),
            message("assistant", "2"),
            message("user", "And 2 + 2?\nExplain."),
            message("assistant", "4, since 2 + 2 = 4.\n\n```python\nprint(2 + 2)\n```"),
        ]
    },
    {"messages": [message("user", "こんにちは"), message("assistant", "やあ 👋🏽")]},
)
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALL = {"type": "function", "function": {"name": "weather", "arguments": {"city": "Köln"}}}
TOOL_CHATS: tuple[Line, ...] = (
    {
        "messages": [
            message("user", "Weather in Köln?"),
            message("assistant", "", tool_calls=[CALL]),
            message("tool", '{"degrees": 7}'),
            message("assistant", "7 degrees."),
        ],
        "tools": [TOOL],
    },
    {
        "messages": [message("user", "Weather in Köln?"), message("assistant", "", tool_calls=[CALL])],
        "tools": [TOOL],
    },
    {
        "messages": [
            message("user", "Think first."),
            message("assistant", "Done.", reasoning_content="I think."),
        ]
    },
)


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return NOW


def lines_for(name: str) -> list[tuple[Line, bool]]:
    """Lines and whether their prompt is masked."""
    lines = [(line, False) for line in TEXTS]
    if name in WITHOUT_TEMPLATE:
        return lines
    tools = TOOL_CHATS if name in WITH_TOOLS else ()
    return lines + [(line, mask) for line in COMPLETIONS + CHATS + tools for mask in (False, True)]


def rows_of(name: str, folder: Path) -> list[Line]:
    tokenizer = TokenizerWrapper(PreTrainedTokenizerFast.from_pretrained(folder))
    rows = []
    for line, mask_prompt in lines_for(name):
        config = SimpleNamespace(mask_prompt=mask_prompt)
        tokens, offset = create_dataset([line], tokenizer, config).process(line)
        rows.append(
            {
                "tokenizer": name,
                "line": line,
                "mask_prompt": mask_prompt,
                "tokens": list(tokens),
                "offset": offset,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizers", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=ROOT / "tests/goldens/dataset/mlx_lm.jsonl")
    options = parser.parse_args()
    chat_template_utils.datetime = FixedClock
    folders = {BUNDLED: ROOT / "models" / BUNDLED}
    folders |= {name: options.tokenizers / name for name in SHARED}
    rows = [row for name, folder in folders.items() for row in rows_of(name, folder)]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
