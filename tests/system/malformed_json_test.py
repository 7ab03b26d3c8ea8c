"""10,000 malformed bodies (a tenth of them unless PACELINE_TEST_SCALE=full), each answered as documented."""
import http.client
import json
import unittest

import malformed_json
from corpus_case import IS_FULL, CorpusCase

NUM_CASES = 10000 if IS_FULL else 1000


class MalformedJsonTest(CorpusCase):
    def send(self, case):
        """The status and the body; over one connection, which no refusal of a body may close."""
        self.connection.request("POST", case.path, case.body, {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        body = response.read()  # a case that is good after all may ask for a stream
        return response.status, body if response.headers["Content-Type"] == "text/event-stream" else json.loads(body)

    def check(self, case, status, answer):
        if status == 200:
            self.assertIsNot(case.is_good, False, case)
            return
        self.assert_error(answer, case)
        error = answer["error"]
        # The document can't express this: a value of the right form may be refused by name.
        if case.is_good and (case.field, error["code"]) == ("model", "model_not_found"):
            self.assertEqual(status, 404, case)
            return
        self.assertEqual(status, 400, (case, answer))
        if case.param is None:
            self.assertEqual((error["param"], error["code"]), (None, "invalid_value"), (case, answer))
        elif case.kind != "flipped":
            self.assertEqual((error["param"] or "")[:len(case.param)], case.param, (case, answer))

    def test_each_is_answered_as_documented(self):
        api = self.client.get("/openapi.json").json
        before = self.metrics()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        self.connection.connect()
        socket = self.connection.sock
        costs, num_good = [], 0
        for case in malformed_json.cases(api, NUM_CASES):
            begin = self.cpu.now()
            status, answer = self.send(case)
            cost = self.cpu.now() - begin
            self.check(case, status, answer)
            num_good += status == 200
            if status != 200:
                costs.append(cost)
        self.assertIs(self.connection.sock, socket, "a refused body closes the connection")
        self.connection.close()
        self.assert_cheap(costs)
        now = self.metrics()
        self.assertEqual(now["rejected_total"] - before.get("rejected_total", 0), len(costs))
        self.assertEqual(now["http_malformed_total"], 0)
        self.assert_books_balance()
        self.assertGreater(len(costs), NUM_CASES // 2)
        self.assertGreater(num_good, NUM_CASES // 50)
        self.assert_ends_well()
        print(f"{NUM_CASES} bodies, {len(costs)} refused; CPU of one: mean {1e3 * sum(costs) / len(costs):.2f} ms, "
              f"worst {1e3 * max(costs):.2f} ms")


if __name__ == "__main__":
    unittest.main()
