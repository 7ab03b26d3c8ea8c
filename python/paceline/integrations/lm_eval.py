"""Paceline as a model of lm-evaluation-harness:

    import lm_eval
    from paceline.integrations.lm_eval import PacelineLM
    results = lm_eval.simple_evaluate(PacelineLM("models/paceline-10m"), tasks=["lambada_openai"])

It is registered as "paceline" once this module is imported. Tokens, windows and prefixes are those of the harness's hf model: texts get
no special tokens, an empty context is the first token of a sequence, and contexts that are too long lose their beginning."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lm_eval import utils
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model

from ..errors import error_of
from ..llm import LLM
from ..outputs import Logprob
from ..params import SamplingParams
from .requests import model_of

_MAX_GEN_TOKS = 256


def _prefix_of(llm: LLM) -> int:
    """The token that begins sequences, else the one that ends them."""
    first = llm.encode("", add_special_tokens=True)
    if first:
        return first[0]
    file = Path(llm.info()["path"]) / "config.json"
    config = json.loads(file.read_text()) if file.exists() else {}
    for name in ("bos_token_id", "eos_token_id"):
        found = config.get(name, config.get("text_config", {}).get(name))
        if found is not None:
            return int(found[0] if isinstance(found, list) else found)
    raise error_of("not_found", f"prefix_token_id: {file} has neither bos_token_id nor eos_token_id; give the token of an empty context")


@register_model("paceline")
class PacelineLM(TemplateLM):
    """`model` is a path or an LLM; `options` are LLM's."""

    def __init__(self, model: str | LLM, batch_size: int | str = 256, prefix_token_id: int | None = None, max_length: int | None = None,
                 add_bos_token: bool = False, lora: str | None = None, device: str | None = None, max_batch_size: int | None = None,
                 **options: Any):
        super().__init__()
        self.llm = model_of(model, {**options, **({} if device is None or isinstance(model, LLM) else {"device": device})})
        self._prefix = _prefix_of(self.llm) if prefix_token_id is None else int(prefix_token_id)
        # A window has one token of context, which the harness doesn't count.
        self.max_length = int(max_length or self.llm.info()["max_model_len"] - 1)
        self._batch_size = max_batch_size or 256 if batch_size == "auto" else int(batch_size)
        self._add_bos_token, self._lora = add_bos_token, lora

    @property
    def eot_token_id(self) -> int:
        return self._prefix

    @property
    def tokenizer_name(self) -> str:
        return str(self.llm.info()["path"]).replace("/", "__")

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        return self.llm.encode(string, add_special_tokens=self._add_bos_token if add_special_tokens is None else add_special_tokens)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        if not add_generation_prompt:
            raise error_of("unsupported", "apply_chat_template: add_generation_prompt=False isn't offered here")
        return self.llm.apply_chat_template(chat_history)

    def _loglikelihood_tokens(self, requests: list[Any], disable_tqdm: bool = False, **_: Any) -> list[tuple[float, bool]]:
        """Requests are (texts, ids of the context, ids of the continuation)."""
        answers: list[tuple[float, bool]] = []
        params = SamplingParams(max_tokens=0, prompt_logprobs=True, logprobs=1)
        for begin in range(0, len(requests), self._batch_size):
            batch = requests[begin:begin + self._batch_size]
            prompts = [[*context, *continuation][-(self.max_length + 1):] for _, context, continuation in batch]
            for (texts, _, continuation), output in zip(batch, self.llm.generate(prompts, params, lora=self._lora)):
                answer = _answer((output.prompt_logprobs or [])[-len(continuation):])
                if texts is not None:
                    self.cache_hook.add_partial("loglikelihood", texts, answer)
                answers.append(answer)
        return answers

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        windows: list[tuple[None, list[int], list[int]]] = []
        counts = []
        for (string,) in (request.args for request in requests):
            found = list(utils.get_rolling_token_windows(token_list=self.tok_encode(string), prefix_token=self.prefix_token_id,
                                                         max_seq_len=self.max_length, context_len=1))
            windows += [(None, *utils.make_disjoint_window(window)) for window in found]
            counts.append(len(found))
        scores = iter(self._loglikelihood_tokens(windows))
        totals = [sum(next(scores)[0] for _ in range(count)) for count in counts]
        for request, total in zip(requests, totals):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, total)
        return totals

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        asked = [(context, _sampling(dict(given))) for context, given in (request.args for request in requests)]
        made: list[str] = []
        for begin in range(0, len(asked), self._batch_size):
            batch = asked[begin:begin + self._batch_size]
            prompts = [self._context(context, params.max_tokens or 0) for context, params in batch]
            outputs = self.llm.generate(prompts, [params for _, params in batch], lora=self._lora)
            made += [output.outputs[0].text or "" for output in outputs]
        for request, text in zip(requests, made):
            self.cache_hook.add_partial("generate_until", request.args, text)
        return made

    def _context(self, context: str, max_tokens: int) -> list[int]:
        """What there is room for before so many tokens."""
        room = self.max_length - max_tokens
        if room < 1:
            raise error_of("invalid", f"max_gen_toks: found {max_tokens}, expected less than the context of {self.max_length} tokens")
        return self.tok_encode(context)[-room:] or [self.prefix_token_id]


def _answer(logprobs: list[Logprob]) -> tuple[float, bool]:
    """The sum, and whether each token is the likeliest one."""
    is_greedy = all(one.id == max(one.top, key=lambda token: one.top[token]) for one in logprobs)
    return sum(one.logprob or 0.0 for one in logprobs), is_greedy


def _sampling(given: dict[str, Any]) -> SamplingParams:
    """The harness's names; greedy unless do_sample."""
    until = given.pop("until", None) or []
    temperature = given.pop("temperature", None)
    is_sampled = given.pop("do_sample", bool(temperature))
    max_tokens = next((int(given.pop(name)) for name in ("max_gen_toks", "max_new_tokens", "max_tokens") if given.get(name)), _MAX_GEN_TOKS)
    known = {name: value for name, value in given.items() if name in SamplingParams.__dataclass_fields__}
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise error_of("unsupported", f"{unknown}: found {given[unknown]!r}, but it isn't offered here")
    return SamplingParams(max_tokens=max_tokens, temperature=1.0 if is_sampled and temperature is None else (temperature or 0.0) * is_sampled,
                          stop=[until] if isinstance(until, str) else list(until), **known)
