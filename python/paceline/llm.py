"""LLM: a loaded model, with the names of vLLM's class of that name."""
from __future__ import annotations

import ctypes
import json
import numbers
import random
from collections.abc import Iterator, Sequence

from . import _abi
from ._library import Cancellation, Result, check, floats, integers, interruptible, library, result_of, text, texts
from .errors import error_of
from .outputs import (Answer, ClassificationOutput, CompletionOutput, Decision, EmbeddingOutput, Logprob, RequestOutput, completion_output,
                      error_in, logprobs_of, metrics_of)
from .params import Choice, Predicate, SamplingParams, Scale, question_of, sampling_options

Prompt = str | Sequence[int]  # a text, or token ids
Message = dict  # as OpenAI's API has it


def prompt_of(prompt: Prompt, keep: list) -> _abi.paceline_prompt:
    made = _abi.paceline_prompt()
    if isinstance(prompt, dict):  # vLLM's
        prompt = prompt["prompt_token_ids"] if "prompt_token_ids" in prompt else prompt["prompt"]
    if isinstance(prompt, str):
        data = prompt.encode()
        made.text, made.text_size = data, len(data)
    else:
        made.ids, made.num_ids = integers(prompt), len(prompt)
    keep.append(made)
    return made


def as_list(prompts) -> list:
    """One prompt alone is a list of one."""
    is_one = isinstance(prompts, (str, dict)) or (len(prompts) > 0 and isinstance(prompts[0], numbers.Integral))
    return [prompts] if is_one else list(prompts)


class Generation:
    """A generation in progress: iterate over its pieces of text, then take `output`. Cancelled where it is dropped before its end."""

    def __init__(self, llm: LLM, handle: ctypes.c_void_p, prompt: str | None, keep: list):
        self._llm, self._handle, self._prompt, self._keep = llm, handle, prompt, keep

    def __iter__(self) -> Iterator[str]:
        piece, size = ctypes.c_char_p(), ctypes.c_size_t()
        while True:
            interruptible(lambda: check(library.paceline_next_piece(self._handle, piece, size)), self.cancel)
            if piece.value is None:
                return
            yield ctypes.string_at(piece, size.value).decode()

    def cancel(self) -> None:
        """From any thread. It ends within one step, as cancelled."""
        library.paceline_cancel_generation(self._handle)

    def poll(self) -> tuple[str | None, bool]:
        """The next piece, without waiting, and whether the end has come."""
        piece, size, progress = ctypes.c_char_p(), ctypes.c_size_t(), ctypes.c_int()
        check(library.paceline_poll_piece(self._handle, progress, piece, size))
        found = None if piece.value is None else ctypes.string_at(piece, size.value).decode()
        return found, progress.value == _abi.PACELINE_FINISHED

    @property
    def output(self) -> RequestOutput:
        """Of the whole generation, to whose end it waits."""
        completion = ctypes.POINTER(_abi.paceline_completion)()
        interruptible(lambda: check(library.paceline_finish_generation(self._handle, completion)), self.cancel)
        item = completion.contents
        scored = logprobs_of(item.prompt_logprobs, item.num_prompt_logprobs) if item.num_prompt_logprobs else None
        return RequestOutput(self._prompt, None, [completion_output(item, 0)], True, scored, metrics_of(item))

    def __del__(self):
        library.paceline_free_generation(self._handle)


