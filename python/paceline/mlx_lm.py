"""mlx-lm's functions on Paceline, with the arguments of mlx-lm 0.32 in their order:

    from paceline.mlx_lm import load, generate, stream_generate, batch_generate, make_sampler, make_logits_processors

An argument that can't be honoured is an error; those of MLX's memory and speed that change no token are ignored. `seed`, `stop` and the
other names of SamplingParams may be given beside mlx-lm's."""
from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import error_of
from .llm import LLM, Prompt
from .outputs import RequestOutput
from .params import SamplingParams

_ADAPTER = "adapter"  # the name of the one that load() took
_GIGABYTE = 1e9
_WITHOUT_EFFECT = ("prefill_step_size", "kv_group_size", "quantized_kv_start", "num_draft_tokens", "completion_batch_size",
                   "prefill_batch_size")


class Model(LLM):
    """An LLM whose requests use the adapter that it was loaded with."""

    adapter: str | None = None


@dataclass
class Sampler:
    """What make_sampler() was given."""

    temp: float = 0.0
    top_p: float = 0.0
    min_p: float = 0.0
    top_k: int = 0

    def _fill(self, asked: dict[str, Any]) -> None:
        asked["temperature"] = self.temp
        if self.temp == 0:
            return
        asked.update(mlx_sampler_order=True, top_k=self.top_k, min_p=self.min_p, top_p=self.top_p if 0 < self.top_p < 1 else 1.0)


def make_sampler(temp: float = 0.0, top_p: float = 0.0, min_p: float = 0.0, min_tokens_to_keep: int = 1, top_k: int = 0,
                 xtc_probability: float = 0.0, xtc_threshold: float = 0.1, xtc_special_tokens: list[int] | None = None) -> Sampler:
    """For `sampler`. Truncation is in mlx-lm's order; draws are Paceline's."""
    if min_tokens_to_keep != 1:
        raise error_of("unsupported", f"min_tokens_to_keep: found {min_tokens_to_keep}, but min-p keeps 1 token here")
    if xtc_probability > 0:
        raise error_of("unsupported", f"xtc_probability: found {xtc_probability}, but XTC isn't offered here")
    return Sampler(temp, top_p, min_p, top_k)


@dataclass
class LogitsProcessors:
    """What make_logits_processors() was given, as options of the request."""

    options: dict[str, Any] = field(default_factory=dict)


def make_logits_processors(logit_bias: dict[int, float] | None = None, repetition_penalty: float | None = None,
                           repetition_context_size: int | None = 20, presence_penalty: float | None = None,
                           presence_context_size: int | None = 20, frequency_penalty: float | None = None,
                           frequency_context_size: int | None = 20) -> list[LogitsProcessors]:
    """For `logits_processors`. Penalties look at the last tokens in mlx-lm, and here at all of them: a penalty needs its context size to
    be None. Then that of repetition is of the prompt and the output, those of presence and frequency of the output."""
    options: dict[str, Any] = {"logit_bias": dict(logit_bias)} if logit_bias else {}
    for name, penalty, size in (("repetition", repetition_penalty, repetition_context_size), ("presence", presence_penalty, presence_context_size),
                                ("frequency", frequency_penalty, frequency_context_size)):
        if penalty is None or penalty == 0:
            continue
        if size is not None:
            raise error_of("unsupported", f"{name}_context_size: found {size}, but penalties look at all tokens here; give None")
        options[f"{name}_penalty"] = penalty
    return [LogitsProcessors(options)] if options else []


class Tokenizer:
    """The model's, with the methods that callers of mlx-lm use."""

    def __init__(self, llm: LLM):
        self._llm = llm

    @property
    def bos_token(self) -> str | None:
        """The one that begins prompts, if there is one."""
        first = self._llm.encode("", add_special_tokens=True)[:1]
        return self._llm.decode(first) if first else None

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self._llm.encode(text, add_special_tokens=add_special_tokens)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return self._llm.decode(token_ids, skip_special_tokens=skip_special_tokens)

    def apply_chat_template(self, conversation: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] | None = None, *,
                            add_generation_prompt: bool = True, tokenize: bool = True) -> list[int] | str:
        if not add_generation_prompt:
            raise error_of("unsupported", "apply_chat_template: add_generation_prompt=False isn't offered here")
        text = self._llm.apply_chat_template(conversation, tools)
        return self._llm.encode(text) if tokenize else text


