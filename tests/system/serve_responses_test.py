"""`paceline serve`: OpenAI's Responses API, and the responses that it keeps."""
import json
import tempfile
import unittest
from pathlib import Path

from serving import Client, Server, ServerCase, until

GREEDY = {"temperature": 0, "max_output_tokens": 12}


def events_of(body):
    """The events of a stream, each a type and its data."""
    events = []
    for block in body.decode().strip().split("\n\n"):
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


class ResponsesTest(ServerCase):
    def create(self, client=None, **body):
        answer = (client or self.client).post("/v1/responses", {**GREEDY, **body})
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def test_the_text_is_the_chats(self):
        response = self.create(input="It was a dark", instructions="Be brief.")
        chat = self.client.post("/v1/chat/completions", {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "It was a dark"}],
            "temperature": 0, "max_tokens": 12}).json
        self.assertEqual(response["output"][0]["content"][0]["text"], chat["choices"][0]["message"]["content"])
        self.assertEqual(response["usage"]["input_tokens"], chat["usage"]["prompt_tokens"])
        self.assertEqual((response["status"], response["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))

    def test_a_stream_says_the_same(self):
        whole = self.create(input="Once upon", store=False)
        answer = self.client.post("/v1/responses", {**GREEDY, "input": "Once upon", "stream": True, "store": False})
        self.assertTrue(answer.headers["Content-Type"].startswith("text/event-stream"))
        events = events_of(answer.body)
        self.assertEqual([data["sequence_number"] for _, data in events], list(range(len(events))))
        self.assertTrue(all(name == data["type"] for name, data in events))
        self.assertEqual([events[0][0], events[1][0], events[-1][0]],
                         ["response.created", "response.in_progress", "response.incomplete"])
        text = "".join(data["delta"] for name, data in events if name == "response.output_text.delta")
        last = events[-1][1]["response"]
        self.assertEqual(text, whole["output"][0]["content"][0]["text"])
        self.assertEqual(last["output"][0]["content"][0]["text"], text)
        self.assertEqual(last["usage"]["output_tokens"], whole["usage"]["output_tokens"])

    def test_stored_responses(self):
        first = self.create(input="My name is Ann")
        path = f"/v1/responses/{first['id']}"
        self.assertEqual(self.client.get(path).json, first)
        second = self.create(input="And now?", previous_response_id=first["id"])
        self.assertGreater(second["usage"]["input_tokens"], first["usage"]["input_tokens"] + first["usage"]["output_tokens"])
        items = self.client.get(path + "/input_items").json
        self.assertEqual([item["content"][0]["text"] for item in items["data"]], ["My name is Ann"])
        self.assertEqual((items["first_id"], items["has_more"]), (items["data"][0]["id"], False))
        self.assertEqual(self.client.get(path + "/input_items?limit=0").status, 400)
        self.assertEqual(self.client.get(path + "?stream=true").error["param"], "stream")
        self.assertEqual(self.client.ask("DELETE", path).json, {"id": first["id"], "object": "response", "deleted": True})
        for method, gone in [("GET", path), ("DELETE", path), ("POST", path + "/cancel"), ("GET", path + "/input_items")]:
            answer = self.client.ask(method, gone)
            self.assertEqual((answer.status, answer.error["code"]), (404, "response_not_found"), gone)
        lost = self.client.post("/v1/responses", {"input": "x", "previous_response_id": first["id"]})
        self.assertEqual((lost.status, lost.error["param"]), (404, "previous_response_id"))
        self.assertEqual(self.create(input="x", previous_response_id=second["id"])["previous_response_id"], second["id"])
        unstored = self.create(input="x", store=False)
        self.assertEqual(self.client.get(f"/v1/responses/{unstored['id']}").status, 404)

    def test_background(self):
        begun = self.create(input="Tell me", background=True)
        self.assertEqual((begun["status"], begun["output"]), ("queued", []))
        path = f"/v1/responses/{begun['id']}"
        until(lambda: self.client.get(path).json["status"] == "incomplete")
        done = self.client.get(path).json
        self.assertEqual(done["output"][0]["content"][0]["text"],
                         self.create(input="Tell me")["output"][0]["content"][0]["text"])
        self.assertEqual(self.client.post(path + "/cancel", None).json, done)
        long = self.create(input="Tell me", background=True, max_output_tokens=100000, ignore_eos=True)
        path = f"/v1/responses/{long['id']}"
        self.assertEqual(self.client.post(path + "/cancel", None).json["status"], "cancelled")
        self.assertEqual(self.client.get(path).json["status"], "cancelled")
        until(lambda: self.client.get("/v1/requests").json["engine"]["num_running"] == 0)

    def test_compaction(self):
        compacted = self.client.post("/v1/responses/compact", {"input": "Remember the number 7."}).json
        self.assertEqual(compacted["object"], "response.compaction")
        [item] = compacted["output"]
        self.assertEqual(item["type"], "compaction")
        after = self.create(input=[item, {"role": "user", "content": "Go on"}])
        alone = self.create(input="Go on")
        self.assertGreater(after["usage"]["input_tokens"], alone["usage"]["input_tokens"])
        altered = {**item, "encrypted_content": item["encrypted_content"][:-4] + "AAAA"}
        answer = self.client.post("/v1/responses", {"input": [altered]})
        self.assertEqual((answer.status, answer.error["param"]), (400, "input[0].encrypted_content"))

    def test_tokens_of_the_input(self):
        answer = self.client.post("/v1/responses/input_tokens", {"input": "Once upon", "instructions": "Be brief."}).json
        self.assertEqual(answer["input_tokens"],
                         self.create(input="Once upon", instructions="Be brief.")["usage"]["input_tokens"])

    def test_truncation(self):
        past = [{"role": role, "content": f"{i} " + "word " * 150} for i in range(40) for role in ("user", "assistant")]
        body = {**GREEDY, "input": [*past, {"role": "user", "content": "The end?"}], "store": False}
        answer = self.client.post("/v1/responses", body)
        self.assertEqual((answer.status, answer.error["code"]), (400, "context_length_exceeded"))
        for change in [{}, {"max_output_tokens": 100000},  # of which half of the context waits for the answer
                       {"input": [*past, {"type": "compaction_trigger"}], "max_output_tokens": 8}]:
            answer = self.client.post("/v1/responses", {**body, "truncation": "auto", **change})
            self.assertEqual(answer.status, 200, answer.body)

    def test_codex_asks_for_models(self):
        answer = self.client.get("/v1/models?client_version=0.99.0").json
        self.assertEqual(answer["models"], [])
        self.assertEqual(answer["data"], self.client.get("/v1/models").json["data"])
        self.create(input="", max_output_tokens=1)


class OwnersTest(unittest.TestCase):
    def test_state_belongs_to_its_key(self):
        server = Server("--api-key", "ann", "--api-key", "bob", "--max-stored-responses", "2")
        self.addCleanup(server.stop)
        ann, bob = Client(server.port, "ann"), Client(server.port, "bob")
        ids = [ann.post("/v1/responses", {"input": "x", **GREEDY}).json["id"] for _ in range(3)]
        self.assertEqual([ann.get(f"/v1/responses/{id}").status for id in ids], [404, 200, 200])
        for method in ("GET", "DELETE"):
            self.assertEqual(bob.ask(method, f"/v1/responses/{ids[2]}").status, 404)
        self.assertEqual(bob.post("/v1/responses", {"input": "x", "previous_response_id": ids[2]}).status, 404)
        item = ann.post("/v1/responses/compact", {"input": "x"}).json["output"][0]
        self.assertEqual(bob.post("/v1/responses", {"input": [item]}).status, 400)
        self.assertEqual(ann.post("/v1/responses", {"input": [item], **GREEDY}).status, 200)

    def test_a_key_file_outlives_the_server(self):
        with tempfile.TemporaryDirectory() as directory:
            key = Path(directory) / "key"
            key.write_text("7" * 64 + "\n")
            prompt = Path(directory) / "prompt"
            prompt.write_text("Say it in a word.")
            items = []
            for _ in range(2):
                server = Server("--seal-key-file", key, "--compaction-prompt", prompt, "--max-compaction-tokens", 3,
                                "--stored-time", "0")
                self.addCleanup(server.stop)
                client = Client(server.port)
                compacted = client.post("/v1/responses/compact", {"input": "x"}).json
                self.assertLessEqual(compacted["usage"]["output_tokens"], 3)
                items.append(compacted["output"][0])
                answer = client.post("/v1/responses", {"input": [items[0]], **GREEDY})
                self.assertEqual(answer.status, 200, answer.body)
                self.assertEqual(client.get(f"/v1/responses/{answer.json['id']}").status, 404)


if __name__ == "__main__":
    unittest.main()
