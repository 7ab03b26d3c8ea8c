#include "load/gguf_tensor_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "weights/gguf_quantizer.h"
#include "weights/mlx_recipe.h"
#include "weights/quoted_name.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

constexpr std::string_view kModel = "model.";

struct NamedFileType {
  std::string_view name;
  GgufFileType type;
  uint32_t number;
  GgufType matrices;  // of most of them
};
constexpr NamedFileType kFileTypes[] = {{"f32", GgufFileType::f32, 0, GgufType::f32},
                                        {"f16", GgufFileType::f16, 1, GgufType::f16},
                                        {"bf16", GgufFileType::bf16, 32, GgufType::bf16},
                                        {"q8_0", GgufFileType::q8_0, 7, GgufType::q8_0},
                                        {"q4_0", GgufFileType::q4_0, 2, GgufType::q4_0},
                                        {"q4_k_m", GgufFileType::q4_k_m, 15, GgufType::q4_k}};

const NamedFileType& named(GgufFileType type) {
  return *std::ranges::find(kFileTypes, type, &NamedFileType::type);
}

bool is_quantised(GgufFileType type) {
  return type == GgufFileType::q8_0 || type == GgufFileType::q4_0 || type == GgufFileType::q4_k_m;
}

GgufType plain_type(DType dtype) {
  if (dtype == DType::bf16) return GgufType::bf16;
  return dtype == DType::f16 ? GgufType::f16 : GgufType::f32;
}

// Whether the file's tensor is a matrix, or a stack of some, whose type may be chosen.
bool is_matrix(const PlannedGgufTensor& tensor) {
  return tensor.extents.rank() >= 2 && tensor.name.file_name.ends_with(".weight") &&
         !tensor.name.file_name.ends_with("_norm.weight") && !tensor.name.is_kernel &&
         !tensor.name.is_vector;
}

