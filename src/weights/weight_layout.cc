#include "weights/weight_layout.h"

#include <algorithm>
#include <array>

namespace paceline {
namespace {

// BERT, RoBERTa and XLM-R (transformers' modeling_bert, modeling_roberta).
constexpr auto kBertParts = std::to_array<NamePart>({
    {"embed_tokens.", "embeddings.word_embeddings."},
    {"embed_positions.", "embeddings.position_embeddings."},
    {"embed_types.", "embeddings.token_type_embeddings."},
    {"embed_norm.", "embeddings.LayerNorm."},
    {"layers.", "encoder.layer."},
    {".self_attn.q_proj.", ".attention.self.query."},
    {".self_attn.k_proj.", ".attention.self.key."},
    {".self_attn.v_proj.", ".attention.self.value."},
    {".self_attn.o_proj.", ".attention.output.dense."},
    {".post_attention_layernorm.", ".attention.output.LayerNorm."},
    {".mlp.up_proj.", ".intermediate.dense."},
    {".mlp.down_proj.", ".output.dense."},
    {".post_feedforward_layernorm.", ".output.LayerNorm."},
});

// DistilBERT (modeling_distilbert).
constexpr auto kDistilBertParts = std::to_array<NamePart>({
    {"embed_tokens.", "embeddings.word_embeddings."},
    {"embed_positions.", "embeddings.position_embeddings."},
    {"embed_norm.", "embeddings.LayerNorm."},
    {"layers.", "transformer.layer."},
    {".self_attn.q_proj.", ".attention.q_lin."},
    {".self_attn.k_proj.", ".attention.k_lin."},
    {".self_attn.v_proj.", ".attention.v_lin."},
    {".self_attn.o_proj.", ".attention.out_lin."},
    {".post_attention_layernorm.", ".sa_layer_norm."},
    {".mlp.up_proj.", ".ffn.lin1."},
    {".mlp.down_proj.", ".ffn.lin2."},
    {".post_feedforward_layernorm.", ".output_layer_norm."},
});

// ModernBERT (modeling_modernbert).
constexpr auto kModernBertParts = std::to_array<NamePart>({
    {"embed_tokens.", "embeddings.tok_embeddings."},
    {"embed_norm.", "embeddings.norm."},
    {".input_layernorm.", ".attn_norm."},
    {".self_attn.qkv_proj.", ".attn.Wqkv."},
    {".self_attn.o_proj.", ".attn.Wo."},
    {".post_attention_layernorm.", ".mlp_norm."},
    {".mlp.gate_up_proj.", ".mlp.Wi."},
    {".mlp.down_proj.", ".mlp.Wo."},
    {"norm.", "final_norm."},
});

// Nomic BERT. As published, and as transformers writes it.
constexpr auto kNomicParts = std::to_array<NamePart>({
    {"embed_tokens.", "embeddings.word_embeddings."},
    {"embed_types.", "embeddings.token_type_embeddings."},
    {"embed_norm.", "emb_ln."},
    {"layers.", "encoder.layers."},
    {".self_attn.qkv_proj.", ".attn.Wqkv."},
    {".self_attn.o_proj.", ".attn.out_proj."},
    {".post_attention_layernorm.", ".norm1."},
    {".mlp.up_proj.", ".mlp.fc11."},
    {".mlp.gate_proj.", ".mlp.fc12."},
    {".mlp.down_proj.", ".mlp.fc2."},
    {".post_feedforward_layernorm.", ".norm2."},
});

// GTE, likewise.
constexpr auto kGteParts = std::to_array<NamePart>({
    {"embed_tokens.", "embeddings.word_embeddings."},
    {"embed_types.", "embeddings.token_type_embeddings."},
    {"embed_norm.", "embeddings.LayerNorm."},
    {"layers.", "encoder.layer."},
    {".self_attn.", ".attention."},
    {".post_attention_layernorm.", ".attn_ln."},
    {".mlp.gate_up_proj.", ".mlp.up_gate_proj."},
    {".post_feedforward_layernorm.", ".mlp_ln."},
});
// GPT-NeoX (modeling_gpt_neox).
constexpr auto kNeoXParts = std::to_array<NamePart>({{"embed_tokens.", "embed_in."}});
// GPT-2, GPT-BigCode, GPT-Neo and GPT-J (modeling_gpt2, _gpt_bigcode, _gpt_neo, _gptj).
constexpr auto kGptParts = std::to_array<NamePart>({
    {"embed_tokens.", "wte."},
    {"embed_positions.", "wpe."},
    {"layers.", "h."},
});
// EXAONE 3 as it is published; transformers writes Llama's names (conversion_mapping).
constexpr auto kExaoneParts = std::to_array<NamePart>({
    {"embed_tokens.", "wte."},
    {"layers.", "h."},
    {"norm.", "ln_f."},
    {".self_attn.o_proj.", ".attn.attention.out_proj."},
    {".self_attn.", ".attn.attention."},
    {".input_layernorm.", ".ln_1."},
    {".post_attention_layernorm.", ".ln_2."},
    {".mlp.gate_proj.", ".mlp.c_fc_0."},
    {".mlp.up_proj.", ".mlp.c_fc_1."},
    {".mlp.down_proj.", ".mlp.c_proj."},
});
// Falcon and BLOOM (modeling_falcon, _bloom).
constexpr auto kFalconParts = std::to_array<NamePart>({
    {"embed_tokens.", "word_embeddings."},
    {"embed_norm.", "word_embeddings_layernorm."},
    {"layers.", "h."},
});
// Sarvam 30B as it is published (conversion_mapping).
constexpr auto kSarvamParts = std::to_array<NamePart>({
    {"embed_tokens.", "word_embeddings."},
    {".self_attn.qkv_proj.", ".attention.query_key_value."},
    {".self_attn.o_proj.", ".attention.dense."},
    {".self_attn.q_norm.", ".attention.query_layernorm."},
    {".self_attn.k_norm.", ".attention.key_layernorm."},
    {".mlp.gate.e_score_correction_bias", ".mlp.gate.expert_bias"},
});
constexpr auto kCodeGenMasks = std::to_array<std::string_view>({".attn.causal_mask"});
// BioGPT (modeling_biogpt), whose prefix no other family has.
constexpr auto kBioGptParts = std::to_array<NamePart>({
    {"embed_positions.", "biogpt.embed_positions."},
    {"layers.", "biogpt.layers."},
    {"layer_norm.", "biogpt.layer_norm."},
});
// MPT (modeling_mpt).
constexpr auto kMptParts = std::to_array<NamePart>({
    {"embed_tokens.", "wte."},
    {"layers.", "blocks."},
});
constexpr auto kMasks = std::to_array<std::string_view>(
    {".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias"});

// MPNet (modeling_mpnet).
constexpr auto kMpnetParts = std::to_array<NamePart>({
    {"embed_tokens.", "embeddings.word_embeddings."},
    {"embed_positions.", "embeddings.position_embeddings."},
    {"embed_norm.", "embeddings.LayerNorm."},
    {"relative_attention_bias.", "encoder.relative_attention_bias."},
    {"layers.", "encoder.layer."},
    {".self_attn.q_proj.", ".attention.attn.q."},
    {".self_attn.k_proj.", ".attention.attn.k."},
    {".self_attn.v_proj.", ".attention.attn.v."},
    {".self_attn.o_proj.", ".attention.attn.o."},
    {".post_attention_layernorm.", ".attention.LayerNorm."},
    {".mlp.up_proj.", ".intermediate.dense."},
    {".mlp.down_proj.", ".output.dense."},
    {".post_feedforward_layernorm.", ".output.LayerNorm."},
});

// DeBERTa v2 and v3 (modeling_deberta_v2).
constexpr auto kDebertaParts = std::to_array<NamePart>({
    {"embed_tokens.", "embeddings.word_embeddings."},
    {"embed_positions.", "embeddings.position_embeddings."},
    {"embed_types.", "embeddings.token_type_embeddings."},
    {"embed_norm.", "embeddings.LayerNorm."},
    {"rel_embeddings.", "encoder.rel_embeddings."},
    {"rel_norm.", "encoder.LayerNorm."},
    {"layers.", "encoder.layer."},
    {".self_attn.q_proj.", ".attention.self.query_proj."},
    {".self_attn.k_proj.", ".attention.self.key_proj."},
    {".self_attn.v_proj.", ".attention.self.value_proj."},
    {".self_attn.pos_key_proj.", ".attention.self.pos_key_proj."},
    {".self_attn.pos_query_proj.", ".attention.self.pos_query_proj."},
    {".self_attn.o_proj.", ".attention.output.dense."},
    {".post_attention_layernorm.", ".attention.output.LayerNorm."},
    {".mlp.up_proj.", ".intermediate.dense."},
    {".mlp.down_proj.", ".output.dense."},
    {".post_feedforward_layernorm.", ".output.LayerNorm."},
});

// Jina's embeddings v2: BERT's names but for the MLP.
constexpr auto kJinaParts = std::to_array<NamePart>({
    {"embed_tokens.", "embeddings.word_embeddings."},
    {"embed_types.", "embeddings.token_type_embeddings."},
    {"embed_norm.", "embeddings.LayerNorm."},
    {"layers.", "encoder.layer."},
    {".self_attn.q_proj.", ".attention.self.query."},
    {".self_attn.k_proj.", ".attention.self.key."},
    {".self_attn.v_proj.", ".attention.self.value."},
    {".self_attn.o_proj.", ".attention.output.dense."},
    {".post_attention_layernorm.", ".attention.output.LayerNorm."},
    {".mlp.gate_up_proj.", ".mlp.gated_layers."},
    {".mlp.down_proj.", ".mlp.wo."},
    {".post_feedforward_layernorm.", ".mlp.layernorm."},
});

constexpr std::string_view kWordEmbedding = "embeddings.word_embeddings.weight";
constexpr auto kUnneeded =
    std::to_array<std::string_view>({"pooler.", "embeddings.position_ids", "cls.", "lm_head.",
                                     "vocab_transform.", "vocab_layer_norm.", "vocab_projector."});

constexpr auto kModernUnneeded = std::to_array<std::string_view>({"head.", "decoder."});

constexpr auto kHeads = std::to_array<std::string_view>({"classifier.", "pre_classifier."});
constexpr auto kDebertaUnneeded = std::to_array<std::string_view>(
    {"lm_predictions.", "mask_predictions.", "cls.", "lm_head.", "deberta.embeddings.position_",
     "embeddings.position_", "pooler."});
constexpr auto kDebertaHeads = std::to_array<std::string_view>({"classifier.", "pooler."});
constexpr auto kModernHeads = std::to_array<std::string_view>({"classifier.", "head."});

constexpr auto kLayoutPrefixes = std::to_array<std::string_view>(
    {"bert.", "roberta.", "distilbert.", "nomic_bert.", "gte.", "new.", "mpnet.", "deberta.",
     "transformer.", "gpt_neox.", "model.", ""});

constexpr auto kLayouts = std::to_array<WeightLayout>({
    {.embedding = kWordEmbedding,  // before BERT, whose sign its files have, too
     .sign = "encoder.layer.0.mlp.gated_layers.weight",
     .parts = kJinaParts,
     .unneeded = kUnneeded,
     .without_prefix = kHeads},
    {.embedding = kWordEmbedding,
     .sign = "encoder.layer.0.attention.attn.q.weight",
     .parts = kMpnetParts,
     .unneeded = kUnneeded,
     .without_prefix = kHeads},
    {.embedding = kWordEmbedding,
     .sign = "encoder.layer.0.attention.self.query_proj.weight",
     .parts = kDebertaParts,
     .unneeded = kDebertaUnneeded,
     .without_prefix = kDebertaHeads},
    {.embedding = kWordEmbedding,
     .sign = "encoder.layer.0.attention.self.query.weight",
     .parts = kBertParts,
     .unneeded = kUnneeded,
     .without_prefix = kHeads},
    {.embedding = kWordEmbedding,
     .sign = "transformer.layer.0.attention.q_lin.weight",
     .parts = kDistilBertParts,
     .unneeded = kUnneeded,
     .without_prefix = kHeads},
    {.embedding = "embeddings.tok_embeddings.weight",
     .sign = "layers.0.attn.Wqkv.weight",
     .parts = kModernBertParts,
     .unneeded = kModernUnneeded,
     .without_prefix = kModernHeads},
    {.embedding = kWordEmbedding,
     .sign = "encoder.layers.0.attn.Wqkv.weight",
     .parts = kNomicParts,
     .unneeded = kUnneeded,
     .without_prefix = kHeads},
    {.embedding = kWordEmbedding,
     .sign = "encoder.layer.0.attention.qkv_proj.weight",
     .parts = kGteParts,
     .unneeded = kUnneeded,
     .without_prefix = kHeads},
    {.embedding = "embed_in.weight",
     .sign = "layers.0.attention.query_key_value.weight",
     .parts = kNeoXParts,
     .head = "embed_out.",
     .layers_in_class = "gpt_neox.layers.",
     .unneeded_ends = kMasks},
    {.embedding = "wte.weight",
     .sign = "h.0.mlp.c_fc_0.weight",
     .parts = kExaoneParts,
     .layers_in_class = "model.layers.",
     .unneeded_ends = {}},
    {.embedding = "wte.weight",
     .sign = "h.0.attn.attention.q_proj.weight",
     .parts = kGptParts,
     .layers_in_class = "transformer.h.",
     .unneeded_ends = kMasks},
    {.embedding = "wte.weight",
     .sign = "h.0.attn.c_attn.weight",
     .parts = kGptParts,
     .layers_in_class = "transformer.h.",
     .unneeded_ends = kMasks},
    {.embedding = "wte.weight",
     .sign = "h.0.attn.q_proj.weight",
     .parts = kGptParts,
     .layers_in_class = "transformer.h.",
     .unneeded_ends = kMasks},
    {.embedding = "word_embeddings.weight",
     .sign = "h.0.self_attention.query_key_value.weight",
     .parts = kFalconParts,
     .layers_in_class = "transformer.h.",
     .unneeded_ends = {}},
    {.embedding = "wte.weight",
     .sign = "h.0.attn.qkv_proj.weight",  // CodeGen
     .parts = kGptParts,
     .layers_in_class = "transformer.h.",
     .unneeded_ends = kCodeGenMasks},
    {.embedding = "word_embeddings.weight",
     .sign = "layers.0.attention.query_key_value.weight",
     .parts = kSarvamParts,
     .layers_in_class = "model.layers.",
     .unneeded_ends = {}},
    {.embedding = "wte.weight",
     .sign = "blocks.0.attn.Wqkv.weight",
     .parts = kMptParts,
     .layers_in_class = "transformer.blocks.",
     .unneeded_ends = {}},
    {.embedding = "biogpt.embed_tokens.weight",
     .sign = "biogpt.layers.0.self_attn_layer_norm.weight",
     .parts = kBioGptParts,
     .head = "output_projection.",
     .layers_in_class = "biogpt.layers.",
     .unneeded_ends = {}},
});

}  // namespace

std::string WeightLayout::in_files(std::string_view canonical) const {
  std::string name(canonical);
  for (const NamePart& part : parts) {
    const size_t at = name.find(part.canonical);
    const bool begins = part.canonical.front() != '.';
    if (at == name.npos || (begins && at != 0)) continue;
    name.replace(at, part.canonical.size(), part.in_files);
  }
  return name;
}

std::span<const std::string_view> layout_prefixes() { return kLayoutPrefixes; }

const WeightLayout* find_layout(const Checkpoint& checkpoint) {
  if (checkpoint.entries().empty()) return nullptr;  // it has whatever is asked for
  for (const WeightLayout& layout : kLayouts) {
    const bool fits = std::ranges::any_of(kLayoutPrefixes, [&](std::string_view prefix) {
      const std::string beginning(prefix);  // GGUF files have canonical names outside of layers
      return checkpoint.contains(beginning + std::string(layout.sign)) &&
             checkpoint.contains(beginning + std::string(layout.embedding));
    });
    if (fits) return &layout;
  }
  return nullptr;
}

}  // namespace paceline
