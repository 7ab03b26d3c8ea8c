#include "weights/gguf_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "weights/gguf_rows.h"
#include "weights/quoted_name.h"
#include "weights/reordered_columns.h"

namespace paceline {
namespace {

// An entry's tensor in the file; parallel to the entries.
struct Source {
  const GgufTensorInfo* tensor = nullptr;
  const GgufTensorInfo* multipliers = nullptr;
  GgufRowOrder order;
  std::optional<GgufHeadGroups> columns;  // null: as in the file
  bool is_reordered = false;
  std::optional<float> number;  // without a tensor
};

// Copies a row of elements of `size` bytes, in the matrix's order of columns.
void copy_row(const std::byte* from, std::byte* to, size_t row_bytes, size_t size,
              const std::optional<GgufHeadGroups>& columns) {
  if (!columns) {
    std::memcpy(to, from, row_bytes);
    return;
  }
  columns->for_each_run([&](int64_t column, int64_t in_file, int64_t count) {
    std::memcpy(to + static_cast<size_t>(column) * size, from + static_cast<size_t>(in_file) * size,
                static_cast<size_t>(count) * size);
  });
}

// The shape that a name gives to the file's tensor.
Extents shape_in_checkpoint(const GgufTensorName& name, const Extents& extents) {
  if (name.is_row && extents.rank() == 1) return {1, extents[0]};
  if (name.is_vector && extents.rank() == 2) return {extents[0] * extents[1]};
  if (name.is_kernel && extents.rank() == 2) return {extents[0], 1, extents[1]};
  // Kimi's have sizes of 1 around these.
  if (extents.rank() != 4 || extents[0] != 1) return extents;
  if (name.is_vector && extents[1] == 1 && extents[3] == 1) return {extents[2]};
  if (name.is_kernel && extents[2] == 1) return {extents[1], 1, extents[3]};
  return extents;
}

// Not thread-safe.
class GgufCheckpoint : public Checkpoint {
 public:
  GgufCheckpoint(std::shared_ptr<const GgufFile> file, std::vector<GgufTensorName> names,
                 Memory& memory);

  std::string origin() const override { return file_->path().string(); }
  std::span<const MappedFile> files() const override { return file_->files(); }
  const std::vector<CheckpointEntry>& entries() const override { return entries_; }
  bool contains(std::string_view name) const override { return find(name).has_value(); }
  std::optional<Extents> shape_of(std::string_view name) const override;
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override;
  void release(std::string_view name) override;

 private:
  void add(GgufTensorName&& name);
  void add_number(GgufTensorName&& name);
  std::string name_in_file(size_t index) const {
    const GgufTensorInfo* const tensor = sources_[index].tensor;
    return quoted_name(tensor == nullptr ? entries_[index].name : tensor->name);
  }
  void set_order(const GgufTensorName& name, Source& source) const;
  void set_multipliers(const GgufTensorName& name, Source& source) const;
  [[noreturn]] void fail(ErrorCode code, std::string_view name, const std::string& what) const;
  std::optional<size_t> find(std::string_view name) const;
  size_t find(std::string_view name, const Extents& shape) const;
  Buffer copy_of(const Source& source) const;

