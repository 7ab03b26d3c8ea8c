#include "weights/mxfp4_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/json_cursor.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::string_view kBlocks = "_blocks";
constexpr std::string_view kScales = "_scales";
constexpr int kNaNScale = 255;

std::string with_end(std::string_view name, std::string_view old_end, std::string_view end) {
  return std::string(name.substr(0, name.size() - old_end.size())).append(end);
}

Extents scales_shape_of(const Extents& blocks) { return {blocks[0], blocks[1], blocks[2]}; }

bool are_blocks(const CheckpointEntry& entry) {
  return entry.dtype == DType::u8 && entry.shape.rank() == 4 && entry.name.ends_with(kBlocks);
}

}  // namespace

bool has_mxfp4(const Json& config, std::string_view where) {
  const auto quantization = JsonCursor(config, std::string(where)).find("quantization_config");
  if (!quantization) return false;
  const auto method = quantization->find("quant_method");
  return method && method->string() == "mxfp4";
}

Mxfp4Checkpoint::Mxfp4Checkpoint(Checkpoint& source, Memory& memory, ThreadPool& threads)
    : UnpackingCheckpoint(source, memory, threads) {
  for (const CheckpointEntry& entry : source.entries()) {
    if (are_blocks(entry)) {
      add_stack(entry);
    } else if (entry.dtype != DType::u8 || !entry.name.ends_with(kScales)) {
      entries_.push_back(entry);
    }
  }
  std::ranges::sort(entries_, {}, &CheckpointEntry::name);
}

void Mxfp4Checkpoint::add_stack(const CheckpointEntry& blocks) {
  const auto corrupt = [&](std::string_view tensor, const std::string& what) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {}: {}", origin(), quoted_name(tensor), what));
  };
  const Extents& shape = blocks.shape;
  const Stack stack{.blocks = blocks.name,
                    .scales = with_end(blocks.name, kBlocks, kScales),
                    .blocks_shape = shape};
  const bool has_elements = std::ranges::find(shape, int64_t{0}) == shape.end();
  if (!has_elements || shape[3] != Mxfp4Rows::kBlock / 2) {
    corrupt(blocks.name, fmt::format("has shape {}, expected [experts, rows, blocks, {}]",
                                     to_string(shape), Mxfp4Rows::kBlock / 2));
  }
  const auto scales = std::ranges::find(source_.entries(), stack.scales, &CheckpointEntry::name);
  const Extents expected = scales_shape_of(shape);
  const bool is_there = scales != source_.entries().end();
  if (!is_there || scales->dtype != DType::u8 || !(scales->shape == expected)) {
    corrupt(stack.scales,
            fmt::format("{}, expected {} of uint8 beside {}",
                        is_there ? fmt::format("holds {} of {}", to_string(scales->shape),
                                               dtype_name(scales->dtype))
                                 : "is missing",
                        to_string(expected), quoted_name(blocks.name)));
  }
  const std::string name = with_end(blocks.name, kBlocks, ".weight");
  entries_.push_back({name, DType::bf16, {shape[0], shape[1], shape[2] * Mxfp4Rows::kBlock}});
  stacks_.emplace(name, stack);
}

const Mxfp4Checkpoint::Stack* Mxfp4Checkpoint::find_stack(std::string_view name) const {
  const auto at = stacks_.find(name);
  return at == stacks_.end() ? nullptr : &at->second;
}

bool Mxfp4Checkpoint::contains(std::string_view name) const {
  return find_stack(name) != nullptr || source_.contains(name);
}

std::optional<Extents> Mxfp4Checkpoint::shape_of(std::string_view name) const {
  const Stack* const stack = find_stack(name);
  if (stack == nullptr) return source_.shape_of(name);
  const Extents& blocks = stack->blocks_shape;
  return Extents{blocks[0], blocks[1], blocks[2] * Mxfp4Rows::kBlock};
}

std::shared_ptr<const GroupedRows> Mxfp4Checkpoint::read_grouped(std::string_view name,
                                                                 const Extents& shape) {
  const Stack* const stack = find_stack(name);
  if (stack == nullptr) return source_.read_grouped(name, shape);
  const Extents& stored = stack->blocks_shape;
  if (!(*shape_of(name) == shape)) {
    throw Error(
        ErrorCode::corrupt,
        fmt::format("{}: tensor {} has matrices {}, but config.json needs {}", origin(),
                    quoted_name(stack->blocks), to_string(*shape_of(name)), to_string(shape)));
  }
  const int64_t rows = stored[0] * stored[1];
  const Tensor blocks = source_.read(stack->blocks, stored).reshape({rows, stored[2], stored[3]});
  const Tensor scales =
      source_.read(stack->scales, scales_shape_of(stored)).reshape({rows, stored[2]});
  const auto bytes = scales.bytes();
  if (std::memchr(bytes.data(), kNaNScale, bytes.size()) != nullptr) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: tensor {} has a scale of NaN (255)", origin(),
                                                quoted_name(stack->scales)));
  }
  return std::make_shared<Mxfp4Rows>(Mxfp4Tensors{.blocks = blocks, .scales = scales});
}

Tensor Mxfp4Checkpoint::read_tensor(std::string_view name, const Extents& shape, ReadAs as) {
  if (find_stack(name) == nullptr) return source_.read_tensor(name, shape, as);
  const Tensor* const known = find_copy(name);
  return (known != nullptr ? *known : keep_numbers(name, *read_grouped(name, shape)))
      .reshape(shape);
}

void Mxfp4Checkpoint::release(std::string_view name) {
  const Stack* const stack = find_stack(name);
  if (stack == nullptr) return source_.release(name);
  drop_copy(name);
  source_.release(stack->scales);
  source_.release(stack->blocks);
}

}  // namespace paceline
