"""The page with answers under a schema and tool calls."""
import json
import unittest
from pathlib import Path

from fresh_page_case import URL
from page_case import PageCase
from server import Server

TEMPLATE = Path(__file__).resolve().parents[1] / "contract" / "tool_template.jinja"
SCHEMA = {"type": "object", "required": ["yes", "n"], "additionalProperties": False,
          "properties": {"yes": {"type": "boolean"}, "n": {"type": "integer", "minimum": 1, "maximum": 9}}}
TOOL = {"type": "function", "function": {"name": "get_time", "parameters": SCHEMA}}


@unittest.skipIf(URL, "needs a server of its own")
class ConstraintsTest(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server("--chat-template", str(TEMPLATE))
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        super().setUp()
        self.load(self.server.url)
        self.browser.run("localStorage.clear(); sessionStorage.clear();")
        self.open(self.server.url)
        self.set("temperature", "0")
        self.set("max_tokens", "200")

    # Breaks of lines would be drawn as long as they may; every answer begins as the schema or the reasoning says.
    def change_requests(self, **fields):
        self.browser.run("""
            const fetched = window.fetch;
            window.fetch = (url, options) => {
              if (!String(url).includes("/v1/chat")) return fetched(url, options);
              const body = {...JSON.parse(options.body), ...%s};
              return fetched(url, {...options, body: JSON.stringify(body)});
            };""" % json.dumps(fields))

    def no_breaks(self):
        tokens = json.loads(self.browser.run("""return fetch("/tokenize", {method: "POST", headers:
            {"Content-Type": "application/json"}, body: JSON.stringify({content: "\\n", add_special: false})})
            .then((answer) => answer.text())"""))["tokens"]
        return {str(token): -100 for token in tokens}

    def text(self, selector):
        return self.browser.run(f"return document.querySelector('{selector}')?.textContent ?? null")

    def test_an_answer_under_a_schema(self):
        self.change_requests(reasoning_effort="none", logit_bias=self.no_breaks())
        self.set("schema", json.dumps(SCHEMA))
        self.send("Is it late?")
        self.until_answered()
        answer = json.loads(self.text(".answer .text"))
        self.assertEqual(set(answer), {"yes", "n"})
        self.assertIn("JSON schema", self.text("#settings-brief"))
        self.assert_quiet_console()

    def test_what_is_no_json_is_not_sent(self):
        self.set("schema", "{")
        self.send("Is it late?")
        self.assertEqual(self.browser.run("return document.querySelectorAll('.answer').length"), 0)
        self.assertTrue(self.browser.run("return document.querySelector('#settings').open"))

    def test_a_call(self):
        self.change_requests(reasoning_effort="none", logit_bias=self.no_breaks(), tool_choice="required",
                             parallel_tool_calls=False)
        self.set("tools", json.dumps([TOOL]))
        self.send("Is it late?")
        self.until_answered()
        name, _, arguments = self.text(".answer .call").partition(" ")
        self.assertEqual(name, "get_time")
        self.assertEqual(set(json.loads(arguments)), {"yes", "n"})
        self.assertIn("Calls a tool", self.text(".answer .ending"))
        self.assert_quiet_console()


if __name__ == "__main__":
    unittest.main()
