#include "weights/mlx_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::string_view kWeight = ".weight";

const CheckpointEntry* find_in(const std::vector<CheckpointEntry>& entries, std::string_view name) {
  const auto at = std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const CheckpointEntry& entry, std::string_view key) { return entry.name < key; });
  return at == entries.end() || at->name != name ? nullptr : &*at;
}

// A packed weight and its format in config.json, for messages.
struct TensorSource {
  std::string origin;
  std::string_view weight;
  AffineFormat format = {};

  [[noreturn]] void corrupt(std::string_view tensor, const std::string& what) const {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {}: {}", origin, quoted_name(tensor), what));
  }
  std::string format_text() const {
    return fmt::format("{} bits in groups of {}", format.bits, format.group_size);
  }
};

int64_t last_of(const Extents& shape) { return shape[shape.rank() - 1]; }

Extents with_last(Extents shape, int64_t size) {
  shape[shape.rank() - 1] = size;
  return shape;
}

// Of all its rows.
Tensor as_matrix(const Tensor& stack) {
  return stack.reshape({stack.num_elements() / stack.size(-1), stack.size(-1)});
}

// The length of a row of packed words, from the words alone.
int64_t row_length_of(const CheckpointEntry& weight, const TensorSource& place) {
  const Extents& shape = weight.shape;
  const bool has_elements = std::ranges::find(shape, int64_t{0}) == shape.end();
  if ((shape.rank() != 2 && shape.rank() != 3) || !has_elements) {
    place.corrupt(weight.name, fmt::format("packed words of shape {}, expected [rows, words]",
                                           to_string(shape)));
  }
  const int64_t row_bits = last_of(shape) * 32;  // the file holds them: no overflow
  const int64_t length = row_bits / place.format.bits;
  if (row_bits % place.format.bits != 0 || length % place.format.group_size != 0) {
    place.corrupt(weight.name, fmt::format("rows of {} words, expected whole groups ({})",
                                           last_of(shape), place.format_text()));
  }
  return length;
}

void check_part(const CheckpointEntry* part, const std::string& name, const Extents& expected,
                const TensorSource& place) {
  if (part == nullptr) {
    place.corrupt(name,
                  fmt::format("is missing, and the packed {} needs it", quoted_name(place.weight)));
  }
  if (!is_float(part->dtype)) {
    place.corrupt(name, fmt::format("holds {}, expected float32, float16 or bfloat16",
                                    dtype_name(part->dtype)));
  }
  if (!(part->shape == expected)) {
    place.corrupt(name,
                  fmt::format("has shape {}, expected {} beside {} ({})", to_string(part->shape),
                              to_string(expected), quoted_name(place.weight), place.format_text()));
  }
}

}  // namespace

MlxCheckpoint::MlxCheckpoint(Checkpoint& source, const MlxQuantization& quantization,
                             Memory& memory, ThreadPool& threads)
    : UnpackingCheckpoint(source, memory, threads) {
  entries_ = source.entries();
  std::set<std::string_view> parts;  // of packed matrices: not shown
  for (CheckpointEntry& entry : entries_) {
    if (!entry.name.ends_with(kWeight)) continue;
    const std::string module = entry.name.substr(0, entry.name.size() - kWeight.size());
    const auto* const scales = find_in(source.entries(), module + ".scales");
    if (entry.dtype != DType::u32) {
      if (scales == nullptr) continue;
      TensorSource{origin(), entry.name}.corrupt(
          entry.name, fmt::format("holds {}, expected packed uint32 beside {}",
                                  dtype_name(entry.dtype), quoted_name(scales->name)));
    }
    const Matrix& matrix = matrices_[entry.name] = matrix_of(entry, module, quantization);
    parts.insert({matrix.scales, matrix.biases});
    entry.dtype = scales->dtype;
    entry.shape = with_last(entry.shape, last_of(matrix.scales_shape) * matrix.format.group_size);
  }
  std::erase_if(entries_, [&](const CheckpointEntry& entry) { return parts.contains(entry.name); });
}

MlxCheckpoint::Matrix MlxCheckpoint::matrix_of(const CheckpointEntry& weight,
                                               const std::string& module,
                                               const MlxQuantization& quantization) const {
  TensorSource place{.origin = origin(), .weight = weight.name};
  const auto format = quantization.format_of(module);
  if (!format) {
    place.corrupt(weight.name,
                  "holds packed uint32, but is not quantised according to config.json");
  }
  place.format = *format;
  Matrix matrix{
      .format = *format,
      .scales = module + ".scales",
      .biases = module + ".biases",
      .words_shape = weight.shape,
      .scales_shape = with_last(weight.shape, row_length_of(weight, place) / format->group_size)};
  const auto* const scales = find_in(source_.entries(), matrix.scales);
  const auto* const biases = find_in(source_.entries(), matrix.biases);
  check_part(scales, matrix.scales, matrix.scales_shape, place);
  check_part(biases, matrix.biases, matrix.scales_shape, place);
  if (biases->dtype != scales->dtype) {
    place.corrupt(matrix.biases, fmt::format("holds {}, expected {} as the scales",
                                             dtype_name(biases->dtype), dtype_name(scales->dtype)));
  }
  return matrix;
}

const CheckpointEntry* MlxCheckpoint::find_entry(std::string_view name) const {
  return find_in(entries_, name);
}

std::optional<Extents> MlxCheckpoint::shape_of(std::string_view name) const {
  const CheckpointEntry* const entry = find_entry(name);
  return entry == nullptr ? std::nullopt : std::optional(entry->shape);
}

// Null for a name that isn't a packed matrix.
const MlxCheckpoint::Matrix* MlxCheckpoint::find_matrix(std::string_view name,
                                                        const Extents& shape) const {
  const auto at = matrices_.find(name);
  if (at == matrices_.end()) return nullptr;
  const Extents& found = find_entry(name)->shape;
  if (!(found == shape)) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {} has shape {}, but config.json needs {}", origin(),
                            quoted_name(name), to_string(found), to_string(shape)));
  }
  return &at->second;
}

AffineRows MlxCheckpoint::rows_of(std::string_view name, const Matrix& matrix) {
  return AffineRows({.words = as_matrix(source_.read(name, matrix.words_shape)),
                     .scales = as_matrix(source_.read(matrix.scales, matrix.scales_shape)),
                     .biases = as_matrix(source_.read(matrix.biases, matrix.scales_shape))},
                    matrix.format);
}

Tensor MlxCheckpoint::read_tensor(std::string_view name, const Extents& shape, ReadAs as) {
  const Matrix* const matrix = find_matrix(name, shape);
  if (matrix == nullptr) return source_.read_tensor(name, shape, as);
  const Tensor* const known = find_copy(name);
  return (known != nullptr ? *known : keep_numbers(name, rows_of(name, *matrix))).reshape(shape);
}

std::shared_ptr<const GroupedRows> MlxCheckpoint::read_grouped(std::string_view name,
                                                               const Extents& shape) {
  const Matrix* const matrix = find_matrix(name, shape);
  if (matrix == nullptr) return source_.read_grouped(name, shape);
  return std::make_shared<AffineRows>(rows_of(name, *matrix));
}

void MlxCheckpoint::release(std::string_view name) {
  drop_copy(name);
  if (const auto at = matrices_.find(name); at != matrices_.end()) {
    source_.release(at->second.scales);
    source_.release(at->second.biases);
  }
  source_.release(name);
}

}  // namespace paceline
