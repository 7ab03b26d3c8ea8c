"""Runs a model with transformers or mlx_lm for Paceline, which speaks JSON Lines with it: docs/backends.md."""
import json
import os
import queue
import sys
import threading

# What a request may set beside its seed; the standard order of Paceline's sampler.
OPTIONS = ["temperature", "top_k", "top_p", "min_p", "typical_p", "top_n_sigma", "repetition_penalty", "frequency_penalty",
           "presence_penalty", "logit_bias", "allowed_token_ids", "bad_words", "begin_suppress_tokens", "min_tokens", "logprobs"]
PREFILL = 512  # tokens at once


def log_softmax(row):
    import numpy
    shifted = row.astype(numpy.float64) - row.max()
    return shifted - numpy.log(numpy.exp(shifted).sum())


def top_of(logprobs, count):
    """The `count` likeliest tokens, [id, log-probability], ties to the lowest id."""
    import numpy
    ids = numpy.argsort(-logprobs, kind="stable")[:count]
    return [[int(i), float(logprobs[i])] for i in ids]


class Sampler:
    """Draws the tokens of one generation from rows of logits."""

    def __init__(self, request):
        import numpy
        self.numpy = numpy
        self.request = request
        self.random = numpy.random.Generator(numpy.random.PCG64(request["seed"]))
        self.prompt = request["ids"]
        self.output = []

    def draw(self, row):
        """row: float32 [vocab]. The token, and its event."""
        raw = self.numpy.array(row, dtype=self.numpy.float32)
        if not self.numpy.isfinite(raw.max()):
            raise ValueError("the logits hold a NaN or an infinity")
        token = self.choose(self.masked(self.penalised(raw.copy())))
        event = {"token": token}
        if "logprobs" in self.request:
            logprobs = log_softmax(raw)
            event["logprob"] = float(logprobs[token])
            event["top"] = top_of(logprobs, self.request["logprobs"])
        self.output.append(token)
        return token, event

    def penalised(self, row):
        numpy, ask = self.numpy, self.request.get
        repetition = ask("repetition_penalty", 1.0)
        if repetition != 1.0:
            seen = numpy.unique(self.prompt + self.output)
            row[seen] = numpy.where(row[seen] > 0, row[seen] / repetition, row[seen] * repetition)
        if ask("frequency_penalty") or ask("presence_penalty"):
            ids, counts = numpy.unique(numpy.array(self.output, dtype=numpy.int64), return_counts=True)
            row[ids] -= ask("frequency_penalty", 0.0) * counts + ask("presence_penalty", 0.0)
        for token, bias in ask("logit_bias", []):
            row[token] = -numpy.inf if bias is None else row[token] + bias
        return row

    def masked(self, row):
        numpy, ask = self.numpy, self.request.get
        forbidden = []
        if len(self.output) < ask("min_tokens", 0):
            forbidden += self.request["stop_token_ids"]
        if not self.output:
            forbidden += ask("begin_suppress_tokens", [])
        for sequence in ask("bad_words", []):
            begin = sequence[:-1]
            if not begin or self.output[-len(begin):] == begin:
                forbidden.append(sequence[-1])
        row[numpy.array(forbidden, dtype=numpy.int64)] = -numpy.inf
        if ask("allowed_token_ids"):
            kept = numpy.full_like(row, -numpy.inf)
            kept[ask("allowed_token_ids")] = row[ask("allowed_token_ids")]
            row = kept
        if not numpy.isfinite(row.max()):
            raise ValueError("no token is left that logit_bias, allowed_token_ids, bad_words and min_tokens allow")
        return row

    def choose(self, row):
        numpy, ask = self.numpy, self.request.get
        temperature = ask("temperature", 1.0)
        if temperature == 0:
            return int(row.argmax())
        row = row / temperature
        if ask("top_n_sigma", 0) > 0:
            finite = row[numpy.isfinite(row)]
            row[row < row.max() - ask("top_n_sigma") * finite.std()] = -numpy.inf
        if ask("min_p", 0) > 0:
            row[row < row.max() + numpy.log(ask("min_p"))] = -numpy.inf
        order = numpy.argsort(-row, kind="stable")
        if ask("top_k", 0) > 0:
            order = order[:ask("top_k")]
        chances = numpy.exp(row[order].astype(numpy.float64) - row[order[0]])
        if ask("top_p", 1.0) < 1:
            before = numpy.cumsum(chances) - chances
            kept = max(1, int((before < ask("top_p") * chances.sum()).sum()))
            order, chances = order[:kept], chances[:kept]
        if ask("typical_p", 1.0) < 1:
            order, chances = self.typical(order, chances / chances.sum())
        return int(order[numpy.searchsorted(numpy.cumsum(chances), self.random.random() * chances.sum(), side="right")])

    def typical(self, order, chances):
        """The tokens whose surprise is nearest to the entropy, with typical_p of the probability (Meister et al., 2022)."""
        numpy = self.numpy
        surprise = -numpy.log(numpy.maximum(chances, 1e-300))
        nearest = numpy.argsort(numpy.abs(surprise - (chances * surprise).sum()), kind="stable")
        before = numpy.cumsum(chances[nearest]) - chances[nearest]
        kept = numpy.sort(nearest[:max(1, int((before < self.request["typical_p"]).sum()))])
        return order[kept], chances[kept]


