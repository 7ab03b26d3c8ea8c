"""What requests give, with vLLM's names."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import _abi
from ._library import library, sized_text, text
from .errors import Error, error_of

_FINISH = {_abi.PACELINE_FINISH_STOP: "stop", _abi.PACELINE_FINISH_LENGTH: "length", _abi.PACELINE_FINISH_CANCELLED: "cancelled"}


@dataclass
class Logprob:
    id: int
    token: str
    logprob: float | None  # None of a prompt's first token
    top: dict[int, float]  # the likeliest tokens, with their log-probabilities


@dataclass
class ToolCall:
    id: str
    name: str
    arguments: str  # JSON of an object


@dataclass
class CompletionOutput:
    index: int
    text: str | None  # None without a tokenizer
    token_ids: list[int]
    finish_reason: str | None = None  # "stop", "length", "cancelled"; None: it isn't finished
    stop_reason: int | str | None = None  # the token or string that ended it
    logprobs: list[Logprob] | None = None
    seed: int | None = None
    reasoning: str | None = None  # of chats whose template writes it
    content: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)

    @property
    def cumulative_logprob(self) -> float | None:
        return None if self.logprobs is None else sum(one.logprob for one in self.logprobs if one.logprob is not None)


@dataclass
class Metrics:
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    queue_seconds: float = 0.0
    time_to_first_token_seconds: float = 0.0
    output_seconds: float = 0.0


@dataclass
class RequestOutput:
    prompt: str | None
    prompt_token_ids: list[int] | None
    outputs: list[CompletionOutput]
    finished: bool = True
    prompt_logprobs: list[Logprob] | None = None
    metrics: Metrics = field(default_factory=Metrics)
    error: Error | None = None


@dataclass
class FailedOutput:
    """Stands for an item of a batch that failed, where errors aren't raised."""

    error: Error


@dataclass
class EmbeddingOutput:
    embedding: Any  # float32: numpy where it is installed, else a memoryview
    prompt_tokens: int
    error: Error | None = None


@dataclass
class ClassificationOutput:
    label: str | None
    scores: Any  # of the labels, in their order
    labels: list[str]
    token_id: int | None = None
    error: Error | None = None


@dataclass
class Answer:
    value: Any  # of a predicate True or False
    probabilities: Any  # of the values in their order; of a predicate those of True and False
    score: float  # of a scale: the expected level, from 0
    confidence: float  # 0 where all are equally likely, 1 where one is certain


@dataclass
class Decision:
    answers: list[Answer]
    error: Error | None = None


def error_in(item: Any) -> Error | None:
    """Of an item of a list; None when it has a value."""
    if item.status == _abi.PACELINE_OK:
        return None
    return error_of(library.paceline_status_name(item.status).decode(), text(item.error) or "")


def logprobs_of(items: Any, count: int) -> list[Logprob]:
    found = []
    for i in range(count):
        one = items[i]
        top = {one.top[k].id: one.top[k].logprob for k in range(one.num_top)}
        found.append(Logprob(one.id, text(one.token) or "", one.logprob if one.has_logprob else None, top))
    return found


def completion_output(item: _abi.paceline_completion, index: int) -> CompletionOutput:
    stop = text(item.stop_string) if item.stop_string is not None else (None if item.stop_token < 0 else item.stop_token)
    calls = [ToolCall(*(text(value) or "" for value in (call.id, call.name, call.arguments)))
             for call in (item.tool_calls[i] for i in range(item.num_tool_calls))]
    return CompletionOutput(index, sized_text(item, "text"), item.token_ids[:item.num_token_ids] if item.num_token_ids else [],
                            _FINISH.get(item.finish), stop, logprobs_of(item.logprobs, item.num_logprobs) if item.num_logprobs else None,
                            item.seed, text(item.reasoning), text(item.content), calls)


def metrics_of(item: _abi.paceline_completion) -> Metrics:
    return Metrics(item.usage.prompt_tokens, item.usage.completion_tokens, item.usage.cached_tokens, item.queue_seconds,
                   item.time_to_first_token_seconds, item.output_seconds)
