// Codes as operands of matrix instructions: a warp copies units of a tile (code_panels.h) to shared
// memory, and a lane makes bfloat16 of its 16 bytes in registers.
#pragma once

#include <type_traits>

#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

// What a warp copies of a unit beside its codes: the numbers of its groups, and behind them, where
// groups share numbers, their multiples.
constexpr uint32_t kUnitNumberBytes = 256;
constexpr uint32_t kUnitMultiples = 128;

// A lane's numbers of a group: of the two columns of its pair, float16 each, and their multiples.
struct PairNumbers {
  uint32_t scales = 0;
  uint32_t offsets = 0;
  uint32_t scale_multiples = 0;
  uint32_t offset_multiples = 0;
};
struct PairAffine {
  float scale[2];
  float offset[2];
};
// The same in bfloat16, twice in a word.
struct PairedAffine {
  uint32_t scale[2];
  uint32_t offset[2];
};

// A tile of 16 columns, as a warp reads it.
class CodeTile {
 public:
  struct alignas(8) Factors {
    float of[2];
  };

  // Tile `index`: counted from the first panel of the columns, whose two tiles are 0 and 1.
  PL_DEVICE CodeTile(const GroupColumns& columns, int64_t index)
      : panels_(columns.weights),
        tile_(columns.panel(index / 2) + index % 2 * (columns.weights.panel_bytes / 2)),
        factors_(load_ahead<Factors>(tile_ + lane_group() * sizeof(Factors))) {}

  PL_DEVICE const GroupedPanels& panels() const { return panels_; }
  PL_DEVICE CodeForm form() const { return load_ahead<CodeForm>(tile_ + kFormPlace); }

  PL_DEVICE const std::byte* tile() const { return tile_; }

  // Of the group of input `k`, from the numbers that were copied with inputs from `first` on.
  template <bool kHasMultiples>
  PL_DEVICE PairNumbers load_numbers(const std::byte* numbers, uint32_t first, uint32_t k) const {
    const uint32_t record = (k >> panels_.record_bits) - (first >> panels_.record_bits);
    const std::byte* const of_record = numbers + record * panels_.number_bytes + lane_group() * 4;
    PairNumbers loaded;
    loaded.scales = load_as<uint32_t>(of_record);
    loaded.offsets = load_as<uint32_t>(of_record + (panels_.has_offsets ? 2 * kTileColumns : 0));
    if (kHasMultiples && panels_.multiple_bytes > 0) {
      const uint32_t group = (k >> panels_.group_bits) - (first >> panels_.group_bits);
      const std::byte* const of_group =
          numbers + kUnitMultiples + group * panels_.multiple_bytes + lane_group() * 2;
      loaded.scale_multiples = load_as<uint16_t>(of_group);
      loaded.offset_multiples =
          load_as<uint16_t>(of_group + (panels_.has_offsets ? kTileColumns : 0));
    }
    return loaded;
  }

  // As load_group() has them. Of shifted codes the offset is that of 128 + code.
  template <CodeForm kForm, bool kHasMultiples>
  PL_DEVICE PairAffine affine(const PairNumbers& numbers) const {
    PairAffine result;
    PL_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      float scale = float_of_half(numbers.scales >> 16 * i) * factors_.of[i];
      float offset = float_of_half(numbers.offsets >> 16 * i) * factors_.of[i];
      if (kHasMultiples && panels_.multiple_bytes > 0) {
        scale = scale * multiple(numbers.scale_multiples, i);
        offset = offset * multiple(numbers.offset_multiples, i);
      }
      if (!panels_.has_offsets) offset = -panels_.zero_point * scale;
      if constexpr (kForm == CodeForm::shifted)
        offset = fused_multiply_add(-kCodeShift, scale, offset);
      result.scale[i] = scale;
      result.offset[i] = offset;
    }
    return result;
  }

 private:
  PL_DEVICE static float multiple(uint32_t bytes, uint32_t column) {
    return static_cast<float>(static_cast<int8_t>(bytes >> 8 * column));
  }

  const GroupedPanels& panels_;
  const std::byte* tile_;
  Factors factors_;
};

