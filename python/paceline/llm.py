"""LLM: a loaded model, with the names of vLLM's class of that name."""
from __future__ import annotations

import ctypes
import json
import numbers
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar, Union, cast

from . import _abi
from ._library import (Cancellation, Result, check, integers, interruptible, is_main_thread, library, result_of, text, texts,
                       wakeup)
from .arrays import floats
from .errors import error_of
from .outputs import (Answer, ClassificationOutput, CompletionOutput, Decision, EmbeddingOutput, Logprob, RequestOutput, completion_output,
                      error_in, logprobs_of, metrics_of)
from .params import Choice, Predicate, SamplingParams, Scale, question_of, sampling_options

Prompt = Union[str, Sequence[int], dict[str, Any]]  # a text, token ids, or vLLM's {"prompt": ...} and {"prompt_token_ids": ...}
Out = TypeVar("Out")
Message = dict[str, Any]  # as OpenAI's API has it


def prompt_of(prompt: Prompt, keep: list[Any]) -> _abi.paceline_prompt:
    made = _abi.paceline_prompt()
    if isinstance(prompt, dict):
        given = prompt.get("prompt_token_ids", prompt.get("prompt"))
        if given is None:
            raise error_of("invalid", f"prompt: found {prompt!r}, expected \"prompt\" or \"prompt_token_ids\" in it")
    else:
        given = prompt
    if isinstance(given, str):
        data = given.encode()
        made.text, made.text_size = data, len(data)
    else:
        made.ids, made.num_ids = integers(given), len(given)
    keep.append(made)
    return made


def as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """One prompt alone is a list of one."""
    is_one = isinstance(prompts, (str, dict)) or (len(prompts) > 0 and isinstance(prompts[0], numbers.Integral))
    return [cast(Prompt, prompts)] if is_one else list(cast(Sequence[Prompt], prompts))


def load_options(model: str, *, load_format: str = "auto", enable_prefix_caching: bool = True,
                 **given: str | int | None) -> _abi.paceline_load_options:
    """The library's structure; `given` are its members, None as the library has them."""
    if load_format not in ("auto", "dummy"):
        raise error_of("invalid", f"load_format: found {load_format!r}, expected auto or dummy")
    options = _abi.paceline_load_options()
    library.paceline_load_options_init(options)
    known = {field[0] for field in _abi.paceline_load_options._fields_} - {"size", "progress", "progress_user"}
    for name, value in {"model": str(model), **given}.items():
        if name not in known:
            raise error_of("invalid", f"{name}: there is no such option of a model")
        if value is not None:
            setattr(options, name, value if isinstance(value, int) else str(value).encode())
    options.dummy_weights, options.prefix_caching = load_format == "dummy", enable_prefix_caching
    return options


class Generation:
    """A generation in progress: iterate over its pieces of text, then take `output`. Cancelled where it is dropped before its end."""

    def __init__(self, llm: LLM, handle: ctypes.c_void_p, prompt: str | None, ids: list[int] | None, keep: list[Any]):
        self.prompt, self.prompt_token_ids = prompt, ids
        self._llm, self._handle, self._keep = llm, handle, keep
        self._piece, self._size, self._progress = ctypes.c_char_p(), ctypes.c_size_t(), ctypes.c_int()

    def __iter__(self) -> Iterator[str]:
        while (piece := self._next()) is not None:
            yield piece

    def _next(self) -> str | None:
        """The next piece; None at the end. Waits: in the library, or on the main thread where Ctrl-C interrupts it."""
        if not is_main_thread():
            check(library.paceline_next_piece(self._handle, self._piece, self._size))
            return None if self._piece.value is None else self._text()
        try:
            while True:
                found, is_finished = self.poll()
                if found is not None or is_finished:
                    return found
                wakeup().wait()
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """From any thread. It ends within one step, as cancelled."""
        library.paceline_cancel_generation(self._handle)

    def poll(self) -> tuple[str | None, bool]:
        """The next piece, without waiting, and whether the end has come."""
        check(library.paceline_poll_piece(self._handle, self._progress, self._piece, self._size))
        progress = self._progress.value
        return self._text() if progress == _abi.PACELINE_PIECE else None, progress == _abi.PACELINE_FINISHED

    def poll_all(self) -> tuple[str, bool]:
        """All pieces that there are, without waiting, and whether the end has come."""
        found, (piece, is_finished) = "", self.poll()
        while piece is not None:
            found, (piece, is_finished) = found + piece, self.poll()
        return found, is_finished

    def _text(self) -> str:
        return ctypes.string_at(self._piece, self._size.value).decode()

    @property
    def output(self) -> RequestOutput:
        """Of the whole generation, to whose end it waits."""
        if is_main_thread():
            while self._next() is not None:
                pass
        completion = ctypes.POINTER(_abi.paceline_completion)()
        check(library.paceline_finish_generation(self._handle, completion))
        item = completion.contents
        scored = logprobs_of(item.prompt_logprobs, item.num_prompt_logprobs) if item.num_prompt_logprobs else None
        return RequestOutput(self.prompt, self.prompt_token_ids, [completion_output(item, 0)], True, scored, metrics_of(item))

    def __del__(self) -> None:
        library.paceline_free_generation(self._handle)


