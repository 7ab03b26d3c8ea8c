#include "layers/load_context.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "layers/scratch.h"
#include "weights/grouped_row_range.h"

namespace paceline {

std::optional<PackedMatrix> prepared_matrix(const LoadContext& context, std::string_view name,
                                            int64_t k) {
  if (context.prepared == nullptr) return std::nullopt;
  // Without `activations` the file has no quantised matrix.
  return context.prepared->matrix(name, k, context.activations.value_or(ActivationType::int8));
}

std::optional<OwnedTensor> prepared_vector(const LoadContext& context, std::string_view name,
                                           int64_t size) {
  if (context.prepared == nullptr) return std::nullopt;
  return context.prepared->vector(name, size);
}

std::vector<float> read_elements(const LoadContext& context, std::string_view name,
                                 const Extents& shape) {
  const Tensor stored = context.weights.read_as_stored(name, shape);
  std::vector<float> elements(static_cast<size_t>(stored.num_elements()));
  copy_elements(stored, Tensor(elements.data(), DType::f32, shape));
  context.weights.release(name);
  return elements;
}

std::vector<float> read_vector(const LoadContext& context, std::string_view name, int64_t size) {
  return read_elements(context, name, {size});
}

OwnedTensor store_vector(const LoadContext& context, std::string_view name,
                         std::span<const float> elements) {
  OwnedTensor vector = write_vector(context.backend, elements);
  if (context.written != nullptr) context.written->add(vector_part(std::string(name), vector.view));
  return vector;
}

OwnedTensor load_vector(const LoadContext& context, std::string_view name, int64_t size,
                        float offset) {
  if (auto prepared = prepared_vector(context, name, size)) return std::move(*prepared);
  std::vector<float> elements = read_vector(context, name, size);
  if (offset != 0.0f) {
    for (float& element : elements) element += offset;
  }
  return store_vector(context, name, elements);
}

StoredMatrix::StoredMatrix(const LoadContext& context, std::string name, int64_t rows,
                           int64_t columns, std::vector<StoredRows> order)
    : weights_(context.weights), name_(std::move(name)) {
  std::shared_ptr<const GroupedRows> grouped;
  if (context.activations) grouped = weights_.read_grouped(name_, {rows, columns});
  if (grouped != nullptr) {
    for (const auto& [first, count] : order) {
      grouped_.push_back(std::make_shared<GroupedRowRange>(grouped, first, count, 1));
    }
    if (order.empty()) grouped_.push_back(std::move(grouped));
    return;
  }
  const Tensor plain = context.quantizes ? weights_.read(name_, {rows, columns})
                                         : weights_.read_as_stored(name_, {rows, columns});
  if (order.empty()) order = {{.first = 0, .count = rows}};
  for (const auto& [first, count] : order) plain_.push_back(plain.slice(0, first, first + count));
}

StoredMatrix::~StoredMatrix() {
  grouped_.clear();
  weights_.release(name_);
}

bool StoredMatrix::packs_with(const StoredMatrix& other) const {
  if (grouped_.empty() || other.grouped_.empty()) return grouped_.empty() == other.grouped_.empty();
  return grouped_.front()->grouping() == other.grouped_.front()->grouping() &&
         std::ranges::equal(grouped_.front()->column_order(),
                            other.grouped_.front()->column_order());
}

namespace {

PackedMatrix pack(const LoadContext& context, std::span<const Tensor> plain,
                  std::span<const GroupedRows* const> grouped) {
  if (grouped.empty()) {
    return context.backend.pack_matrix(plain, context.weight_dtype);
  }
  return context.backend.pack_groups(grouped, *context.activations);
}

}  // namespace

PackedMatrix pack_stored(const LoadContext& context,
                         std::span<const std::unique_ptr<StoredMatrix>> parts) {
  std::vector<Tensor> plain;
  std::vector<const GroupedRows*> grouped;
  for (const auto& part : parts) {
    for (const auto& rows : part->grouped_) grouped.push_back(rows.get());
    plain.insert(plain.end(), part->plain_.begin(), part->plain_.end());
  }
  PackedMatrix matrix = pack(context, plain, grouped);
  if (context.written != nullptr) {
    context.written->add(matrix_part(parts.front()->name_, matrix));
    matrix.storage = {};
  }
  return matrix;
}

std::vector<float> load_numbers(const LoadContext& context, std::string_view name, int64_t size) {
  const OwnedTensor vector = load_vector(context, name, size);
  std::vector<float> staging;
  const std::span<const float> read = context.backend.read(vector.view, staging);
  return {read.begin(), read.end()};
}

float load_number(const LoadContext& context, std::string_view name) {
  std::vector<float> staging;
  if (const auto prepared = prepared_vector(context, name, 1)) {
    return context.backend.read(prepared->view, staging).front();
  }
  const std::vector<float> stored = read_elements(context, name, {});
  store_vector(context, name, stored);
  return stored.front();
}

PackedMatrix load_table(const LoadContext& context, std::string_view name, int64_t rows,
                        int64_t columns) {
  if (auto prepared = prepared_matrix(context, name, columns)) {
    if (prepared->n == rows) return std::move(*prepared);
    context.prepared->refuse(name, prepared->n, rows);
  }
  const std::array parts = {
      std::make_unique<StoredMatrix>(context, std::string(name), rows, columns)};
  return pack_stored(context, parts);
}

}  // namespace paceline
