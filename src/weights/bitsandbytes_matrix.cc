// Matrices of 4 bits as bitsandbytes writes them (QuantState.as_dict of
// bitsandbytes/functional.py): nf4 and fp4, with scales that may be quantised themselves.
#include <fmt/format.h>

#include <cmath>

#include "base/divide_up.h"
#include "base/json.h"
#include "base/json_cursor.h"
#include "weights/quantised_matrix.h"
#include "weights/rounded_value.h"

namespace paceline {
namespace {

constexpr std::string_view kStates[] = {"weight.quant_state.bitsandbytes__nf4",
                                        "weight.quant_state.bitsandbytes__fp4"};
constexpr int64_t kMostBlock = 1 << 20;

// The part `quant_state`, JSON in bytes.
struct QuantState {
  int64_t rows = 0;
  int64_t row_length = 0;
  int64_t block = 64;        // elements of a scale, over the whole matrix row by row
  int64_t nested_block = 0;  // scales of a scale; 0: they are floats
  float nested_offset = 0;   // added to scales that were quantised
};

QuantState read_state(const ModuleParts& parts, std::string_view part) {
  constexpr DType kText[] = {DType::u8};
  const CheckpointEntry& entry = parts.at(part);
  if (entry.shape.rank() != 1) {
    parts.corrupt(part,
                  fmt::format("has shape {}, expected bytes of JSON", to_string(entry.shape)));
  }
  parts.expect(part, entry.shape, kText);
  const Tensor bytes = parts.read(part);
  const std::string_view text(static_cast<const char*>(bytes.raw()), bytes.size_bytes());
  const std::string where = parts.place_of(part);
  const Json json = parse_json(text, where, ErrorCode::corrupt);
  const JsonCursor root(json, where, ErrorCode::corrupt);
  const NumberRange sizes{.min = 1, .max = kMostBlock};
  const JsonCursor shape = root.at("shape");
  if (shape.num_items() != 2) shape.mismatch("two sizes");
  QuantState state{.rows = shape.item(0).integer(),
                   .row_length = shape.item(1).integer(),
                   .block = root.at("blocksize").integer(sizes)};
  if (state.rows < 1 || state.row_length < 1) shape.mismatch("sizes of at least 1");
  if (!parts.has("weight.nested_absmax")) return state;
  state.nested_block = root.at("nested_blocksize").integer(sizes);
  state.nested_offset = static_cast<float>(root.at("nested_offset").number());
  if (!std::isfinite(state.nested_offset)) root.at("nested_offset").mismatch("a finite number");
  return state;
}

// Elements are numbers of a table of 16, times the scale of their block. Owns its scales.
class TableRows : public ValueRows {
 public:
  TableRows(const Tensor& bytes, std::vector<float> table, std::vector<float> scales,
            const QuantState& state, DType dtype)
      : bytes_(static_cast<const uint8_t*>(bytes.raw())),
        table_(std::move(table)),
        scales_(std::move(scales)),
        state_(state),
        dtype_(dtype) {}

  int64_t num_rows() const override { return state_.rows; }
  int64_t row_length() const override { return state_.row_length; }
  DType value_dtype() const override { return dtype_; }

  void read_values(int64_t row, std::span<float> values) const override {
    int64_t at = row * state_.row_length;
    for (float& value : values) {
      // The first of two in the upper half of a byte.
      const int code = at % 2 == 0 ? bytes_[at / 2] >> 4 : bytes_[at / 2] & 0x0F;
      value = table_[static_cast<size_t>(code)] * scales_[static_cast<size_t>(at / state_.block)];
      ++at;
    }
    round_values(dtype_, values);
  }

 private:
  const uint8_t* bytes_;
  std::vector<float> table_;
  std::vector<float> scales_;
  QuantState state_;
  DType dtype_;
};

std::vector<float> read_floats(const ModuleParts& parts, std::string_view part, int64_t count) {
  constexpr DType kFloat[] = {DType::f32};
  parts.expect(part, {count}, kFloat);
  const Tensor stored = parts.read(part);
  std::vector<float> floats(stored.elements<float>(), stored.elements<float>() + count);
  for (const float value : floats) {
    if (!std::isfinite(value)) parts.corrupt(part, "has a number that isn't finite");
  }
  return floats;
}

std::vector<float> read_block_scales(const ModuleParts& parts, const QuantState& state) {
  constexpr DType kCodes[] = {DType::u8};
  const int64_t count = divide_up(state.rows * state.row_length, state.block);
  if (state.nested_block == 0) return read_floats(parts, "weight.absmax", count);
  parts.expect("weight.absmax", {count}, kCodes);
  const auto table = read_floats(parts, "weight.nested_quant_map", 256);
  const auto outer =
      read_floats(parts, "weight.nested_absmax", divide_up(count, state.nested_block));
  const auto* const codes = parts.read("weight.absmax").elements<uint8_t>();
  std::vector<float> scales(static_cast<size_t>(count));
  for (size_t i = 0; i < scales.size(); ++i) {
    const float scale = outer[i / static_cast<size_t>(state.nested_block)];
    scales[i] = table[codes[i]] * scale + state.nested_offset;
  }
  return scales;
}

}  // namespace

QuantisedMatrix bitsandbytes_matrix(const ModuleParts& parts,
                                    const PublishedQuantisation& settings) {
  const std::string_view part = parts.has(kStates[1]) ? kStates[1] : kStates[0];
  const QuantState state = read_state(parts, part);
  const Extents& stored = parts.at("weight").shape;
  // Bytes may be stored as numbers of another dtype (`bnb_4bit_quant_storage`).
  int64_t bytes = static_cast<int64_t>(dtype_bytes(parts.at("weight").dtype));
  for (const int64_t size : stored) bytes *= size;
  // Divided, so that a huge shape doesn't overflow.
  const bool fits = bytes > 0 && state.rows <= 2 * bytes && state.row_length <= 2 * bytes &&
                    state.row_length <= (2 * bytes) / state.rows &&
                    divide_up(state.rows * state.row_length, 2) == bytes;
  if (!fits) {
    parts.corrupt("weight", fmt::format("has shape {}, expected the {} codes of a matrix [{}, {}]",
                                        to_string(stored), "4-bit", state.rows, state.row_length));
  }
  return {.format = fmt::format("{} in blocks of {}{}", part.substr(part.size() - 3), state.block,
                                state.nested_block > 0 ? ", scales of 8 bits" : ""),
          .shape = {state.rows, state.row_length},
          .numbers = [=, dtype = settings.dtype]() -> std::shared_ptr<const ValueRows> {
            return std::make_shared<TableRows>(parts.read("weight"),
                                               read_floats(parts, "weight.quant_map", 16),
                                               read_block_scales(parts, state), state, dtype);
          }};
}

}  // namespace paceline