// A lane's part of the copies of a tile's units, of kInputs inputs each: kVectors times 512 bytes
// of codes, the last not whole where kIsWhole is false, then the numbers.
template <uint32_t kInputs, uint32_t kVectors, bool kIsWhole>
class UnitCopies {
 public:
  // Units from that of input `k` on, before input `end`.
  PL_DEVICE UnitCopies(const CodeTile& tile, uint32_t k, uint32_t end)
      : k_(k), end_(end), code_bytes_(tile.panels().unit_bytes() * kInputs / kUnitInputs) {
    const GroupedPanels& panels = tile.panels();
    codes_ = tile.tile() + panels.codes_place + int64_t{k / kInputs} * code_bytes_ +
             lane_index() * kLaneBytes;
    const bool has_numbers = lane_index() < kWarpLanes / 2;  // others have multiples
    const uint32_t at = lane_index() % (kWarpLanes / 2) * kLaneBytes;
    number_bits_ = has_numbers ? panels.record_bits : panels.group_bits;
    number_bytes_ = has_numbers ? panels.number_bytes : panels.multiple_bytes;
    numbers_ = tile.tile() + (has_numbers ? kCodeHeadBytes : panels.multiples_place) + at;
    numbers_to_ = (has_numbers ? 0 : kUnitMultiples) + at;
    const uint32_t count = kInputs >> number_bits_;
    copies_numbers_ = at < (count > 0 ? count : 1) * number_bytes_;
  }

  // Begins to copy the next unit. Behind the last, zeros. All lanes call it.
  PL_DEVICE void copy(std::byte* codes, std::byte* numbers) {
    const bool is_present = k_ < end_;
    PL_UNROLL
    for (uint32_t i = 0; i < kVectors; ++i) {
      const uint32_t at = i * kVectorBytes;
      if (kIsWhole || at + lane_index() * kLaneBytes < code_bytes_) {
        copy_async(codes + at + lane_index() * kLaneBytes, codes_ + at, is_present);
      }
    }
    if (copies_numbers_) {
      copy_async(numbers + numbers_to_, numbers_ + int64_t{k_ >> number_bits_} * number_bytes_,
                 is_present);
    }
    codes_ += kIsWhole ? kVectors * kVectorBytes : code_bytes_;
    k_ += kInputs;
  }

 private:
  uint32_t k_;
  uint32_t end_;
  uint32_t code_bytes_;
  const std::byte* codes_;
  const std::byte* numbers_;
  uint32_t number_bits_;
  uint32_t number_bytes_;
  uint32_t numbers_to_;
  bool copies_numbers_;
};

// Element `byte` of a quad of codes.
template <CodeForm kForm>
PL_DEVICE float code_element(uint32_t quad, uint32_t byte, float scale, float offset) {
  if constexpr (kForm == CodeForm::shifted) {  // the code in a float's upper bits: 128 + code
    const uint32_t bits = permute_bytes(quad, 0x43000000u, 0x7044u | byte << 8);
    return fused_multiply_add(scale, float_of_bits(bits), offset);
  } else {  // in its lowest: 2^23 + code
    const uint32_t bits = permute_bytes(quad, 0x4B000000u, 0x7440u | byte);
    return fused_multiply_add(scale, float_of_bits(bits) - 8388608.0f, offset);
  }
}

template <CodeForm kForm>
PL_DEVICE Words4 code_operand(const uint32_t (&quads)[2], const PairAffine& affine) {
  Words4 a;
  PL_UNROLL
  for (uint32_t side = 0; side < 2; ++side) {
    const auto element = [&](uint32_t byte) {
      return code_element<kForm>(quads[side], byte, affine.scale[side], affine.offset[side]);
    };
    a.words[side] = pack_bf16(element(0), element(2));
    a.words[2 + side] = pack_bf16(element(1), element(3));
  }
  return a;
}

