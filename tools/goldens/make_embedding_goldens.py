#!/usr/bin/env python3
"""Makes tests/goldens/embeddings/: tiny embedding models and rerankers, and what others compute with them.

    python tools/goldens/make_embedding_goldens.py [--out DIR]

Needs sentence-transformers, torch, transformers (5.24.0 made these) and tokenizers. Each folder is a model
directory with `golden.json`: `embeddings` of sentence-transformers, one per case and, for one text, per pooling
mode; or the labels' `logits` and `scores` of transformers and of the method on Qwen3-Reranker's model card.
`variants.json` has other files for the model in `qwen3`, with the embeddings and scores of pairs that follow from
them. All in float32 with one thread.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import alibi_encoder
import safetensors.torch
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Dropout, Pooling
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GOLDENS = Path(__file__).resolve().parents[2] / "tests" / "goldens"

TEXTS = ["The old house by the sea", "Öl und Wasser, 42!",
         "A long walk: " + " and then ".join(f"step {i} of many" for i in range(24)), "x"]
PROMPTS = {"query": "Instruct: find what answers the query\nQuery:", "document": "title: none | text: "}
POOLINGS = ["lasttoken", "cls", "mean", "weightedmean", "mean_sqrt_len_tokens", "max"]
PAIRS = [["where is the sea", "The old house by the sea"], ["where is the sea", "no"], ["yes", "x"]]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<bos>", "<eos>"]
JUDGE = ('<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct '
         'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n')
ANSWER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
TASK = "Given a web search query, retrieve relevant passages that answer the query"


def make_tokenizer(template: str) -> transformers.PreTrainedTokenizerFast:
    """A byte-level BPE in which "yes" and "no" are tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(["yes no the sea the sea yes no"] * 4, trainers.BpeTrainer(
        vocab_size=len(alphabet) + len(SPECIALS) + 12, special_tokens=SPECIALS, initial_alphabet=alphabet,
        show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template.replace("$", "$A"), pair=template.replace("$", "$A") + " " + template.replace("$", "$B"),
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in SPECIALS])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<|endoftext|>",
                                                eos_token="<|endoftext|>", padding_side="left")


def qwen3_config(vocab_size: int, **changes) -> transformers.Qwen3Config:
    return transformers.Qwen3Config(**{
        "vocab_size": vocab_size, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 1024,
        "tie_word_embeddings": True, "pad_token_id": 0, **changes})


def gemma3_config(vocab_size: int, **changes) -> transformers.Gemma3TextConfig:
    return transformers.Gemma3TextConfig(**{
        "vocab_size": vocab_size, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 1024,
        "query_pre_attn_scalar": 16, "use_bidirectional_attention": True, "sliding_window": 24,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "pad_token_id": 0, **changes})


