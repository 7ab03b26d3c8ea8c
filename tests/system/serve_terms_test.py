"""Terms of a server's requests and answers: the number of choices, unknown fields, the name of reasoning."""
import re
import unittest

from program import ROOT
from serving import Client, Server

MESSAGES = [{"role": "user", "content": "Tell me about the old house by the river."}]
PROMPT = "It was a dark and stormy night"


class TermsTest(unittest.TestCase):
    def start(self, *options):
        server = Server(*options)
        self.addCleanup(server.stop)
        self.client = Client(server.port)

    def ask(self, status=200, path="/v1/completions", **body):
        answer = self.client.post(path, {"max_tokens": 1, **body})
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def unknown_fields(self):
        return int(re.search(r"paceline:unknown_fields_total\{.*\} (\d+)", self.client.get("/metrics").body.decode())[1])

    def test_the_number_of_choices(self):
        self.start()
        self.assertEqual(len(self.ask(prompt=PROMPT, n=16, best_of=16)["choices"]), 16)
        self.assertEqual(self.ask(400, prompt=PROMPT, n=17)["error"]["param"], "n")
        self.start("--max-choices", "128")
        self.assertEqual(len(self.ask(prompt=PROMPT, n=128)["choices"]), 128)
        schema = self.client.get("/openapi.json").json["paths"]["/v1/completions"]["post"]["requestBody"]["content"]
        self.assertEqual(schema["application/json"]["schema"]["properties"]["n"]["maximum"], 128)

    def test_unknown_fields(self):
        self.start()
        self.assertEqual(self.ask(400, prompt=PROMPT, temprature=1)["error"]["code"], "unknown_parameter")
        self.assertEqual(self.unknown_fields(), 0)
        self.start("--ignore-unknown-fields")
        expected = self.ask(prompt=PROMPT, seed=5)["choices"]
        self.assertEqual(self.ask(prompt=PROMPT, seed=5, temprature=1, x=5, y=None)["choices"], expected)
        self.ask(path="/v1/chat/completions", messages=[{**MESSAGES[0], "mood": "calm"}])
        self.assertEqual(self.unknown_fields(), 3)
        self.assertEqual(self.ask(400, prompt=PROMPT, tools=[])["error"]["code"], "unsupported_parameter")
        self.assertEqual(self.ask(400, prompt=PROMPT, grammar="x")["error"]["code"], "invalid_value")
        self.assertEqual(self.ask(400, prompt=PROMPT, temperature="1")["error"]["param"], "temperature")

    def test_the_name_of_reasoning(self):
        for options, name, other in [((), "reasoning_content", "reasoning"),
                                     (("--reasoning-field", "reasoning"), "reasoning", "reasoning_content")]:
            self.start("--chat-template", ROOT / "tests/contract/tool_template.jinja", *options)
            tokens = self.client.post("/tokenize", {"content": "<think>", "add_special": False}).json["tokens"]
            ask = {"messages": MESSAGES, "logit_bias": {str(tokens[0]): 40}, "max_tokens": 40, "seed": 1,
                   "reasoning_effort": "low", "guided_regex": "[a-z]{4}"}
            message = self.ask(path="/v1/chat/completions", **ask)["choices"][0]["message"]
            events, _ = self.client.stream("/v1/chat/completions", ask)
            deltas = [event["choices"][0]["delta"] for event in events]
            self.assertTrue(message[name])
            self.assertEqual("".join(delta.get(name, "") for delta in deltas), message[name])
            self.assertFalse(any(other in one for one in [message, *deltas]))

    def test_vllms_fields(self):
        self.start()
        ask = {"prompt": PROMPT, "seed": 7, "max_tokens": 30, "return_token_ids": True}
        [plain] = self.ask(**ask)["choices"]
        stop = plain["text"][12:15]
        [stopped] = self.ask(**ask, stop=stop, include_stop_str_in_output=True)["choices"]
        self.assertEqual(stopped["text"], plain["text"][:plain["text"].index(stop) + len(stop)])
        self.assertEqual((stopped["finish_reason"], stopped["stop_reason"]), ("stop", stop))
        events, _ = self.client.stream("/v1/completions", {**ask, "stop": stop, "include_stop_str_in_output": True})
        self.assertEqual("".join(event["choices"][0]["text"] for event in events), stopped["text"])
        ends = plain["token_ids"][:3]
        self.assertEqual(self.ask(**ask, stop_token_ids=ends)["usage"]["completion_tokens"], 1)
        [longer] = self.ask(**ask, stop_token_ids=ends, min_tokens=12)["choices"]
        self.assertGreaterEqual(len(longer["token_ids"]), 12)
        self.assertFalse(set(ends) & set(longer["token_ids"]))
        self.assertEqual(self.ask(400, prompt=PROMPT, min_tokens=2)["error"]["param"], "min_tokens")
        ids = self.client.post("/tokenize", {"prompt": PROMPT}).json["tokens"]
        cut = self.ask(**ask, truncate_prompt_tokens=3)
        self.assertEqual(cut["usage"]["prompt_tokens"], 3)
        self.assertEqual(cut["choices"], self.ask(**{**ask, "prompt": ids[-3:]})["choices"])
        self.assertEqual(self.ask(400, prompt=PROMPT, echo=True, truncate_prompt_tokens=3)["error"]["param"],
                         "truncate_prompt_tokens")


if __name__ == "__main__":
    unittest.main()
