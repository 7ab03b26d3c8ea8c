#include "load/write_gguf.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "load/gguf_keys.h"
#include "load/gguf_tokenizer_keys.h"
#include "load/load_decoder.h"
#include "load/stored_model.h"
#include "load/weight_stack.h"
#include "models/family.h"
#include "weights/gguf_file_writer.h"
#include "weights/gguf_quantizer.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// One part of a tensor, in the file's order and type.
class PartWriter {
 public:
  // `calibration` may be null.
  PartWriter(Checkpoint& weights, const Calibration* calibration, ThreadPool& threads)
      : weights_(weights), calibration_(calibration), threads_(threads) {}

  std::vector<std::byte> encode(const PlannedGgufTensor& tensor, const GgufPart& part) {
    constexpr int64_t kRowsAtOnce = 16;
    const auto rows =
        part.shape.rank() == 2 ? weights_.read_grouped(part.name, part.shape) : nullptr;
    const Tensor plain = rows == nullptr ? weights_.read(part.name, part.shape) : Tensor();
    const size_t row_bytes = gguf_row_bytes(tensor.type, part.row_length);
    std::vector<std::byte> out(static_cast<size_t>(part.num_rows) * row_bytes);
    const GgufRowOrder order = order_of(tensor.name, part);
    const std::vector<float> importance = importance_of(tensor, part);
    std::atomic<int64_t> refused_row = -1;
    threads_.parallel_for(part.num_rows, kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
      std::vector<float> values(static_cast<size_t>(part.row_length)), in_file(values.size());
      for (int64_t row = begin; row < end; ++row) {
        read_row(rows.get(), plain, part, row, values);
        apply_gguf_form(tensor.form, Tensor(values.data(), DType::f32, {part.row_length}));
        const std::span<const float> ordered = in_file_order(tensor.name, values, in_file);
        std::byte* const to = out.data() + static_cast<size_t>(order.in_file(row)) * row_bytes;
        if (!quantize_gguf_row(tensor.type, ordered, importance, to)) refused_row = row;
      }
    });
    if (refused_row >= 0) fail(tensor, part, refused_row);
    return out;
  }

 private:
  // Of the columns in the file's order; empty: all are equal.
  std::vector<float> importance_of(const PlannedGgufTensor& tensor, const GgufPart& part) const {
    if (calibration_ == nullptr) return {};
    std::vector<float> importance = calibration_->importance(part.name, part.row_length);
    if (importance.empty() || !tensor.name.column_groups) return importance;
    std::vector<float> in_file(importance.size());
    in_file_order(tensor.name, importance, in_file);
    return in_file;
  }

  static void read_row(const GroupedRows* grouped, const Tensor& plain, const GgufPart& part,
                       int64_t row, std::vector<float>& values) {
    row += part.first_row;
    if (grouped != nullptr) return grouped->read_values(row, values);
    with_float_dtype(plain.dtype(), [&]<class T>() {
      const T* const from = plain.elements<T>() + row * part.row_length;
      for (size_t i = 0; i < values.size(); ++i) values[i] = to_float(from[i]);
    });
  }

  static GgufRowOrder order_of(const GgufTensorName& name, const GgufPart& part) {
    if (name.row_groups) return GgufRowOrder(*name.row_groups);
    if (name.interleaved_heads > 0) return {part.num_rows, name.interleaved_heads};
    return {};
  }

  static std::span<const float> in_file_order(const GgufTensorName& name,
                                              const std::vector<float>& values,
                                              std::vector<float>& in_file) {
    if (!name.column_groups) return values;
    name.column_groups->for_each_run([&](int64_t column, int64_t to, int64_t count) {
      std::copy_n(values.begin() + column, count, in_file.begin() + to);
    });
    return in_file;
  }

  [[noreturn]] void fail(const PlannedGgufTensor& tensor, const GgufPart& part, int64_t row) const {
    throw Error(
        ErrorCode::numerical,
        fmt::format("{}: tensor {}, row {}: expected finite numbers within {}", weights_.origin(),
                    quoted_name(part.name), part.first_row + row, gguf_type_name(tensor.type)));
  }

  Checkpoint& weights_;
  const Calibration* calibration_;
  ThreadPool& threads_;
};

