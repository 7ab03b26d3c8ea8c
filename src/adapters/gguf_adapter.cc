#include "adapters/gguf_adapter.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "adapters/adapter_reading.h"
#include "adapters/expert_names.h"
#include "base/json_cursor.h"
#include "weights/gguf_checkpoint.h"
#include "weights/gguf_file.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::string_view kGgufA = ".lora_a";
constexpr std::string_view kGgufB = ".lora_b";
constexpr std::string_view kAlphaKey = "adapter.lora.alpha";

[[noreturn]] void refuse(const GgufMetadata& metadata, const std::string& what) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}", metadata.file(), what));
}

void expect_string(const GgufMetadata& metadata, std::string_view key, std::string_view expected) {
  const auto found = metadata.string(key);
  if (found == expected) return;
  refuse(metadata, fmt::format("{}: {}", key,
                               found_instead(found ? shown_text(*found) : "nothing",
                                             fmt::format("\"{}\"", expected))));
}

void check_adapter_metadata(const GgufMetadata& metadata) {
  constexpr std::string_view kInvocationKey = "adapter.alora.invocation_tokens";
  expect_string(metadata, "general.type", "adapter");
  expect_string(metadata, "adapter.type", "lora");
  if (metadata.contains(kInvocationKey)) {
    refuse(metadata, fmt::format("{}: an activated LoRA, which begins in the middle of a prompt, "
                                 "isn't supported",
                                 kInvocationKey));
  }
}

double read_gguf_alpha(const GgufMetadata& metadata) {
  const double alpha = metadata.number(kAlphaKey).value_or(0);
  if (std::abs(alpha) <= std::numeric_limits<float>::max()) return alpha;
  throw Error(ErrorCode::invalid, fmt::format("{}: {}: found {}, expected a finite number",
                                              metadata.file(), kAlphaKey, alpha));
}

// A tensor of the file and what it is.
struct NamedMatrix {
  std::string module;  // without the expert, of a stack
  bool is_stack = false;
  LoraSide side = LoraSide::a;
  GgufTensorName name;  // in the checkpoint
  const GgufTensorInfo* tensor = nullptr;
};

NamedMatrix name_matrix(const GgufFile& file, const GgufTensorInfo& tensor,
                        const AdapterBase& base) {
  const std::string_view name = tensor.name;
  const bool is_a = name.ends_with(kGgufA);
  if (!is_a && !name.ends_with(kGgufB)) {
    refuse(
        file.metadata(),
        fmt::format("tensor {} isn't a LoRA matrix (lora_a or lora_b); whole weights such as norms "
                    "aren't supported",
                    quoted_name(name)));
  }
  if (!plain_dtype(tensor.type) && tensor.type != GgufType::q8_0) {
    refuse(file.metadata(), fmt::format("tensor {} has type {}, expected F32, F16, BF16 or Q8_0",
                                        quoted_name(name), gguf_type_name(tensor.type)));
  }
  const std::string_view weight = name.substr(0, name.size() - kGgufA.size());
  const auto module = base.gguf_module(file.metadata(), weight);
  if (!module) {
    throw Error(ErrorCode::not_found,
                fmt::format("{}: tensor {} adapts {}, which the base model lacks",
                            file.metadata().file(), quoted_name(name), quoted_name(weight)));
  }
  GgufTensorName stored{.name = fmt::format("{}{}", module->module, is_a ? kGgufA : kGgufB),
                        .file_name = tensor.name};
  if (is_a) {
    stored.column_groups = module->column_groups;
  } else {
    stored.interleaved_heads = module->interleaved_heads;
    stored.row_groups = module->row_groups;
  }
  return {.module = module->module,
          .is_stack = module->is_stack,
          .side = is_a ? LoraSide::a : LoraSide::b,
          .name = std::move(stored),
          .tensor = &tensor};
}

// llama.cpp multiplies each row with the matrices of its experts (build_lora_mm_id).
void add_stack(const GgufMetadata& metadata, const NamedMatrix& matrix,
               const StoredLoraMatrix& stack, const AdapterBase& base, PairCollector& collector) {
  const Extents& shape = stack.shape;
  if (shape.rank() != 3 || shape[0] == 0) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {} has shape {}, expected [experts, {}]", metadata.file(),
                            quoted_name(stack.tensor), to_string(shape),
                            matrix.side == LoraSide::a ? "rank, in" : "out, rank"));
  }
  if (base.is_known() && find_module(base, with_expert(matrix.module, shape[0]))) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: tensor {} has {} experts, but the base model has more; was the "
                            "adapter trained on another model?",
                            metadata.file(), quoted_name(stack.tensor), shape[0]));
  }
  int64_t expert = 0;
  for (StoredLoraMatrix& one : matrices_of_stack(stack)) {
    collector.add(with_expert(matrix.module, expert++), matrix.side, std::move(one));
  }
}

}  // namespace

Adapter read_gguf_adapter(const std::filesystem::path& path, const AdapterBase& base,
                          const AdapterLimits& limits, Memory& memory) {
  const auto file = std::make_shared<const GgufFile>(path);
  const GgufMetadata& metadata = file->metadata();
  for (const MappedFile& part : file->files()) {
    check_adapter_bytes(part.path(), part.bytes().size(), limits);
  }
  check_adapter_metadata(metadata);
  if (base.gguf_module == nullptr) {
    refuse(metadata, "an adapter in GGUF can only be read for a base model; name the model");
  }
  const double alpha = read_gguf_alpha(metadata);
  std::vector<NamedMatrix> matrices;
  std::vector<GgufTensorName> names;
  for (const GgufTensorInfo& tensor : file->tensors()) {
    const NamedMatrix& matrix = matrices.emplace_back(name_matrix(*file, tensor, base));
    names.push_back(matrix.name);
  }
  const auto checkpoint = make_gguf_checkpoint(file, std::move(names), memory);
  PairCollector collector(metadata.file(), base, limits);
  for (const NamedMatrix& matrix : matrices) {
    const Extents shape = matrix.tensor->extents;
    const Tensor view = checkpoint->read(matrix.name.name, shape);
    StoredLoraMatrix stored{.tensor = matrix.tensor->name,
                            .dtype = view.dtype(),
                            .shape = shape,
                            .bytes = view.bytes()};
    if (matrix.is_stack) {
      add_stack(metadata, matrix, stored, base, collector);
    } else {
      collector.add(matrix.module, matrix.side, std::move(stored));
    }
  }
  std::vector<LoraPair> pairs;
  for (const auto& [module, parts] : collector.finish()) {
    LoraPair pair = read_pair(metadata.file(), module, parts, memory);
    const auto rank = static_cast<double>(pair.rank());
    set_scale(metadata.file(), pair, alpha == 0 ? rank : alpha, alpha == 0 ? 1 : alpha / rank);
    pairs.push_back(std::move(pair));
  }
  return Adapter(std::string(metadata.string("general.base_model.0.name").value_or("")),
                 std::move(pairs));
}

}  // namespace paceline
