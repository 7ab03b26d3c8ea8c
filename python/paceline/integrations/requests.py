"""What the integrations have in common: options by name, and messages."""
from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ..errors import error_of
from ..llm import LLM
from ..outputs import ToolCall
from ..params import SamplingParams

_OF_CHATS = ("tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs", "reasoning_effort")


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """None of a call that was cut off."""
    try:
        found = json.loads(call.arguments)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def model_of(llm: LLM | str, options: dict[str, Any]) -> LLM:
    """A model that is shared, or one that is loaded with these options."""
    if isinstance(llm, LLM):
        if options:
            raise error_of("invalid", f"{next(iter(options))}: an option of loading, but the model is loaded")
        return llm
    return LLM(llm, **options)


def split(params: SamplingParams, given: dict[str, Any], stop: list[str] | None = None) -> tuple[SamplingParams, dict[str, Any]]:
    """The parameters with what a call changes of them, and the options that only chats have. None changes nothing."""
    changes = {name: value for name, value in given.items() if name in SamplingParams.__dataclass_fields__ and value is not None}
    chat = {name: given[name] for name in _OF_CHATS if given.get(name) is not None}
    unknown = [name for name in given if name not in SamplingParams.__dataclass_fields__ and name not in _OF_CHATS]
    if unknown:
        raise error_of("invalid", f"{unknown[0]}: found {given[unknown[0]]!r}, but there is no such option")
    if stop:
        changes["stop"] = list(stop)
    return replace(params, **changes), chat