class Transformers:
    def __init__(self, path, dtype, device, threads):
        import torch
        import transformers
        self.torch = torch
        if threads:
            torch.set_num_threads(threads)
        self.version = transformers.__version__
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(device)
        kind = dtype if dtype == "auto" else getattr(torch, dtype)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=kind).to(self.device).eval()
        head = self.model.get_output_embeddings()
        self.vocab_size = self.model.config.get_text_config().vocab_size if head is None else head.weight.shape[0]
        # Paceline has read generation_config.json: nothing of it may come twice.
        self.model.generation_config = transformers.GenerationConfig()

    def rows(self, ids):
        """Logits of the next token after each id, float32 [ids, vocab]."""
        with self.torch.inference_mode():
            return self.model(self.torch.tensor([ids], device=self.device), use_cache=False).logits[0].float().cpu().numpy()

    def generate(self, ids, max_tokens, draw):
        """draw(row) is the next token; None ends the output."""
        import transformers
        torch = self.torch
        ended = False

        # The model's own loop, which has every family's cache: it takes the likeliest token, which is the one drawn here.
        class Drawn(transformers.LogitsProcessor):
            def __call__(self, input_ids, scores):
                nonlocal ended
                token = draw(scores[0].float().cpu().numpy())
                ended = token is None
                chosen = torch.full_like(scores, -float("inf"))
                chosen[0, 0 if ended else token] = 0
                return chosen

        class Ended(transformers.StoppingCriteria):
            def __call__(self, input_ids, scores, **_):
                return torch.full((input_ids.shape[0],), ended, device=input_ids.device)

        with torch.inference_mode():
            prompt = torch.tensor([ids], device=self.device)
            settings = transformers.GenerationConfig(do_sample=False, pad_token_id=0, use_cache=True, max_new_tokens=max_tokens)
            self.model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=settings,
                                logits_processor=[Drawn()], stopping_criteria=[Ended()])


