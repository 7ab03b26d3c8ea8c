"""`paceline decide` and the server's /v1/decisions and /v1/systemone: one set of answers, whoever asks."""
import json
import re
import unittest

from program import BUNDLED, ProgramTest, lines
from serving import Client, Server, ServerCase

INPUT = "The old house stood by the sea, and nobody had lived in it since the captain sailed away."
QUESTIONS = [
    {"type": "predicate", "instructions": "Is the house old?", "name": "old"},
    {"type": "choice", "instructions": "Where is it?", "choices": [{"value": "sea", "description": "by the water"}, {"value": "hill"}]},
    {"type": "choice", "instructions": "Typed?", "choices": [{"value": "true"}, {"value": True}, {"value": False}]},
    {"type": "score", "instructions": "How lonely is it?", "levels": [{"label": "not"}, {"label": "somewhat"}, {"label": "very"}]}]


def check(test, answers, questions):
    for answer, question in zip(answers, questions, strict=True):
        test.assertEqual((answer["type"], answer["name"]), (question["type"], question.get("name")))
        test.assertTrue(0 <= answer["label_mass"] <= 1)
        if question["type"] == "predicate":
            test.assertTrue(0 <= answer["probability"] <= 1)
            continue
        shares = [one["probability"] for one in answer["probabilities"]]
        test.assertAlmostEqual(sum(shares), 1, places=5)
        test.assertAlmostEqual(answer["confidence"], (len(shares) * max(shares) - 1) / (len(shares) - 1), places=5)
        if question["type"] == "choice":
            values = [one["value"] for one in question["choices"]]
            test.assertEqual([one["value"] for one in answer["probabilities"]], values)
            test.assertIs(type(answer["choice"]), type(values[shares.index(max(shares))]))
            test.assertEqual(answer["choice"], values[shares.index(max(shares))])
        else:
            test.assertEqual([one["value"] for one in answer["probabilities"]], [0, 1, 2])
            test.assertAlmostEqual(answer["score"], sum(i * share for i, share in enumerate(shares)), places=5)


class DecideCommandTest(ProgramTest):
    def test_lines_and_options_ask_the_same(self):
        path = self.write("questions.json", json.dumps(QUESTIONS))
        items = [{"input": INPUT}, {"input": INPUT, "questions": QUESTIONS[1:2]}, {"input": INPUT, "temperature": 2},
                 {"input": [{"role": "user", "content": INPUT}]}]
        whole, one, flat, message = self.answers("decide", "-m", BUNDLED, "--questions", path, stdin=lines(*items))
        check(self, whole["answers"], QUESTIONS)
        self.assertEqual(one["answers"], whole["answers"][1:2])
        self.assertEqual(message["answers"], whole["answers"])
        self.assertLess(flat["answers"][1]["confidence"], whole["answers"][1]["confidence"])
        table = self.succeed("decide", "-m", BUNDLED, "-p", INPUT, "--questions", path, "--predicate", "Is it far?").stdout
        self.assertIn(f"Is the house old?\n  {whole['answers'][0]['probability']:.4f}  yes\n", table)
        self.assertIn("expected level of 0 to 2\n", table)
        self.assertIn("Is it far?\n", table)
        flags = self.succeed("decide", "-m", BUNDLED, "-p", INPUT, "--questions", path, "--decision-temperature", "2").stdout
        self.assertIn(f"{flat['answers'][0]['probability']:.4f}  yes", flags)

    def test_wrong_items_fail_alone(self):
        wrong = [{"input": INPUT}, {"input": INPUT, "questions": []}, {"text": INPUT, "questions": QUESTIONS}, {"input": 3},
                 {"input": INPUT, "questions": QUESTIONS}]
        answers = self.answers("decide", "-m", BUNDLED, stdin=lines(*wrong), code=1)
        self.assertEqual([answer.get("error", {}).get("code") for answer in answers], ["invalid"] * 4 + [None])
        self.assertIn("questions: missing", answers[0]["error"]["message"])
        check(self, answers[4]["answers"], QUESTIONS)
        self.assertIn("--predicate TEXT or --questions FILE", self.fail_with(2, "decide", "-m", BUNDLED, "-p", "x"))


