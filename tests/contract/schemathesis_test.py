"""schemathesis over /openapi.json: every answer must match the document."""
import logging
import os
import unittest

import hypothesis
import schemathesis
from contract_case import ContractCase, until
from schemathesis import GenerationMode
from serving import parse_events

NUM_CASES = 20000 if os.environ.get("PACELINE_TEST_SCALE") == "full" else 240
MOST_TOKENS = 16  # of an answer, so that the time goes into requests
SEED = 5
# Answered with 501: the bundled model has no tokens to fill in with, and no head to score pairs with.
# So are requests to change what models the server has.
BEYOND_THE_MODEL = {"/infill", "/v1/score", "/v1/rerank", "/rerank", "/api/pull", "/api/push", "/api/create", "/api/copy",
                    "/api/delete"}
WITHOUT_DONE = {"/completion", "/completions", "/infill", "/v1/messages", "/v1/responses"}  # streams that have no [DONE]

logging.disable(logging.WARNING)


class SchemathesisTest(ContractCase):
    options = ("--max-model-len", "256")

    def setUp(self):
        self.schema = schemathesis.openapi.from_dict(self.client.get("/openapi.json").json)
        self.schema.config.max_stream_events = 1 << 20  # streams are read to their ends
        self.num_cases = 0
        self.statuses = set()

    def run_cases(self, operation, mode, num_cases):
        """Sends generated requests and checks the answers against the document."""
        strategy = operation.as_strategy(generation_mode=mode)

        @hypothesis.seed(SEED)
        @hypothesis.settings(max_examples=num_cases, database=None, deadline=None, derandomize=False,
                             suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
                             verbosity=hypothesis.Verbosity.quiet)
        @hypothesis.given(case=strategy)
        def send(case):
            shorten(case.body, operation.path)
            response = case.call(base_url=self.server.url, timeout=60)
            self.num_cases += 1
            self.statuses.add(response.status_code)
            if operation.path not in BEYOND_THE_MODEL or response.status_code != 501:
                self.assertLess(response.status_code, 500, (case.body, response.text))
            documented = operation.definition.raw["responses"]
            self.assertIn(str(response.status_code), documented)
            if response.status_code >= 400:
                schema = self.document.schema_of(operation.method, operation.path, response.status_code)
                self.check(schema, response.json())
            else:
                self.check_answer(operation, response)

        send()

    def check_answer(self, operation, response):
        [media] = response.headers["content-type"]
        described = operation.definition.raw["responses"]["200"]["content"]
        self.assertIn(media.split(";")[0], [*described, media.split(";")[0]] if "*/*" in described else described)
        if media == "application/json":
            self.check(self.document.schema_of(operation.method, operation.path), response.json())
        elif media == "text/event-stream":
            events, done = parse_events(response.text)
            self.assertEqual(done, operation.path not in WITHOUT_DONE, response.text[-300:])
            for event in events:
                self.check(self.document.schema_of(operation.method, operation.path, media=media), event)

    def test_every_route(self):
        operations = [result.ok() for result in self.schema.get_all_operations()]
        self.assertGreater(len(operations), 15)
        posts = [operation for operation in operations if operation.method == "post"]
        each = NUM_CASES // (2 * len(posts))
        for operation in operations:
            is_post = operation in posts
            for mode in [GenerationMode.POSITIVE, GenerationMode.NEGATIVE] if is_post else [GenerationMode.POSITIVE]:
                with self.subTest(route=operation.label, mode=mode.name):
                    self.run_cases(operation, mode, each if is_post else 5)
        self.assertTrue(until(self.is_idle))
        self.assertEqual(self.client.get("/health").status, 200)
        self.assertTrue({200, 400} <= self.statuses, self.statuses)


def shorten(body, path):
    if isinstance(body, dict):
        if path.endswith(("/completion", "/completions", "/infill")) and not path.startswith("/v1") and body.get("n_predict", -1) in (None, -1, -2):
            body["n_predict"] = MOST_TOKENS
        if path.startswith("/api/"):
            body["options"] = {"num_predict": MOST_TOKENS}
        if path == "/v1/responses" and "max_output_tokens" not in body:
            body["max_output_tokens"] = MOST_TOKENS
        for name in ["max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict"]:
            if isinstance(body.get(name), int) and body[name] > MOST_TOKENS:
                body[name] = MOST_TOKENS


if __name__ == "__main__":
    unittest.main()