def randomise(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Weights so large that attention is far from even."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise * 0.25 if parameter.dim() > 1 else 1 + 0.2 * noise)
    return model.float().eval()


def make_dense(inputs: int, outputs: int, seed: int, **options) -> Dense:
    return randomise(Dense(inputs, outputs, **options), seed)


def save_embedder(model, tokenizer, modules, path: Path) -> SentenceTransformer:
    """A sentence-transformers model of the transformer and the modules behind it, as read back from `path`."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        SentenceTransformer(modules=[Transformer(folder), *modules], prompts=PROMPTS, device="cpu").save(
            str(path), create_model_card=False)
    return SentenceTransformer(str(path), device="cpu",
                               model_kwargs={"attn_implementation": "eager", "dtype": torch.float32})


def embed(model: SentenceTransformer, text: str, **options) -> list[float]:
    return [float(x) for x in model.encode([text], show_progress_bar=False, **options)[0]]


def embedding_cases(model: SentenceTransformer, dimensions: int) -> list[dict]:
    cases = [{"text": text, "embedding": embed(model, text)} for text in TEXTS]
    cases += [{"text": TEXTS[0], "prompt_name": name, "embedding": embed(model, TEXTS[0], prompt_name=name)}
              for name in PROMPTS]
    cases.append({"text": TEXTS[0], "dimensions": dimensions,
                  "embedding": embed(model, TEXTS[0], truncate_dim=dimensions, normalize_embeddings=True)})
    return cases


def write_golden(path: Path, golden: dict) -> None:
    (path / "golden.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")


def make_qwen3(out: Path) -> None:
    """As Qwen3-Embedding: the state of the end token, normalised; and every other pooling mode."""
    tokenizer = make_tokenizer("$ <|endoftext|>")
    transformer = randomise(transformers.Qwen3Model(qwen3_config(len(tokenizer))), 1)
    model = save_embedder(transformer, tokenizer, [Pooling(32, pooling_mode="lasttoken"), Normalize()], out)
    poolings = {}
    for mode in POOLINGS:
        with tempfile.TemporaryDirectory() as folder:
            other = save_embedder(transformer, tokenizer, [Pooling(32, pooling_mode=mode)], Path(folder) / "model")
            poolings[mode] = embed(other, TEXTS[2])
    write_golden(out, {"cases": embedding_cases(model, 8), "pooled_text": TEXTS[2], "poolings": poolings})


def make_gemma3(out: Path) -> None:
    """As EmbeddingGemma: attention in both directions, the mean of all states, two dense layers, normalised."""
    tokenizer = make_tokenizer("<bos> $ <eos>")
    transformer = randomise(transformers.Gemma3TextModel(gemma3_config(len(tokenizer))), 2)
    for name, parameter in transformer.named_parameters():
        if "norm" in name:
            parameter.data -= 1  # stored as w of 1 + w
    modules = [Pooling(32, pooling_mode="mean"),
               make_dense(32, 40, 3, bias=False, activation_function=torch.nn.Identity()),
               make_dense(40, 24, 4, bias=True, activation_function=torch.nn.Tanh()), Normalize()]
    model = save_embedder(transformer, tokenizer, modules, out)
    write_golden(out, {"cases": embedding_cases(model, 16)})


def make_gemma4(out: Path) -> None:
    """Gemma 4 with attention in both directions, whose windows have their ends."""
    tokenizer = make_tokenizer("<bos> $ <eos>")
    config = transformers.Gemma4TextConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, global_head_dim=24, hidden_size_per_layer_input=0, max_position_embeddings=1024,
        use_bidirectional_attention="all", sliding_window=24, layer_types=["sliding_attention", "full_attention"],
        pad_token_id=0)
    model = save_embedder(randomise(transformers.Gemma4TextModel(config), 6), tokenizer,
                          [Pooling(32, pooling_mode="mean")], out)
    write_golden(out, {"cases": embedding_cases(model, 16)[:4]})


def make_both_ways(out: Path) -> None:
    """Qwen 3 with is_causal false, one layer with a window."""
    tokenizer = make_tokenizer("$ <|endoftext|>")
    config = qwen3_config(len(tokenizer), is_causal=False, use_sliding_window=True, sliding_window=12,
                          layer_types=["sliding_attention", "full_attention"])
    model = save_embedder(randomise(transformers.Qwen3Model(config), 5), tokenizer,
                          [Pooling(32, pooling_mode="mean")], out)
    write_golden(out, {"cases": embedding_cases(model, 16)[:4]})


def encoder_sizes(vocab_size: int) -> dict:
    return {"vocab_size": vocab_size, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "max_position_embeddings": 512}


def make_word_pieces() -> transformers.PreTrainedTokenizerFast:
    """As BERT has them, uncased."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(TEXTS + [text for pair in PAIRS for text in pair], trainers.WordPieceTrainer(
        vocab_size=120, special_tokens=specials, show_progress=False))
    ids = [(token, tokenizer.token_to_id(token)) for token in specials]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"])


WORD_PIECES = {"bert", "nomic_bert", "deberta"}


def encoder_tokenizer(kind: str) -> transformers.PreTrainedTokenizerFast:
    tokenizer = make_word_pieces() if kind in WORD_PIECES else make_tokenizer("<bos> $ <eos>")
    tokenizer.model_max_length = 512
    return tokenizer


def make_encoder(kind: str, model, pooling: str, out: Path, published=None) -> None:
    """Of the class of `model`, which a vocabulary's size makes: BERT and its relatives. `published` makes the config of
    published files, and does to the model what that asks for."""
    tokenizer = encoder_tokenizer(kind)
    transformer = randomise(model(len(tokenizer)), 6)
    embedder = save_embedder(transformer, tokenizer, [Pooling(32, pooling_mode=pooling), Normalize()], out)
    golden = {"cases": embedding_cases(embedder, 32)}
    if published:
        config = published(embedder[0].auto_model)
        golden["published"] = {"config": json.dumps(config), "cases": embedding_cases(embedder, 32)}
    write_golden(out, golden)


