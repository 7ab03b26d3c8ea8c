"""paceline.integrations: each package's own way to call a model gives what LLM gives."""
import asyncio
import importlib.util
import json
import os
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("PACELINE_LIBRARY", str(Path(os.environ.get("PACELINE_BINARY", ROOT / "build/release/paceline")).parent / "libpaceline.so"))
sys.path.insert(0, str(ROOT / "python"))
from paceline import LLM, CompletionOutput, RequestOutput, SamplingParams, ToolCall  # noqa: E402

MODEL = str(ROOT / "models/paceline-10m")
GOLDEN = ROOT / "tests/contract/lm_eval_hf.json"
PROMPT = "It was a dark and stormy night"
MESSAGES = [{"role": "user", "content": "Who lives in the old house?"}]
GREEDY = SamplingParams(max_tokens=12, temperature=0)
WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather of a town.", "parameters": {
    "type": "object", "properties": {"town": {"type": "string", "enum": ["Oslo", "Rome"]}}, "required": ["town"], "additionalProperties": False}}}


def needs(package):
    return unittest.skipUnless(importlib.util.find_spec(package), f"the package {package} isn't installed")


class IntegrationsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llm = LLM(MODEL, num_threads=1)
        cls.text = cls.llm.generate(PROMPT, GREEDY)[0].outputs[0].text
        cls.answer = cls.llm.chat(MESSAGES, GREEDY)[0].outputs[0].text

    @classmethod
    def tearDownClass(cls):
        cls.llm.close()

    @needs("lm_eval")
    def test_lm_eval_scores_as_its_hf_model_does(self):
        """The golden is of tools/goldens/make_lm_eval_goldens.py."""
        from lm_eval.api.instance import Instance
        from paceline.integrations.lm_eval import PacelineLM

        def instances(kind, arguments):
            return [Instance(kind, {}, tuple(given), i) for i, given in enumerate(arguments)]

        golden = json.loads(GOLDEN.read_text())
        llm = LLM(MODEL, dtype="float32", num_threads=1)
        for batch_size in (1, 64):
            lm = PacelineLM(llm, batch_size=batch_size)
            found = lm.loglikelihood(instances("loglikelihood", [one["arguments"] for one in golden["loglikelihood"]]))
            for (score, is_greedy), one in zip(found, golden["loglikelihood"], strict=True):
                self.assertAlmostEqual(score, one["score"], delta=1e-4 * max(1, abs(one["score"])), msg=one)
                self.assertEqual(is_greedy, one["is_greedy"], one)
            self.assertEqual({one["is_greedy"] for one in golden["loglikelihood"]}, {True, False})
            rolling = lm.loglikelihood_rolling(instances("loglikelihood_rolling", [one["arguments"] for one in golden["loglikelihood_rolling"]]))
            for score, one in zip(rolling, golden["loglikelihood_rolling"], strict=True):
                self.assertAlmostEqual(score, one["score"], delta=1e-4 * abs(one["score"]))
            texts = lm.generate_until(instances("generate_until", [one["arguments"] for one in golden["generate_until"]]))
            self.assertEqual(texts, [one["text"] for one in golden["generate_until"]])
        with self.assertRaisesRegex(NotImplementedError, "num_beams"):
            lm.generate_until(instances("generate_until", [["x", {"num_beams": 3}]]))
        llm.close()

    @needs("lm_eval")
    def test_lm_eval_runs_a_task(self):
        import datasets
        import lm_eval
        from lm_eval.api.registry import get_model
        from lm_eval.api.task import ConfigurableTask
        from paceline.integrations.lm_eval import PacelineLM
        rows = [{"context": "It was a dark and stormy", "choices": [" night", " banana"], "answer": 0},
                {"context": "Once upon a", "choices": [" table", " time"], "answer": 1}] * 4
        config = {"task": "endings", "custom_dataset": lambda **_: {"test": datasets.Dataset.from_list(rows)}, "test_split": "test", "output_type": "multiple_choice",
                  "doc_to_text": "{{context}}", "doc_to_choice": "{{choices}}", "doc_to_target": "{{answer}}", "target_delimiter": ""}
        self.assertIs(get_model("paceline"), PacelineLM)
        results = lm_eval.simple_evaluate(PacelineLM(self.llm), tasks=[ConfigurableTask(config=config)], bootstrap_iters=0, verbosity="ERROR")
        self.assertEqual(results["results"]["endings"]["acc,none"], 1.0)

    @needs("langchain_core")
    def test_langchain(self):
        from langchain_core.messages import HumanMessage
        from paceline.integrations.langchain import ChatPaceline, PacelineLLM
        chat, llm = ChatPaceline(llm=self.llm, params=GREEDY), PacelineLLM(llm=self.llm, params=GREEDY)
        message = chat.invoke([HumanMessage(MESSAGES[0]["content"])])
        self.assertEqual((message.content, message.usage_metadata["output_tokens"]), (self.answer, 12))
        self.assertEqual(message.response_metadata["finish_reason"], "length")
        pieces = list(chat.stream(MESSAGES[0]["content"]))
        self.assertGreater(len(pieces), 3)
        self.assertEqual("".join(piece.content for piece in pieces), self.answer)
        self.assertEqual([text for text in llm.batch([PROMPT, PROMPT])], [self.text] * 2)
        self.assertEqual("".join(llm.stream(PROMPT)), self.text)
        self.assertEqual(llm.invoke(PROMPT, stop=[self.text[5:8]]), self.text[:5])

        async def tasks():
            answers = await asyncio.gather(*[chat.ainvoke(MESSAGES[0]["content"]) for _ in range(5)])
            pieces = [piece.content async for piece in chat.astream(MESSAGES[0]["content"])]
            return [answer.content for answer in answers], "".join(pieces)
        for _ in range(2):  # each on a loop of its own
            self.assertEqual(asyncio.run(tasks()), ([self.answer] * 5, self.answer))
        with self.assertRaisesRegex(ValueError, "temprature"):
            chat.invoke("x", temprature=3)

    @needs("langchain_core")
    def test_tools_of_langchain(self):
        from paceline.integrations.langchain import ChatPaceline
        whole = ChatPaceline(llm=self.llm, params=SamplingParams(max_tokens=250, temperature=0))
        model = whole.bind_tools([WEATHER], tool_choice="weather", parallel_tool_calls=False)
        call, = model.invoke("What is the weather in Rome?").tool_calls
        self.assertEqual(call["name"], "weather")
        self.assertIn(call["args"]["town"], ("Oslo", "Rome"))
        streamed = None
        for chunk in model.stream("What is the weather in Rome?"):
            streamed = chunk if streamed is None else streamed + chunk
        self.assertEqual(streamed.tool_calls[0]["args"], call["args"])
        self.assertEqual(asyncio.run(model.ainvoke("What is the weather in Rome?")).tool_calls[0]["args"], call["args"])

    @needs("langchain_core")
    def test_a_call_of_a_tool_that_was_cut_off_is_an_invalid_one(self):
        from paceline.integrations.langchain import _chat_result
        one = CompletionOutput(0, "", [], "length", tool_calls=[ToolCall("1", "weather", '{"town": "Os'), ToolCall("0", "weather", '{"town": "Rome"}')])
        message = _chat_result(RequestOutput(None, None, [one])).generations[0].message
        self.assertEqual([call["args"] for call in message.tool_calls], [{"town": "Rome"}])
        self.assertEqual([call["args"] for call in message.invalid_tool_calls], ['{"town": "Os'])

    @needs("llama_index.core") if importlib.util.find_spec("llama_index") else unittest.skip("the package llama_index isn't installed")
    def test_llama_index(self):
        from llama_index.core.llms import ChatMessage
        from paceline.integrations.llama_index import PacelineLLM
        llm = PacelineLLM(self.llm, GREEDY)
        self.assertEqual(llm.complete(PROMPT).text, self.text)
        *_, last = llm.stream_complete(PROMPT)
        self.assertEqual(last.text, self.text)
        messages = [ChatMessage(role="user", content=MESSAGES[0]["content"])]
        self.assertEqual(llm.chat(messages).message.content, self.answer)
        *_, last = llm.stream_chat(messages)
        self.assertEqual(last.message.content, self.answer)
        self.assertEqual(asyncio.run(llm.acomplete(PROMPT)).text, self.text)
        self.assertEqual(llm.complete(PROMPT, max_tokens=3).raw.metrics.completion_tokens, 3)
        self.assertEqual((llm.metadata.context_window, llm.metadata.is_chat_model), (1024, True))

    @needs("dspy")
    def test_dspy(self):
        from typing import Literal
        import dspy
        from paceline.integrations.dspy import lm
        model = lm(self.llm, temperature=0, max_tokens=12, cache=False)
        self.assertEqual(model(MESSAGES[0]["content"]), [self.answer])
        self.assertEqual(asyncio.run(model.acall(MESSAGES[0]["content"])), [self.answer])

        class Mood(dspy.Signature):
            """The mood of a sentence."""
            sentence: str = dspy.InputField()
            mood: Literal["calm", "angry"] = dspy.OutputField()

        wide = lm(self.llm, temperature=0, max_tokens=300, cache=False)
        with dspy.context(lm=wide, adapter=dspy.JSONAdapter()):
            found = dspy.Predict(Mood)(sentence="The sea lay still.")
        self.assertIn(found.mood, ("calm", "angry"))


if __name__ == "__main__":
    unittest.main()