class DecisionRoutesTest(ServerCase):
    def ask(self, path, **body):
        answer = self.client.post(path, body)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def test_answers_depend_on_nothing_else(self):
        whole = self.ask("/v1/decisions", input=INPUT, questions=QUESTIONS)
        check(self, whole["answers"], QUESTIONS)
        self.assertEqual(whole["usage"]["total_tokens"], whole["usage"]["input_tokens"])
        again = self.ask("/v1/decisions", input=INPUT, questions=QUESTIONS[::-1])
        self.assertEqual(again["answers"][::-1], whole["answers"])
        self.assertGreaterEqual(again["usage"]["input_tokens_details"]["cached_tokens"], 32)
        for question, answer in zip(QUESTIONS, whole["answers"]):
            self.assertEqual(self.ask("/v1/decisions", input=INPUT, questions=[question])["answers"], [answer])

    def test_systemone_answers_as_decisions_do(self):
        whole = self.ask("/v1/decisions", input=INPUT, questions=[QUESTIONS[0], QUESTIONS[1], QUESTIONS[3]])
        answers = self.ask("/v1/systemone", state=INPUT, questions={
            "old": {"type": "noul", "instructions": "Is the house old?"},
            "where": {"type": "choice", "instructions": "Where is it?", "criteria": {"sea": "by the water", "hill": None}},
            "lonely": {"type": "score", "instructions": "How lonely is it?", "criteria": ["not", "somewhat", "very"]}})["answers"]
        self.assertEqual(answers["old"]["noul"], whole["answers"][0]["probability"])
        self.assertEqual(answers["where"]["choice"], whole["answers"][1]["choice"])
        self.assertEqual(list(answers["where"]["probabilities"].values()), [one["probability"] for one in whole["answers"][1]["probabilities"]])
        self.assertEqual(answers["lonely"]["score"], whole["answers"][2]["score"])
        self.assertEqual(answers["lonely"]["legend"], {"0": "not", "1": "somewhat", "2": "very"})

    def test_errors_name_the_field(self):
        for body, param in [({"input": INPUT}, "questions"), ({"input": INPUT, "questions": []}, "questions"),
                            ({"input": "word " * 2000, "questions": QUESTIONS}, "input"),
                            ({"input": INPUT, "questions": [{**QUESTIONS[1], "choices": [{"value": "a"}, {"value": "a"}]}]},
                             "questions[0].choices[1]"),
                            ({"input": INPUT, "questions": QUESTIONS, "stream": True}, "stream")]:
            answer = self.client.post("/v1/decisions", body)
            self.assertEqual((answer.status, answer.error["param"]), (400, param), answer.body)

    def test_more_questions_than_the_queue_holds(self):
        server = Server("--max-num-queued-reqs", "3", "--max-num-seqs", "2")
        self.addCleanup(server.stop)
        questions = [{"type": "predicate", "instructions": f"Is it {i}?"} for i in range(60)]
        answer = Client(server.port).post("/v1/decisions", {"input": INPUT, "questions": questions})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(len(answer.json["answers"]), 60)

    def metrics(self):
        text = self.client.get("/metrics").body.decode()
        return {name: float(value) for name, value in re.findall(r"^paceline:(\w+_tokens_total){[^}]*} (\S+)$", text, re.M)}

    def test_metrics_count_the_input_once(self):
        before = self.metrics()
        answer = self.ask("/v1/decisions", input=INPUT + " Counted.", questions=QUESTIONS)
        after = self.metrics()
        self.assertEqual(after["prompt_tokens_total"] - before["prompt_tokens_total"], answer["usage"]["input_tokens"])
        self.assertEqual(after["generation_tokens_total"], before["generation_tokens_total"])


if __name__ == "__main__":
    unittest.main()