bool mentions(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

bool is_expert_router(std::string_view name) { return mentions(name, "ffn_gate_inp."); }

// Null when there is none; a source may have names beside its entries.
const CheckpointEntry* entry_named(const Checkpoint& weights, std::string_view name) {
  const auto at = std::ranges::lower_bound(weights.entries(), name, {}, &CheckpointEntry::name);
  return at == weights.entries().end() || at->name != name ? nullptr : &*at;
}

// Chooses types as llama.cpp's llama-quantize does (llama-quant.cpp), tensor by tensor.
class TypeChooser {
 public:
  TypeChooser(GgufFileType type, const DecoderConfig& config,
              std::span<const PlannedGgufTensor> all)
      : type_(type),
        config_(config),
        num_experts_(config.mixture ? config.mixture->routing.num_experts : 0) {
    for (const PlannedGgufTensor& tensor : all) {
      const std::string& name = tensor.name.file_name;
      has_output_ |= name == "output.weight";
      num_values_ += is_value(name) ? 1 : 0;
    }
  }

  GgufType choose(const PlannedGgufTensor& tensor, DType stored) {
    if (!is_matrix(tensor)) return GgufType::f32;
    if (type_ == GgufFileType::as_stored) return plain_type(stored);
    if (!is_quantised(type_)) return named(type_).matrices;
    if (is_expert_router(tensor.name.file_name)) return plain_type(stored);
    return fitting(of_matrix(tensor), tensor.extents[tensor.extents.rank() - 1]);
  }

 private:
  static bool is_value(std::string_view name) {
    return mentions(name, "attn_v.weight") || mentions(name, "attn_qkv.weight") ||
           mentions(name, "attn_kv_b.weight");
  }

  // A type whose blocks divide the rows.
  static GgufType fitting(GgufType type, int64_t length) {
    constexpr std::pair<GgufType, GgufType> kSmaller[] = {{GgufType::q4_k, GgufType::q5_0},
                                                          {GgufType::q5_k, GgufType::q5_1},
                                                          {GgufType::q6_k, GgufType::q8_0}};
    const auto divides = [length](GgufType one) {
      return static_cast<uint64_t>(length) % layout_of(one).block_elements == 0;
    };
    if (divides(type)) return type;
    for (const auto& [large, small] : kSmaller) {
      if (large == type && divides(small)) return small;
    }
    return GgufType::f16;
  }

  GgufType of_head(int64_t length) const {
    const GgufType usual = named(type_).matrices;
    const bool divides = static_cast<uint64_t>(length) % layout_of(usual).block_elements == 0;
    return usual == GgufType::q8_0 || !divides ? GgufType::q8_0 : GgufType::q6_k;
  }

  // Counts the tensors of its kind before it, as the layers where every one has such a tensor.
  GgufType of_matrix(const PlannedGgufTensor& tensor) {
    constexpr int64_t kEightExperts = 8;
    const std::string_view name = tensor.name.file_name;
    const int64_t length = tensor.extents[tensor.extents.rank() - 1];
    if (name == "output.weight" || (name == "token_embd.weight" && !has_output_)) {
      return of_head(length);
    }
    const GgufType usual = named(type_).matrices;
    const bool is_mixed = type_ == GgufFileType::q4_k_m;
    if (is_value(name)) {
      const bool more = is_mixed && is_sensitive_layer(values_seen_++, num_values_);
      if (num_experts_ == kEightExperts) return GgufType::q8_0;
      if (more) return GgufType::q6_k;
      return is_mixed && is_of_70b() ? GgufType::q5_k : usual;
    }
    if (mentions(name, "attn_k.weight") && num_experts_ == kEightExperts) return GgufType::q8_0;
    if (mentions(name, "ffn_down")) {
      const int64_t layer = num_experts_ > 1 ? layer_of(name).value_or(0)
                                             : std::exchange(downs_seen_, downs_seen_ + 1);
      return is_mixed && is_sensitive_layer(layer, config_.num_stored_layers()) ? GgufType::q6_k
                                                                                : usual;
    }
    const bool is_output = mentions(name, "attn_output.weight");
    return is_output && is_mixed && num_experts_ == kEightExperts ? GgufType::q5_k : usual;
  }

  // llama.cpp takes models of 80 layers with grouped queries to be Llama 2 70B's kind.
  bool is_of_70b() const {
    constexpr int64_t kLayers = 80;
    return config_.num_stored_layers() == kLayers && config_.num_heads != config_.num_kv_heads;
  }

  GgufFileType type_;
  const DecoderConfig& config_;
  int64_t num_experts_;
  bool has_output_ = false;
  int64_t num_values_ = 0, values_seen_ = 0, downs_seen_ = 0;
};

// Finds the tensors of a checkpoint that are a file's.
class SourceFinder {
 public:
  SourceFinder(Checkpoint& weights, const DecoderConfig& config,
               const GgufArchitecture& architecture)
      : weights_(weights), reader_(weights), config_(config), architecture_(architecture) {}

  // Empty when the checkpoint has none of them left.
  std::vector<GgufPart> find(std::string_view name) {
    std::string_view canonical = name;
    if (canonical.starts_with(kModel)) canonical.remove_prefix(kModel.size());
    std::vector<GgufPart> parts;
    for (const std::string& candidate :
         {std::string(canonical), transformers_name(architecture_, canonical),
          in_mixture(std::string(canonical))}) {
      if (parts.empty()) parts = find_whole(candidate);
      if (parts.empty()) parts = find_stack(candidate);
    }
    if (parts.empty()) parts = find_half(canonical);
    return parts;
  }

  // Throws Error unsupported naming tensors that a file lacks.
  void expect_all_found() const {
    for (const CheckpointEntry& entry : weights_.entries()) {
      if (found_.contains(entry.name) || is_unneeded(entry.name)) continue;
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: tensor {} has no name in GGUF files of architecture {}",
                              weights_.origin(), quoted_name(entry.name), architecture_.name));
    }
  }

 private:
  bool is_unneeded(std::string_view name) const {
    const auto layer = layer_of(name);
    return mentions(name, "rotary_emb.inv_freq") || is_outside_the_decoder(name) ||
           (layer && *layer >= config_.num_stored_layers());
  }

  // With the names of the config's mixtures.
  std::string in_mixture(std::string name) const {
    if (!config_.mixture) return name;
    const MixtureNames& names = config_.mixture->names;
    const std::pair<std::string_view, std::string> parts[] = {
        {"mlp.gate.e_score_correction_bias", names.choice_bias},
        {"mlp.gate.weight", names.router + ".weight"},
        {"mlp.experts.", names.experts + "."},
        {"mlp.shared_expert.", names.shared + "."}};
    for (const auto& [usual, own] : parts) {
      const size_t at = name.find(usual);
      if (at != name.npos) return name.replace(at, usual.size(), own);
    }
    return name;
  }

  std::vector<GgufPart> find_whole(std::string_view candidate) {
    const std::string name = reader_.file_name(candidate);
    const CheckpointEntry* const entry = entry_named(weights_, name);
    if (entry == nullptr || !found_.insert(name).second) return {};
    return {part(name, entry->shape)};
  }

  static GgufPart part(const std::string& name, const Extents& shape) {
    const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
    int64_t length = 1;
    for (int i = 1; i < shape.rank(); ++i) length *= shape[i];
    return {.name = name, .shape = shape, .num_rows = rows, .row_length = length};
  }

  // Parts that the checkpoint has one by one.
  std::vector<GgufPart> find_stack(const std::string& candidate) {
    std::vector<GgufPart> parts;
    for (const std::string_view group : {".experts.", "_layernorm.norms."}) {
      const size_t at = candidate.find(group);
      if (at == candidate.npos) continue;
      const size_t end = at + group.size();
      while (true) {
        auto one = find_whole(
            fmt::format("{}{}.{}", candidate.substr(0, end), parts.size(), candidate.substr(end)));
        if (one.empty()) break;
        if (!parts.empty() && !(one[0].shape == parts[0].shape)) {
          throw Error(ErrorCode::corrupt,
                      fmt::format("{}: tensor {} has shape {}, expected {} as of the first one",
                                  weights_.origin(), quoted_name(one[0].name),
                                  to_string(one[0].shape), to_string(parts[0].shape)));
        }
        parts.push_back(std::move(one[0]));
      }
      return parts;
    }
    return parts;
  }

  // Gate or up of a shared expert whose files have both as one matrix.
  std::vector<GgufPart> find_half(std::string_view canonical) {
    if (!config_.mixture || !config_.mixture->names.fused_shared) return {};
    const bool is_gate = mentions(canonical, ".shared_expert.gate_proj.weight");
    if (!is_gate && !mentions(canonical, ".shared_expert.up_proj.weight") &&
        !mentions(canonical, ".shared_expert.down_proj.weight")) {
      return {};
    }
    const MixtureNames& names = config_.mixture->names;
    const std::string layer(canonical.substr(0, canonical.find(".mlp.") + 1));
    const bool is_down = mentions(canonical, "down_proj");
    const std::string name = reader_.file_name(
        fmt::format("{}{}.{}.weight", layer, names.shared,
                    is_down ? names.fused_shared->down : names.fused_shared->gate_up));
    const CheckpointEntry* const entry = entry_named(weights_, name);
    if (entry == nullptr || entry->shape.rank() != 2) return {};
    found_.insert(name);
    GgufPart half = part(name, entry->shape);
    if (is_down) return {half};
    half.num_rows /= 2;
    half.first_row = is_gate ? 0 : half.num_rows;
    return {half};
  }

  Checkpoint& weights_;
  WeightReader reader_;
  const DecoderConfig& config_;
  const GgufArchitecture& architecture_;
  std::set<std::string, std::less<>> found_;
};

