"""mlx-lm's functions on Paceline: `from paceline.mlx_lm import load, generate, stream_generate, batch_generate`."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .llm import LLM, Prompt
from .params import SamplingParams


class Tokenizer:
    """The model's, with the methods that callers of mlx-lm use."""

    def __init__(self, llm: LLM):
        self._llm = llm

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self._llm.encode(text, add_special_tokens=add_special_tokens)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return self._llm.decode(ids, skip_special_tokens=skip_special_tokens)

    def apply_chat_template(self, messages: Sequence[dict], add_generation_prompt: bool = True, tokenize: bool = True,
                            tools: Sequence[dict] | None = None) -> list[int] | str:
        if not add_generation_prompt:
            raise NotImplementedError("apply_chat_template: add_generation_prompt=False isn't offered here")
        text = self._llm.apply_chat_template(messages, tools)
        return self._llm.encode(text) if tokenize else text


@dataclass
class GenerationResponse:
    text: str
    finish_reason: str | None = None
    prompt_tokens: int = 0
    generation_tokens: int = 0


@dataclass
class BatchResponse:
    texts: list[str] = field(default_factory=list)


def load(path_or_hf_repo: str, adapter_path: str | None = None, **options) -> tuple[LLM, Tokenizer]:
    """The model and its tokenizer; requests use the adapter, if there is one."""
    llm = LLM(path_or_hf_repo, enable_lora=adapter_path is not None, **options)
    if adapter_path is not None:
        llm.load_lora("adapter", adapter_path)
    llm._mlx_adapter = None if adapter_path is None else "adapter"
    return llm, Tokenizer(llm)


def _params(max_tokens: int, sampling: dict) -> SamplingParams:
    """mlx-lm is greedy unless a sampler says otherwise."""
    names = {"temp": "temperature"}
    return SamplingParams(max_tokens=max_tokens, **{"temperature": 0.0, **{names.get(name, name): value for name, value in sampling.items()}})


def stream_generate(model: LLM, tokenizer: Tokenizer, prompt: Prompt, max_tokens: int = 256, **sampling) -> Iterator[GenerationResponse]:
    """Pieces as they are made; the last response has the reason of the end and the numbers of tokens."""
    stream = model.stream(prompt, _params(max_tokens, sampling), lora=getattr(model, "_mlx_adapter", None))
    for piece in stream:
        yield GenerationResponse(piece)
    output = stream.output
    yield GenerationResponse("", output.outputs[0].finish_reason, output.metrics.prompt_tokens, output.metrics.completion_tokens)


def generate(model: LLM, tokenizer: Tokenizer, prompt: Prompt, max_tokens: int = 256, verbose: bool = False, **sampling) -> str:
    made = []
    for response in stream_generate(model, tokenizer, prompt, max_tokens, **sampling):
        made.append(response.text)
        if verbose:
            print(response.text, end="", flush=True)
    if verbose:
        print()
    return "".join(made)


def batch_generate(model: LLM, tokenizer: Tokenizer, prompts: Sequence[Prompt], max_tokens: int = 256, **sampling) -> BatchResponse:
    outputs = model.generate(list(prompts), _params(max_tokens, sampling), lora=getattr(model, "_mlx_adapter", None))
    return BatchResponse([output.outputs[0].text for output in outputs])
