#include "layers/load_context.h"

#include <utility>
#include <vector>

namespace paceline {

std::optional<PackedMatrix> prepared_matrix(const LoadContext& context, std::string_view name,
                                            int64_t k) {
  if (context.prepared == nullptr) return std::nullopt;
  // Without a type of activations nothing was left quantised.
  return context.prepared->matrix(name, k, context.activations.value_or(ActivationType::int8));
}

std::optional<OwnedTensor> prepared_vector(const LoadContext& context, std::string_view name,
                                           int64_t size) {
  if (context.prepared == nullptr) return std::nullopt;
  return context.prepared->vector(name, size);
}

void note_made(const LoadContext& context, std::string_view name, const OwnedTensor& vector) {
  if (context.made == nullptr) return;
  context.made->parts.push_back(vector_part(std::string(name), vector.view));
}

OwnedTensor load_vector(const LoadContext& context, std::string_view name, int64_t size,
                        float offset) {
  if (auto prepared = prepared_vector(context, name, size)) return std::move(*prepared);
  const Tensor stored = context.weights.read(name, {size});
  OwnedTensor vector = allocate_tensor(context.memory, DType::f32, {size});
  copy_elements(stored, vector.view);
  context.weights.release(name);
  if (offset != 0.0f) {
    float* elements = vector.view.elements<float>();
    for (int64_t i = 0; i < size; ++i) elements[i] += offset;
  }
  note_made(context, name, vector);
  return vector;
}

StoredMatrix::StoredMatrix(const LoadContext& context, std::string name, int64_t rows,
                           int64_t columns)
    : weights_(context.weights), name_(std::move(name)) {
  if (context.activations) grouped_ = weights_.read_grouped(name_, {rows, columns});
  if (grouped_ == nullptr) plain_ = weights_.read(name_, {rows, columns});
}

StoredMatrix::~StoredMatrix() {
  grouped_.reset();
  weights_.release(name_);
}

bool StoredMatrix::packs_with(const StoredMatrix& other) const {
  if ((grouped_ == nullptr) != (other.grouped_ == nullptr)) return false;
  return grouped_ == nullptr || grouped_->grouping() == other.grouped_->grouping();
}

namespace {

PackedMatrix pack(const LoadContext& context, std::span<const Tensor> plain,
                  std::span<const GroupedRows* const> grouped) {
  if (grouped.empty()) {
    return pack_matrix(plain, context.weight_dtype, context.memory, context.threads);
  }
  return pack_groups(grouped, *context.activations, context.memory, context.threads);
}

}  // namespace

PackedMatrix pack_stored(const LoadContext& context,
                         std::span<const std::unique_ptr<StoredMatrix>> parts) {
  std::vector<Tensor> plain;
  std::vector<const GroupedRows*> grouped;
  for (const auto& part : parts) {
    if (part->grouped_ != nullptr) {
      grouped.push_back(part->grouped_.get());
    } else {
      plain.push_back(part->plain_);
    }
  }
  PackedMatrix matrix = pack(context, plain, grouped);
  if (context.made != nullptr) {
    context.made->parts.push_back(matrix_part(parts.front()->name_, matrix));
  }
  return matrix;
}

}  // namespace paceline