@dataclass
class GenerationResponse:
    """A piece of text; pieces may be of several tokens. The last response, whose text is empty, has the figures."""

    text: str
    token: int | None = None  # of the last response: the last token
    from_draft: bool = False
    prompt_tokens: int = 0
    prompt_tps: float = 0.0
    generation_tokens: int = 0
    generation_tps: float = 0.0
    peak_memory: float = 0.0  # GB
    finish_reason: str | None = None


@dataclass
class BatchStats:
    prompt_tokens: int = 0
    prompt_tps: float = 0.0
    prompt_time: float = 0.0
    generation_tokens: int = 0
    generation_tps: float = 0.0
    generation_time: float = 0.0
    wall_time: float = 0.0
    peak_memory: float = 0.0  # GB


@dataclass
class BatchResponse:
    texts: list[str]
    stats: BatchStats = field(default_factory=BatchStats)
    caches: None = None
    token_ids: list[list[int]] | None = None
    logprobs: list[list[float]] | None = None


def load(path_or_hf_repo: str, tokenizer_config: dict[str, Any] | None = None, model_config: dict[str, Any] | None = None,
         adapter_path: str | None = None, lazy: bool = False, return_config: bool = False, revision: str | None = None,
         trust_remote_code: bool = False, **options: Any) -> Any:
    """The model and its tokenizer, and its config.json with return_config; requests use the adapter, if there is one. `options` are
    LLM's. No code of a model is ever run."""
    for name, value in (("tokenizer_config", tokenizer_config), ("model_config", model_config), ("revision", revision)):
        if value:
            raise error_of("unsupported", f"{name}: found {value!r}, but the model's files are used as they are")
    model = Model(path_or_hf_repo, enable_lora=adapter_path is not None, **options)
    if adapter_path is not None:
        model.load_lora(_ADAPTER, adapter_path)
        model.adapter = _ADAPTER
    if not return_config:
        return model, Tokenizer(model)
    return model, Tokenizer(model), json.loads((Path(model.info()["path"]) / "config.json").read_text())


def _params(model: LLM, max_tokens: int, given: dict[str, Any]) -> SamplingParams:
    """mlx-lm is greedy unless a sampler says otherwise."""
    asked: dict[str, Any] = {"temperature": 0.0}
    for name, value in given.items():
        if name == "sampler":
            if value is not None and not isinstance(value, Sampler):
                raise error_of("unsupported", f"sampler: found {value!r}, expected one of paceline.mlx_lm.make_sampler()")
            (value or Sampler())._fill(asked)
        elif name == "logits_processors":
            for one in value or []:
                if not isinstance(one, LogitsProcessors):
                    raise error_of("unsupported", f"logits_processors: found {one!r}, expected what paceline.mlx_lm.make_logits_processors() "
                                   "returns")
                asked.update(one.options)
        elif name == "temp":
            asked["temperature"] = value
        elif name in SamplingParams.__dataclass_fields__:
            asked[name] = value
        elif value is not None and name not in _WITHOUT_EFFECT:
            raise error_of("unsupported", f"{name}: found {value!r}, but it isn't offered here")
    if max_tokens == 0 or max_tokens < -1:
        raise error_of("invalid", f"max_tokens: found {max_tokens}, expected 1 or more, or -1 for no limit")
    return SamplingParams(max_tokens=model.info()["max_model_len"] if max_tokens == -1 else max_tokens, **asked)


def _prompt(tokenizer: Tokenizer, prompt: Prompt) -> Prompt:
    """A text that begins with the first special token doesn't get another one."""
    bos = tokenizer.bos_token if isinstance(prompt, str) else None
    return tokenizer.encode(prompt, add_special_tokens=False) if isinstance(prompt, str) and bos and prompt.startswith(bos) else prompt


