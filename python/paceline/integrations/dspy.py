"""Paceline as a model of DSPy (3.4 and later):

    import dspy
    from paceline.integrations.dspy import lm
    dspy.configure(lm=lm("models/paceline-10m", max_tokens=200))

Schemas that a signature asks for hold exactly: the text is drawn under their grammar."""
from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import dspy
from dspy.clients.engines.base import validate_request
from dspy.lm15 import (FunctionTool, Message, Request, Response, TextPart, ThinkingPart, ToolCallPart, ToolResultPart, Usage,
                       response_to_events)

from ..aio import AsyncLLM
from ..errors import error_of
from ..llm import LLM
from ..outputs import RequestOutput
from ..params import SamplingParams, StructuredOutputs
from .requests import arguments_of, model_of, split


def lm(model: str | LLM, *, lora: str | None = None, load: dict[str, Any] | None = None, **options: Any) -> dspy.LM:
    """A dspy.LM on a path or an LLM. `load` are LLM's options, `options` dspy.LM's: temperature, max_tokens, cache, ..."""
    engine = Engine(model_of(model, load or {}), lora)
    return dspy.LM("paceline/" + engine.name, engine=engine, async_engine=AsyncEngine(engine), **options)


class Engine:
    """Answers DSPy's requests."""

    supports_function_calling = True
    supports_response_schema = True
    supports_reasoning = False
    supported_params = frozenset(("response_format", "tools", "tool_choice", "max_tokens", "temperature", "top_p", "top_k", "stop", "seed",
                                  "frequency_penalty", "presence_penalty", "logprobs"))

    def __init__(self, llm: LLM, lora: str | None = None):
        self.llm, self._lora = llm, lora
        self.name = str(llm.info()["path"]).rstrip("/").rpartition("/")[2]

    def asked(self, request: Request) -> tuple[list[dict[str, Any]], SamplingParams, dict[str, Any]]:
        """The messages, parameters and options of a request."""
        validate_request(request)
        messages = [] if request.system is None else [{"role": "system", "content": _text(request.system)}]
        for message in request.messages:
            messages += _openai(message)
        params, options = _sampling(request)
        return messages, params, {**options, "lora": self._lora}

    def complete(self, request: Request) -> Response:
        messages, params, options = self.asked(request)
        return self.response(self.llm.chat(messages, params, **options)[0])

    def stream(self, request: Request) -> Iterator[Any]:
        return iter(response_to_events(self.complete(request)))

    def response(self, output: RequestOutput) -> Response:
        one = output.outputs[0]
        parts: list[Any] = [ThinkingPart(one.reasoning)] if one.reasoning else []
        content = one.text if one.content is None else one.content
        whole = [(call, arguments_of(call)) for call in one.tool_calls]  # the last one may be cut off
        parts += [ToolCallPart(id=call.id, name=call.name, input=given) for call, given in whole if given is not None]
        if content or not parts:
            parts.append(TextPart(content or ""))
        finish = "tool_call" if one.tool_calls and one.finish_reason == "stop" else one.finish_reason if one.finish_reason in ("stop", "length") else "error"
        return Response(id=None, model=self.name, message=Message.assistant(parts), finish_reason=finish,
                        usage=Usage(input_tokens=output.metrics.prompt_tokens, output_tokens=output.metrics.completion_tokens,
                                    cache_read_tokens=output.metrics.cached_tokens))

    def close(self) -> None:
        """The model is the caller's."""


class AsyncEngine:
    """The same for asyncio."""

    def __init__(self, engine: Engine):
        self._engine = engine

    async def complete(self, request: Request) -> Response:
        messages, params, options = self._engine.asked(request)
        async for output in AsyncLLM.of(self._engine.llm).chat(messages, params, **options):
            pass
        return self._engine.response(output)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        for event in response_to_events(await self.complete(request)):
            yield event

    async def aclose(self) -> None:
        """The model is the caller's."""


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(_text_of(part) for part in content)


def _text_of(part: Any) -> str:
    if isinstance(part, TextPart):
        return str(part.text)
    raise error_of("unsupported", f"messages: found a part {part.type!r}, expected text")


def _openai(message: Message) -> list[dict[str, Any]]:
    """As OpenAI's API has it; each result of a tool is a message."""
    if message.role == "tool":
        return [{"role": "tool", "tool_call_id": part.id, "content": _text(part.content)} for part in message.parts_of(ToolResultPart)]
    calls = [{"id": part.id, "type": "function", "function": {"name": part.name, "arguments": json.dumps(part.input)}}
             for part in message.parts_of(ToolCallPart)]
    said = {"role": "system" if message.role == "developer" else message.role,
            "content": _text([part for part in message.parts if not isinstance(part, (ToolCallPart, ThinkingPart))])}
    return [{**said, "tool_calls": calls} if calls else said]


def _sampling(request: Request) -> tuple[SamplingParams, dict[str, Any]]:
    config = request.config
    given: dict[str, Any] = {name: getattr(config, name) for name in
                             ("max_tokens", "temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty", "logprobs")}
    given.update(config.extensions or {})
    if config.response_format is not None:
        is_schema = config.response_format["type"] == "json_schema"
        given["structured_outputs"] = StructuredOutputs(json=config.response_format["schema"]) if is_schema else StructuredOutputs(json_object=True)
    if request.tools:
        given["tools"] = [_tool(tool) for tool in request.tools]
    if config.tool_choice is not None:
        given["tool_choice"] = config.tool_choice.mode
        if len(config.tool_choice.allowed) == 1 and config.tool_choice.mode == "required":
            given["tool_choice"] = {"type": "function", "function": {"name": config.tool_choice.allowed[0]}}
    return split(SamplingParams(), given, list(config.stop))


def _tool(tool: Any) -> dict[str, Any]:
    if not isinstance(tool, FunctionTool):
        raise error_of("unsupported", f"tools: found {tool!r}, expected a function")
    return {"type": "function", "function": {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters}}
