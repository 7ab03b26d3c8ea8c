"""The official suite of JSON Schema with `paceline grammar`: what it judges, it judges rightly; what it refuses is listed."""
import collections
import itertools
import json
import lzma
import sys
import unittest
from pathlib import Path

from program import BUNDLED, ProgramTest, lines

ROOT = Path(__file__).resolve().parents[2]
SUITES = ROOT.parent / "shared" / "schemas"
sys.path.insert(0, str(ROOT / "tools"))

from compare_schemas import orders  # noqa: E402

# Schemas that are refused, by file of the suite. These numbers may only shrink. References to other documents
# (refRemote and most of dynamicRef, defs and ref) are refused on purpose.
REFUSED = {
    "draft2020-12": {"defs": 1, "dynamicRef": 17, "format": 4, "maxContains": 4, "minContains": 3, "multipleOf": 1, "not": 1,
                     "ref": 1, "refRemote": 15, "unevaluatedItems": 17, "unevaluatedProperties": 21, "uniqueItems": 3},
    "draft7": {"definitions": 1, "format": 4, "multipleOf": 1, "ref": 1, "refRemote": 11, "uniqueItems": 3},
}
MAX_ORDERS = 200


def is_expected(draft, group, test):
    """Whether the suite says otherwise: to it a format of 2020-12 is an annotation, and a vocabulary may drop keywords."""
    return draft == "draft2020-12" and (test["description"].endswith("is only an annotation by default")
                                        or group["file"] == "vocabulary")


class SchemaSuiteTest(ProgramTest):
    def verdicts(self, groups):
        texts = [[list(itertools.islice(orders(test["data"]), MAX_ORDERS)) for test in group["tests"]] for group in groups]
        answers = self.answers("grammar", "-m", BUNDLED, code=1, stdin=lines(*(
            {"json_schema": json.dumps(group["schema"]), "texts": sum(of_group, [])}
            for group, of_group in zip(groups, texts))))
        for answer, of_group in zip(answers, texts, strict=True):
            message = answer.get("error", {}).get("message", "")
            if "no value obeys" in message or "no text" in message:
                yield [False] * len(of_group)
            elif message:
                yield None
            else:
                accepted = iter(answer["accepted"])
                yield [any([next(accepted) for _ in of_test]) for of_test in of_group]

    def check(self, draft, uri):
        path = SUITES / f"{draft}.jsonl.xz"
        if not path.exists():
            self.skipTest(f"{path} isn't there")
        with lzma.open(path, "rt", encoding="utf-8") as suite:
            groups = [json.loads(line) for line in suite]
        for group in groups:
            if isinstance(group["schema"], dict):
                group["schema"].setdefault("$schema", uri)
        refused = collections.Counter()
        wrong = []
        for group, verdicts in zip(groups, self.verdicts(groups), strict=True):
            if verdicts is None:
                refused[group["file"]] += 1
                continue
            wrong += [f"{group['file']}: {group['description']}: {test['description']}"
                      for test, verdict in zip(group["tests"], verdicts, strict=True)
                      if verdict != test["valid"] and not is_expected(draft, group, test)]
        self.assertEqual(wrong, [])
        self.assertEqual(dict(refused), REFUSED[draft])

    def test_draft_2020_12(self):
        self.check("draft2020-12", "https://json-schema.org/draft/2020-12/schema")

    def test_draft_7(self):
        self.check("draft7", "http://json-schema.org/draft-07/schema#")


if __name__ == "__main__":
    unittest.main()