def xlm_roberta_config(vocab: int, **changes) -> transformers.XLMRobertaConfig:
    """Two positions are the padding's, which tokens don't have."""
    return transformers.XLMRobertaConfig(**{**encoder_sizes(vocab), "max_position_embeddings": 514,
                                            "type_vocab_size": 1, "layer_norm_eps": 1e-5, **changes})


def distilbert_config(vocab: int, **changes) -> transformers.DistilBertConfig:
    return transformers.DistilBertConfig(vocab_size=vocab, dim=32, hidden_dim=48, n_layers=2, n_heads=4,
                                         max_position_embeddings=512, **changes)


def make_bert(out: Path) -> None:
    make_encoder("bert", lambda vocab: transformers.BertModel(transformers.BertConfig(**encoder_sizes(vocab))),
                 "cls", out)


def make_xlm_roberta(out: Path) -> None:
    make_encoder("xlm_roberta", lambda vocab: transformers.XLMRobertaModel(xlm_roberta_config(vocab)), "mean", out)


def make_distilbert(out: Path) -> None:
    make_encoder("distilbert", lambda vocab: transformers.DistilBertModel(distilbert_config(vocab)), "mean", out)


def modernbert_config(vocab: int, **changes) -> transformers.ModernBertConfig:
    """The first and the fourth layer have full attention."""
    return transformers.ModernBertConfig(**{**encoder_sizes(vocab), "num_hidden_layers": 4, "local_attention": 11,
                                            "pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2,
                                            "eos_token_id": 3, "sep_token_id": 3, **changes})


def make_modernbert(out: Path) -> None:
    make_encoder("bert", lambda vocab: transformers.ModernBertModel(modernbert_config(vocab)), "mean", out)


def published_nomic(model) -> dict:
    """The config of nomic-embed-text-v1.5, as the code beside its weights reads it."""
    config = model.config
    return {"model_type": "nomic_bert", "activation_function": "swiglu", "causal": False, "layer_norm_epsilon": 1e-12,
            "max_trained_positions": 2048, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "n_embd": config.hidden_size,
            "n_head": config.num_attention_heads, "n_inner": config.intermediate_size,
            "n_layer": config.num_hidden_layers, "n_positions": 512, "parallel_block": False, "prenorm": False,
            "qkv_proj_bias": False, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": False, "rotary_scaling_factor": None, "torch_dtype": "float32",
            "type_vocab_size": 2, "use_rms_norm": False, "vocab_size": config.vocab_size}


def make_nomic_bert(out: Path) -> None:
    make_encoder("bert", lambda vocab: transformers.NomicBertModel(transformers.NomicBertConfig(**encoder_sizes(vocab))),
                 "mean", out, published_nomic)


def published_gte(model) -> dict:
    """The config of gte-base-en-v1.5, whose code stretches the rope by NTK: the base times the factor, frequencies by its
    power of 2 / dim (Alibaba-NLP/new-impl, NTKScalingRotaryEmbedding)."""
    config, theta, factor = model.config, 5000.0, 2.0
    dim = config.hidden_size // config.num_attention_heads
    exponents = torch.arange(0, dim, 2, dtype=torch.float32) / dim
    model.rotary_emb.inv_freq = (theta * factor) ** -exponents / factor ** (2 / dim)
    return {"model_type": "new", "hidden_act": "gelu", "hidden_size": config.hidden_size,
            "intermediate_size": config.intermediate_size, "layer_norm_eps": 1e-12, "layer_norm_type": "layer_norm",
            "logn_attention_scale": False, "max_position_embeddings": 512,
            "num_attention_heads": config.num_attention_heads, "num_hidden_layers": config.num_hidden_layers,
            "pack_qkv": True, "position_embedding_type": "rope", "rope_theta": theta,
            "rope_scaling": {"factor": factor, "type": "ntk"}, "torch_dtype": "float32", "type_vocab_size": 1,
            "vocab_size": config.vocab_size}


def make_gte(out: Path) -> None:
    make_encoder("roberta", lambda vocab: transformers.GteModel(transformers.GteConfig(
        **encoder_sizes(vocab), pad_token_id=0)), "cls", out, published_gte)


def make_eurobert(out: Path) -> None:
    make_encoder("eurobert", lambda vocab: transformers.EuroBertModel(transformers.EuroBertConfig(
        **encoder_sizes(vocab), pad_token_id=0, bos_token_id=1, eos_token_id=2, num_key_value_heads=2)), "mean", out)