// Of a word with codes of 4 bits.
PL_DEVICE Words4 paired_operand(uint32_t word, const PairedAffine& affine) {
  Words4 a;
  PL_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {  // of inputs 0 and 1, then of 2 and 3
    const uint32_t side = i % 2;
    const uint32_t shifted = (word >> (4 * side + i / 2 * 8) & 0x000F000Fu) | 0x43004300u;
    const uint32_t codes = multiply_add_bf16_pairs(shifted, 0x3F803F80u, 0xC300C300u);
    a.words[i] = multiply_add_bf16_pairs(codes, affine.scale[side], affine.offset[side]);
  }
  return a;
}

// What a lane loads of a unit where each lane has whole vectors of 16 bytes.
template <uint32_t kVectors>
struct CodeVectors {
  Words4 of[kVectors];

  PL_DEVICE static CodeVectors load(const std::byte* codes) {
    CodeVectors vectors;
    PL_UNROLL
    for (uint32_t i = 0; i < kVectors; ++i) {
      vectors.of[i] = load_as<Words4>(codes + i * kVectorBytes + lane_index() * kLaneBytes);
    }
    return vectors;
  }
};

// How codes are read: kInputs of a column at a time, which a lane loads and makes into an operand
// for each step; kGroups of them have numbers of their own.
template <uint32_t kInputsOfUnit, uint32_t kGroupsOfUnit, CodeForm kFormOfCodes>
struct FourBits {
  static constexpr uint32_t kInputs = kInputsOfUnit;
  static constexpr uint32_t kGroups = kGroupsOfUnit;
  static constexpr bool kHasMultiples = kInputs / kGroups < 64;
  static constexpr uint32_t kVectors = kInputs / 64;  // of 512 bytes, of a unit
  static constexpr bool kIsWhole = true;
  static constexpr CodeForm kForm = kFormOfCodes;
  using Affine = std::conditional_t<kForm == CodeForm::paired, PairedAffine, PairAffine>;
  using Loaded = CodeVectors<kVectors>;

  PL_DEVICE static Loaded load(const GroupedPanels& /*panels*/, const std::byte* codes) {
    return Loaded::load(codes);
  }
  PL_DEVICE static Words4 operand(const GroupedPanels& /*panels*/, const Loaded& loaded,
                                  uint32_t step, const Affine& affine) {
    const uint32_t word = loaded.of[step / 4].words[step % 4];
    if constexpr (kForm == CodeForm::paired) {
      return paired_operand(word, affine);
    } else {
      const uint32_t quads[2] = {word & 0x0F0F0F0Fu, word >> 4 & 0x0F0F0F0Fu};
      return code_operand<kForm>(quads, affine);
    }
  }
};

template <uint32_t kGroupsOfUnit>
struct EightBits {
  static constexpr uint32_t kInputs = 64;
  static constexpr uint32_t kGroups = kGroupsOfUnit;
  static constexpr bool kHasMultiples = kInputs / kGroups < 64;
  static constexpr uint32_t kVectors = 2;
  static constexpr bool kIsWhole = true;
  static constexpr CodeForm kForm = CodeForm::whole;
  using Affine = PairAffine;
  using Loaded = CodeVectors<kVectors>;

  PL_DEVICE static Loaded load(const GroupedPanels& /*panels*/, const std::byte* codes) {
    return Loaded::load(codes);
  }
  PL_DEVICE static Words4 operand(const GroupedPanels& /*panels*/, const Loaded& loaded,
                                  uint32_t step, const Affine& affine) {
    const Words4& words = loaded.of[step / 2];
    const uint32_t quads[2] = {words.words[step % 2 * 2], words.words[step % 2 * 2 + 1]};
    return code_operand<kForm>(quads, affine);
  }
};

// Of less than 8 bits.
struct AnyBits {
  static constexpr uint32_t kInputs = 64;
  static constexpr uint32_t kGroups = 4;
  static constexpr bool kHasMultiples = true;
  static constexpr uint32_t kVectors = 2;
  static constexpr bool kIsWhole = false;
  static constexpr CodeForm kForm = CodeForm::whole;
  using Affine = PairAffine;
  struct Loaded {
    Words2 low[2];  // the second where the plane has 4 bits
    Words2 high;
  };