// The file's shape.
Extents extents_of(const GgufTensorName& name, const std::vector<GgufPart>& parts) {
  const GgufPart& first = parts.front();
  std::vector<int64_t> extents;
  if (parts.size() > 1 || mentions(name.file_name, "_exps.")) {
    extents.push_back(std::ssize(parts));
  } else if (mentions(name.name, "_layernorm.norms.")) {
    extents.push_back(std::ssize(parts));
  }
  const bool is_row = name.is_row && first.num_rows == 1;
  if (!is_row) extents.push_back(first.num_rows);
  if (first.shape.rank() > 1) extents.push_back(first.row_length);
  return Extents(extents);
}

// What is left to do to the checkpoint's numbers, which may be a GGUF file's.
GgufForm form_of(const GgufTensorName& name, const GgufPart& part,
                 const GgufArchitecture& architecture, const DecoderConfig& config) {
  const GgufForm form = gguf_form(architecture, name.name);
  const bool is_done = form == GgufForm::rate ? part.name.ends_with(kGgufDecayRates)
                                              : config.norm_weight_offset == 0.0f;
  return is_done ? GgufForm::same : form;
}

GgufSizes sizes_of(const DecoderConfig& config, const GgufArchitecture& architecture) {
  GgufSizes sizes{.heads = {config.num_heads, config.num_kv_heads}, .delta_net = {}};
  if (!architecture.value_heads_in_turns || !config.delta_net) return sizes;
  const DeltaNetConfig& net = *config.delta_net;
  sizes.delta_net = {net.key_heads, net.value_heads, net.key_dim, net.value_dim};
  return sizes;
}

}  // namespace