def mpnet_config(vocab: int, **changes) -> transformers.MPNetConfig:
    return transformers.MPNetConfig(**{**encoder_sizes(vocab), "max_position_embeddings": 514, **changes})


def make_mpnet(out: Path) -> None:
    make_encoder("mpnet", lambda vocab: transformers.MPNetModel(mpnet_config(vocab)), "mean", out)


def deberta_v3_config(vocab: int, **changes) -> transformers.DebertaV2Config:
    """As v3 has it: distances in logarithmic buckets, normed embeddings of them, shared projections."""
    return transformers.DebertaV2Config(**{
        **encoder_sizes(vocab), "relative_attention": True, "position_buckets": 16, "max_relative_positions": -1,
        "pos_att_type": ["p2c", "c2p"], "share_att_key": True, "norm_rel_ebd": "layer_norm",
        "position_biased_input": False, "type_vocab_size": 0, **changes})


def deberta_plain_config(vocab: int, **changes) -> transformers.DebertaV2Config:
    """The class's other branches: a bucket for each distance up to 20, projections of their own, positions, types."""
    return deberta_v3_config(vocab, position_buckets=-1, max_relative_positions=20, share_att_key=False,
                             norm_rel_ebd="none", position_biased_input=True, type_vocab_size=2, **changes)


def make_deberta(out: Path) -> None:
    make_encoder("deberta", lambda vocab: transformers.DebertaV2Model(deberta_v3_config(vocab)), "mean", out)


def make_jina(out: Path) -> None:
    """Jina's embeddings v2, whose code is remote: alibi_encoder.py."""
    tokenizer = encoder_tokenizer("bert")
    sizes = {**encoder_sizes(len(tokenizer)), "num_attention_heads": 6, "hidden_size": 48}
    transformer = transformers.BertModel(transformers.BertConfig(**sizes))
    save_embedder(transformer, tokenizer, [Pooling(48, pooling_mode="mean"), Normalize()], out)
    weights = alibi_encoder.random_weights(len(tokenizer), 48, 40, 2, 11)
    safetensors.torch.save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    config = {"architectures": ["JinaBertForMaskedLM"], "model_type": "bert", "position_embedding_type": "alibi",
              "feed_forward_type": "geglu", "emb_pooler": "mean", "hidden_act": "gelu", "layer_norm_eps": 1e-12,
              "type_vocab_size": 2, "torch_dtype": "float32", **sizes, "intermediate_size": 40}
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    cases = []
    for text in TEXTS:
        states = alibi_encoder.states(weights, torch.tensor(tokenizer(text)["input_ids"]), 6)
        embedding = torch.nn.functional.normalize(states.mean(0), dim=0)
        cases.append({"text": text, "embedding": embedding.tolist()})
    write_golden(out, {"cases": cases})


def make_encoder_classifier(kind: str, labels: list[str], out: Path) -> None:
    """Scores of texts and pairs by transformers' class with a head."""
    tokenizer = encoder_tokenizer(kind)
    names = {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    vocab = len(tokenizer)
    model = {
        "bert": lambda: transformers.BertForSequenceClassification(
            transformers.BertConfig(**encoder_sizes(vocab), **names)),
        "xlm_roberta": lambda: transformers.XLMRobertaForSequenceClassification(xlm_roberta_config(vocab, **names)),
        "distilbert": lambda: transformers.DistilBertForSequenceClassification(distilbert_config(vocab, **names)),
        "modernbert": lambda: transformers.ModernBertForSequenceClassification(
            modernbert_config(vocab, classifier_pooling="mean", classifier_bias=True, norm_bias=True, **names)),
        "deberta": lambda: transformers.DebertaV2ForSequenceClassification(deberta_plain_config(vocab, **names)),
        "nomic_bert": lambda: transformers.NomicBertForSequenceClassification(
            transformers.NomicBertConfig(**encoder_sizes(vocab), **names)),
    }[kind]()
    model = randomise(model, 9)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    cases = []
    for texts in [[text] for text in TEXTS] + PAIRS:
        inputs = tokenizer(*texts, return_tensors="pt")
        if inputs["input_ids"].shape[1] > tokenizer.model_max_length:
            continue
        if kind not in WORD_PIECES:
            inputs.pop("token_type_ids", None)
        with torch.no_grad():
            logits = model(**inputs).logits[0]
        scores = torch.sigmoid(logits) if len(labels) == 1 else torch.softmax(logits, -1)
        cases.append({"texts": texts, "logits": logits.tolist(), "scores": scores.tolist()})
    write_golden(out, {"cases": cases})


FLAT = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{{ opening }}{% endif %}")
PARTS = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{% for part in m.content %}{% if part.type == 'text' %}"
         "{{ part.text | trim }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
         "{% if add_generation_prompt %}<|im_start|>assistant\n{{ opening }}{% endif %}")
