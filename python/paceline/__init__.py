"""Paceline from Python: language models that generate, chat, classify, decide, embed and score.

    from paceline import LLM, SamplingParams
    llm = LLM("models/paceline-10m")
    print(llm.generate("Once upon a time", SamplingParams(max_tokens=50))[0].outputs[0].text)
"""
from typing import TYPE_CHECKING, Any

from ._library import version as _version
from .errors import Error
from .outputs import (Answer, ClassificationOutput, CompletionOutput, Decision, EmbeddingOutput, FailedOutput, Logprob, Metrics,
                      RequestOutput, ToolCall)
from .params import Choice, Predicate, SamplingParams, Scale, StructuredOutputs
from .llm import LLM, Generation, device_info

if TYPE_CHECKING:
    from .aio import AsyncLLM
    from .context import BatchContext
    from .server import Server
    from .training import train

__version__ = _version()
_LATER = {"AsyncLLM": "aio", "BatchContext": "context", "Server": "server", "train": "training"}  # asyncio and subprocess take time to import


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)


__all__ = ["LLM", "AsyncLLM", "BatchContext", "Generation", "Server", "train", "device_info", "SamplingParams", "StructuredOutputs",
           "Predicate", "Choice", "Scale", "RequestOutput", "CompletionOutput", "ClassificationOutput", "EmbeddingOutput", "FailedOutput", "Decision", "Answer",
           "Logprob", "Metrics", "ToolCall", "Error"]
