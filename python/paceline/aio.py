"""AsyncLLM: the same model for asyncio. The engine's thread never waits for Python."""
from __future__ import annotations

import asyncio
import ctypes
import functools
from collections.abc import AsyncIterator, Sequence

from ._library import Cancellation, check, library
from .llm import LLM, Generation, Message, Prompt
from .outputs import CompletionOutput, RequestOutput
from .params import SamplingParams


class _Reader:
    """Wakes the task of each generation that has something to read: one descriptor for all of a loop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.handle = ctypes.c_void_p()
        check(library.paceline_new_queue(self.handle))
        self._loop, self._events, self._next = loop, {}, 0
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

    def __init__(self, model: str | LLM, **options):
        self.llm = model if isinstance(model, LLM) else LLM(model, **options)
        self._readers: dict[asyncio.AbstractEventLoop, _Reader] = {}

    def _reader(self) -> _Reader:
        loop = asyncio.get_running_loop()
        for ended in [other for other in self._readers if other.is_closed()]:
            self._readers.pop(ended).close()
        if loop not in self._readers:
            self._readers[loop] = _Reader(loop)
        return self._readers[loop]

    async def _pieces(self, begin) -> AsyncIterator[str | RequestOutput]:
        """The pieces of a generation, then its output."""
        reader = self._reader()
        tag, event = reader.begin()
        generation: Generation | None = None
        try:
            generation = begin(_queue=reader.handle, _tag=tag)
            while True:
                piece, is_finished = generation.poll()
                if piece is not None:
                    yield piece
                elif is_finished:
                    yield generation.output
                    return
                else:
                    await event.wait()
                    event.clear()
        finally:
            if generation is not None:
                generation.cancel()
            reader.end(tag)

    async def stream(self, prompt: Prompt, sampling_params: SamplingParams | None = None, *, lora: str | None = None) -> AsyncIterator[str]:
        """Pieces of text as they are made."""
        async for piece in self._pieces(functools.partial(self.llm.stream, prompt, sampling_params, lora=lora)):
            if isinstance(piece, str):
                yield piece

    async def generate(self, prompt: Prompt, sampling_params: SamplingParams | None = None, request_id: str | None = None, *,
                       lora: str | None = None) -> AsyncIterator[RequestOutput]:
        """Outputs with the text so far; the last one is finished and whole."""
        async for output in self._outputs(functools.partial(self.llm.stream, prompt, sampling_params, lora=lora)):
            yield output

    async def chat(self, messages: Sequence[Message], sampling_params: SamplingParams | None = None, **options) -> AsyncIterator[RequestOutput]:
        """The same for an answer to a conversation; `options` are those of LLM.stream_chat."""
        async for output in self._outputs(functools.partial(self.llm.stream_chat, messages, sampling_params, **options)):
            yield output

    async def _outputs(self, begin) -> AsyncIterator[RequestOutput]:
        so_far = ""
        async for piece in self._pieces(begin):
            if isinstance(piece, RequestOutput):
                yield piece
                return
            so_far += piece
            yield RequestOutput(None, None, [CompletionOutput(0, so_far, [])], finished=False)

    def __getattr__(self, name: str):
        """embed, classify, score, logprobs and decide, on threads of the loop's own."""
        if name not in ("embed", "classify", "score", "logprobs", "decide"):
            raise AttributeError(name)

        async def call(*arguments, **options):
            cancellation = Cancellation()
            try:
                return await asyncio.to_thread(getattr(self.llm, name), *arguments, _cancellation=cancellation, **options)
            except asyncio.CancelledError:
                cancellation.cancel()
                raise

        return call

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        self.llm.close()

    async def __aenter__(self) -> AsyncLLM:
        return self

    async def __aexit__(self, *_) -> None:
        self.close()