std::optional<GgufFileType> parse_gguf_file_type(std::string_view name) {
  std::string small(name);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto* const found = std::ranges::find(kFileTypes, small, &NamedFileType::name);
  return found == std::end(kFileTypes) ? std::nullopt : std::optional(found->type);
}

uint32_t gguf_file_type_number(GgufFileType type, DType stored) {
  if (type != GgufFileType::as_stored) return named(type).number;
  return std::ranges::find(kFileTypes, plain_type(stored), &NamedFileType::matrices)->number;
}

GgufTensorPlan plan_gguf_tensors(Checkpoint& weights, const DecoderConfig& config,
                                 const GgufArchitecture& architecture, GgufFileType type) {
  SourceFinder finder(weights, config, architecture);
  const GgufSizes sizes = sizes_of(config, architecture);
  GgufTensorPlan plan;
  for (const std::string& file_name : gguf_tensor_names(architecture, config.num_stored_layers())) {
    auto name = gguf_tensor_name(architecture, sizes, file_name);
    if (!name) continue;
    std::vector<GgufPart> parts = finder.find(name->name);
    if (parts.empty()) continue;
    PlannedGgufTensor tensor;
    tensor.form = form_of(*name, parts.front(), architecture, config);
    tensor.extents = extents_of(*name, parts);
    tensor.name = std::move(*name);
    tensor.parts = std::move(parts);
    plan.tensors.push_back(std::move(tensor));
  }
  finder.expect_all_found();
  TypeChooser types(type, config, plan.tensors);
  for (PlannedGgufTensor& tensor : plan.tensors) {
    const CheckpointEntry& entry = *entry_named(weights, tensor.parts.front().name);
    tensor.type = types.choose(tensor, entry.dtype);
    for (const GgufPart& part : tensor.parts) {
      const int64_t elements = part.num_rows * part.row_length;
      plan.sizes.parameters += elements;
      if (!plain_dtype(tensor.type)) plan.sizes.quantized_parameters += elements;
      plan.sizes.bytes_before += static_cast<uint64_t>(elements) * dtype_bytes(entry.dtype);
    }
    ++plan.sizes.num_tensors;
  }
  return plan;
}

}  // namespace paceline
