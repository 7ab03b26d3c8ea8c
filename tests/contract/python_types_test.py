"""The Python package under mypy --strict, and a program that uses its names as they are typed."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import asyncio
from pathlib import Path
from paceline import LLM, AsyncLLM, BatchContext, Choice, Error, Predicate, RequestOutput, SamplingParams, Scale, Server, device_info, train
from paceline import mlx_lm

def texts(outputs: list[RequestOutput]) -> list[str]:
    return [one.text or "" for output in outputs for one in output.outputs]

def main() -> None:
    with LLM("model", num_threads=1) as llm:
        made: list[str] = texts(llm.generate(["a", "b"], SamplingParams(max_tokens=3, stop=["x"])))
        made += texts(llm.generate({"prompt_token_ids": [1, 2]})) + list(llm.stream([1, 2, 3]))
        ids: list[int] = llm.encode("a")
        label: str | None = llm.classify("a", ["good", "bad"])[0].label
        answers = llm.decide("a", [Predicate("?"), Choice(["x", "y"]), Scale({"low": "", "high": ""})])[0].answers
        logprob: float | None = llm.logprobs("a")[0].logprob
        total: int = device_info()["total_memory_bytes"]
    context = BatchContext("model", 64, num_threads=1)
    sequence: int = context.fork(context.create())
    adapter: Path = train("model", "data", "out", on_step=print, iters=3)
    with Server("model", max_num_seqs=8) as server:
        url: str = server.base_url
    model, tokenizer = mlx_lm.load("model")
    text: str = mlx_lm.generate(model, tokenizer, "a", sampler=mlx_lm.make_sampler(temp=0.8, top_p=0.9))

async def tasks() -> None:
    async with AsyncLLM("model") as llm:
        async for output in llm.generate("a"):
            finished: bool = output.finished
        async for piece in llm.stream("a"):
            text: str = piece
        tokens: int = (await llm.embed("a"))[0].prompt_tokens

try:
    main()
    asyncio.run(tasks())
except Error as error:
    code: str = error.code
"""
WRONG = {"llm.generate('a')[0].outputs[0].tokens": '"CompletionOutput" has no attribute "tokens"',
         "SamplingParams(max_tokens='3')": "incompatible type", "llm.stream('a', 3)": "incompatible type"}


class PythonTypesTest(unittest.TestCase):
    def check(self, *arguments):
        environment = {**os.environ, "MYPYPATH": str(ROOT / "python")}
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", self.folder, *arguments], capture_output=True, text=True,
                              env=environment, cwd=self.folder)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_a_program_and_the_package_are_typed(self):
        (Path(self.folder) / "program.py").write_text(PROGRAM)
        done = self.check("program.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (Path(self.folder) / "wrong.py").write_text("from paceline import LLM, SamplingParams\nllm = LLM('m')\n" + "\n".join(WRONG))
        found = self.check("wrong.py").stdout
        for message in WRONG.values():
            self.assertIn(message, found)
        self.assertIn("Found 3 errors in 1 file", found)


if __name__ == "__main__":
    unittest.main()
