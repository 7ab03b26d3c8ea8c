"""The Python package gives what the program gives: one model, threads, tasks, errors, and processes that come and go."""
import asyncio
import contextlib
import gc
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("PACELINE_BINARY", ROOT / "build/release/paceline")).resolve()
os.environ.setdefault("PACELINE_LIBRARY", str(BINARY.parent / "libpaceline.so"))
os.environ["PACELINE_BINARY"] = str(BINARY)
sys.path.insert(0, str(ROOT / "python"))
import paceline  # noqa: E402
from paceline import LLM, AsyncLLM, Choice, Predicate, SamplingParams, Scale, Server, StructuredOutputs  # noqa: E402

MODEL = str(ROOT / "models/paceline-10m")
PROMPT = "It was a dark and stormy night"
GREEDY = SamplingParams(max_tokens=16, temperature=0)


@contextlib.contextmanager
def no_new_threads(test):
    """Fails where a thread of Python is started."""
    start = threading.Thread.start
    started = []
    threading.Thread.start = lambda thread: (started.append(thread), start(thread))[1]
    try:
        yield
    finally:
        threading.Thread.start = start
    test.assertEqual(started, [])


def ends(pid, seconds=60):
    """Whether a process that isn't a child of this one ends; a zombie has."""
    for _ in range(seconds * 20):
        try:
            if " Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def program(*arguments, **options):
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, check=True, timeout=300, **options)
    return done.stdout


class LlmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llm = LLM(MODEL, num_threads=1, enable_lora=True)

    @classmethod
    def tearDownClass(cls):
        cls.llm.close()

    def test_generations_are_those_of_the_program(self):
        for options, params in [(["--temp", "0"], SamplingParams(max_tokens=16, temperature=0)),
                                (["--temp", "0.8", "--seed", "7"], SamplingParams(max_tokens=16, temperature=0.8, seed=7))]:
            expected = program("generate", "-m", MODEL, "-p", PROMPT, "-n", "16", *options)
            self.assertEqual(self.llm.generate(PROMPT, params)[0].outputs[0].text.strip(), expected.strip())

    def test_several_choices_have_seeds_that_follow_each_other(self):
        params = SamplingParams(n=3, max_tokens=8, temperature=1, seed=5)
        outputs = self.llm.generate(PROMPT, params)[0].outputs
        self.assertEqual([one.index for one in outputs], [0, 1, 2])
        for k, one in enumerate(outputs):
            alone = self.llm.generate(PROMPT, SamplingParams(max_tokens=8, temperature=1, seed=5 + k))[0].outputs[0]
            self.assertEqual((one.text, one.seed), (alone.text, 5 + k))

    def test_pieces_are_the_text(self):
        generation = self.llm.stream(PROMPT, GREEDY)
        pieces = list(generation)
        self.assertGreater(len(pieces), 3)
        self.assertEqual("".join(pieces), generation.output.outputs[0].text)
        self.assertEqual(generation.output.metrics.completion_tokens, 16)

    def test_streams_of_the_main_thread_start_no_thread(self):
        with no_new_threads(self):
            pieces = [list(stream) for stream in (self.llm.stream(PROMPT, GREEDY), self.llm.stream(PROMPT, GREEDY))]
            first, second = self.llm.stream(PROMPT, GREEDY), self.llm.stream(PROMPT, GREEDY)
            in_turn = [piece for both in zip(first, second, strict=True) for piece in both]
            self.llm.chat([[{"role": "user", "content": "x"}]] * 3, GREEDY)
        self.assertEqual(pieces, [in_turn[::2], in_turn[1::2]])
        self.assertEqual(pieces[0], pieces[1])

    def test_a_stream_may_be_read_by_another_thread(self):
        expected = list(self.llm.stream(PROMPT, GREEDY))
        streams = [self.llm.stream(PROMPT, GREEDY) for _ in range(4)]
        found = [[] for _ in streams]
        threads = [threading.Thread(target=lambda one=one, stream=stream: one.extend(stream)) for one, stream in zip(found, streams[:-1])]
        for thread in threads:
            thread.start()
        found[-1] = list(streams[-1])
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 4)
        made = []
        thread = threading.Thread(target=lambda: made.append(self.llm.stream(PROMPT, GREEDY)))
        thread.start()
        thread.join()
        self.assertEqual(list(made[0]), expected)

    def test_outputs_have_the_ids_of_their_prompt(self):
        ids = self.llm.encode(PROMPT, add_special_tokens=True)
        prompts = [PROMPT, ids, {"prompt": PROMPT}, {"prompt_token_ids": ids}]
        self.assertEqual([output.prompt_token_ids for output in self.llm.generate(prompts, GREEDY)], [ids] * 4)
        self.assertEqual([output.prompt for output in self.llm.generate(prompts, GREEDY)], [PROMPT, None, PROMPT, None])
        self.assertEqual(self.llm.stream(PROMPT, GREEDY).output.prompt_token_ids, ids)
        with self.assertRaisesRegex(ValueError, "expected \"prompt\""):
            self.llm.generate({"text": PROMPT})

    def test_the_whole_of_a_request(self):
        whole = self.llm.generate(PROMPT, GREEDY)[0].outputs[0].text
        before, word, _ = whole.partition(whole.split()[3])
        params = SamplingParams(max_tokens=20, temperature=0, stop=[word], logprobs=2, prompt_logprobs=True)
        output = self.llm.generate(PROMPT, params)[0]
        one = output.outputs[0]
        self.assertEqual((one.text, one.finish_reason, one.stop_reason), (before, "stop", word))
        self.assertEqual(len(one.logprobs), len(one.token_ids))
        self.assertEqual(len(one.logprobs[0].top), 2)
        self.assertAlmostEqual(one.cumulative_logprob, sum(token.logprob for token in one.logprobs))
        self.assertIsNone(output.prompt_logprobs[0].logprob)
        self.assertEqual([token.id for token in output.prompt_logprobs], self.llm.encode(PROMPT, add_special_tokens=True))

    def test_structured_outputs(self):
        def text(made):
            return self.llm.generate(PROMPT, SamplingParams(max_tokens=60, temperature=0, structured_outputs=made))[0].outputs[0].text
        self.assertIn(text(StructuredOutputs(choice=["yes", "no"])), ("yes", "no"))
        self.assertRegex(text(StructuredOutputs(regex="[0-9]{3}")), r"^\d{3}$")
        self.assertIn(json.loads(text(StructuredOutputs(json={"enum": ["red", 5]}))), ("red", 5))
        with self.assertRaisesRegex(ValueError, "expected one of"):
            text(StructuredOutputs(regex="a", choice=["b"]))

    def test_chats(self):
        messages = [{"role": "user", "content": "Who are you?"}]
        expected = self.llm.generate(self.llm.apply_chat_template(messages), SamplingParams(max_tokens=8, temperature=0))
        found = self.llm.chat(messages, SamplingParams(max_tokens=8, temperature=0))
        self.assertEqual(found[0].outputs[0].token_ids, expected[0].outputs[0].token_ids)
        self.assertEqual(len(self.llm.chat([messages, messages], GREEDY)), 2)
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
        named = {"type": "function", "function": {"name": "f"}}
        for choice in ("required", named):
            called = self.llm.chat(messages, SamplingParams(max_tokens=200, temperature=0), tools=[tool], tool_choice=choice,
                                   parallel_tool_calls=False)[0].outputs[0]
            self.assertEqual([call.name for call in called.tool_calls], ["f"])
        for choice in ("sometimes", {"function": {}}, {"name": "f"}, 3):
            with self.assertRaisesRegex(paceline.Error, "tool_choice: found .*expected auto, none, required"):
                self.llm.chat(messages, tools=[tool], tool_choice=choice)
        with self.assertRaisesRegex(ValueError, "messages: .*not JSON serializable"):
            self.llm.chat([{"role": "user", "content": {1, 2}}])

    def test_items(self):
        embedding, _ = self.llm.embed(["The old house", "by the sea"])
        line = json.loads(program("embed", "-m", MODEL, "--jsonl", "The old house"))
        for found, said in zip(embedding.embedding, line["embedding"], strict=True):
            self.assertAlmostEqual(float(found), said, places=6)
        classes = self.llm.classify("What a lovely morning", ["good", "bad"])[0]
        self.assertEqual(classes.labels, ["good", "bad"])
        self.assertAlmostEqual(float(sum(classes.scores)), 1, places=5)
        self.assertIn(classes.label, program("classify", "-m", MODEL, "-p", "What a lovely morning", "--label", "good", "--label", "bad"))
        decision = self.llm.decide("The parcel never came.", [Predicate("Is it a complaint?"), Choice({"red": "", "blue": ""}, "Which?"),
                                                              Scale(["calm", "angry"], "How angry?")])[0]
        self.assertIsInstance(decision.answers[0].value, bool)
        self.assertIn(decision.answers[1].value, ("red", "blue"))
        self.assertEqual(len(decision.answers[2].probabilities), 2)
        with self.assertRaisesRegex(paceline.Error, r"questions: found 'Is it\?', expected a Predicate, a Choice or a Scale"):
            self.llm.decide("The parcel never came.", ["Is it?"])
        with self.assertRaisesRegex(NotImplementedError, "can't score pairs"):
            self.llm.score("house", ["The old house", "by the sea"])
        self.assertEqual([one.id for one in self.llm.logprobs("by the sea")], self.llm.encode("by the sea", add_special_tokens=True))

    def test_numbers_are_not_copied_and_outlive_the_call(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy isn't installed")
        values = self.llm.embed("by the sea")[0].embedding
        self.assertIsInstance(values, numpy.ndarray)
        self.assertFalse(values.flags.owndata)
        before = values.copy()
        gc.collect()
        self.llm.embed(["another text"] * 20)
        numpy.testing.assert_array_equal(values, before)

    def test_numbers_go_to_other_packages_by_dlpack(self):
        values = self.llm.embed("by the sea")[0].embedding
        try:
            import torch
        except ImportError:
            self.skipTest("torch isn't installed")
        tensor = torch.from_dlpack(values)
        self.assertEqual(tensor.tolist(), values.tolist())
        if hasattr(values, "ctypes"):
            self.assertEqual(tensor.data_ptr(), values.ctypes.data)

    def test_logits_of_batches_of_ones_own(self):
        ids = self.llm.encode(PROMPT, add_special_tokens=True)
        expected = self.llm.generate([ids], SamplingParams(max_tokens=4, temperature=0))[0].outputs[0].token_ids
        with paceline.BatchContext(MODEL, 256, num_threads=1) as context:
            sequence = context.create()
            logits = context.prefill(sequence, ids, chunk=3)
            forked, found = context.fork(sequence), []
            for _ in range(4):
                found.append(max(range(context.vocab_size), key=list(logits[0]).__getitem__))
                logits = context.decode_batch([(sequence, found[-1]), (forked, found[-1])])
                self.assertEqual(list(logits[0]), list(logits[1]))
            self.assertEqual((found, context.length(forked)), (expected, len(ids) + 4))
            context.free(forked)
            rows = context.prefill(context.create(), ids, rows=[0, len(ids) - 1])
            self.assertEqual(len(rows), 2)
            self.assertEqual(len(context.prefill(context.create(), ids, rows=[])), 0)
            with self.assertRaisesRegex(ValueError, "token"):
                context.decode_batch([(sequence, 99999999)])
        with self.assertRaisesRegex(ValueError, "context"):
            context.create()
        with self.assertRaisesRegex(ValueError, "speed: there is no such option"):
            paceline.BatchContext(MODEL, 16, speed=3)

    def test_tokens(self):
        ids = self.llm.encode(PROMPT)
        self.assertEqual(" ".join(map(str, ids)), program("tokenize", "-m", MODEL, "-p", PROMPT).strip().replace("\n", " "))
        self.assertEqual(self.llm.decode(ids), PROMPT)

    def test_errors_are_those_of_python_too(self):
        with self.assertRaises(ValueError) as found:
            self.llm.generate([[99999999]])
        self.assertIsInstance(found.exception, paceline.Error)
        self.assertEqual(found.exception.code, "invalid")
        with self.assertRaisesRegex(FileNotFoundError, "/nowhere/at/all"):
            LLM("/nowhere/at/all")
        with self.assertRaisesRegex(FileNotFoundError, "adapter none"):
            self.llm.unload_lora("none")
        with self.assertRaises(ValueError):
            self.llm.generate(PROMPT, SamplingParams(temperature=-3))
        failed, right = self.llm.generate([[99999999], PROMPT], GREEDY, raises=False)
        self.assertEqual(failed.error.code, "invalid")
        self.assertIsNone(right.error)
        with self.assertRaisesRegex(ValueError, "found 1, expected one for each of 2"):
            self.llm.generate([PROMPT, PROMPT], [GREEDY])

    def test_nothing_is_cut_off_or_dropped_silently(self):
        for wrong in (dict(seed=2**63), dict(seed=-1), dict(stop_token_ids=[2**32 + 5])):
            with self.assertRaises(ValueError, msg=wrong):
                self.llm.generate(PROMPT, SamplingParams(**wrong))
        with self.assertRaisesRegex(ValueError, "4294967301"):
            self.llm.generate([[2**32 + 5]])
        for call in (self.llm.stream, lambda prompt, params: self.llm.chat([{"role": "user", "content": prompt}], params)):
            with self.assertRaisesRegex(ValueError, "one choice"):
                call(PROMPT, SamplingParams(n=2))
        with self.assertRaisesRegex(ValueError, "found 0, expected one for each of 1"):
            self.llm.generate(PROMPT, [])
        with self.assertRaisesRegex(ValueError, "load_format"):
            LLM(MODEL, load_format="bogus")
        output = self.llm.generate(PROMPT, SamplingParams(n=3, max_tokens=4, ignore_eos=True, stop=None, logit_bias=None))[0]
        self.assertEqual(output.metrics.completion_tokens, 12)
        ids = self.llm.encode(PROMPT, add_special_tokens=True)
        found = [self.llm.generate(prompt, GREEDY)[0].outputs[0].text for prompt in ({"prompt_token_ids": ids}, ids, PROMPT)]
        self.assertEqual(found, [found[0]] * 3)
        zero = self.llm.encode("\0")
        params = SamplingParams(max_tokens=3, temperature=0, ignore_eos=True, allowed_token_ids=zero)
        self.assertEqual(self.llm.generate(PROMPT, params)[0].outputs[0].text, "\0" * 3)
        self.assertEqual("".join(self.llm.stream(PROMPT, params)), "\0" * 3)

    def test_threads_share_the_model(self):
        expected = self.llm.generate(PROMPT, GREEDY)[0].outputs[0].token_ids
        found, threads = [], []
        for _ in range(16):
            threads.append(threading.Thread(target=lambda: found.append(self.llm.generate(PROMPT, GREEDY)[0].outputs[0].token_ids)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 16)

    def test_figures(self):
        self.llm.generate(PROMPT, GREEDY)
        self.assertEqual(self.llm.metrics()["completion_tokens"], 16)
        self.assertGreater(self.llm.memory()["active_bytes"], 0)
        self.assertEqual(self.llm.info()["has_tokenizer"], 1)
        self.assertGreater(paceline.device_info()["total_memory_bytes"], 0)
        old = self.llm.set_memory_limit(1 << 40)
        self.assertEqual(self.llm.set_memory_limit(old), 1 << 40)

    def test_tasks_share_the_model(self):
        async def text(model, seed):
            async for output in model.generate(PROMPT, SamplingParams(max_tokens=12, temperature=1, seed=seed)):
                if not output.finished:
                    self.assertEqual(output.outputs[0].finish_reason, None)
            return output.outputs[0].text

        async def run():
            model = AsyncLLM(self.llm)
            found = await asyncio.gather(*[text(model, seed) for seed in range(100)])
            embedded = await model.embed("by the sea")
            pieces = [piece async for piece in model.stream(PROMPT, GREEDY)]
            with no_new_threads(self):
                [await text(model, seed) for seed in range(3)]
            for reader in model._readers.values():
                self.assertEqual(reader._events, {})
                reader.close()
            return found, embedded, pieces

        found, embedded, pieces = asyncio.run(run())
        for seed in (0, 57, 99):
            alone = self.llm.generate(PROMPT, SamplingParams(max_tokens=12, temperature=1, seed=seed))[0].outputs[0].text
            self.assertEqual(found[seed], alone)
        self.assertEqual(len(embedded), 1)
        self.assertEqual("".join(pieces), self.llm.generate(PROMPT, GREEDY)[0].outputs[0].text)

    def test_the_functions_of_mlx_lm(self):
        from paceline import mlx_lm
        model, tokenizer = mlx_lm.load(MODEL, num_threads=1)
        expected = self.llm.generate(PROMPT, GREEDY)[0].outputs[0].text
        self.assertEqual(mlx_lm.generate(model, tokenizer, PROMPT, max_tokens=16), expected)
        self.assertEqual(mlx_lm.generate(model, tokenizer, tokenizer.encode(PROMPT), max_tokens=16), expected)
        *pieces, last = mlx_lm.stream_generate(model, tokenizer, PROMPT, max_tokens=16)
        self.assertEqual("".join(piece.text for piece in pieces), expected)
        self.assertEqual((last.finish_reason, last.generation_tokens), ("length", 16))
        batch = mlx_lm.batch_generate(model, tokenizer, [PROMPT, tokenizer.encode(PROMPT)], None, [16, 4], return_token_ids=True,
                                      return_logprobs=True)
        self.assertEqual(batch.texts[0], expected)
        self.assertEqual([len(ids) for ids in batch.token_ids], [16, 4])
        self.assertEqual(batch.logprobs[0][:4], batch.logprobs[1])
        self.assertEqual((batch.stats.generation_tokens, batch.caches), (20, None))

    def test_samplers_and_processors_of_mlx_lm(self):
        from paceline import mlx_lm
        model, tokenizer, config = mlx_lm.load(MODEL, return_config=True, num_threads=1)
        self.assertEqual(config["model_type"], "qwen3")
        sampler = mlx_lm.make_sampler(0.8, top_p=0.9, min_p=0.02, top_k=50)
        found = mlx_lm.generate(model, tokenizer, PROMPT, max_tokens=16, sampler=sampler, seed=7)
        params = SamplingParams(max_tokens=16, temperature=0.8, top_p=0.9, min_p=0.02, top_k=50, mlx_sampler_order=True, seed=7)
        self.assertEqual(found, self.llm.generate(PROMPT, params)[0].outputs[0].text)
        first = self.llm.generate(PROMPT, GREEDY)[0].outputs[0].token_ids[0]
        biased = mlx_lm.make_logits_processors({first: -100.0}, repetition_penalty=1.2, repetition_context_size=None)
        found = mlx_lm.generate(model, tokenizer, PROMPT, max_tokens=16, logits_processors=biased)
        params = SamplingParams(max_tokens=16, temperature=0, logit_bias={first: -100.0}, repetition_penalty=1.2)
        self.assertEqual(found, self.llm.generate(PROMPT, params)[0].outputs[0].text)
        self.assertEqual(mlx_lm.make_logits_processors(), [])
        for wrong, says in [(lambda: mlx_lm.make_sampler(1, xtc_probability=0.5), "xtc_probability"),
                            (lambda: mlx_lm.make_sampler(1, min_tokens_to_keep=2), "min_tokens_to_keep"),
                            (lambda: mlx_lm.make_logits_processors(presence_penalty=1), "presence_context_size: found 20"),
                            (lambda: mlx_lm.load(MODEL, {"x": 1}), "tokenizer_config"),
                            (lambda: mlx_lm.generate(model, tokenizer, PROMPT, sampler=max), "make_sampler"),
                            (lambda: mlx_lm.generate(model, tokenizer, PROMPT, logits_processors=[max]), "make_logits_processors"),
                            (lambda: mlx_lm.generate(model, tokenizer, PROMPT, kv_bits=4), "kv_bits"),
                            (lambda: mlx_lm.batch_generate(model, tokenizer, [PROMPT], return_prompt_caches=True), "prompt_caches")]:
            with self.assertRaisesRegex(NotImplementedError, says):
                wrong()
        with self.assertRaisesRegex(ValueError, "max_tokens: found 0"):
            mlx_lm.generate(model, tokenizer, PROMPT, max_tokens=0)
        whole = mlx_lm.generate(model, tokenizer, PROMPT, max_tokens=16)
        before, word, _ = whole.partition(whole.split()[3])
        self.assertEqual(mlx_lm.generate(model, tokenizer, PROMPT, max_tokens=-1, stop=[word]), before)

    def test_arguments_of_mlx_lm_are_in_its_order(self):
        """Those of mlx-lm 0.32.2, generate.py, utils.py and sample_utils.py."""
        from paceline import mlx_lm
        expected = {
            "load": "path_or_hf_repo tokenizer_config model_config adapter_path lazy return_config revision trust_remote_code",
            "stream_generate": "model tokenizer prompt max_tokens draft_model stream", "generate": "model tokenizer prompt verbose",
            "batch_generate": "model tokenizer prompts prompt_caches max_tokens verbose return_prompt_caches return_token_ids return_logprobs",
            "make_sampler": "temp top_p min_p min_tokens_to_keep top_k xtc_probability xtc_threshold xtc_special_tokens",
            "make_logits_processors": "logit_bias repetition_penalty repetition_context_size presence_penalty presence_context_size "
                                      "frequency_penalty frequency_context_size"}
        for name, names in expected.items():
            found = [one for one, kind in inspect.signature(getattr(mlx_lm, name)).parameters.items() if kind.kind is not kind.VAR_KEYWORD]
            self.assertEqual(" ".join(found), names, name)


class EndsTest(unittest.TestCase):
    def test_a_closed_model_says_so(self):
        with LLM(MODEL, num_threads=1) as llm:
            generation = llm.stream(PROMPT)
        with self.assertRaisesRegex(ValueError, "closed"):
            llm.generate(PROMPT)
        with self.assertRaisesRegex(ValueError, "closed"):
            list(generation)

    def test_a_cancelled_task_cancels_its_request(self):
        async def run():
            async with AsyncLLM(MODEL, num_threads=1) as model:
                async def read():
                    async for _ in model.generate(PROMPT, SamplingParams(max_tokens=900, ignore_eos=True)):
                        pass
                task = asyncio.create_task(read())
                await asyncio.sleep(0.05)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                # It would take 900 steps to end by itself; the engine is free for another one.
                async for output in model.generate(PROMPT, GREEDY):
                    pass
                return output.outputs[0].text
        self.assertTrue(asyncio.run(run()))

    def test_ctrl_c_ends_a_call(self):
        for call in ("llm.generate([prompt] * 50, long)", "list(llm.stream(prompt, long))",
                     "llm.chat([[{'role': 'user', 'content': 'x'}]] * 9, long)"):
            with self.subTest(call):
                self.check_ctrl_c(call)

    def check_ctrl_c(self, call):
        script = (f"import sys, paceline\nprompt, long = {PROMPT!r}, paceline.SamplingParams(max_tokens=900, ignore_eos=True)\n"
                  f"llm = paceline.LLM({MODEL!r}, num_threads=1)\n"
                  "print('ready', flush=True)\n"
                  "try:\n"
                  "    while True:\n"
                  f"        {call}\n"
                  "except KeyboardInterrupt:\n"
                  "    print('interrupted', len(llm.generate(prompt, paceline.SamplingParams(max_tokens=3))[0].outputs[0].text) > 0)\n")
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(child.stdout.readline(), "ready\n")
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=120)
        child.stdout.close()
        self.assertEqual((out, child.returncode), ("interrupted True\n", 0))

    def test_a_server_lasts_as_long_as_its_block(self):
        with Server(MODEL, threads=1) as server:
            with urllib.request.urlopen(server.base_url + "/models") as answer:
                self.assertEqual(json.load(answer)["data"][0]["id"], "paceline-10m")
            process = server._child.process
        self.assertIsNotNone(process.returncode)

    def test_a_server_ends_with_a_process_that_is_killed(self):
        script = ("import os, sys, time, threading, paceline\n"
                  f"server = paceline.Server({MODEL!r}, threads=1)\n"
                  "starter = threading.Thread(target=server.start)\n"  # its end doesn't end the server
                  "starter.start()\nstarter.join()\n"
                  "print(server._child.process.pid, server.base_url, flush=True)\n"
                  "time.sleep(600)\n")
        parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        with parent.stdout:
            pid, url = parent.stdout.readline().split()
            urllib.request.urlopen(url + "/models").close()
            parent.kill()
            parent.wait()
        self.assertTrue(ends(pid), pid)

    def test_what_the_program_says_is_raised_with_its_code(self):
        with tempfile.TemporaryDirectory() as folder:
            for call in (Server("/nowhere").start, lambda: paceline.train(MODEL, "/nowhere", Path(folder) / "run")):
                with self.assertRaisesRegex(FileNotFoundError, "^paceline (serve|train): .*/nowhere") as found:
                    call()
                self.assertEqual(found.exception.code, "not_found")
            for call in (Server(MODEL, no_such_option=1).start, Server(MODEL, port=-1).start,
                         lambda: paceline.train(MODEL, "x", folder, iters="some")):
                with self.assertRaises(ValueError) as found:
                    call()
                self.assertEqual(found.exception.code, "invalid")
            corrupt = Path(folder) / "model"
            corrupt.mkdir()
            for file in Path(MODEL).iterdir():
                (corrupt / file.name).write_bytes(file.read_bytes() if file.suffix != ".safetensors" else b"x" * 100)
            with self.assertRaises(paceline.Error) as found:
                Server(corrupt).start()
            self.assertEqual(found.exception.code, "corrupt")

    def test_a_run_of_training_calls_back_and_its_adapter_is_used(self):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data.txt"
            data.write_text("The cat sat on the mat.\n\n" * 40)
            seen = []
            adapter = paceline.train(MODEL, data, Path(folder) / "run", on_step=lambda step: seen.append(step), iters=3, max_seq_length=32)
            self.assertGreater(len(seen), 0)
            llm = LLM(MODEL, num_threads=1, enable_lora=True)
            llm.load_lora("cat", adapter)
            self.assertTrue(llm.generate("The cat", GREEDY, lora="cat")[0].outputs[0].text)

    def test_it_is_imported_quickly_and_without_what_a_caller_may_not_need(self):
        script = "import sys, paceline; print(sorted({'numpy', 'asyncio', 'subprocess'} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(done.stdout, "[]\n")


class ArraysTest(unittest.TestCase):
    """What stands for numpy's arrays where numpy isn't installed."""

    def setUp(self):
        import ctypes
        from paceline.arrays import Array
        self.array = Array((ctypes.c_float * 6)(*range(6)), (2, 3))

    def test_numbers_and_rows(self):
        self.assertEqual(self.array.tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual([list(row) for row in self.array], self.array.tolist())
        self.assertEqual((len(self.array), self.array[-1][0], self.array[1].shape), (2, 3.0, (3,)))
        with self.assertRaises(IndexError):
            self.array[2]

    def test_memory_lives_while_another_package_reads_it(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy isn't installed")
        from paceline import arrays
        whole, row = numpy.from_dlpack(self.array), numpy.from_dlpack(self.array[1])
        self.array.data[5] = 9
        self.assertEqual((whole.tolist(), row.tolist()), ([[0, 1, 2], [3, 4, 9]], [3, 4, 9]))
        numpy.testing.assert_array_equal(numpy.asarray(self.array), whole)
        self.array.__dlpack__()  # a capsule that nobody takes
        self.assertEqual(len(arrays._lent), 2)
        self.array = None
        gc.collect()
        self.assertEqual(whole[1, 2], 9)
        del whole, row
        self.assertEqual(len(arrays._lent), 0)


class FilesTest(unittest.TestCase):
    def test_the_examples_of_the_docs_run(self):
        num_examples = 0
        for page in ("README.md", "docs/python.md"):
            for block in re.findall(r"\n\n((?:    .*\n|\n)+)", (ROOT / page).read_text()):
                if not re.search(r"(?m)^    from paceline import", block):
                    continue
                num_examples += 1
                script = "".join(line[4:] + "\n" for line in block.splitlines())
                done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=300,
                                      env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout, script)
        self.assertEqual(num_examples, 4)

    def test_the_structures_are_those_of_the_header(self):
        subprocess.run([sys.executable, ROOT / "tools/make_python_abi.py", "--check"], check=True)
        import ctypes
        from paceline import _abi
        for line in (ROOT / "tests/capi/abi.txt").read_text().splitlines():
            if line.startswith("member "):
                _, name, _, offset, _, size, _ = line.split()
                structure, member = name.split(".")
                field = getattr(getattr(_abi, structure), member)
                self.assertEqual((field.offset, field.size), (int(offset), int(size)), name)
        self.assertEqual(ctypes.sizeof(_abi.paceline_prompt), 32)


if __name__ == "__main__":
    unittest.main()
