"""What a request asks for, with vLLM's names."""
from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass, field
from typing import Any

from . import _abi
from ._library import Cancellation, integers, library, texts
from .errors import error_of


@dataclass
class StructuredOutputs:
    """What the text must be: one of these."""

    json: str | dict[str, Any] | bool | None = None  # a schema
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None  # GBNF, or Lark's notation
    json_object: bool = False  # any JSON object

    def _fill(self, options: _abi.paceline_generate_options, keep: list[Any]) -> None:
        given = [name for name in ("json", "regex", "choice", "grammar", "json_object") if getattr(self, name) is not None]
        if not self.json_object:
            given.remove("json_object")
        if len(given) != 1:
            raise error_of("invalid", f"structured_outputs: found {' and '.join(given) or 'nothing'}, expected one of json, regex, choice, "
                           "grammar and json_object")
        if self.choice:
            options.constraint, options.num_choices = _abi.PACELINE_CHOICE, len(self.choice)
            options.choices = texts(self.choice)
            keep.append(options.choices)
            return
        schema = self.json if isinstance(self.json, str) else json.dumps(self.json)
        options.constraint, source = {
            "json": (_abi.PACELINE_JSON_SCHEMA, schema), "regex": (_abi.PACELINE_REGEX, self.regex),
            "grammar": (_abi.PACELINE_GRAMMAR, self.grammar), "json_object": (_abi.PACELINE_JSON_OBJECT, "")}[given[0]]
        options.constraint_text = (source or "").encode()


@dataclass
class SamplingParams:
    """None: as the model's generation_config.json says, else max_tokens 256, temperature 1, and nothing cut off."""

    n: int = 1
    max_tokens: int | None = None
    temperature: float | None = None  # 0 is greedy
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    seed: int | None = None  # random; the output has it. Choice k of n has the seed + k
    stop: list[str] | str = field(default_factory=list)
    stop_token_ids: list[int] = field(default_factory=list)
    min_tokens: int | None = None
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    logprobs: int | None = None  # alternatives beside each token, 0 to 20
    prompt_logprobs: bool = False
    logit_bias: dict[int, float] = field(default_factory=dict)
    allowed_token_ids: list[int] = field(default_factory=list)
    structured_outputs: StructuredOutputs | None = None
    priority: int = 0  # smaller is served first
    cache_salt: str | None = None  # shares cached prefixes only with requests of the same salt
    include_stop_str_in_output: bool = False
    mlx_sampler_order: bool = False  # top-p, min-p, top-k, temperature instead of the default


def sampling_options(params: SamplingParams, lora: str | None, cancellation: Cancellation | None, keep: list[Any],
                     choice: int = 0) -> _abi.paceline_generate_options:
    """The library's structure; `keep` gets what must live as long."""
    options = _abi.paceline_generate_options()
    library.paceline_generate_options_init(options)
    for name in ("max_tokens", "temperature", "top_p", "top_k", "min_p", "typical_p", "repetition_penalty", "frequency_penalty",
                 "presence_penalty", "min_tokens"):
        if getattr(params, name) is not None:
            setattr(options, name, getattr(params, name))
    if params.seed is not None:
        if not 0 <= params.seed + choice < 2**63:
            raise error_of("invalid", f"seed: found {params.seed}, expected 0 to 2^63 - 1")
        options.seed = params.seed + choice
    if params.logprobs is not None:
        options.num_top_logprobs = params.logprobs
    options.prompt_logprobs, options.ignore_eos = params.prompt_logprobs, params.ignore_eos
    options.skip_special_tokens, options.priority = params.skip_special_tokens, params.priority
    options.include_stop_in_output, options.mlx_sampler_order = params.include_stop_str_in_output, params.mlx_sampler_order
    stop = [params.stop] if isinstance(params.stop, str) else params.stop or []
    stop_ids, allowed, biases = params.stop_token_ids or [], params.allowed_token_ids or [], params.logit_bias or {}
    options.stop, options.num_stop = texts(stop), len(stop)
    options.stop_token_ids, options.num_stop_token_ids = integers(stop_ids), len(stop_ids)
    options.allowed_token_ids, options.num_allowed_token_ids = integers(allowed), len(allowed)
    options.biased_token_ids = integers(list(biases))
    options.token_biases = (ctypes.c_float * len(biases))(*biases.values())
    options.num_biased_tokens = len(biases)
    if params.structured_outputs is not None:
        params.structured_outputs._fill(options, keep)
    if lora is not None:
        options.adapter = lora.encode()
    if params.cache_salt is not None:
        options.cache_salt = params.cache_salt.encode()
    if cancellation is not None:
        options.cancellation = cancellation.handle
        keep.append(cancellation)
    keep.append(options)
    return options


@dataclass
class Predicate:
    """Whether something is true."""

    instructions: str


@dataclass
class Choice:
    """One of several values: texts, or a dict of texts with their descriptions."""

    values: list[str] | dict[str, str]
    instructions: str = ""


@dataclass
class Scale:
    """One of several levels, the lowest first: texts, or a dict of texts with their descriptions."""

    levels: list[str] | dict[str, str]
    instructions: str = ""


def question_of(question: Predicate | Choice | Scale, keep: list[Any]) -> _abi.paceline_question:
    kinds = {Predicate: _abi.PACELINE_PREDICATE, Choice: _abi.PACELINE_QUESTION_CHOICE, Scale: _abi.PACELINE_QUESTION_SCORE}
    kind = next((kinds[known] for known in kinds if isinstance(question, known)), None)
    if kind is None:
        raise error_of("invalid", f"questions: found {question!r}, expected a Predicate, a Choice or a Scale")
    made = _abi.paceline_question(kind=kind, instructions=question.instructions.encode())
    if not isinstance(question, Predicate):
        values = question.values if isinstance(question, Choice) else question.levels
        made.values, made.num_values = texts(list(values)), len(values)
        if isinstance(values, dict):
            made.descriptions = texts(list(values.values()))
    keep.append(made)
    return made