class LLM:
    """Any thread may call; requests of all threads are computed together, each with the bits that it has alone. Every call may raise
    Error. Where one of many prompts fails, the others have their results first: `raises=False` gives outputs with `error` instead."""

    def __init__(self, model: str, *, dtype: str = "auto", quantize: str = "none", kv_cache_dtype: str = "auto", device: str = "auto",
                 max_model_len: int | None = None, max_num_seqs: int = 256, max_num_batched_tokens: int = 0, block_size: int = 16,
                 kv_cache_memory_bytes: int | None = None, memory_limit_bytes: int | None = None, num_threads: int = 0,
                 enable_prefix_caching: bool = True, enable_lora: bool = False, chat_template: str | None = None,
                 speculative_model: str | None = None, speculative_method: str | None = None, weights_cache: str | None = None,
                 load_format: str = "auto", backend: str = "native", python: str | None = None):
        self.shared_async: object = None  # the AsyncLLM of AsyncLLM.of()
        self._handle = ctypes.c_void_p()
        check(library.paceline_load(
            load_options(model, dtype=dtype, quantize=quantize, kv_cache_dtype=kv_cache_dtype, device=device, max_model_len=max_model_len,
                         max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens, block_size=block_size,
                         kv_cache_memory_bytes=kv_cache_memory_bytes, memory_limit_bytes=memory_limit_bytes, num_threads=num_threads,
                         enable_prefix_caching=enable_prefix_caching, enable_lora=enable_lora, chat_template=chat_template,
                         speculative_model=speculative_model, speculative_method=speculative_method, weights_cache=weights_cache,
                         load_format=load_format, backend=backend, python=python or sys.executable), self._handle))

    # --- Requests

    def generate(self, prompts: Prompt | Sequence[Prompt], sampling_params: SamplingParams | Sequence[SamplingParams] | None = None, *,
                 lora: str | None = None, raises: bool = True) -> list[RequestOutput]:
        """Continues each prompt; outputs are in their order."""
        prompts = as_list(prompts)
        params = SamplingParams() if sampling_params is None else sampling_params
        each = list(params) if isinstance(params, Sequence) else [params] * len(prompts)
        if len(each) != len(prompts):
            raise error_of("invalid", f"sampling_params: found {len(each)}, expected one for each of {len(prompts)} prompts")
        each = [_with_seed(one) for one in each]
        cancellation = Cancellation()
        keep: list[Any] = []
        flat = [(i, k) for i, one in enumerate(each) for k in range(one.n)]
        array = (_abi.paceline_prompt * len(flat))(*[prompt_of(prompts[i], keep) for i, _ in flat])
        options = (ctypes.POINTER(_abi.paceline_generate_options) * len(flat))(
            *[ctypes.pointer(sampling_options(each[i], lora, cancellation, keep, k)) for i, k in flat])
        found = interruptible(lambda: result_of(_abi.paceline_completions,
                                                lambda out: library.paceline_batch_generate(self._handle, array, len(flat), options, out),
                                                library.paceline_free_completions), cancellation.cancel)
        outputs = [RequestOutput(None, None, []) for _ in prompts]
        for position, (i, k) in enumerate(flat):
            item = found.contents.items[position]
            outputs[i].error = outputs[i].error or error_in(item)
            outputs[i].outputs.append(completion_output(item, k))
            if item.num_prompt_logprobs:
                outputs[i].prompt_logprobs = logprobs_of(item.prompt_logprobs, item.num_prompt_logprobs)
            found_tokens = outputs[i].metrics.completion_tokens
            outputs[i].metrics = metrics_of(item)
            outputs[i].metrics.completion_tokens += found_tokens
        for prompt, output in zip(prompts, outputs):
            if output.error is None:
                output.prompt, output.prompt_token_ids = self._prompt_and_ids(prompt)
        return _raise_first(outputs, raises)

    def stream(self, prompt: Prompt, sampling_params: SamplingParams | None = None, *, lora: str | None = None, _queue: ctypes.c_void_p | None = None,
               _tag: int = 0) -> Generation:
        """A generation whose pieces come as they are made."""
        keep: list[Any] = []
        options = sampling_options(_one_choice(sampling_params), lora, None, keep)
        options.queue, options.tag = _queue or wakeup().handle, _tag
        handle = ctypes.c_void_p()
        check(library.paceline_generate(self._handle, prompt_of(prompt, keep), options, handle))
        return Generation(self, handle, *self._prompt_and_ids(prompt), keep)

    def stream_chat(self, messages: Sequence[Message], sampling_params: SamplingParams | None = None, *, tools: Sequence[dict[str, Any]] | None = None,
                    tool_choice: str | dict[str, Any] = "auto", parallel_tool_calls: bool = True,
                    chat_template_kwargs: dict[str, Any] | None = None, reasoning_effort: str | None = None,
                    lora: str | None = None, _queue: ctypes.c_void_p | None = None, _tag: int = 0) -> Generation:
        """An answer to a conversation whose pieces come as they are made."""
        keep: list[Any] = []
        options = sampling_options(_one_choice(sampling_params), lora, None, keep)
        options.queue, options.tag = _queue or wakeup().handle, _tag
        chat = _abi.paceline_chat_options()
        library.paceline_chat_options_init(chat)
        if tools is not None:
            chat.tools_json = json_of("tools", list(tools))
        if chat_template_kwargs is not None:
            chat.template_json = json_of("chat_template_kwargs", chat_template_kwargs)
        if reasoning_effort is not None:
            chat.reasoning_effort = reasoning_effort.encode()
        chat.tool_choice, chat.tool_name = tool_choice_of(tool_choice)
        chat.parallel_tool_calls = parallel_tool_calls
        handle = ctypes.c_void_p()
        check(library.paceline_chat(self._handle, json_of("messages", list(messages)), chat, options, handle))
        return Generation(self, handle, None, None, keep)

    def chat(self, messages: Sequence[Message] | Sequence[Sequence[Message]], sampling_params: SamplingParams | None = None,
             **options: Any) -> list[RequestOutput]:
        """Answers a conversation, or several; `options` are those of stream_chat."""
        is_one = bool(messages) and isinstance(messages[0], dict)
        conversations = cast(Sequence[Sequence[Message]], [messages] if is_one else list(messages))
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
            names = [text(item.labels[k]) or "" for k in range(item.num_labels)] or list(labels)
            outputs.append(ClassificationOutput(text(item.label), floats(item.scores, item.num_scores, found), names,
                                                None if item.token_id < 0 else item.token_id, error_in(item)))
        return _raise_first(outputs, raises)

    def score(self, query: str, documents: str | Sequence[str], *, lora: str | None = None,
              _cancellation: Cancellation | None = None) -> Any:
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
        cancellation = _cancellation or Cancellation()
        keep: list[Any] = []
        options, made = self._request_options(lora, cancellation), prompt_of(prompt, keep)
        found = interruptible(lambda: result_of(_abi.paceline_logprobs,
                                                lambda out: library.paceline_score(self._handle, made, top, options, out),
                                                library.paceline_free_logprobs), cancellation.cancel)
        return logprobs_of(found.contents.items, found.contents.count)

    def decide(self, inputs: str | Sequence[str], questions: Sequence[Predicate | Choice | Scale], *, temperature: float = 1.0,
               lora: str | None = None, raises: bool = True, _cancellation: Cancellation | None = None) -> list[Decision]:
        """Answers the same questions about each input."""
        inputs = [inputs] if isinstance(inputs, str) else list(inputs)
        cancellation = _cancellation or Cancellation()
        keep: list[Any] = []
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

    def apply_chat_template(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] | None = None) -> str:
        listed = None if tools is None else json_of("tools", list(tools))
        return self._text(lambda made, size: library.paceline_apply_chat_template(self._handle, json_of("messages", list(messages)), listed, made,
                                                                                  size))

    # --- Adapters, memory, figures

    def load_lora(self, name: str, path: str, scale: float = 1.0) -> None:
        """For requests that name it (`lora=`); the model was made with enable_lora=True."""
        check(library.paceline_load_adapter(self._handle, name.encode(), str(path).encode(), scale))

    def unload_lora(self, name: str) -> None:
        check(library.paceline_unload_adapter(self._handle, name.encode()))

    def info(self) -> dict[str, Any]:
        """What the model is."""
        found = result_of(_abi.paceline_model_info, lambda out: library.paceline_get_model_info(self._handle, out),
                          library.paceline_free_model_info)
        return _members(found.contents)

    def memory(self) -> dict[str, int]:
        use = _abi.paceline_memory()
        check(library.paceline_memory_use(self._handle, use))
        return _members(use)

    def metrics(self) -> dict[str, Any]:
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            library.paceline_free_model(self._handle)

    # --- Helpers

    def _prompt_and_ids(self, prompt: Prompt) -> tuple[str | None, list[int] | None]:
        """Of a request that was taken; the ids of a text are those that the model gets."""
        if isinstance(prompt, dict):
            given = prompt.get("prompt_token_ids")
            return prompt.get("prompt"), self.encode(prompt["prompt"], add_special_tokens=True) if given is None else list(given)
        if isinstance(prompt, str):
            return prompt, self.encode(prompt, add_special_tokens=True)
        return None, list(prompt)

    @staticmethod
    def _request_options(lora: str | None, cancellation: Cancellation) -> _abi.paceline_request_options:
        options = _abi.paceline_request_options()
        library.paceline_request_options_init(options)
        options.cancellation = cancellation.handle
        if lora is not None:
            options.adapter = lora.encode()
        return options

    def _on_prompts(self, prompts: Prompt | Sequence[Prompt], lora: str | None, given: Cancellation | None, kind: type[ctypes.Structure],
                    free: Callable[[Any], None], call: Callable[..., int]) -> Result:
        prompts, cancellation = as_list(prompts), given or Cancellation()
        keep: list[Any] = []
        options = self._request_options(lora, cancellation)
        array = (_abi.paceline_prompt * len(prompts))(*[prompt_of(prompt, keep) for prompt in prompts])
        return interruptible(lambda: result_of(kind, lambda out: call(array, len(prompts), options, out), free), cancellation.cancel)

    @staticmethod
    def _text(call: Callable[[Any, Any], int]) -> str:
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
        raise error_of("invalid", f"n: found {params.n}, expected 1 or more")
    if params.n == 1 or params.seed is not None:
        return params
    return SamplingParams(**{**params.__dict__, "seed": random.getrandbits(62)})