def _per_second(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


def stream_generate(model: LLM, tokenizer: Tokenizer, prompt: Prompt, max_tokens: int = 256, draft_model: LLM | None = None,
                    stream: Any = None, **kwargs: Any) -> Iterator[GenerationResponse]:
    """Pieces as they are made; the last response has the reason of the end and the figures."""
    if draft_model is not None:
        raise error_of("unsupported", "draft_model: a model drafts where it is loaded with it: load(..., speculative_model=...)")
    pieces = model.stream(_prompt(tokenizer, prompt), _params(model, max_tokens, kwargs), lora=getattr(model, "adapter", None))
    for piece in pieces:
        yield GenerationResponse(piece)
    output = pieces.output
    made, took = output.outputs[0], output.metrics
    yield GenerationResponse("", made.token_ids[-1] if made.token_ids else None, False, took.prompt_tokens,
                             _per_second(took.prompt_tokens, took.time_to_first_token_seconds - took.queue_seconds), took.completion_tokens,
                             _per_second(took.completion_tokens, took.output_seconds), model.memory()["peak_bytes"] / _GIGABYTE,
                             made.finish_reason)


def generate(model: LLM, tokenizer: Tokenizer, prompt: Prompt, verbose: bool = False, **kwargs: Any) -> str:
    """The whole text; `kwargs` are those of stream_generate."""
    made = []
    if verbose:
        print("=" * 10)
    for response in stream_generate(model, tokenizer, prompt, **kwargs):
        made.append(response.text)
        if verbose:
            print(response.text, end="", flush=True)
    if verbose:
        print("\n" + "=" * 10)
        print(f"Prompt: {response.prompt_tokens} tokens, {response.prompt_tps:.3f} tokens-per-sec")
        print(f"Generation: {response.generation_tokens} tokens, {response.generation_tps:.3f} tokens-per-sec")
        print(f"Peak memory: {response.peak_memory:.3f} GB")
    return "".join(made)


def batch_generate(model: LLM, tokenizer: Tokenizer, prompts: Sequence[Prompt], prompt_caches: Any = None,
                   max_tokens: int | Sequence[int] = 128, verbose: bool = False, return_prompt_caches: bool = False,
                   return_token_ids: bool = False, return_logprobs: bool = False, **kwargs: Any) -> BatchResponse:
    """All prompts at once. Caches of prompts are the engine's own: it finds common prefixes by itself."""
    if prompt_caches is not None or return_prompt_caches:
        raise error_of("unsupported", "prompt_caches and return_prompt_caches aren't offered here: common prefixes are found without them")
    each = [max_tokens] * len(prompts) if isinstance(max_tokens, int) else list(max_tokens)
    params = [_params(model, one, {**kwargs, **({"logprobs": 0} if return_logprobs else {})}) for one in each]
    begin = time.perf_counter()
    outputs = model.generate([_prompt(tokenizer, prompt) for prompt in prompts], params, lora=getattr(model, "adapter", None))
    stats = _stats(outputs, time.perf_counter() - begin, model.memory()["peak_bytes"] / _GIGABYTE)
    if verbose:
        print(f"[batch_generate] Finished processing {len(outputs)}/{len(outputs)}")
        print(f"[batch_generate] Prompt: {stats.prompt_tokens} tokens, {stats.prompt_tps:.3f} tokens-per-sec")
        print(f"[batch_generate] Generation: {stats.generation_tokens} tokens, {stats.generation_tps:.3f} tokens-per-sec")
        print(f"[batch_generate] Peak memory: {stats.peak_memory:.3f} GB")
    made = [output.outputs[0] for output in outputs]
    logprobs = [[token.logprob or 0.0 for token in one.logprobs or []] for one in made] if return_logprobs else None
    return BatchResponse([one.text or "" for one in made], stats, None, [one.token_ids for one in made] if return_token_ids else None, logprobs)


def _stats(outputs: list[RequestOutput], wall_time: float, peak_memory: float) -> BatchStats:
    """The time of prompts is until the last first token."""
    prompt_tokens, tokens = (sum(getattr(output.metrics, name) for output in outputs) for name in ("prompt_tokens", "completion_tokens"))
    prompt_time = max((output.metrics.time_to_first_token_seconds for output in outputs), default=0.0)
    generation_time = max(wall_time - prompt_time, 0.0)
    return BatchStats(prompt_tokens, _per_second(prompt_tokens, prompt_time), prompt_time, tokens, _per_second(tokens, generation_time),
                      generation_time, wall_time, peak_memory)