UNDER_TEST = ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer_config.json",
              "chat_template.jinja", "1_Pooling/config.json"]


def write_variant(base: Path, change) -> tuple[SentenceTransformer, dict[str, str | None]]:
    """The model of `base` as `change` alters its SentenceTransformer or, if it returns some, its files; what was
    written. None: there is no such file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model = SentenceTransformer(str(base), device="cpu")
        files = change(model) or {}
        model.save(str(path), create_model_card=False)
        for name, text in files.items():
            (path / name).write_text(text)
        written = {name: (path / name).read_text() if (path / name).exists() else None for name in UNDER_TEST}
        of_base = {name: (base / name).read_text() if (base / name).exists() else None for name in UNDER_TEST}
        loaded = SentenceTransformer(str(path), device="cpu",
                                     model_kwargs={"attn_implementation": "eager", "dtype": torch.float32})
        return loaded, {name: text for name, text in written.items() if text != of_base[name]}


def with_chat(template: str, **processing):
    """The Transformer as sentence-transformers makes it of a base with a chat template."""
    def change(model: SentenceTransformer) -> None:
        tokenizer = model[0].tokenizer
        tokenizer.chat_template = template
        with tempfile.TemporaryDirectory() as folder:
            model[0].model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            model[0] = Transformer(folder, processing_kwargs=processing)
        assert "message" in model[0].modality_config
    return change


def with_pooling(mode: str, include_prompt: bool):
    def change(model: SentenceTransformer) -> None:
        model[1] = Pooling(32, pooling_mode=mode, include_prompt=include_prompt)
    return change


def with_length(length: int, side: str = "right"):
    def change(model: SentenceTransformer) -> None:
        model.max_seq_length = length
        model[0].tokenizer.truncation_side = side
    return change


def with_attributes(**attributes):
    def change(model: SentenceTransformer) -> None:
        for name, value in attributes.items():
            setattr(model, name, value)
    return change


def both(*changes):
    def change(model: SentenceTransformer) -> dict[str, str]:
        files = {}
        for one in changes:
            files |= one(model) or {}
        return files
    return change


def with_file(name: str, content: dict):
    return lambda model: {name: json.dumps(content)}


def with_dropout(model: SentenceTransformer) -> None:
    model.append(Dropout(0.5))


def unnormalised(model: SentenceTransformer) -> None:
    del model[2]


VARIANTS = {
    "chat": with_chat(FLAT),
    "chat_of_parts": both(with_chat(PARTS), with_pooling("mean", True)),
    "chat_with_kwargs": with_chat(FLAT, chat_template={"add_generation_prompt": True, "opening": "<think>"}),
    "chat_by_default_prompt": both(with_chat(FLAT), with_attributes(default_prompt_name="query")),
    "chat_without_its_prompt": both(with_chat(FLAT), with_pooling("mean", False)),
    "chat_cut": both(with_chat(FLAT), with_length(30)),
    "chat_cut_left": both(with_chat(PARTS), with_length(31, "left")),
    "chat_cut_with_kwargs": both(with_chat(FLAT, text={"max_length": 24},
                                           chat_template={"add_generation_prompt": True, "restore_suffix": True})),
    "chat_cut_without_its_end": with_chat(FLAT, text={"max_length": 25}, chat_template={"restore_suffix": False}),
    "cut": with_length(20),
    "cut_left": both(with_length(21, "left"), with_pooling("mean", True)),
    "cut_by_old_file": with_file("sentence_bert_config.json", {"max_seq_length": 18, "do_lower_case": False}),
    "not_cut": with_file("sentence_bert_config.json",
                         {"max_seq_length": 18, "processing_kwargs": {"text": {"truncation": False}}}),
    "shortened": with_attributes(truncate_dim=12),
    "dropout": with_dropout,
    **{f"without_its_prompt_{mode}": both(unnormalised, with_pooling(mode, False)) for mode in POOLINGS},
    **{similarity: both(unnormalised, with_attributes(similarity_fn_name=similarity), with_pooling("mean", True))
       for similarity in ("dot", "euclidean", "manhattan")},
}


def make_variants(qwen3: Path, out: Path) -> None:
    """The model of `qwen3` with other files: what they hold, and what becomes of it."""
    variants = []
    for name, change in VARIANTS.items():
        model, files = write_variant(qwen3, change)
        cases = [{"text": text, "embedding": embed(model, text)} for text in TEXTS[1:3]]
        cases += [{"text": TEXTS[0], "prompt_name": prompt, "embedding": embed(model, TEXTS[0], prompt_name=prompt)}
                  for prompt in PROMPTS]
        pairs = [{"texts": pair, "score": float(model.similarity_pairwise(*(model.encode([text]) for text in pair))[0])}
                 for pair in PAIRS]
        variants.append({"name": name, "files": files, "cases": cases, "pairs": pairs})
    out.write_text(json.dumps(variants, ensure_ascii=False, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")


def make_classifier(out: Path, labels: list[str], seed: int) -> None:
    """A score head over the last token; a pair is one text after the other."""
    tokenizer = make_tokenizer("$")
    config = qwen3_config(len(tokenizer), id2label=dict(enumerate(labels)),
                          label2id={label: i for i, label in enumerate(labels)})
    model = randomise(transformers.Qwen3ForSequenceClassification(config), seed)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    cases = []
    for texts in [[text] for text in TEXTS] + PAIRS:
        ids = tokenizer(*texts, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0]
        scores = torch.sigmoid(logits) if len(labels) == 1 else torch.softmax(logits, -1)
        cases.append({"texts": texts, "logits": logits.tolist(), "scores": scores.tolist()})
    write_golden(out, {"cases": cases})


def make_reranker(out: Path) -> None:
    """As Qwen3-Reranker: the probability of "yes" beside "no"."""
    tokenizer = make_tokenizer("$")
    model = randomise(transformers.Qwen3ForCausalLM(qwen3_config(len(tokenizer))), 8)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    parts = [tokenizer.encode(text, add_special_tokens=False) for text in (JUDGE, ANSWER)]
    yes, no = (tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    cases = []
    for query, document in PAIRS:
        text = f"<Instruct>: {TASK}\n<Query>: {query}\n<Document>: {document}"
        ids = parts[0] + tokenizer.encode(text, add_special_tokens=False) + parts[1]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits[0, -1]
        score = torch.softmax(logits[[no, yes]], -1)[1]
        cases.append({"query": query, "document": document, "score": float(score), "num_tokens": len(ids)})
    write_golden(out, {"cases": cases})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=GOLDENS / "embeddings")
    parser.add_argument("--only", nargs="+", metavar="FOLDER", help="these alone")
    options = parser.parse_args()
    out: Path = options.out
    torch.set_num_threads(1)
    makers = {"qwen3": make_qwen3, "gemma3": make_gemma3, "gemma4": make_gemma4, "qwen3_both_ways": make_both_ways,
              "variants.json": lambda path: make_variants(out / "qwen3", path),
              "classifier": lambda path: make_classifier(path, ["bad", "fair", "good"], 6),
              "cross_encoder": lambda path: make_classifier(path, ["LABEL_0"], 7), "reranker": make_reranker,
              "bert": make_bert, "xlm_roberta": make_xlm_roberta, "distilbert": make_distilbert,
              "modernbert": make_modernbert, "nomic_bert": make_nomic_bert, "gte": make_gte, "eurobert": make_eurobert,
              "modernbert_pairs": lambda path: make_encoder_classifier("modernbert", ["LABEL_0"], path),
              "mpnet": make_mpnet, "deberta": make_deberta, "jina": make_jina,
              "deberta_pairs": lambda path: make_encoder_classifier("deberta", ["LABEL_0"], path),
              "nomic_bert_pairs": lambda path: make_encoder_classifier("nomic_bert", ["LABEL_0"], path),
              "bert_pairs": lambda path: make_encoder_classifier("bert", ["LABEL_0"], path),
              "xlm_roberta_pairs": lambda path: make_encoder_classifier("xlm_roberta", ["LABEL_0"], path),
              "distilbert_labels": lambda path: make_encoder_classifier("distilbert", ["bad", "fair", "good"], path)}
    out.mkdir(parents=True, exist_ok=True)
    for name in options.only or makers:
        shutil.rmtree(out / name, ignore_errors=True)
        makers[name](out / name)
    for extra in [*out.rglob("README.md"), *out.rglob("training_args.bin")]:
        extra.unlink()


if __name__ == "__main__":
    main()
