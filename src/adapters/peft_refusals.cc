#include "adapters/peft_refusals.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline {
namespace {

// A field of peft's LoraConfig that must have its default.
struct RefusedField {
  std::string_view key;
  std::string_view why;  // "isn't supported: ..."
};

constexpr RefusedField kRefusedFields[] = {
    {"use_dora", "DoRA scales the columns of the changed weight"},
    {"modules_to_save", "it replaces whole modules of the base; merge them into the base first"},
    {"lora_bias", "it adds a bias behind B"},
    {"trainable_token_indices", "it replaces rows of the embedding"},
    {"alora_invocation_tokens", "an activated LoRA begins in the middle of a prompt"},
    {"megatron_config", "it shards the pairs for Megatron"},
    {"layer_replication", "it repeats layers of the base"},
    {"use_qalora", "QA-LoRA pools the inputs of A"},
    {"use_bdlora", "BD-LoRA's matrices are block-diagonal"},
    {"arrow_config", "Arrow chooses among adapters token by token"},
    {"kasa_config", "KaSA changes the weights of the base"},
    {"velora_config", "this variant of LoRA isn't known"},
    {"monteclora_config", "MonteCLoRA draws the weights at random"},
};

// The initialisations of peft/tuners/lora/layer.py that subtract the first B A from the base.
constexpr std::string_view kBaseChanging[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};

// Those that leave the base alone: with them an adapter is read like any other.
constexpr std::string_view kPlainStarts[] = {"gaussian", "eva", "orthogonal", "mica"};

bool is_default(const JsonCursor& field) {
  if (field.is_null()) return true;
  if (field.is_bool()) return !field.boolean();
  if (field.is_array()) return field.num_items() == 0;
  return field.is_object() && field.members().empty();
}

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

[[noreturn]] void refuse(const JsonCursor& field, std::string_view why) {
  field.fail(ErrorCode::unsupported, fmt::format("isn't supported: {}", why));
}

void check_method(const JsonCursor& config) {
  const JsonCursor type = config.at("peft_type");
  if (type.string() != "LORA") {
    type.fail(ErrorCode::unsupported, found_instead(shown_text(type.string()), "\"LORA\""));
  }
  const auto bias = config.find("bias");
  if (bias && bias->string() != "none") {
    bias->fail(ErrorCode::unsupported,
               fmt::format("{}: it replaces biases of the base",
                           found_instead(shown_text(bias->string()), "\"none\"")));
  }
}

void check_initialisation(const JsonCursor& config) {
  const auto field = config.find("init_lora_weights");
  if (!field || field->is_bool()) return;
  const std::string name = lowered(field->string());
  if (std::ranges::find(kPlainStarts, name) != std::end(kPlainStarts)) return;
  const bool changes_base = std::ranges::any_of(
      kBaseChanging, [&](std::string_view known) { return name.starts_with(known); });
  if (changes_base) {
    field->fail(ErrorCode::unsupported,
                fmt::format("{} changed the base's weights before training, so the adapter doesn't "
                            "fit the original base; convert it with save_pretrained(..., "
                            "path_initial_model_for_weight_conversion=...)",
                            shown_text(field->string())));
  }
  field->fail(
      ErrorCode::unsupported,
      fmt::format("{}; if this initialisation leaves the base's weights alone, "
                  "set it to true",
                  found_instead(shown_text(field->string()),
                                "true, false, \"gaussian\", \"eva\", \"orthogonal\" or \"mica\"")));
}

}  // namespace

void refuse_unsupported_peft(const JsonCursor& config) {
  check_method(config);
  for (const auto& [key, why] : kRefusedFields) {
    const auto field = config.find(key);
    if (field && !is_default(*field)) refuse(*field, why);
  }
  check_initialisation(config);
}

std::string why_refused_peft_tensor(std::string_view tensor) {
  struct NamedReason {
    std::string_view part;
    std::string_view reason;
  };
  constexpr std::string_view kWholeTable =
      "is a whole weight of the base, which isn't supported; if the vocabulary wasn't resized, "
      "save "
      "the adapter with save_pretrained(..., save_embedding_layers=False)";
  constexpr NamedReason kReasons[] = {
      {"lora_magnitude_vector", "belongs to DoRA, which isn't supported"},
      {"lora_embedding_", "adapts an embedding, which isn't supported"},
      {"modules_to_save", "replaces a whole module of the base, which isn't supported"},
      {"trainable_tokens", "replaces rows of the embedding, which isn't supported"},
      {"embed_tokens.base_layer.", "belongs to an adapted embedding, which isn't supported"},
      {".base_layer.weight",
       "is a copy of the base's weight, which PEFT writes beside the pair of a head; save the "
       "adapter "
       "with save_pretrained(..., save_embedding_layers=False)"},
      {"embed_tokens.weight", kWholeTable},
      {"lm_head.weight", kWholeTable},
      {".lora_A.", "isn't the weight of A; a bias (lora_bias) isn't supported"},
      {".lora_B.", "isn't the weight of B; a bias (lora_bias) isn't supported"},
  };
  for (const auto& [part, reason] : kReasons) {
    if (tensor.find(part) != tensor.npos) return std::string(reason);
  }
  return "isn't a LoRA matrix (lora_A.weight or lora_B.weight); whole weights of the base "
         "(modules_to_save, resized embeddings) aren't supported";
}

}  // namespace paceline
