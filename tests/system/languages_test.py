"""The same requests through the library in C++, in C and from Python, and through the program: the same tokens and numbers.

A request is a line of fields with tabs between them, its kind first; its answer a line of token ids or numbers, of batch and embed one a
text. Numbers have nine digits, which tell any two of float32 apart.
"""
import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from program import BINARY, BUNDLED, ROOT, environment

LIBRARY = BINARY.parent / "libpaceline.so"
IN_CC = BINARY.parent / "tests" / "paceline_languages_cc"
REQUESTS = [
    ["generate", "16", "0", "0", "It was a dark and stormy night"],
    ["generate", "16", "0.8", "7", "It was a dark and stormy night"],
    ["chat", "12", "0", "0", "Who lives in the old house?"],
    ["chat", "12", "1", "3", "Who lives in the old house?"],
    ["batch", "8", "1", "11", "Once upon a time", "The captain", "The captain sailed"],
    ["classify", "What a lovely morning. It was", "good", "bad"],
    ["decide", "The parcel never came, and nobody answers.", "Is it a complaint?", "Which department?", "shipping", "billing", "other"],
    ["score", "The old house stood by the sea."],
    ["embed", "The old house", "by the sea"]]


def nine(number):
    """As %.9g writes the float32."""
    return f"{struct.unpack('f', struct.pack('f', number))[0]:.9g}"


def line_of(values):
    return "".join(f"{value} " for value in values)


class LanguagesTest(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.expected = list(cls.answers_of_the_program())

    @staticmethod
    def program(command, *items, options=()):
        done = subprocess.run([BINARY, command, "-m", BUNDLED, "--jsonl", "-q", *options], check=True, capture_output=True, text=True,
                              env=environment(), input="".join(json.dumps(item) + "\n" for item in items))
        return [json.loads(line) for line in done.stdout.splitlines()]

    @classmethod
    def answers_of_the_program(cls):
        for kind, *fields in REQUESTS:
            if kind in ("generate", "chat", "batch"):
                options = {"max_tokens": int(fields[0]), "temperature": float(fields[1]), "seed": int(fields[2])}
                asked = [{"messages": [{"role": "user", "content": fields[3]}]}] if kind == "chat" else [{"prompt": text} for text in fields[3:]]
                for answer in cls.program("chat" if kind == "chat" else "generate", *[{**one, **options} for one in asked]):
                    yield line_of(answer["token_ids"])
            elif kind == "classify":
                answer, = cls.program("classify", {"text": fields[0], "labels": fields[1:]})
                yield line_of([answer["label"], *map(nine, answer["scores"])])
            elif kind == "decide":
                questions = [{"type": "predicate", "instructions": fields[1]},
                             {"type": "choice", "instructions": fields[2], "choices": [{"value": value} for value in fields[3:]]}]
                answer, = cls.program("decide", {"input": fields[0], "questions": questions})
                yes = answer["answers"][0]["probability"]
                yield line_of([nine(yes), None, *[nine(one["probability"]) for one in answer["answers"][1]["probabilities"]]])
            elif kind == "score":
                answer, = cls.program("score", {"text": fields[0]})
                yield line_of(f"{token}:{nine(logprob or 0)}" for token, logprob in zip(answer["ids"], answer["logprobs"], strict=True))
            else:
                for text in fields:
                    yield line_of(map(nine, cls.program("embed", {"text": text})[0]["embedding"]))

    def check(self, found):
        """The program doesn't say the probability of "no", which is what is left of that of "yes"."""
        self.assertEqual(len(found), len(self.expected))
        for line, expected in zip(found, self.expected):
            values, wanted = line.split(), expected.split()
            self.assertEqual([value for value, one in zip(values, wanted, strict=True) if one != "None"], [one for one in wanted if one != "None"])

    def lines_of(self, program):
        done = subprocess.run([program, BUNDLED], capture_output=True, text=True, env=environment(),
                              input="".join("\t".join(request) + "\n" for request in REQUESTS))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_in_cc(self):
        self.check(self.lines_of(IN_CC))

    def test_in_c(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "answers"
            subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", ROOT / "tests/system/languages/answers.c",
                            LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}", "-o", program], check=True)
            self.check(self.lines_of(program))

    def test_in_python(self):
        os.environ["PACELINE_LIBRARY"] = str(LIBRARY)
        sys.path.insert(0, str(ROOT / "python"))
        from paceline import LLM, Choice, Predicate, SamplingParams
        found = io.StringIO()
        with LLM(str(BUNDLED)) as llm, contextlib.redirect_stdout(found):
            for kind, *fields in REQUESTS:
                if kind in ("generate", "chat", "batch"):
                    params = SamplingParams(max_tokens=int(fields[0]), temperature=float(fields[1]), seed=int(fields[2]))
                    is_chat = kind == "chat"
                    outputs = llm.chat([{"role": "user", "content": fields[3]}], params) if is_chat else llm.generate(fields[3:], params)
                    for output in outputs:
                        print(line_of(output.outputs[0].token_ids))
                elif kind == "classify":
                    one, = llm.classify(fields[0], fields[1:])
                    print(line_of([one.label, *map(nine, one.scores)]))
                elif kind == "decide":
                    one, = llm.decide(fields[0], [Predicate(fields[1]), Choice(fields[3:], fields[2])])
                    print(line_of(nine(number) for answer in one.answers for number in answer.probabilities))
                elif kind == "score":
                    print(line_of(f"{one.id}:{nine(one.logprob or 0)}" for one in llm.logprobs(fields[0])))
                else:
                    for one in llm.embed(fields):
                        print(line_of(map(nine, one.embedding)))
        self.check(found.getvalue().splitlines())


if __name__ == "__main__":
    unittest.main()
