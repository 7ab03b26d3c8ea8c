"""AsyncLLM: the same model for asyncio. The engine's thread never waits for Python."""
from __future__ import annotations

import asyncio
import ctypes
import functools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, TypeVar, cast

from ._library import Cancellation, check, library
from .llm import LLM, Generation, Message, Prompt
from .outputs import ClassificationOutput, CompletionOutput, Decision, EmbeddingOutput, Logprob, RequestOutput
from .params import Choice, Predicate, SamplingParams, Scale

T = TypeVar("T")


async def _on_thread(call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """call(), which is cancelled where the task is."""
    cancellation = Cancellation()
    try:
        return await asyncio.to_thread(call, *arguments, _cancellation=cancellation, **options)
    except asyncio.CancelledError:
        cancellation.cancel()
        raise


class _Reader:
    """Wakes the task of each generation that has something to read: one descriptor for all of a loop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.handle = ctypes.c_void_p()
        check(library.paceline_new_queue(self.handle))
        self._loop, self._next = loop, 0
        self._events: dict[int, asyncio.Event] = {}
        self._tags = (ctypes.c_int64 * 256)()
        self._descriptor = library.paceline_queue_descriptor(self.handle)
        loop.add_reader(self._descriptor, self._wake)

    def _wake(self) -> None:
        for tag in self._tags[:library.paceline_take_ready(self.handle, self._tags, len(self._tags))]:
            event = self._events.get(tag)
            if event is not None:
                event.set()

    def begin(self) -> tuple[int, asyncio.Event]:
        self._next += 1
        event = self._events[self._next] = asyncio.Event()
        return self._next, event

    def end(self, tag: int) -> None:
        del self._events[tag]

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._descriptor)
        library.paceline_free_queue(self.handle)


class AsyncLLM:
    """Takes what LLM takes. A task that is cancelled cancels its request."""

    def __init__(self, model: str | LLM, **options: Any):
        self.llm = model if isinstance(model, LLM) else LLM(model, **options)
        self._readers: dict[asyncio.AbstractEventLoop, _Reader] = {}

    @classmethod
    def of(cls, llm: LLM) -> AsyncLLM:
        """The one that all callers of this model share; closing the model ends its calls."""
        if llm.shared_async is None:
            llm.shared_async = cls(llm)
        return cast(AsyncLLM, llm.shared_async)

    def _reader(self) -> _Reader:
        loop = asyncio.get_running_loop()
        for ended in [other for other in self._readers if other.is_closed()]:
            self._readers.pop(ended).close()
        if loop not in self._readers:
            self._readers[loop] = _Reader(loop)
        return self._readers[loop]

    async def _progress(self, begin: Callable[..., Generation]) -> AsyncGenerator[tuple[Generation, str], None]:
        """What has been added to the text, each time that there is something; "" at the end."""
        reader = self._reader()
        tag, event = reader.begin()
        generation: Generation | None = None
        try:
            generation = begin(_queue=reader.handle, _tag=tag)
            while True:
                added, is_finished = generation.poll_all()
                if added:
                    yield generation, added
                if is_finished:
                    yield generation, ""
                    return
                if not added:
                    await event.wait()
                event.clear()
        finally:
            if generation is not None:
                generation.cancel()
            reader.end(tag)

    async def stream(self, prompt: Prompt, sampling_params: SamplingParams | None = None, *, lora: str | None = None) -> AsyncGenerator[str, None]:
        """Pieces of text as they are made."""
        async with aclosing(self._progress(functools.partial(self.llm.stream, prompt, sampling_params, lora=lora))) as progress:
            async for _, added in progress:
                if added:
                    yield added

    def generate(self, prompt: Prompt, sampling_params: SamplingParams | None = None, request_id: str | None = None, *,
                 lora: str | None = None) -> AsyncGenerator[RequestOutput, None]:
        """Outputs with the text so far; the last one is finished and whole."""
        return self._outputs(functools.partial(self.llm.stream, prompt, sampling_params, lora=lora))

    def chat(self, messages: Sequence[Message], sampling_params: SamplingParams | None = None, **options: Any) -> AsyncGenerator[RequestOutput, None]:
        """The same for an answer to a conversation; `options` are those of LLM.stream_chat."""
        return self._outputs(functools.partial(self.llm.stream_chat, messages, sampling_params, **options))

    async def _outputs(self, begin: Callable[..., Generation]) -> AsyncGenerator[RequestOutput, None]:
        so_far = ""
        async with aclosing(self._progress(begin)) as progress:
            async for generation, added in progress:
                if not added:
                    yield generation.output
                    return
                so_far += added
                yield RequestOutput(generation.prompt, generation.prompt_token_ids, [CompletionOutput(0, so_far, [])], finished=False)

    # The methods of LLM, on threads of the loop's own.

    async def embed(self, prompts: Prompt | Sequence[Prompt], *, dimensions: int = 0, lora: str | None = None,
                    raises: bool = True) -> list[EmbeddingOutput]:
        return await _on_thread(self.llm.embed, prompts, dimensions=dimensions, lora=lora, raises=raises)

    async def classify(self, prompts: Prompt | Sequence[Prompt], labels: Sequence[str] = (), *, lora: str | None = None,
                       raises: bool = True) -> list[ClassificationOutput]:
        return await _on_thread(self.llm.classify, prompts, labels, lora=lora, raises=raises)

    async def score(self, query: str, documents: str | Sequence[str], *, lora: str | None = None) -> Any:
        return await _on_thread(self.llm.score, query, documents, lora=lora)

    async def logprobs(self, prompt: Prompt, *, top: int = 0, lora: str | None = None) -> list[Logprob]:
        return await _on_thread(self.llm.logprobs, prompt, top=top, lora=lora)

    async def decide(self, inputs: str | Sequence[str], questions: Sequence[Predicate | Choice | Scale], *, temperature: float = 1.0,
                     lora: str | None = None, raises: bool = True) -> list[Decision]:
        return await _on_thread(self.llm.decide, inputs, questions, temperature=temperature, lora=lora, raises=raises)

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        self.llm.close()

    async def __aenter__(self) -> AsyncLLM:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
