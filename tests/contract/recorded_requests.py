"""The requests of recorded_answers_test.py: every route of the server with most of its options, and wrong ones."""
import json
import random

FOLDER = "FOLDER"  # stands for the folder of what a server is given
PROMPT = "It was a dark and stormy night"
MESSAGES = [{"role": "system", "content": "You tell stories."},
            {"role": "user", "content": "Tell me about the old house by the river."}]
FIND = {"type": "function", "function": {"name": "find_house", "description": "Finds a house.", "parameters": {
    "type": "object", "required": ["number"], "additionalProperties": False,
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 99}}}}}
PERSON = {"type": "object", "required": ["name", "is_calm"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "maxLength": 12}, "is_calm": {"type": "boolean"}}}
USAGE = {"stream_options": {"include_usage": True}}
CONTINUOUS = {"stream_options": {"continuous_usage_stats": True, "include_usage": True}}
SHARED = {"n": [1, 1, 3], "max_tokens": [1, 7, 16], "temperature": [0, 0.8, 2], "top_p": [None, 0.9], "top_k": [None, 20],
          "min_p": [None, 0.05], "repetition_penalty": [None, 1.2], "presence_penalty": [None, 0.5],
          "stop": [None, None, ["e", " a"], "\n"], "stop_token_ids": [None, None, [5, 11]], "ignore_eos": [None, True],
          "return_token_ids": [None, True], "return_tokens_as_token_ids": [None, True], "prompt_logprobs": [None, None, 2],
          "logit_bias": [None, {"17": 5}, [[4097, 4], [16, False]]], "sampler_order": [None, "mlx"],
          "include_stop_str_in_output": [None, True], "skip_special_tokens": [None, False], "timings": [None, None, True],
          "bad_words": [None, ["the", " and"]], "stream_interval": [None, 4], "best_of": [None, None, None, 3]}
COMPLETIONS = {**SHARED, "logprobs": [None, 0, 3], "echo": [None, True], "max_tokens": [0, 1, 7, 16],
               "prompt": [PROMPT, [PROMPT, "The sea"], [7, 8, 9], [[7, 8, 9], [10]], "naïve café — “"]}
CHATS = {**SHARED, "logprobs": [None, True], "min_tokens": [None, 1], "truncate_prompt_tokens": [None, 9]}
del CHATS["best_of"]
WRONG_VALUES = {"string": 7, "integer": "x", "number": "x", "boolean": "x", "array": 7, "object": 7}


def drawn(choices, options):
    picked = {name: choices.choice(values) for name, values in options.items()}
    return {name: value for name, value in picked.items() if value is not None}


