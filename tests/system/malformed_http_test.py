"""5,000 malformed requests on the wire (a tenth of them unless PACELINE_TEST_SCALE=full), each answered as documented."""
import json
import random
import socket
import time
import unittest

import malformed_http
from corpus_case import IS_FULL, CorpusCase

NUM_CASES = 5000 if IS_FULL else 500
CLOSED_WITHIN_S = 30
WIRE_CODES = {"malformed_request", "body_too_large", "uri_too_long", "headers_too_large"}


def parse_answers(data):
    """(status, fields, body) of each answer in the bytes, which must be whole."""
    answers = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        line, *fields = head.decode().split("\r\n")
        version, status = line.split(" ")[:2]
        assert version == "HTTP/1.1", line
        fields = {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}
        length = int(fields["content-length"])
        assert len(data) >= length, "an answer that is cut"
        answers.append((int(status), fields, data[:length]))
        data = data[length:]
    return answers


class MalformedHttpTest(CorpusCase):
    def setUp(self):
        self.choices = random.Random(3)

    def exchange(self, case):
        """All that comes back until the server closes; the request goes in up to three pieces."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=CLOSED_WITHIN_S) as wire:
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ends = sorted(self.choices.randrange(len(case.data) + 1) for _ in range(2)) + [len(case.data)]
            begin = 0
            try:
                for end in ends:
                    wire.sendall(case.data[begin:end])
                    begin = end
                if case.half_close:
                    wire.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # answered before it was all sent
            received = b""
            while piece := wire.recv(65536):
                received += piece
        return received

    def check(self, case, answers):
        self.assertEqual([status for status, _, _ in answers], case.statuses, (case, answers))
        for status, fields, body in answers:
            self.assertNotEqual(fields.get("x-request-id"), "smuggled", case)
            if status >= 400:
                self.assert_error(json.loads(body), case)
        if answers and answers[-1][0] in (400, 413, 414, 431):
            self.assertEqual(answers[-1][1].get("connection"), "close", case)

    def test_each_is_answered_as_documented(self):
        costs, num_refused, num_malformed = [], 0, 0
        for case in malformed_http.cases(NUM_CASES):
            begin, start = self.cpu.now(), time.monotonic()
            received = self.exchange(case)
            cost = self.cpu.now() - begin
            self.assertLess(time.monotonic() - start, CLOSED_WITHIN_S, case)
            answers = parse_answers(received)
            self.check(case, answers)
            errors = [json.loads(body)["error"]["code"] for status, _, body in answers if status >= 400]
            num_malformed += sum(code in WIRE_CODES for code in errors)
            num_refused += sum(code not in WIRE_CODES for code in errors)
            if errors:
                costs.append(cost)
        self.assert_cheap(costs)
        now = self.metrics()
        self.assertEqual(now["http_malformed_total"], num_malformed)
        self.assertEqual(now["rejected_total"], num_refused)
        self.assert_books_balance()
        self.assert_ends_well()
        print(f"{NUM_CASES} cases, {num_malformed + num_refused} refused; CPU of one: "
              f"mean {1e3 * sum(costs) / len(costs):.2f} ms, worst {1e3 * max(costs):.2f} ms")


if __name__ == "__main__":
    unittest.main()
