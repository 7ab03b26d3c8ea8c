"""Paceline as models of LangChain:

    from paceline import LLM
    from paceline.integrations.langchain import ChatPaceline, PacelineLLM
    print(ChatPaceline(llm=LLM("models/paceline-10m")).invoke("Who are you?").content)

Both take a model's path or an LLM, which several may share, and SamplingParams as `params`; a call may change each of its names
(`model.invoke(..., temperature=0)`, or `model.bind(...)`)."""
from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.llms import BaseLLM
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, convert_to_openai_messages
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, Generation, GenerationChunk, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field, field_validator

from ..aio import AsyncLLM
from ..llm import LLM
from ..outputs import RequestOutput
from ..params import SamplingParams
from .requests import arguments_of, model_of, split


def _usage(output: RequestOutput) -> UsageMetadata:
    used = output.metrics
    return UsageMetadata(input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens,
                         total_tokens=used.prompt_tokens + used.completion_tokens)


class ChatPaceline(BaseChatModel):
    """Answers conversations, with the model's chat template; tools and reasoning where it has them."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    llm: Any
    params: SamplingParams = Field(default_factory=SamplingParams)
    lora: str | None = None

    @field_validator("llm")
    @classmethod
    def _load(cls, llm: Any) -> LLM:
        return model_of(llm, {})

    @property
    def _llm_type(self) -> str:
        return "paceline"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.llm.info()["path"], "lora": self.lora, "params": self.params}

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: str | dict[str, Any] | bool | None = None,
                   **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """`tool_choice` is "auto", "none", "required" ("any", True), or the name of a tool."""
        choice: Any = {True: "required", "any": "required", False: "auto", None: "auto"}.get(tool_choice, tool_choice) \
            if not isinstance(tool_choice, dict) else tool_choice
        if isinstance(choice, str) and choice not in ("auto", "none", "required"):
            choice = {"type": "function", "function": {"name": choice}}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=choice, **kwargs)

    def _asked(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]) -> tuple[Any, SamplingParams, dict[str, Any]]:
        kwargs = {name: value for name, value in kwargs.items() if name != "ls_structured_output_format"}  # LangSmith's
        params, chat = split(self.params, kwargs, stop)
        return convert_to_openai_messages(messages), params, {**chat, "lora": self.lora}

    def _generate(self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None,
                  **kwargs: Any) -> ChatResult:
        asked, params, options = self._asked(messages, stop, kwargs)
        return _chat_result(self.llm.chat(asked, params, **options)[0])

    async def _agenerate(self, messages: list[BaseMessage], stop: list[str] | None = None,
                         run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs: Any) -> ChatResult:
        asked, params, options = self._asked(messages, stop, kwargs)
        async for output in AsyncLLM.of(self.llm).chat(asked, params, **options):
            pass
        return _chat_result(output)

    def _stream(self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None,
                **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        asked, params, options = self._asked(messages, stop, kwargs)
        if options.get("tools"):  # what is text, and what a call, is known at the end
            yield _last_chunk(self.llm.chat(asked, params, **options)[0], is_whole=True)
            return
        pieces = self.llm.stream_chat(asked, params, **options)
        for piece in pieces:
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
            if run_manager is not None:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
        yield _last_chunk(pieces.output, is_whole=False)

    async def _astream(self, messages: list[BaseMessage], stop: list[str] | None = None,
                       run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        asked, params, options = self._asked(messages, stop, kwargs)
        so_far = ""
        async for output in AsyncLLM.of(self.llm).chat(asked, params, **options):
            if output.finished:
                yield _last_chunk(output, is_whole=bool(options.get("tools")))
            elif not options.get("tools"):
                text = output.outputs[0].text or ""
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=text[len(so_far):]))
                if run_manager is not None:
                    await run_manager.on_llm_new_token(text[len(so_far):], chunk=chunk)
                yield chunk
                so_far = text


def _parts(output: RequestOutput) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The content, further members and the metadata of a message."""
    one = output.outputs[0]
    content = one.text if one.content is None else one.content
    further = {"reasoning_content": one.reasoning} if one.reasoning else {}
    return content or "", further, {"finish_reason": "tool_calls" if one.tool_calls else one.finish_reason, "model_provider": "paceline"}


def _chat_result(output: RequestOutput) -> ChatResult:
    content, further, metadata = _parts(output)
    calls, cut_off = [], []
    for call in output.outputs[0].tool_calls:
        arguments = arguments_of(call)
        if arguments is None:
            cut_off.append(invalid_tool_call(name=call.name, args=call.arguments, id=call.id, error="it was cut off: max_tokens"))
        else:
            calls.append(tool_call(name=call.name, args=arguments, id=call.id))
    message = AIMessage(content=content, tool_calls=calls, invalid_tool_calls=cut_off, additional_kwargs=further, response_metadata=metadata,
                        usage_metadata=_usage(output))
    return ChatResult(generations=[ChatGeneration(message=message, generation_info={"finish_reason": metadata["finish_reason"]})])


def _last_chunk(output: RequestOutput, is_whole: bool) -> ChatGenerationChunk:
    """With what comes at the end; `is_whole`: with the content, too."""
    content, further, metadata = _parts(output)
    calls = [tool_call_chunk(name=call.name, args=call.arguments, id=call.id, index=i) for i, call in enumerate(output.outputs[0].tool_calls)]
    return ChatGenerationChunk(message=AIMessageChunk(content=content if is_whole else "", tool_call_chunks=calls, additional_kwargs=further,
                                                      response_metadata=metadata, usage_metadata=_usage(output), chunk_position="last"))


class PacelineLLM(BaseLLM):
    """Continues texts."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    llm: Any
    params: SamplingParams = Field(default_factory=SamplingParams)
    lora: str | None = None

    @field_validator("llm")
    @classmethod
    def _load(cls, llm: Any) -> LLM:
        return model_of(llm, {})

    @property
    def _llm_type(self) -> str:
        return "paceline"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.llm.info()["path"], "lora": self.lora, "params": self.params}

    def _generate(self, prompts: list[str], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None,
                  **kwargs: Any) -> LLMResult:
        """All prompts at once."""
        outputs = self.llm.generate(prompts, split(self.params, kwargs, stop)[0], lora=self.lora)
        return LLMResult(generations=[[Generation(text=output.outputs[0].text or "",
                                                  generation_info={"finish_reason": output.outputs[0].finish_reason})] for output in outputs])

    def _stream(self, prompt: str, stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None,
                **kwargs: Any) -> Iterator[GenerationChunk]:
        for piece in self.llm.stream(prompt, split(self.params, kwargs, stop)[0], lora=self.lora):
            chunk = GenerationChunk(text=piece)
            if run_manager is not None:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