class Requests:
    """What is recorded."""

    def __init__(self, api, servers):
        self.api, self.servers, self.all, self.server = api, servers, [], servers[0]

    def add(self, method, path, body=None, headers=None):
        request = {"server": self.server, "method": method, "path": path}
        if isinstance(body, bytes):
            request["body"] = body.decode("utf-8", "surrogateescape")
        elif body is not None:
            request["body"] = body if isinstance(body, str) else json.dumps(body)
        if headers:
            request["headers"] = headers
        if request not in self.all:
            self.all.append(request)

    def post(self, path, body, **headers):
        self.add("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def both(self, path, body, **headers):
        self.post(path, {name: value for name, value in body.items() if name != "stream_options"}, **headers)
        is_one = body.get("n", 1) == 1 and not isinstance(body.get("prompt", ""), list)
        if is_one or not body.get("echo"):  # of several, the echo comes with the first token or before it
            self.post(path, {**body, "stream": True}, **headers)

    def made(self):
        for part in [self.generations, self.native, self.llamas, self.chats, self.constraints, self.texts, self.state,
                     self.wrong_requests, self.wrong_fields, self.other_options, self.other_models]:
            part()
        self.all.sort(key=lambda request: self.servers.index(request["server"]))
        return self.all

    def generations(self):
        choices = random.Random(21)
        for i in range(48):
            more = USAGE if i % 2 == 0 else CONTINUOUS if i % 7 == 0 else {}
            body = {"seed": i, **drawn(choices, COMPLETIONS), **more}
            if body["max_tokens"] == 0 or more is CONTINUOUS:
                body["n"] = 1
            self.both("/v1/completions", body)
            self.both("/v1/chat/completions", {"messages": MESSAGES, "seed": i, **drawn(choices, CHATS), **more})
        for fields in [{"n": 2, "best_of": 3}, {"echo": True, "logprobs": 2}, {"suffix": " end"}, {"logprobs": 20},
                       {"n_probs": 3}, {"logprob_token_ids": [5, 3], "logprobs": 0}, {"allowed_token_ids": [300, 17]},
                       {"min_tokens": 4, "logit_bias": {"4098": 100}}, {"add_special_tokens": False},
                       {"priority": 5, "cache_salt": "a", "user": "b"}, {"speculation": False}]:
            self.both("/v1/completions", {"prompt": PROMPT, "seed": 5, "max_tokens": 6, **fields})

    def native(self):
        for fields in [{}, {"logprobs": 2}, {"n_probs": 3}, {"stop": "e"}, {"logprobs": 0, "logprob_token_ids": [5, 3]},
                       {"prompt_logprobs": 1}, {"echo": True, "logprobs": 0}, {"timings": True}, USAGE, CONTINUOUS,
                       {"prompt": [7, 8]}, {"guided_regex": "[a-z]{4}"}, {"temperature": 0, "n": 2}, {"n": 0}]:
            self.both("/generate", {"prompt": PROMPT, "seed": 3, "max_tokens": 9, **fields})

    def llamas(self):
        for path in ["/completion", "/completions"]:
            for fields in [{}, {"n_probs": 3}, {"stop": ["e"]}, {"ignore_eos": True, "n_cmpl": 2}, {"temperature": 0},
                           {"prompt": [PROMPT, [7, 8, "The sea"]]}, {"n_predict": 0}, {"repeat_penalty": 1.2},
                           {"prompt_logprobs": 1}, {"n_probs": 2, "return_tokens_as_token_ids": True},
                           {"return_tokens": True}, {"json_schema": PERSON}, {"grammar": 'root ::= "a" | "b"'},
                           {"logit_bias": [[4096, 100]]}, {"mirostat": 2}, {"samplers": ["top_k"]}, {"prompt": [PROMPT, True]},
                           {"prompt": [[999999]]}, {"n_predicts": 3}, {"cache_prompt": True, "id_slot": -1}]:
                self.both(path, {"prompt": PROMPT, "seed": 3, "n_predict": 9, **fields})
        self.post("/infill", {"input_prefix": "a", "input_suffix": "b", "seed": 1})

    def chats(self):
        self.both("/chat/completions", {"messages": MESSAGES, "seed": 1, "max_tokens": 6})
        calls = [{"id": "call_1", "type": "function", "function": {"name": "find_house", "arguments": '{"number": 4}'}}]
        talk = [*MESSAGES, {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": "call_1", "content": "It is empty."}]
        parts = [{"role": "user", "content": [{"type": "text", "text": "One "}, {"type": "text", "text": "two"}]}]
        begun = [*MESSAGES, {"role": "assistant", "content": "Once upon a"}]
        for fields in [{"messages": talk, "tools": [FIND]}, {"messages": parts}, {"logprobs": True, "top_logprobs": 20},
                       {"messages": begun, "add_generation_prompt": False, "continue_final_message": True},
                       {"messages": [*MESSAGES, {"role": "assistant", "content": "a", "reasoning_content": "b"}, MESSAGES[1]]},
                       {"tools": [FIND], "tool_choice": "none"}, {"prediction": {"type": "content", "content": "The old"}},
                       {"reasoning_effort": "none"}, {"reasoning_effort": "high"},
                       {"chat_template_kwargs": {"enable_thinking": False}},
                       {"max_completion_tokens": 3}, {"documents": [{"title": "a", "text": "b"}]},
                       {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]},
                       {"messages": [{"role": "robot", "content": "x"}]}, {"messages": []}, {"messages": [{"role": "user"}]},
                       {"tools": [FIND], "tool_choice": 4}, {"tool_choice": "required"}, {"tools": [{"type": "web_search"}]}]:
            self.both("/v1/chat/completions", {"messages": MESSAGES, "seed": 2, "max_tokens": 8, **fields})

    def constraints(self):
        # The bundled model knows no JSON, and would write blanks as long as it may.
        calm = {"messages": MESSAGES, "logit_bias": {"201": -100, "198": -100, "10": -100}, "temperature": 0.8}
        ask = {**calm, "seed": 1, "max_tokens": 60}
        for fields in [{"tool_choice": "required"}, {"tool_choice": {"type": "function", "function": {"name": "find_house"}}},
                       {"tool_choice": "required", "parallel_tool_calls": False, "logprobs": True}, {"max_tokens": 9}]:
            self.both("/v1/chat/completions", {**ask, "tools": [FIND], "reasoning_effort": "none", **fields})
        self.both("/v1/chat/completions", {**ask, "response_format": {
            "type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": PERSON}}})
        self.both("/v1/chat/completions", {**ask, "guided_regex": "[a-z]{4}", "reasoning_effort": "low"})
        for fields in [{"response_format": {"type": "json_object"}, "max_tokens": 20}, {"guided_choice": ["yes", "no"]},
                       {"structured_outputs": {"grammar": 'root ::= "a" [b-d]+'}, "max_tokens": 5},
                       {"guided_json": {"type": "array", "uniqueItems": True}}, {"guided_regex": "("},
                       {"guided_json": {"type": "no such type"}}, {"response_format": {"type": "xml"}},
                       {"structured_outputs": {"regex": "a", "choice": ["a"]}}]:
            self.both("/v1/completions", {"prompt": PROMPT, "seed": 4, "max_tokens": 12, **fields})

    def texts(self):
        for path, bodies in {
            "/v1/classify": [{}, {"labels": [" night", " day"]}, {"labels": [" night", " day"], "with_token_id": True},
                             {"with_logits": True, "max_tokens": 1, "labels": [" a", " b"]}, {"input": [[5, 6], [7]]},
                             {"labels": []}, {"labels": ["a very long label"]}, {"input": []}],
            "/v1/embeddings": [{}, {"encoding_format": "base64"}, {"input": [PROMPT, "a"]}, {"input": [[5, 6, 7]]},
                               {"input": ""}, {"dimensions": 8}, {"encoding_format": "x"}, {"input": [[999999]]}],
            "/v1/score_tokens": [{}, {"top_logprobs": 3}, {"input": [PROMPT, "a"]}, {"input": [[5, 6, 7]]},
                                 {"top_logprobs": 21}]}.items():
            for fields in bodies:
                self.post(path, {"input": PROMPT, **({"seed": 4} if path == "/v1/classify" else {}), **fields})
        for body in [{"prompt": PROMPT}, {"content": "é 𝄞", "with_pieces": True}, {"messages": MESSAGES}, {"prompt": ""},
                     {"prompt": PROMPT, "return_token_strs": True}, {"content": PROMPT, "add_special": True}, {},
                     {"messages": MESSAGES, "add_generation_prompt": False}, {"prompt": PROMPT, "messages": MESSAGES}]:
            self.post("/tokenize", body)
        for body in [{"tokens": [5, 6, 7]}, {"tokens": []}, {"tokens": [99999]}, {"tokens": [-1]}, {"tokens": "a"}]:
            self.post("/detokenize", body)
        for fields in [{}, {"tools": [FIND]}, {"add_generation_prompt": False}, {"chat_template": "x"}, {"messages": 3}]:
            self.post("/apply-template", {"messages": MESSAGES, **fields})
        self.post("/v1/score", {"text_1": "a", "text_2": "b"})
        self.post("/v1/rerank", {"query": "a", "documents": ["b"]})
        for path in ["/v1/load_lora_adapter", "/v1/unload_lora_adapter"]:
            self.post(path, {"lora_name": "a", "lora_path": "b"})

    def state(self):
        for path in ["/v1/models", "/models", "/v1/models/paceline-10m", "/v1/models/none", "/props", "/slots", "/v1/requests",
                     "/metrics", "/openapi.json", "/version", "/health", "/v1/health", "/live", "/ready", "/", "/page/page.js",
                     "/page/none", "/nothing", "/v1/none", "/v1/models?a=b"]:
            self.add("GET", path)
            self.add("HEAD", path)
        for method, path in [("PUT", "/v1/models"), ("GET", "/v1/completions"), ("DELETE", "/v1/chat/completions"),
                             ("POST", "/v1/models"), ("POST", "/v1/images/generations"), ("OPTIONS", "/v1/completions"),
                             ("POST", "/health"), ("PATCH", "/nothing")]:
            self.add(method, path, {} if method == "POST" else None)
        self.add("GET", "/v1/models", headers={"Host": "evil.example"})
        self.add("GET", "/v1/models", headers={"Origin": "https://evil.example"})

    def wrong_requests(self):
        for path, operations in self.api["paths"].items():
            if "post" not in operations:
                continue
            for body in [{}, {"no_such_field": 1}, [], {"model": "none"}, {"model": 7}, {"stream": 1, "max_tokens": -4},
                         {"input": PROMPT, "messages": 3, "prompt": {}}]:
                self.post(path, body)
            for body in ["{", "", b"\xff", "null", '{"a": 1} x', '{"model": "a", "model": "b"}', "[" * 2000, '{"a": "\\ud800"}',
                         '{"prompt": 1e999}']:
                self.post(path, body)
            self.post(path, "{}", Content_Type="text/plain")
        for path, body in [("/v1/completions", {"prompt": [5] * 1100}), ("/v1/completions", {"prompt": PROMPT, "min_tokens": 2000}),
                           ("/v1/completions", {"prompt": PROMPT, "temperature": 3}), ("/v1/completions", {"prompt": [], "n": 99}),
                           ("/v1/completions", {"prompt": PROMPT, "best_of": 2, "stream": True}),
                           ("/v1/completions", {"prompt": PROMPT, "allowed_token_ids": [17], "logit_bias": [[17, False]]}),
                           ("/v1/completions", {"prompt": PROMPT, "n": 3, "best_of": 2})]:
            self.post(path, {"seed": 1, **body})
        self.post("/v1/completions", {"prompt": PROMPT, "seed": 1, "max_tokens": 1}, X_Request_Id="mine")
        self.post("/v1/completions", {"prompt": PROMPT}, Content_Encoding="br")

    def wrong_fields(self):
        """Each field of each route with values of other types."""
        required = {"prompt": PROMPT, "messages": MESSAGES, "input": PROMPT, "tokens": [5], "query": "a", "documents": ["b"],
                    "text_1": "a", "text_2": "b", "lora_name": "a", "lora_path": "b", "seed": 1, "max_tokens": 2}
        seen = set()
        for path, operations in self.api["paths"].items():
            schema = operations.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if schema is None:
                continue
            fields = self.fields_of(schema)
            good = {name: value for name, value in required.items() if name in fields}
            if path in ("/v1/completions", "/v1/chat/completions"):
                seen = set()
            for name, field in fields.items():
                if (path in ("/chat/completions", "/completions", "/rerank")) or (name in seen and name not in good):
                    continue  # another route has the same table
                seen.add(name)
                for value in [WRONG_VALUES.get(str(field.get("type")), {"wrong": 1}), -7.5]:
                    self.post(path, {**good, name: value})

    def fields_of(self, schema):
        if "$ref" in schema:
            schema = self.api["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        found = dict(schema.get("properties", {}))
        for part in schema.get("allOf", []):
            found.update(self.fields_of(part))
        return found

    def other_options(self):
        self.server = "cached"
        for _ in range(2):
            for path in ["/v1/completions", "/generate"]:
                self.both(path, {"prompt": PROMPT * 4, "seed": 3, "max_tokens": 4, **USAGE})
        long = {"messages": [{"role": "user", "content": PROMPT * 6}], "seed": 3, "max_tokens": 4}
        self.both("/v1/chat/completions", {**long, **USAGE})
        self.both("/v1/chat/completions", {**long, "cache_salt": "other"})
        self.post("/completion", {"prompt": PROMPT * 4, "seed": 3, "n_predict": 4})
        self.add("GET", "/props")
        self.server = "drafting"
        again = {"prompt": "one two three four " * 12, "max_tokens": 24, "temperature": 0, "seed": 1, "timings": True}
        for path in ["/v1/completions", "/generate"]:
            self.post(path, again)
        self.post("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 24, "seed": 3, "timings": True,
                                           "prediction": {"type": "content", "content": "The old house by the river."}})
        self.add("GET", "/slots")
        self.server = "reasoning"
        think = {"messages": MESSAGES, "seed": 3, "max_tokens": 30, "guided_regex": "[a-z]{4}", "reasoning_effort": "low"}
        self.both("/v1/chat/completions", think)
        self.both("/v1/chat/completions", {**think, "max_tokens": 8, "logprobs": True})
        self.server = "lenient"
        self.both("/v1/chat/completions", {"messages": MESSAGES, "seed": 3, "max_tokens": 3, "no_such_field": 1})
        for method in ["GET", "OPTIONS"]:
            self.add(method, "/v1/models", headers={"Origin": "https://a.example", "Access-Control-Request-Method": "GET"})
        self.post("/v1/completions", {"prompt": PROMPT, "seed": 3, "max_tokens": 2}, Origin="https://a.example")
        self.server = "limited"
        self.post("/v1/completions", {"prompt": PROMPT * 50, "seed": 3})
        self.post("/v1/completions", {"prompt": PROMPT, "seed": 3, "n": 3})
        self.add("GET", "/v1/models", headers={"X-Long": "x" * 1200})
        self.add("GET", "/v1/models?" + "x" * 700)

    def other_models(self):
        self.server = "infill"
        for fields in [{}, {"prompt": " house"}, {"n_probs": 2}, {"input_extra": [{"filename": "a", "text": "b"}]}, {"prompt": 5}]:
            self.both("/infill", {"input_prefix": "The old", "input_suffix": " stood.", "n_predict": 6, "seed": 3, **fields})
        self.both("/v1/completions", {"prompt": "The old", "suffix": " stood.", "max_tokens": 6, "seed": 3})
        self.post("/v1/completions", {"prompt": "The old", "suffix": " stood.", "echo": True, "seed": 3})
        self.server = "reranker"
        for body in [{"text_1": "a", "text_2": ["b", "c"]}, {"text_1": ["a", "b"], "text_2": ["c", "d"]},
                     {"text_1": ["a", "b"], "text_2": ["c"]}, {"text_1": 3}]:
            self.post("/v1/score", body)
        for path in ["/v1/rerank", "/rerank"]:
            for fields in [{}, {"return_documents": True}, {"top_n": 1}, {"top_n": 0}, {"documents": []}]:
                self.post(path, {"query": "a", "documents": ["b", {"text": "c"}], **fields})
        self.server = "classifier"
        for fields in [{}, {"with_logits": True}, {"input": ["a", "b"]}, {"labels": ["a", "b"]}]:
            self.post("/v1/classify", {"input": "a", **fields})
        self.add("GET", "/props")
        self.server = "adapters"
        key = {"Authorization": "Bearer k"}
        for headers in [None, {"Authorization": "Bearer no"}, {"Authorization": "k"}, {"x-api-key": "no"}]:
            for path in ["/v1/models", "/health", "/nothing"]:
                self.add("GET", path, headers=headers)
            self.add("POST", "/v1/completions", {"prompt": [5], "seed": 1}, headers)
        for path in ["/v1/models", "/v1/models/one"]:
            self.add("GET", path, headers=key)
        for model in ["one", "two", "qwen3_tied"]:
            for path in ["/v1/completions", "/generate"]:
                self.both(path, {"model": model, "prompt": [5, 6, 7], "max_tokens": 4, "seed": 1, "logprobs": 1}, **key)
        for body in [{"lora_name": "two", "lora_path": f"{FOLDER}/two"}, {"lora_name": "two", "lora_path": f"{FOLDER}/two"},
                     {"lora_name": "three", "lora_path": f"{FOLDER}/none"}, {"lora_name": "three", "lora_path": "/etc"},
                     {"lora_name": 3, "lora_path": 3}]:
            self.post("/v1/load_lora_adapter", body, **key)
        self.post("/v1/completions", {"model": "two", "prompt": [5, 6, 7], "max_tokens": 5, "seed": 1}, **key)
        for name in ["two", "three", "one", 4]:
            self.post("/v1/unload_lora_adapter", {"lora_name": name}, **key)
        self.add("GET", "/v1/models", headers={**key, "Accept": "*/*"})