class LLM:
    """Any thread may call; requests of all threads are computed together, each with the bits that it has alone. Every call may raise
    Error. Where one of many prompts fails, the others have their results first: `raises=False` gives outputs with `error` instead."""

    def __init__(self, model: str, *, dtype: str = "auto", quantize: str = "none", kv_cache_dtype: str = "auto", device: str = "auto",
                 max_model_len: int | None = None, max_num_seqs: int = 256, max_num_batched_tokens: int = 0, block_size: int = 16,
                 kv_cache_memory_bytes: int | None = None, memory_limit_bytes: int | None = None, num_threads: int = 0,
                 enable_prefix_caching: bool = True, enable_lora: bool = False, chat_template: str | None = None,
                 speculative_model: str | None = None, speculative_method: str | None = None, weights_cache: str | None = None,
                 load_format: str = "auto"):
        if load_format not in ("auto", "dummy"):
            raise error_of("invalid", f"load_format: found {load_format!r}, expected auto or dummy")
        self._handle = ctypes.c_void_p()
        options = _abi.paceline_load_options()
        library.paceline_load_options_init(options)
        given = {"model": model, "dtype": dtype, "quantize": quantize, "kv_cache_dtype": kv_cache_dtype, "device": device,
                 "chat_template": chat_template, "speculative_model": speculative_model, "speculative_method": speculative_method,
                 "weights_cache": weights_cache}
        for name, value in given.items():
            if value is not None:
                setattr(options, name, str(value).encode())
        for name, value in {"max_model_len": max_model_len, "kv_cache_memory_bytes": kv_cache_memory_bytes,
                            "memory_limit_bytes": memory_limit_bytes}.items():
            if value is not None:
                setattr(options, name, value)
        options.max_num_seqs, options.max_num_batched_tokens, options.block_size = max_num_seqs, max_num_batched_tokens, block_size
        options.num_threads, options.enable_lora, options.prefix_caching = num_threads, enable_lora, enable_prefix_caching
        options.dummy_weights = load_format == "dummy"
        check(library.paceline_load(options, self._handle))

    # --- Requests

    def generate(self, prompts: Prompt | Sequence[Prompt], sampling_params: SamplingParams | Sequence[SamplingParams] | None = None, *,
                 lora: str | None = None, raises: bool = True) -> list[RequestOutput]:
        """Continues each prompt; outputs are in their order."""
        prompts = as_list(prompts)
        params = SamplingParams() if sampling_params is None else sampling_params
        each = list(params) if isinstance(params, Sequence) else [params] * len(prompts)
        if len(each) != len(prompts):
            raise ValueError(f"sampling_params: found {len(each)}, expected one for each of {len(prompts)} prompts")
        each = [_with_seed(one) for one in each]
        cancellation, keep = Cancellation(), []
        flat = [(i, k) for i, one in enumerate(each) for k in range(one.n)]
        array = (_abi.paceline_prompt * len(flat))(*[prompt_of(prompts[i], keep) for i, _ in flat])
        options = (ctypes.POINTER(_abi.paceline_generate_options) * len(flat))(
            *[ctypes.pointer(sampling_options(each[i], lora, cancellation, keep, k)) for i, k in flat])
        found = interruptible(lambda: result_of(_abi.paceline_completions,
                                                lambda out: library.paceline_batch_generate(self._handle, array, len(flat), options, out),
                                                library.paceline_free_completions), cancellation.cancel)
        outputs = [_request_output(prompt) for prompt in prompts]
        for position, (i, k) in enumerate(flat):
            item = found.contents.items[position]
            outputs[i].error = outputs[i].error or error_in(item)
            outputs[i].outputs.append(completion_output(item, k))
            if item.num_prompt_logprobs:
                outputs[i].prompt_logprobs = logprobs_of(item.prompt_logprobs, item.num_prompt_logprobs)
            found_tokens = outputs[i].metrics.completion_tokens
            outputs[i].metrics = metrics_of(item)
            outputs[i].metrics.completion_tokens += found_tokens
        return _raise_first(outputs, raises)

    def stream(self, prompt: Prompt, sampling_params: SamplingParams | None = None, *, lora: str | None = None, _queue=None,
               _tag: int = 0) -> Generation:
        """A generation whose pieces come as they are made."""
        keep: list = []
        options = sampling_options(_one_choice(sampling_params), lora, None, keep)
        options.queue, options.tag = _queue, _tag
        handle = ctypes.c_void_p()
        check(library.paceline_generate(self._handle, prompt_of(prompt, keep), options, handle))
        return Generation(self, handle, prompt if isinstance(prompt, str) else None, keep)

    def stream_chat(self, messages: Sequence[Message], sampling_params: SamplingParams | None = None, *, tools: Sequence[dict] | None = None,
                    tool_choice: str | dict = "auto", chat_template_kwargs: dict | None = None, reasoning_effort: str | None = None,
                    lora: str | None = None, _queue=None, _tag: int = 0) -> Generation:
        """An answer to a conversation whose pieces come as they are made."""
        keep: list = []
        options = sampling_options(_one_choice(sampling_params), lora, None, keep)
        options.queue, options.tag = _queue, _tag
        chat = _abi.paceline_chat_options()
        library.paceline_chat_options_init(chat)
        if tools is not None:
            chat.tools_json = json.dumps(list(tools)).encode()
        if chat_template_kwargs is not None:
            chat.template_json = json.dumps(chat_template_kwargs).encode()
        if reasoning_effort is not None:
            chat.reasoning_effort = reasoning_effort.encode()
        if isinstance(tool_choice, dict):
            chat.tool_choice, chat.tool_name = _abi.PACELINE_TOOLS_NAMED, tool_choice["function"]["name"].encode()
        else:
            chat.tool_choice = {"auto": _abi.PACELINE_TOOLS_AUTO, "none": _abi.PACELINE_TOOLS_NONE,
                                "required": _abi.PACELINE_TOOLS_REQUIRED}[tool_choice]
        handle = ctypes.c_void_p()
        check(library.paceline_chat(self._handle, json.dumps(list(messages)).encode(), chat, options, handle))
        return Generation(self, handle, None, keep)

    def chat(self, messages: Sequence[Message] | Sequence[Sequence[Message]], sampling_params: SamplingParams | None = None,
             **options) -> list[RequestOutput]:
        """Answers a conversation, or several; `options` are those of stream_chat."""
        conversations = [messages] if messages and isinstance(messages[0], dict) else list(messages)
        generations = [self.stream_chat(conversation, sampling_params, **options) for conversation in conversations]
        return [generation.output for generation in generations]

    def embed(self, prompts: Prompt | Sequence[Prompt], *, dimensions: int = 0, lora: str | None = None,
              raises: bool = True, _cancellation: Cancellation | None = None) -> list[EmbeddingOutput]:
        """The texts as vectors, which aren't copied."""
        found = self._on_prompts(prompts, lora, _cancellation, _abi.paceline_vectors, library.paceline_free_vectors,
                                 lambda array, count, options, out: library.paceline_embed(self._handle, array, count, dimensions, options, out))
        items = (found.contents.items[i] for i in range(found.contents.count))
        return _raise_first([EmbeddingOutput(floats(item.values, item.num_values, found), item.prompt_tokens, error_in(item))
                             for item in items], raises)

    def classify(self, prompts: Prompt | Sequence[Prompt], labels: Sequence[str] = (), *, lora: str | None = None,
                 raises: bool = True, _cancellation: Cancellation | None = None) -> list[ClassificationOutput]:
        """The likeliest label of each prompt. Without labels: those of the model's head, or the next token."""
        label_array = texts(list(labels))
        found = self._on_prompts(prompts, lora, _cancellation, _abi.paceline_classifications, library.paceline_free_classifications,
                                 lambda array, count, options, out: library.paceline_classify(
                                     self._handle, array, count, label_array, len(labels), options, out))
        outputs = []
        for item in (found.contents.items[i] for i in range(found.contents.count)):
            names = [text(item.labels[k]) for k in range(item.num_labels)] or list(labels)
            outputs.append(ClassificationOutput(text(item.label), floats(item.scores, item.num_scores, found), names,
                                                None if item.token_id < 0 else item.token_id, error_in(item)))
        return _raise_first(outputs, raises)

    def score(self, query: str, documents: str | Sequence[str], *, lora: str | None = None, _cancellation: Cancellation | None = None):
        """How well each document answers the query."""
        documents = [documents] if isinstance(documents, str) else list(documents)
        cancellation = _cancellation or Cancellation()
        options, array = self._request_options(lora, cancellation), texts(documents)
        found = interruptible(lambda: result_of(
            _abi.paceline_vectors, lambda out: library.paceline_score_pairs(self._handle, query.encode(), array, len(documents), options, out),
            library.paceline_free_vectors), cancellation.cancel)
        item = found.contents.items[0]
        return floats(item.values, item.num_values, found)

    def logprobs(self, prompt: Prompt, *, top: int = 0, lora: str | None = None,
                 _cancellation: Cancellation | None = None) -> list[Logprob]:
        """The log-probability of each token of the prompt given those before it."""
        cancellation, keep = _cancellation or Cancellation(), []
        options, made = self._request_options(lora, cancellation), prompt_of(prompt, keep)
        found = interruptible(lambda: result_of(_abi.paceline_logprobs,
                                                lambda out: library.paceline_score(self._handle, made, top, options, out),
                                                library.paceline_free_logprobs), cancellation.cancel)
        return logprobs_of(found.contents.items, found.contents.count)

    def decide(self, inputs: str | Sequence[str], questions: Sequence[Predicate | Choice | Scale], *, temperature: float = 1.0,
               lora: str | None = None, raises: bool = True, _cancellation: Cancellation | None = None) -> list[Decision]:
        """Answers the same questions about each input."""
        inputs = [inputs] if isinstance(inputs, str) else list(inputs)
        cancellation, keep = _cancellation or Cancellation(), []
        options, array = self._request_options(lora, cancellation), texts(inputs)
        asked = (_abi.paceline_question * len(questions))(*[question_of(question, keep) for question in questions])
        found = interruptible(lambda: result_of(
            _abi.paceline_decisions, lambda out: library.paceline_decide(self._handle, array, len(inputs), asked, len(questions), temperature,
                                                                         options, out),
            library.paceline_free_decisions), cancellation.cancel)
        decisions = []
        for item in (found.contents.items[i] for i in range(found.contents.count)):
            answers = [_answer(question, item.answers[k], found) for k, question in enumerate(questions[:item.num_answers])]
            decisions.append(Decision(answers, error_in(item)))
        return _raise_first(decisions, raises)

    # --- Tokens and templates

    def encode(self, text_: str, *, add_special_tokens: bool = False) -> list[int]:
        ids, count, data = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t(), text_.encode()
        check(library.paceline_tokenize(self._handle, data, len(data), add_special_tokens, ids, count))
        found = ids[:count.value] if count.value else []
        library.paceline_free_ids(ids)
        return found

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return self._text(lambda made, size: library.paceline_detokenize(self._handle, integers(ids), len(ids), skip_special_tokens, made, size))

    def apply_chat_template(self, messages: Sequence[Message], tools: Sequence[dict] | None = None) -> str:
        listed = None if tools is None else json.dumps(list(tools)).encode()
        return self._text(lambda made, size: library.paceline_apply_chat_template(self._handle, json.dumps(list(messages)).encode(), listed, made,
                                                                                  size))

    # --- Adapters, memory, figures

    def load_lora(self, name: str, path: str, scale: float = 1.0) -> None:
        """For requests that name it (`lora=`); the model was made with enable_lora=True."""
        check(library.paceline_load_adapter(self._handle, name.encode(), str(path).encode(), scale))

    def unload_lora(self, name: str) -> None:
        check(library.paceline_unload_adapter(self._handle, name.encode()))

    def info(self) -> dict:
        """What the model is."""
        found = result_of(_abi.paceline_model_info, lambda out: library.paceline_get_model_info(self._handle, out),
                          library.paceline_free_model_info)
        return _members(found.contents)

    def memory(self) -> dict[str, int]:
        use = _abi.paceline_memory()
        check(library.paceline_memory_use(self._handle, use))
        return _members(use)

    def metrics(self) -> dict:
        """Of the last call to end that computed something."""
        found = _abi.paceline_metrics()
        check(library.paceline_get_metrics(self._handle, found))
        return _members(found)

    def set_memory_limit(self, num_bytes: int) -> int:
        """Requests that would need more raise ExhaustedError. Returns the old limit."""
        old = ctypes.c_uint64()
        check(library.paceline_set_memory_limit(self._handle, num_bytes, old))
        return old.value

    def close(self) -> None:
        """Ends what runs as cancelled, waits for the calls of other threads, and frees the model."""
        check(library.paceline_close(self._handle))

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self):
        if hasattr(self, "_handle"):
            library.paceline_free_model(self._handle)

    # --- Helpers

    @staticmethod
    def _request_options(lora: str | None, cancellation: Cancellation) -> _abi.paceline_request_options:
        options = _abi.paceline_request_options()
        library.paceline_request_options_init(options)
        options.cancellation = cancellation.handle
        if lora is not None:
            options.adapter = lora.encode()
        return options

    def _on_prompts(self, prompts, lora: str | None, given: Cancellation | None, kind, free, call) -> Result:
        prompts, cancellation, keep = as_list(prompts), given or Cancellation(), []
        options = self._request_options(lora, cancellation)
        array = (_abi.paceline_prompt * len(prompts))(*[prompt_of(prompt, keep) for prompt in prompts])
        return interruptible(lambda: result_of(kind, lambda out: call(array, len(prompts), options, out), free), cancellation.cancel)

    @staticmethod
    def _text(call) -> str:
        made, size = ctypes.c_char_p(), ctypes.c_size_t()
        check(call(made, size))
        found = ctypes.string_at(made, size.value).decode(errors="replace")
        library.paceline_free_text(made)
        return found


