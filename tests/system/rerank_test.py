"""Scores of pairs, reranking and classification with a model's own labels, beside transformers."""
import json
import math
import unittest

from program import BUNDLED, ROOT, ProgramTest, lines
from serving import Client, Server

GOLDENS = ROOT / "tests/goldens/embeddings"


def golden(name):
    return json.loads((GOLDENS / name / "golden.json").read_text())["cases"]


class RerankTest(ProgramTest):
    def serve(self, model, *options):
        server = Server("--served-model-name", "it", *options, model=model)
        self.addCleanup(server.stop)
        return Client(server.port)

    def ask(self, client, path, status=200, **body):
        answer = client.post(path, {"model": "it", **body})
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def test_yes_and_no_as_qwen3_reranker(self):
        cases = golden("reranker")
        client = self.serve(GOLDENS / "reranker")
        answer = self.ask(client, "/v1/score", text_1=[case["query"] for case in cases],
                          text_2=[case["document"] for case in cases])
        for item, case in zip(answer["data"], cases, strict=True):
            self.assertAlmostEqual(item["score"], case["score"], delta=1e-5)
        self.assertEqual(answer["usage"]["prompt_tokens"], sum(case["num_tokens"] for case in cases))
        documents = [case["document"] for case in cases[:2]]
        ranked = self.ask(client, "/v1/rerank", query=cases[0]["query"], documents=documents, return_documents=True)
        expected = sorted(range(2), key=lambda i: -cases[i]["score"])
        self.assertEqual([item["index"] for item in ranked["results"]], expected)
        for item in ranked["results"]:
            self.assertAlmostEqual(item["relevance_score"], cases[item["index"]]["score"], delta=1e-5)
            self.assertEqual(item["document"], {"text": documents[item["index"]]})
        only = self.ask(client, "/rerank", query=cases[0]["query"], documents=[{"text": text} for text in documents], top_n=1)
        self.assertEqual(len(only["results"]), 1)
        self.assertEqual(only["results"][0]["relevance_score"], ranked["results"][0]["relevance_score"])
        other = self.ask(client, "/v1/score", text_1="yes", text_2="x", instruction="another")
        self.assertNotAlmostEqual(other["data"][0]["score"], cases[2]["score"], places=4)
        # A text can't write the template's tokens.
        self.ask(client, "/v1/score", text_1="yes<|im_end|>", text_2="<|im_start|>")
        generated = self.ask(client, "/v1/completions", prompt="x", max_tokens=2, ignore_eos=True)
        self.assertEqual(generated["usage"]["completion_tokens"], 2)

    def test_encoders_score_pairs(self):
        """The second text's tokens are of BERT's second type; XLM-R has one."""
        for name in ("bert_pairs", "xlm_roberta_pairs", "nomic_bert_pairs", "deberta_pairs", "modernbert_pairs"):
            client = self.serve(GOLDENS / name)
            cases = golden(name)
            pairs = [case for case in cases if len(case["texts"]) == 2]
            answer = self.ask(client, "/v1/score", text_1=[case["texts"][0] for case in pairs],
                              text_2=[case["texts"][1] for case in pairs])
            for item, case in zip(answer["data"], pairs, strict=True):
                self.assertAlmostEqual(item["score"], case["scores"][0], delta=1e-5)
            query = pairs[0]["texts"][0]
            documents = [case["texts"][1] for case in pairs if case["texts"][0] == query]
            ranked = self.ask(client, "/v1/rerank", query=query, documents=documents)
            scores = [item["score"] for item in answer["data"]]
            self.assertEqual([item["index"] for item in ranked["results"]],
                             sorted(range(len(documents)), key=lambda i: -scores[i]))
            texts = [case for case in cases if len(case["texts"]) == 1]
            labelled = self.ask(client, "/v1/classify", input=[case["texts"][0] for case in texts])
            for item, case in zip(labelled["data"], texts, strict=True):
                self.assertAlmostEqual(item["scores"][0], case["scores"][0], delta=1e-5)

    def test_an_encoder_with_labels(self):
        cases = [case for case in golden("distilbert_labels") if len(case["texts"]) == 1]
        client = self.serve(GOLDENS / "distilbert_labels")
        answer = self.ask(client, "/v1/classify", input=[case["texts"][0] for case in cases])
        for item, case in zip(answer["data"], cases, strict=True):
            self.assertEqual(item["labels"], ["bad", "fair", "good"])
            for score, expected in zip(item["scores"], case["scores"], strict=True):
                self.assertAlmostEqual(score, expected, delta=1e-5)
        refused = self.ask(client, "/v1/score", 501, text_1="a", text_2="b")
        self.assertIn("has 3 labels", refused["error"]["message"])

    def test_a_cross_encoder(self):
        client = self.serve(GOLDENS / "cross_encoder")
        pairs = [case for case in golden("cross_encoder") if len(case["texts"]) == 2]
        answer = self.ask(client, "/v1/score", text_1=[case["texts"][0] for case in pairs], text_2=[case["texts"][1] for case in pairs])
        for item, case in zip(answer["data"], pairs, strict=True):
            self.assertAlmostEqual(item["score"], case["scores"][0], delta=1e-5)
        for path, body in [("/v1/completions", {"prompt": "x"}), ("/v1/score_tokens", {"input": "x"}), ("/v1/embeddings", {"input": "x"})]:
            refused = self.ask(client, path, 501, **body)
            self.assertIn("classifies", refused["error"]["message"])

    def test_cosines_of_embeddings(self):
        client = self.serve(GOLDENS / "qwen3")
        texts = ["The old house by the sea", "where is the sea", "x"]
        vectors = [item["embedding"] for item in self.ask(client, "/v1/embeddings", input=texts)["data"]]
        cosines = [sum(a * b for a, b in zip(vectors[1], vector)) for vector in vectors]
        answer = self.ask(client, "/v1/score", text_1=texts[1], text_2=texts)
        for item, cosine in zip(answer["data"], cosines, strict=True):
            self.assertAlmostEqual(item["score"], cosine, places=5)
        query, *documents = [self.ask(client, "/v1/embeddings", input=text, prompt_name=name)["data"][0]["embedding"]
                             for text, name in [(texts[1], "query"), (texts[0], "document"), (texts[2], "document")]]
        ranked = self.ask(client, "/v1/rerank", query=texts[1], documents=[texts[0], texts[2]])["results"]
        for item in ranked:
            cosine = sum(a * b for a, b in zip(query, documents[item["index"]]))
            self.assertAlmostEqual(item["relevance_score"], cosine, places=5)
        self.assertGreaterEqual(ranked[0]["relevance_score"], ranked[1]["relevance_score"])

    def test_own_labels(self):
        cases = golden("classifier")
        whole = [case for case in cases if len(case["texts"]) == 1]
        model = GOLDENS / "classifier"
        found = [json.loads(line) for line in self.succeed("classify", "-m", model, "--jsonl", "--with-logits", stdin=lines(
            *({"text": case["texts"][0]} for case in whole))).stdout.splitlines()]
        client = self.serve(model)
        served = self.ask(client, "/v1/classify", input=[case["texts"][0] for case in whole])["data"]
        for one, other, case in zip(found, served, whole, strict=True):
            for name in ["label", "scores", "labels", "token_id", "token"]:
                self.assertEqual(one[name], other[name], name)
            self.assertEqual(one["labels"], ["bad", "fair", "good"])
            self.assertEqual(one["label"], one["labels"][max(range(3), key=lambda i: case["scores"][i])])
            for a, b in zip(one["scores"] + one["logits"], case["scores"] + case["logits"], strict=True):
                self.assertTrue(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5), (a, b))
        table = self.succeed("classify", "-m", model, "-p", whole[0]["texts"][0]).stdout
        self.assertRegex(table, r"^\d\.\d{4}  (bad|fair|good)\n")
        self.assertIn("labels of its own (bad, fair, good)", self.fail_with(1, "classify", "-m", model, "-p", "x", "--label", "a"))
        self.assertIn("has 3 labels", self.ask(client, "/v1/score", 501, text_1="a", text_2="b")["error"]["message"])
        self.assertIn("classifies", self.fail_with(1, "generate", "-m", model, "-p", "x"))

    def test_the_command_line_scores_pairs_as_the_server(self):
        for name in ("reranker", "qwen3"):
            cases = golden("reranker")
            pairs = [{"text_1": case["query"], "text_2": case["document"]} for case in cases]
            found = self.answers("score", "-m", GOLDENS / name, stdin=lines(*pairs))
            served = self.ask(self.serve(GOLDENS / name), "/v1/score", text_1=[pair["text_1"] for pair in pairs],
                              text_2=[pair["text_2"] for pair in pairs])["data"]
            self.assertEqual([answer["score"] for answer in found], [item["score"] for item in served])
        for model, line, said in [(BUNDLED, {"text_1": "a", "text_2": "b"}, "can't score pairs"),
                                  (GOLDENS / "reranker", {"text_1": "a"}, "text_2")]:
            answer, = self.answers("score", "-m", model, code=1, stdin=lines(line))
            self.assertIn(said, answer["error"]["message"])

    def test_models_that_score_no_pairs(self):
        client = self.serve(BUNDLED)
        for path, body in [("/v1/score", {"text_1": "a", "text_2": "b"}), ("/v1/rerank", {"query": "a", "documents": ["b"]})]:
            self.assertIn("can't score pairs", self.ask(client, path, 501, **body)["error"]["message"])
        for path, body, param in [("/v1/score", {"text_1": ["a", "b"], "text_2": ["c"]}, "text_1"),
                                  ("/v1/rerank", {"query": "a", "documents": []}, "documents"),
                                  ("/v1/rerank", {"query": "a", "documents": ["b"], "top_n": 0}, "top_n")]:
            self.assertEqual(self.ask(client, path, 400, **body)["error"]["param"], param)


if __name__ == "__main__":
    unittest.main()
