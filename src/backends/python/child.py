"""Runs a model with transformers or mlx_lm for Paceline, which speaks JSON Lines with it: docs/backends.md."""
import json
import os
import sys


class Transformers:
    def __init__(self, path, dtype):
        import torch
        import transformers
        self.torch = torch
        self.version = transformers.__version__
        self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype)).eval()

    def rows(self, ids):
        """Log-probabilities of the next token after each id, float32 [ids, vocab]."""
        with self.torch.no_grad():
            logits = self.model(self.torch.tensor([ids]), use_cache=False).logits[0]
            return self.torch.log_softmax(logits.float(), dim=-1).numpy()


class MlxLm:
    def __init__(self, path, dtype):
        import mlx.core
        import mlx_lm
        self.mx = mlx.core
        self.version = mlx_lm.__version__
        self.model, *_ = mlx_lm.load(path)
        self.model.set_dtype(getattr(self.mx, dtype))

    def rows(self, ids):
        import numpy
        logits = self.model(self.mx.array([ids]))[0].astype(self.mx.float32)
        return numpy.array(logits - self.mx.logsumexp(logits, axis=-1, keepdims=True))


def score(model, ids):
    rows = model.rows(ids)
    return {"logprobs": [float(rows[i, ids[i + 1]]) for i in range(len(ids) - 1)],
            "best": [int(row.argmax()) for row in rows]}


def answer(model, request):
    if request["op"] == "load":
        made = {"transformers": Transformers, "mlx_lm": MlxLm}[request["backend"]](request["model"], request["dtype"])
        return made, {"version": made.version}
    if request["op"] == "score":
        return model, score(model, request["ids"])
    raise ValueError(f"op: found {request['op']!r}, expected load, score or quit")


def main():
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    model = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "quit":
            break
        try:
            model, result = answer(model, request)
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(result) + "\n")
        answers.flush()


main()