def _one_choice(params: SamplingParams | None) -> SamplingParams:
    """Of a stream, which has one choice."""
    params = SamplingParams() if params is None else params
    if params.n != 1:
        raise error_of("invalid", f"n: found {params.n}, but a stream or a chat has one choice; generate() takes several")
    return params


def _with_seed(params: SamplingParams) -> SamplingParams:
    """Several choices of one request have seeds that follow each other."""
    if params.n < 1:
        raise ValueError(f"n: found {params.n}, expected 1 or more")
    if params.n == 1 or params.seed is not None:
        return params
    return SamplingParams(**{**params.__dict__, "seed": random.getrandbits(62)})


def _request_output(prompt: Prompt) -> RequestOutput:
    if isinstance(prompt, dict):
        return RequestOutput(prompt.get("prompt"), prompt.get("prompt_token_ids"), [])
    if isinstance(prompt, str):
        return RequestOutput(prompt, None, [])
    return RequestOutput(None, list(prompt), [])


def _answer(question: Predicate | Choice | Scale, found: _abi.paceline_answer, owner: Result) -> Answer:
    if isinstance(question, Predicate):
        value = found.best == 0
    else:
        value = list(question.values if isinstance(question, Choice) else question.levels)[found.best]
    return Answer(value, floats(found.probabilities, found.num_probabilities, owner), found.score, found.confidence)


def _raise_first(outputs: list, raises: bool) -> list:
    for output in outputs:
        if raises and output.error is not None:
            raise output.error
    return outputs


def _members(structure: ctypes.Structure) -> dict:
    found = {}
    for name, kind in structure._fields_:
        value = getattr(structure, name)
        found[name] = text(value) if kind is ctypes.c_char_p else value
    return found


def device_info() -> dict:
    """Of the machine that would compute; no model is loaded."""
    found = result_of(_abi.paceline_device_info, lambda out: library.paceline_get_device_info(None, out), library.paceline_free_device_info)
    return _members(found.contents)


__all__ = ["LLM", "Generation", "CompletionOutput", "device_info"]