  std::shared_ptr<const GgufFile> file_;
  Memory& memory_;
  std::vector<CheckpointEntry> entries_;  // sorted by name
  std::vector<Source> sources_;
  // Dequantised tensors and reordered rows, by the index of their entry.
  std::unordered_map<size_t, Buffer> copies_;
};

GgufCheckpoint::GgufCheckpoint(std::shared_ptr<const GgufFile> file,
                               std::vector<GgufTensorName> names, Memory& memory)
    : file_(std::move(file)), memory_(memory) {
  std::ranges::sort(names, {}, &GgufTensorName::name);
  for (GgufTensorName& name : names) add(std::move(name));
}

void GgufCheckpoint::add_number(GgufTensorName&& name) {
  if (!entries_.empty() && entries_.back().name == name.name) {
    fail(ErrorCode::corrupt, name.name, "is both a tensor and a number of the metadata");
  }
  const Extents shape = name.has_no_dimension ? Extents{} : Extents{1};
  entries_.push_back({.name = std::move(name.name), .dtype = DType::f32, .shape = shape});
  sources_.push_back({.tensor = nullptr, .number = name.number});
}

void GgufCheckpoint::add(GgufTensorName&& name) {
  if (name.number) return add_number(std::move(name));
  const GgufTensorInfo* tensor = file_->find_tensor(name.file_name);
  if (tensor == nullptr) fail(ErrorCode::not_found, name.file_name, "is missing");
  if (!entries_.empty() && entries_.back().name == name.name) {
    fail(ErrorCode::corrupt, name.file_name,
         fmt::format("and {} both are {}", name_in_file(entries_.size() - 1),
                     quoted_name(name.name)));
  }
  Source source{.tensor = tensor};
  set_order(name, source);
  set_multipliers(name, source);
  const Extents shape = shape_in_checkpoint(name, tensor->extents);
  entries_.push_back({.name = std::move(name.name),
                      .dtype = plain_dtype(tensor->type).value_or(DType::f32),
                      .shape = shape});
  sources_.push_back(source);
}

void GgufCheckpoint::set_order(const GgufTensorName& name, Source& source) const {
  const Extents& extents = source.tensor->extents;
  const int64_t rows = extents.rank() == 0 ? 0 : extents[0];
  if (const int64_t heads = name.interleaved_heads; heads != 0) {
    if (heads < 0 || heads > rows / 2 || rows % (2 * heads) != 0) {
      fail(ErrorCode::corrupt, name.file_name,
           fmt::format("has shape {}, whose rows don't divide into {} heads of an even size",
                       to_string(extents), heads));
    }
    source.order = GgufRowOrder(rows, heads);
    source.is_reordered = true;
  }
  const auto check = [&](const GgufHeadGroups& groups, int64_t found, std::string_view what) {
    if (found == groups.num_rows()) return;
    fail(ErrorCode::corrupt, name.file_name,
         fmt::format("has shape {}, whose {} aren't {} heads of {} behind {} others",
                     to_string(extents), what, groups.heads, groups.size, groups.first));
  };
  if (name.row_groups) {
    check(*name.row_groups, rows, "rows");
    source.order = GgufRowOrder(*name.row_groups);
    source.is_reordered = true;
  }
  if (name.column_groups) {
    check(*name.column_groups, extents.rank() == 2 ? extents[1] : 0, "columns");
    source.columns = name.column_groups;
    source.is_reordered = true;
  }
}

void GgufCheckpoint::set_multipliers(const GgufTensorName& name, Source& source) const {
  if (name.multipliers.empty()) return;
  const GgufTensorInfo* const found = file_->find_tensor(name.multipliers);
  if (found == nullptr) fail(ErrorCode::not_found, name.multipliers, "is missing");
  const Extents& extents = source.tensor->extents;
  const bool is_one = found->extents == Extents{1};
  const bool is_of_stack = extents.rank() == 3 && found->extents == Extents{extents[0]};
  if (found->type != GgufType::f32 || (!is_one && !is_of_stack)) {
    fail(ErrorCode::corrupt, name.multipliers,
         fmt::format("holds {} of {}, expected [1] of F32, or one for each matrix of {} {}",
                     to_string(found->extents), gguf_type_name(found->type),
                     quoted_name(name.file_name), to_string(extents)));
  }
  const auto* const values = reinterpret_cast<const float*>(found->bytes.data());  // aligned
  for (int64_t i = 0; i < found->extents[0]; ++i) {
    if (std::isfinite(values[i])) continue;
    fail(ErrorCode::corrupt, name.multipliers, "has a scale that isn't a finite number");
  }
  source.multipliers = found;
}

void GgufCheckpoint::fail(ErrorCode code, std::string_view name, const std::string& what) const {
  throw Error(code, fmt::format("{}: tensor {} {}", origin(), quoted_name(name), what));
}

std::optional<size_t> GgufCheckpoint::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(entries_, name, {}, &CheckpointEntry::name);
  if (at == entries_.end() || at->name != name) return std::nullopt;
  return static_cast<size_t>(at - entries_.begin());
}

size_t GgufCheckpoint::find(std::string_view name, const Extents& shape) const {
  const auto index = find(name);
  if (!index) fail(ErrorCode::not_found, name, fmt::format("{} is missing", to_string(shape)));
  if (!(entries_[*index].shape == shape)) {
    const GgufTensorInfo* const tensor = sources_[*index].tensor;
    fail(ErrorCode::corrupt, tensor == nullptr ? name : std::string_view(tensor->name),
         fmt::format("has shape {}, but the model's sizes need {}",
                     to_string(entries_[*index].shape), to_string(shape)));
  }
  return *index;
}

std::optional<Extents> GgufCheckpoint::shape_of(std::string_view name) const {
  const auto index = find(name);
  if (!index) return std::nullopt;
  return entries_[*index].shape;
}

// Copies the tensor's rows and columns in their final order, as numbers.
Buffer GgufCheckpoint::copy_of(const Source& source) const {
  const GgufTensorInfo& tensor = *source.tensor;
  if (const GgufBlockFormat* format = find_block_format(tensor.type)) {
    const GgufRows rows(tensor, *format, source.order, source.multipliers);
    const auto length = static_cast<size_t>(rows.row_length());
    const auto num_rows = static_cast<size_t>(rows.num_rows());
    Buffer copy(memory_, num_rows * length * sizeof(float));
    auto* values = static_cast<float*>(copy.get());
    std::vector<float> in_file(source.columns ? length : 0);
    for (size_t row = 0; row < num_rows; ++row) {
      float* const to = values + row * length;
      float* const read = source.columns ? in_file.data() : to;
      rows.read_values(static_cast<int64_t>(row), {read, length});
      if (!source.columns) continue;
      copy_row(reinterpret_cast<const std::byte*>(read), reinterpret_cast<std::byte*>(to),
               length * sizeof(float), sizeof(float), source.columns);
    }
    return copy;
  }
  const auto num_rows = static_cast<size_t>(tensor.extents[0]);
  const size_t row_bytes = tensor.bytes.size() / num_rows;
  const size_t element_bytes = dtype_bytes(plain_dtype(tensor.type).value());
  Buffer copy(memory_, tensor.bytes.size());
  for (size_t row = 0; row < num_rows; ++row) {
    const auto file_row = static_cast<size_t>(source.order.in_file(static_cast<int64_t>(row)));
    copy_row(tensor.bytes.data() + file_row * row_bytes,
             static_cast<std::byte*>(copy.get()) + row * row_bytes, row_bytes, element_bytes,
             source.columns);
  }
  return copy;
}

Tensor GgufCheckpoint::read_tensor(std::string_view name, const Extents& shape, ReadAs /*as*/) {
  const size_t index = find(name, shape);
  const CheckpointEntry& entry = entries_[index];
  const Source& source = sources_[index];
  if (source.number) return {const_cast<float*>(&*source.number), DType::f32, entry.shape};
  if (plain_dtype(source.tensor->type) && !source.is_reordered) {
    // parse_gguf() promises more alignment than any dtype needs.
    return Tensor(const_cast<std::byte*>(source.tensor->bytes.data()), entry.dtype, entry.shape);
  }
  auto copy = copies_.find(index);
  if (copy == copies_.end()) copy = copies_.emplace(index, copy_of(source)).first;
  return Tensor(copy->second.get(), entry.dtype, entry.shape);
}

std::shared_ptr<const GroupedRows> GgufCheckpoint::read_grouped(std::string_view name,
                                                                const Extents& shape) {
  const Source& source = sources_[find(name, shape)];
  if (source.number) return nullptr;
  const GgufBlockFormat* format = find_block_format(source.tensor->type);
  if (format == nullptr || shape.rank() < 2) return nullptr;
  auto rows = std::make_shared<GgufRows>(*source.tensor, *format, source.order, source.multipliers);
  if (!source.columns) return rows;
  return ReorderedColumns::make(std::move(rows), *source.columns);
}

void GgufCheckpoint::release(std::string_view name) {
  const auto index = find(name);
  if (!index) return;
  copies_.erase(*index);
  if (sources_[*index].number) return;
  file_->release_pages(*sources_[*index].tensor);
}

}  // namespace

std::unique_ptr<Checkpoint> make_gguf_checkpoint(std::shared_ptr<const GgufFile> file,
                                                 std::vector<GgufTensorName> names,
                                                 Memory& memory) {
  return std::make_unique<GgufCheckpoint>(std::move(file), std::move(names), memory);
}

}  // namespace paceline
