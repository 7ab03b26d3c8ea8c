"""BatchContext: a model and a cache, for batches of the caller's own."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from . import _abi
from ._library import check, integers, library
from .arrays import array
from .llm import load_options


class BatchContext:
    """A model and a cache of `num_tokens` tokens that sequences share, without queue, scheduler and sampling: append tokens to sequences
    and read rows of logits, which have the bits that they have in any other chunks, batches, forks or order. A call that raises has
    changed nothing. One thread at a time. `options` are LLM's."""

    def __init__(self, model: str, num_tokens: int, **options: Any):
        self._handle = ctypes.c_void_p()
        check(library.paceline_new_context(load_options(model, **options), num_tokens, self._handle))

    @property
    def vocab_size(self) -> int:
        return int(library.paceline_context_vocab_size(self._handle))

    @property
    def room(self) -> int:
        """Tokens that the cache still has room for."""
        return int(library.paceline_context_room(self._handle))

    def create(self, longest: int = 0) -> int:
        """A sequence. A rope that is stretched beyond a length has the bits of `longest` tokens; 0: of as many as a sequence may get."""
        sequence = ctypes.c_int32()
        check(library.paceline_new_sequence(self._handle, longest, sequence))
        return sequence.value

    def fork(self, sequence: int) -> int:
        """Another sequence with the same tokens, which share their memory."""
        forked = ctypes.c_int32()
        check(library.paceline_fork_sequence(self._handle, sequence, forked))
        return forked.value

    def free(self, sequence: int) -> None:
        check(library.paceline_free_sequence(self._handle, sequence))

    def length(self, sequence: int) -> int:
        length = ctypes.c_int64()
        check(library.paceline_sequence_length(self._handle, sequence, length))
        return length.value

    def prefill(self, sequence: int, ids: Sequence[int], *, chunk: int = 0, rows: Sequence[int] | None = None) -> Any:
        """Appends the tokens, in steps of at most `chunk` (0: as many as fit). Logits [rows, vocab_size] of the tokens at these indices
        of `ids`, ascending; without `rows` those of the last token."""
        num_rows = 1 if rows is None else len(rows)
        logits = (ctypes.c_float * (num_rows * self.vocab_size))()
        indices = None if rows is None else (ctypes.c_size_t * num_rows)(*rows)
        check(library.paceline_prefill(self._handle, sequence, integers(ids), len(ids), chunk, indices, 0 if rows is None else num_rows,
                                       None if num_rows == 0 else logits))
        return array(logits, (num_rows, self.vocab_size))

    def decode_batch(self, entries: Sequence[tuple[int, int]]) -> Any:
        """Appends one token to each of several different sequences, (sequence, token), in one step. Logits [entries, vocab_size]."""
        logits = (ctypes.c_float * (len(entries) * self.vocab_size))()
        tokens = integers([token for _, token in entries])
        step = (_abi.paceline_decode_entry * len(entries))(*[_abi.paceline_decode_entry(sequence, token)
                                                             for (sequence, _), token in zip(entries, tokens)])
        check(library.paceline_decode_batch(self._handle, step, len(entries), logits))
        return array(logits, (len(entries), self.vocab_size))

    def close(self) -> None:
        library.paceline_free_context(self._handle)
        self._handle = ctypes.c_void_p()

    def __enter__(self) -> BatchContext:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            library.paceline_free_context(self._handle)
