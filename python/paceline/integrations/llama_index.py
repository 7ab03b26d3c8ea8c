"""Paceline as a model of LlamaIndex:

    from llama_index.core import Settings
    from paceline import LLM, SamplingParams
    from paceline.integrations.llama_index import PacelineLLM
    Settings.llm = PacelineLLM(LLM("models/paceline-10m"), SamplingParams(max_tokens=200))

A call may change each name of SamplingParams (`llm.complete(..., temperature=0)`)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (ChatMessage, ChatResponse, ChatResponseGen, CompletionResponse, CompletionResponseGen,
                                              LLMMetadata)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback

from ..llm import LLM
from ..outputs import RequestOutput
from ..params import SamplingParams
from .requests import model_of, split

_DEFAULT_MAX_TOKENS = 256


class PacelineLLM(CustomLLM):
    """`model` is a path or an LLM; `options` are LLM's. Conversations go through the model's chat template, where it has one."""

    _llm: LLM = PrivateAttr()
    _params: SamplingParams = PrivateAttr()
    _lora: str | None = PrivateAttr()
    _info: dict[str, Any] = PrivateAttr()

    def __init__(self, model: str | LLM, params: SamplingParams | None = None, *, lora: str | None = None, **options: Any):
        super().__init__()
        self._llm, self._params, self._lora = model_of(model, options), params or SamplingParams(), lora
        self._info = self._llm.info()

    @classmethod
    def class_name(cls) -> str:
        return "paceline"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=self._info["max_model_len"], num_output=self._params.max_tokens or _DEFAULT_MAX_TOKENS,
                           model_name=self._info["path"], is_chat_model=bool(self._info["has_chat_template"]))

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        output = self._llm.generate(prompt, split(self._params, kwargs)[0], lora=self._lora)[0]
        return CompletionResponse(text=output.outputs[0].text or "", raw=output, additional_kwargs=_usage(output))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        pieces = self._llm.stream(prompt, split(self._params, kwargs)[0], lora=self._lora)

        def responses() -> CompletionResponseGen:
            so_far = ""
            for piece in pieces:
                so_far += piece
                yield CompletionResponse(text=so_far, delta=piece)

        return responses()

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        if not self._info["has_chat_template"]:
            return super().chat(messages, **kwargs)
        params, options = split(self._params, kwargs)
        output = self._llm.chat(_openai(messages), params, lora=self._lora, **options)[0]
        one = output.outputs[0]
        return ChatResponse(message=ChatMessage(role="assistant", content=(one.text if one.content is None else one.content) or ""), raw=output,
                            additional_kwargs=_usage(output))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        if not self._info["has_chat_template"]:
            return super().stream_chat(messages, **kwargs)
        params, options = split(self._params, kwargs)
        pieces = self._llm.stream_chat(_openai(messages), params, lora=self._lora, **options)

        def responses() -> ChatResponseGen:
            so_far = ""
            for piece in pieces:
                so_far += piece
                yield ChatResponse(message=ChatMessage(role="assistant", content=so_far), delta=piece)

        return responses()


def _openai(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    return [{"role": message.role.value, "content": message.content or ""} for message in messages]


def _usage(output: RequestOutput) -> dict[str, int]:
    return {"prompt_tokens": output.metrics.prompt_tokens, "completion_tokens": output.metrics.completion_tokens,
            "total_tokens": output.metrics.prompt_tokens + output.metrics.completion_tokens}