def json_of(name: str, value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError) as error:
        raise error_of("invalid", f"{name}: {error}; expected what JSON can say") from None


def tool_choice_of(choice: str | dict[str, Any]) -> tuple[int, bytes | None]:
    """A paceline_tool_choice, and the name of the tool that must be called."""
    words = {"auto": _abi.PACELINE_TOOLS_AUTO, "none": _abi.PACELINE_TOOLS_NONE, "required": _abi.PACELINE_TOOLS_REQUIRED}
    if isinstance(choice, str) and choice in words:
        return words[choice], None
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise error_of("invalid", f"tool_choice: found {choice!r}, expected auto, none, required, or "
                       '{"type": "function", "function": {"name": ...}}')
    return _abi.PACELINE_TOOLS_NAMED, name.encode()


def _answer(question: Predicate | Choice | Scale, found: _abi.paceline_answer, owner: Result) -> Answer:
    if isinstance(question, Predicate):
        value = found.best == 0
    else:
        value = list(question.values if isinstance(question, Choice) else question.levels)[found.best]
    return Answer(value, floats(found.probabilities, found.num_probabilities, owner), found.score, found.confidence)


def _raise_first(outputs: list[Out], raises: bool) -> list[Out]:
    for output in outputs:
        error = getattr(output, "error")
        if raises and error is not None:
            raise error
    return outputs


def _members(structure: ctypes.Structure) -> dict[str, Any]:
    found = {}
    for name, kind in cast(list[tuple[str, Any]], structure._fields_):
        value = getattr(structure, name)
        found[name] = text(value) if kind is ctypes.c_char_p else value
    return found


def device_info() -> dict[str, Any]:
    """Of the machine that would compute; no model is loaded."""
    found = result_of(_abi.paceline_device_info, lambda out: library.paceline_get_device_info(None, out), library.paceline_free_device_info)
    return _members(found.contents)


__all__ = ["LLM", "Generation", "CompletionOutput", "device_info"]
