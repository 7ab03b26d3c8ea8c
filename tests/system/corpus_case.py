"""Sends a corpus of malformed requests to a server; checks invariants during and afterwards."""
import os
import re
import unittest

from program import IS_SANITIZED
from serving import Client, CpuClock, Server, until

IS_FULL = os.environ.get("PACELINE_TEST_SCALE") == "full"
MOST_CPU_S = 2.0 if IS_SANITIZED else 0.1  # of one refused request
ERROR_KEYS = {"message", "type", "param", "code"}


class CorpusCase(unittest.TestCase):
    options = ()
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-format", "off", *cls.options)
        cls.addClassCleanup(cls.server.stop)
        cls.client = Client(cls.server.port)
        cls.cpu = CpuClock(cls.server.child.pid)

    def metrics(self):
        """name -> the sum of its samples"""
        sums = {}
        for line in self.client.get("/metrics").body.decode().splitlines():
            found = re.fullmatch(r"paceline:(\w+)\{[^}]*\} (\S+)", line)
            if found:
                sums[found[1]] = sums.get(found[1], 0) + float(found[2])
        return sums

    def is_idle(self):
        now = self.metrics()
        return (now["num_requests_running"], now["num_requests_waiting"], now["requests_open"]) == (0, 0, 0)

    def assert_books_balance(self):
        """Nothing is held, and every accepted request has ended in one of three ways."""
        self.assertTrue(until(self.is_idle), "requests are left")
        now = self.metrics()
        ended = sum(now[f"requests_{end}_total"] for end in ["completed", "cancelled", "failed"])
        self.assertEqual(now["requests_accepted_total"], ended)
        self.assertEqual(now["kv_cache_usage_perc"], 0)
        self.assertTrue(until(lambda: self.metrics()["connections_open"] == 1), "connections are left")
        self.assertIsNone(self.server.child.poll())
        answer = self.client.post("/v1/completions", {"prompt": "x", "max_tokens": 1})
        self.assertEqual(answer.status, 200)

    def assert_ends_well(self):
        """A sanitizer's report, of leaks too, makes another exit code."""
        self.server.signal()
        self.assertEqual(self.server.wait(), 0, "\n".join(self.server.lines[-40:]))

    def assert_error(self, body, what):
        self.assertEqual(set(body), {"error"}, what)
        self.assertEqual(set(body["error"]), ERROR_KEYS, what)
        self.assertTrue(body["error"]["message"], what)

    def assert_cheap(self, costs):
        """`costs`: CPU seconds of each refused request."""
        self.assertLess(sum(costs) / len(costs), MOST_CPU_S)
        self.assertLess(max(costs), MOST_CPU_S)
