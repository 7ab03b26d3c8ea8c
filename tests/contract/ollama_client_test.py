"""The ollama package with `paceline serve`, and the requests that Open WebUI sends."""
import unittest

import ollama
from agent_case import KEY, QUESTION, AgentCase, over_templates
from pydantic import BaseModel, ConfigDict, Field

MESSAGES = [{"role": "system", "content": "You tell stories."}, {"role": "user", "content": QUESTION}]
OPTIONS = {"temperature": 0, "num_predict": 12, "seed": 3}


class House(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int = Field(ge=1, le=99)
    is_empty: bool


def find_house(number: int) -> str:
    """Finds a house.

    Args:
      number: the house's number
    """
    return f"{number} is empty"


class OllamaCase:
    """Mixed into AgentCase, once for each template."""
    routes = ("/api/chat",)

    def setUp(self):
        self.ollama = ollama.Client(host=self.url, headers={"Authorization": f"Bearer {KEY}"})
        self.addCleanup(self.ollama.close)

    def chat(self, **fields):
        return self.ollama.chat(**{"model": self.model, "messages": MESSAGES, "options": OPTIONS, "think": False, **fields})

    def test_a_chat(self):
        answer = self.chat()
        self.assertEqual((answer.model, answer.done, answer.done_reason), (self.model, True, "length"))
        self.assertEqual(answer.message.role, "assistant")
        self.assertTrue(answer.message.content)
        self.assertEqual(answer.eval_count, 12)
        self.assertGreater(answer.prompt_eval_count, 5)
        self.assertGreater(answer.total_duration, 0)

    def test_a_streamed_chat(self):
        whole = self.chat()
        *pieces, last = self.chat(stream=True)
        self.assertTrue(last.done)
        self.assertEqual({piece.done for piece in pieces}, {False})
        self.assertEqual("".join(piece.message.content for piece in [*pieces, last]), whole.message.content)
        self.assertEqual((last.eval_count, last.done_reason), (12, "length"))

    def test_a_text(self):
        whole = self.ollama.generate(model=self.model, prompt=QUESTION, options=OPTIONS)
        self.assertTrue(whole.response)
        pieces = list(self.ollama.generate(model=self.model, prompt=QUESTION, options=OPTIONS, stream=True))
        self.assertEqual("".join(piece.response for piece in pieces), whole.response)
        raw = self.ollama.generate(model=self.model, prompt="It was a dark", raw=True, options=OPTIONS)
        self.assertTrue(raw.response)

    def test_a_format(self):
        answer = self.chat(format=House.model_json_schema(), options={**OPTIONS, "num_predict": 400})
        House.model_validate_json(answer.message.content)
        generated = self.ollama.generate(model=self.model, prompt=QUESTION, format=House.model_json_schema(), think=False,
                                         options={**OPTIONS, "num_predict": 400})
        House.model_validate_json(generated.response)

    def test_tools_are_offered_and_results_read(self):
        answer = self.chat(tools=[find_house])
        self.assertTrue(answer.message.content or answer.message.tool_calls)
        call = {"function": {"name": "find_house", "arguments": {"number": 4}}}
        told = self.chat(tools=[find_house], messages=[
            *MESSAGES, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": "find_house", "content": "4 is empty"}])
        self.assertTrue(told.message.content)

    def test_embeddings(self):
        answer = self.ollama.embed(model=self.model, input=["a fox", "a river"])
        self.assertEqual(len(answer.embeddings), 2)
        self.assertEqual(len(answer.embeddings[0]), len(answer.embeddings[1]))
        self.assertAlmostEqual(sum(x * x for x in answer.embeddings[0]), 1, places=4)
        self.assertEqual(len(self.ollama.embed(model=self.model, input="a fox").embeddings), 1)
        self.assertEqual(len(self.ollama.embeddings(model=self.model, prompt="a fox").embedding), len(answer.embeddings[0]))

    def test_what_is_served(self):
        [model] = self.ollama.list().models
        self.assertIn(self.model, model.model)
        shown = self.ollama.show(self.model)
        self.assertIn("completion", shown.capabilities)
        self.assertIn("tools", shown.capabilities)
        self.assertTrue(shown.template)
        self.assertTrue(shown.modelinfo)
        self.chat(keep_alive="5m")
        self.assertIn(self.model, [one.model.split(":")[0] for one in self.ollama.ps().models])


class OllamaErrorsTest(AgentCase):
    routes = ("/api/chat",)

    def setUp(self):
        self.ollama = ollama.Client(host=self.url, headers={"Authorization": f"Bearer {KEY}"})
        self.addCleanup(self.ollama.close)

    def test_what_a_server_of_fixed_models_refuses(self):
        for call in [lambda: self.ollama.pull("x"), lambda: self.ollama.push("x"), lambda: self.ollama.copy("x", "y"),
                     lambda: self.ollama.create("x", from_="y")]:
            with self.assertRaises(ollama.ResponseError) as caught:
                call()
            self.assertNotIn(caught.exception.status_code, (200, 404, 500))
            self.assertIn("not supported", caught.exception.error)

    def test_errors(self):
        for status, fields in [(404, {"model": "none"}), (400, {"options": {"temperature": -4}}),
                               (400, {"options": {"no_such_option": 1}}), (400, {"messages": [{"role": "robot", "content": "x"}]})]:
            with self.subTest(**fields), self.assertRaises(ollama.ResponseError) as caught:
                self.ollama.chat(**{"model": self.model, "messages": MESSAGES, **fields})
            self.assertEqual(caught.exception.status_code, status)
        with self.assertRaises(ollama.ResponseError) as caught:
            with ollama.Client(host=self.url) as stranger:
                stranger.chat(model=self.model, messages=MESSAGES)
        self.assertEqual(caught.exception.status_code, 401)

    def test_open_webuis_requests(self):
        """What its backend asks an Ollama server: versions, tags, running models, then chats as lines of JSON."""
        for path in ["/api/version", "/api/tags", "/api/ps"]:
            self.assertEqual(self.client.get(path).status, 200, path)
        name = self.client.get("/api/tags").json["models"][0]["model"]
        self.assertIn("details", self.client.post("/api/show", {"name": name}).json)
        answer = self.client.post("/api/chat", {"model": name, "messages": [{"role": "user", "content": "Hi"}],
                                                "options": {"num_predict": 4}, "stream": True})
        self.assertEqual(answer.headers["Content-Type"], "application/x-ndjson")
        self.assertIn(b'"done":true', answer.body.splitlines()[-1])


over_templates(__name__, OllamaCase)

if __name__ == "__main__":
    unittest.main()