GgufHeader make_header(const ModelSource& source, const DecoderConfig& config, const Json& json,
                       const GgufTensorPlan& plan, GgufFileType type, GgufTables& tables) {
  const std::string where = source.files().where(kConfig);
  const GgufArchitecture& architecture = architecture_to_write(config, where);
  GgufHeader header;
  tables = add_config_keys(config, json, architecture, where, header);
  header.add_string("general.type", "model");
  const fs::path& path = source.path();
  header.add_string("general.name",
                    (path.has_filename() ? path : path.parent_path()).filename().string());
  header.add_size("general.file_type", gguf_file_type_number(type, config.dtype));
  header.add_size("general.quantization_version", 2);
  add_tokenizer_keys(source, config.vocab_size, header);
  const std::string origin = source.path().string();
  for (const auto& [name, table] : tables) {
    header.add_tensor(name, GgufType::f32, {std::ssize(table)}, origin);
  }
  for (const PlannedGgufTensor& tensor : plan.tensors) {
    header.add_tensor(tensor.name.file_name, tensor.type, tensor.extents, origin);
  }
  return header;
}

std::span<const std::byte> bytes_of(const std::vector<float>& table) {
  return std::as_bytes(std::span(table));
}

// Reads the file back as far as the tables go; the weights are a hole.
void check_reads_back(const ModelSource& source, const DecoderConfig& config,
                      const GgufHeader& header, const GgufTables& tables, const fs::path& to) {
  const TemporaryDirectory directory([&] {
    fs::path path =
        to.parent_path() / fmt::format(".{}.{}.partial", to.filename().string(), ::getpid());
    std::error_code error;
    if (fs::create_directory(path, error)) return path;
    throw Error(ErrorCode::invalid,
                fmt::format("{}: can't be made: {}", to.string(),
                            error ? error.message() : path.string() + " is in the way"));
  });
  const fs::path path = directory.path() / "header.gguf";
  std::string head = header.bytes();
  const size_t data = head.size();
  size_t index = 0;
  for (const auto& [name, table] : tables) {
    head.resize(data + header.tensor_begin(index++), '\0');
    head.append(reinterpret_cast<const char*>(table.data()), bytes_of(table).size());
  }
  write_new_file(path, head);
  std::error_code error;
  fs::resize_file(path, data + header.data_bytes(), error);
  if (error) {
    throw Error(ErrorCode::exhausted, fmt::format("{}: {}", to.string(), error.message()));
  }
  const ModelSource read(path);
  const std::string where = source.files().where(kConfig);
  check_same_computation(config, read_model_config(read, LoadFormat::files),
                         architecture_to_write(config, where), where);
  check_same_tokens(source, read);
}

}  // namespace

bool is_gguf_name(const fs::path& path) { return path.extension() == ".gguf"; }

ConvertedSizes write_gguf(const ModelSource& source, Checkpoint& weights,
                          const GgufWriting& writing, ThreadPool& threads) {
  const std::string where = source.files().where(kConfig);
  const Json json = source.files().read_json(kConfig);
  const DecoderConfig config = read_decoder_config(json, WeightReader(weights), where);
  GgufTensorPlan plan =
      plan_gguf_tensors(weights, config, architecture_to_write(config, where), writing.type);
  GgufTables tables;
  const GgufHeader header = make_header(source, config, json, plan, writing.type, tables);
  GgufFileWriter writer(writing.to, header);
  check_reads_back(source, config, header, tables, writing.to);
  plan.sizes.bytes_after = header.data_bytes();
  for (const auto& [name, table] : tables) writer.write(bytes_of(table));
  PartWriter parts(weights, writing.calibration, threads);
  uint64_t done = 0;
  for (const PlannedGgufTensor& tensor : plan.tensors) {
    for (const GgufPart& part : tensor.parts) {
      const std::vector<std::byte> bytes = parts.encode(tensor, part);
      writer.write(bytes);
      weights.release(part.name);
      done += bytes.size();
      writing.progress(done, plan.sizes.bytes_after);
    }
  }
  writer.finish();
  return plan.sizes;
}

ConvertedSizes write_gguf(const ModelSource& source, const GgufWriting& writing,
                          ThreadPool& threads) {
  const Json json = source.files().read_json(kConfig);
  const std::string where = source.files().where(kConfig);
  Memory memory;
  const WeightStack stack(
      source.open_weights(memory),
      {.config = json, .where = where, .published = PublishedQuantisation::find(source.files())},
      memory, threads);
  return write_gguf(source, stack.top(), writing, threads);
}

}  // namespace paceline