class MlxLm:
    def __init__(self, path, dtype, device, threads):  # MLX has one thread a stream
        import mlx.core
        import mlx_lm
        if device not in ("auto", "cpu"):
            raise ValueError(f"device: found {device!r}, expected auto or cpu: MLX chooses itself")
        self.mx = mlx.core
        if device == "cpu":
            self.mx.set_default_device(self.mx.cpu)
        self.version = mlx_lm.__version__
        self.model, *_ = mlx_lm.load(path)
        if dtype != "auto":
            self.model.set_dtype(getattr(self.mx, dtype))
        self.vocab_size = self.model(self.mx.array([[0]])).shape[-1]

    def array(self, logits):
        import numpy
        return numpy.array(logits.astype(self.mx.float32))

    def rows(self, ids):
        return self.array(self.model(self.mx.array([ids]))[0])

    def generate(self, ids, max_tokens, draw):
        from mlx_lm.models.cache import make_prompt_cache
        cache = make_prompt_cache(self.model)
        for begin in range(0, len(ids) - 1, PREFILL):
            self.model(self.mx.array([ids[begin:min(begin + PREFILL, len(ids) - 1)]]), cache=cache)
            self.mx.eval([part.state for part in cache])
        token = ids[-1]
        for _ in range(max_tokens):
            token = draw(self.array(self.model(self.mx.array([[token]]), cache=cache)[0, -1]))
            if token is None:
                return


def memory_bytes():
    """Of this process, as the system counts it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Child:
    def __init__(self):
        # What libraries print must not come between the answers.
        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self.model = None
        self.requests = queue.SimpleQueue()
        self.cancelled = None  # the last request that was
        self.operations = {"load": self.load, "info": self.info, "score": self.score, "generate": self.generate}

    def read(self):
        for line in sys.stdin:
            request = json.loads(line)
            if request["op"] == "cancel":
                self.cancelled = request["id"]
                continue
            if request["op"] == "quit":
                break
            self.requests.put(request)
        os._exit(0)  # whatever it computes

    def write(self, message):
        self.answers.write(json.dumps(message) + "\n")
        self.answers.flush()

    def run(self):
        threading.Thread(target=self.read, daemon=True).start()
        while True:
            request = self.requests.get()
            of_request = {"id": request["id"]} if "id" in request else {}
            try:
                if request["op"] not in self.operations:
                    raise ValueError(f"op: found {request['op']!r}, expected {', '.join(self.operations)}, cancel or quit")
                self.write({**of_request, **self.operations[request["op"]](request)})
            except Exception as error:  # of the model or of the request: the next one may go well
                self.write({**of_request, "error": f"{type(error).__name__}: {error}"})

    def load(self, request):
        kind = {"transformers": Transformers, "mlx_lm": MlxLm}[request["backend"]]
        self.model = kind(request["model"], request["dtype"], request["device"], request["threads"])
        return {"version": self.model.version, "vocab_size": self.model.vocab_size, "options": OPTIONS, "scores": True,
                "max_concurrent": 1, "memory_bytes": memory_bytes()}

    def info(self, _):
        return {"info": {}, "memory_bytes": memory_bytes()}

    def score(self, request):
        ids, rows = request["ids"], self.model.rows(request["ids"])
        answer = {}
        first = max(request.get("from", 1), 1)
        logprobs = [log_softmax(row) for row in rows[first - 1:len(ids) - 1]]
        if "from" in request or "id" not in request:
            answer["logprobs"] = [float(row[ids[first + i]]) for i, row in enumerate(logprobs)]
        if "top" in request:
            answer["top"] = [top_of(row, request["top"]) for row in logprobs]
        if "id" not in request:
            answer["best"] = [int(row.argmax()) for row in rows]
        if "columns" in request:
            answer["columns"] = [float(rows[-1][i]) for i in request["columns"]]
        if request.get("row"):
            answer["row"] = [float(value) for value in rows[-1]]
        return answer

    def generate(self, request):
        sampler = Sampler(request)
        number, stops = request["id"], set(request["stop_token_ids"])
        done = "length"

        def draw(row):
            nonlocal done
            if done != "length" or number == self.cancelled:
                done = done if done != "length" else "cancelled"
                return None
            token, event = sampler.draw(row)
            self.write({"id": number, **event})
            if token in stops:
                done = "stop"
                return None
            return token

        self.model.generate(request["ids"], request["max_tokens"], draw)
        return {"done": done}


Child().run()