  PL_DEVICE static Loaded load(const GroupedPanels& panels, const std::byte* codes) {
    Loaded loaded{};
    const std::byte* const low = codes + lane_index() * panels.low_width * 4;
    loaded.low[0] = load_as<Words2>(low);
    if (panels.low_width == 4) loaded.low[1] = load_as<Words2>(low + sizeof(Words2));
    const std::byte* const high = codes + kWarpLanes * panels.low_width * 4;
    if (panels.high_width == 1) loaded.high.words[0] = load_as<uint32_t>(high + lane_index() * 4);
    if (panels.high_width == 2) loaded.high = load_as<Words2>(high + lane_index() * 8);
    return loaded;
  }
  PL_DEVICE static Words4 operand(const GroupedPanels& panels, const Loaded& loaded, uint32_t step,
                                  const Affine& affine) {
    const uint32_t wide = loaded.low[step / 2].words[step % 2];
    const uint32_t low = panels.low_width == 4 ? wide : loaded.low[0].words[step / 2];
    const uint32_t high =
        panels.high_width == 2 ? loaded.high.words[step / 2] : loaded.high.words[0];
    uint32_t quads[2];
    PL_UNROLL
    for (uint32_t side = 0; side < 2; ++side) {
      quads[side] = field(low, panels.low_width, 2 * step + side) |
                    field(high, panels.high_width, 2 * step + side) << panels.low_width;
    }
    return code_operand<kForm>(quads, affine);
  }

 private:
  PL_DEVICE static uint32_t field(uint32_t word, uint32_t width, uint32_t index) {
    return word >> index * width % 8 & ((1u << width) - 1) * 0x01010101u;
  }
};

template <class Codes>
PL_DEVICE typename Codes::Affine unit_affine(const CodeTile& tile, const PairNumbers& numbers) {
  const PairAffine affine = tile.template affine<Codes::kForm, Codes::kHasMultiples>(numbers);
  if constexpr (Codes::kForm == CodeForm::paired) {
    return {
        {pack_bf16(affine.scale[0], affine.scale[0]), pack_bf16(affine.scale[1], affine.scale[1])},
        {pack_bf16(affine.offset[0], affine.offset[0]),
         pack_bf16(affine.offset[1], affine.offset[1])}};
  } else {
    return affine;
  }
}

PL_DEVICE bool is_four_bits(const GroupedPanels& panels) {
  return panels.low_width == 4 && panels.high_width == 0 && panels.group_bits > 4;
}

// Calls body with a way of the units that a tile's codes have; those of 4 bits have kInputs.
template <uint32_t kInputs, class Body>
PL_DEVICE void with_units(const GroupedPanels& panels, Body&& body) {
  if (panels.low_width == 8) return body.template operator()<EightBits<1>>();
  if (is_four_bits(panels)) {
    return body.template operator()<FourBits<kInputs, 1, CodeForm::shifted>>();
  }
  return body.template operator()<AnyBits>();
}

// Calls body with the way in which a tile's codes are read.
template <uint32_t kInputs, class Body>
PL_DEVICE auto with_codes(const GroupedPanels& panels, CodeForm form, Body&& body) {
  const bool is_long = panels.group_bits > 5 && panels.multiple_bytes == 0;
  if (panels.low_width == 8) {
    if (is_long) return body.template operator()<EightBits<1>>();
    return body.template operator()<EightBits<4>>();
  }
  if (is_four_bits(panels)) {
    constexpr uint32_t kShort = kInputs / 32, kLong = kInputs / 64;  // groups of a unit
    if (form == CodeForm::whole) {
      return body.template operator()<FourBits<kInputs, kShort, CodeForm::whole>>();
    }
    if (!is_long) return body.template operator()<FourBits<kInputs, kShort, CodeForm::shifted>>();
    if (form == CodeForm::shifted) {
      return body.template operator()<FourBits<kInputs, kLong, CodeForm::shifted>>();
    }
    return body.template operator()<FourBits<kInputs, kLong, CodeForm::paired>>();
  }
  return body.template operator()<AnyBits>();
}

}  // namespace paceline::cuda
