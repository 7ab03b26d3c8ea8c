#include "kernels/cuda/code_packing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cuda/emulation/bf16_bits.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

// One panel, from the CPU's layout to the GPU's.
class PanelPacker {
 public:
  PanelPacker(const PackedMatrix& matrix, const GroupedPanels& panels, int64_t panel,
              std::byte* first)
      : matrix_(matrix),
        panels_(panels),
        from_(static_cast<const uint8_t*>(matrix.panel(panel))),
        first_(first),
        to_(first + panel * panels.panel_bytes),
        panel_(panel) {}

  void pack() {
    for (int64_t column = 0; column < kPanelWidth; ++column) pack_numbers(column);
    const PackedGroups& groups = *matrix_.groups;
    const int64_t size = groups.grouping.group_size;
    const int64_t high = size * kPanelWidth * panels_.low_width / 8;
    for (int64_t group = 0; group < matrix_.num_groups(); ++group) {
      const uint8_t* const codes = from_ + groups.place_of(group).codes;
      const int64_t first_quad = group * size / 4;
      pack_plane(codes, panels_.low_width, 0, first_quad);
      if (panels_.high_width > 0) {
        pack_plane(codes + high, panels_.high_width,
                   kTileColumns * kUnitInputs / 8 * panels_.low_width, first_quad);
      }
    }
    if (groups.grouping.bits != 4) return;  // the form stays whole
    for (int64_t column = 0; column < 4; column += 2) mark(column);
  }

 private:
  std::byte* tile_of(int64_t column) const {
    return to_ + column % 4 / 2 * (panels_.panel_bytes / 2);
  }

  void pack_numbers(int64_t column) {
    const PackedGroups& groups = *matrix_.groups;
    std::byte* const tile = tile_of(column);
    const int64_t index = column / 4 * 2 + column % 2;
    const int64_t numbers = groups.has_offsets() ? 2 : 1;
    const auto copy = [&](std::byte* to, int64_t from, int64_t bytes) {
      for (int64_t i = 0; i < numbers; ++i) {
        std::memcpy(to + (i * kTileColumns + index) * bytes,
                    from_ + from + (i * kPanelWidth + column) * bytes, static_cast<size_t>(bytes));
      }
    };
    std::memcpy(tile + index * 4, from_ + column * 4, 4);
    for (int64_t group = 0; group < matrix_.num_groups(); ++group) {
      const PackedGroups::Place place = groups.place_of(group);
      if (group % groups.grouping.groups_per_factor == 0) {
        const int64_t record = group / groups.grouping.groups_per_factor;
        copy(tile + kCodeHeadBytes + record * panels_.number_bytes, place.scales, 2);
      }
      if (panels_.multiple_bytes > 0) {
        copy(tile + panels_.multiples_place + group * panels_.multiple_bytes, place.multiples, 1);
      }
    }
  }

  // A plane of a group, whose first inputs are quad `first_quad`; `plane_bytes` into each unit.
  void pack_plane(const uint8_t* from, uint32_t width, uint32_t plane_bytes, int64_t first_quad) {
    const int64_t quads = matrix_.groups->grouping.group_size / 4, in_word = 8 / width;
    const uint32_t mask = ((1u << width) - 1) * 0x01010101u;
    for (int64_t column = 0; column < kPanelWidth; ++column) {
      std::byte* const codes = tile_of(column) + panels_.codes_place + plane_bytes;
      const auto pair = static_cast<uint32_t>(column / 4), side = uint32_t(column % 2);
      for (int64_t i = 0; i < quads; i += in_word) {
        uint32_t word;
        std::memcpy(&word, from + (i / in_word * kPanelWidth + column) * 4, 4);
        word = (word & 0xFF0000FFu) | (word & 0xFF00u) << 8 | (word >> 8 & 0xFF00u);
        for (int64_t j = i; j < i + in_word; ++j, word >>= width) {
          const auto quad = static_cast<uint32_t>(first_quad + j);
          const uint32_t field = quad / 4 % kUnitSteps * 2 + side;
          std::byte* const to = codes + int64_t{quad / 16} * panels_.unit_bytes() +
                                plane_place(width, 4 * pair + quad % 4, field);
          uint32_t known;
          std::memcpy(&known, to, 4);
          known |= (word & mask) << field * width % 8;
          std::memcpy(to, &known, 4);
        }
      }
    }
  }

  // Says in a tile's head which form all its groups allow.
  void mark(int64_t first_column) {
    GroupedPanels packed = panels_;
    packed.first = first_;
    CodeForm form = CodeForm::paired;
    for (int64_t column = first_column; column < kPanelWidth; ++column) {
      if (column % 4 / 2 != first_column / 2) continue;
      for (int64_t group = 0; group < matrix_.num_groups() && form != CodeForm::whole; ++group) {
        const GroupAffine affine =
            load_group(packed, static_cast<uint32_t>(group), panel_ * kPanelWidth + column);
        form = std::min(form, code_form(affine));
      }
    }
    std::memcpy(tile_of(first_column) + kFormPlace, &form, sizeof(form));
  }

  const PackedMatrix& matrix_;
  const GroupedPanels& panels_;
  const uint8_t* from_;
  std::byte* first_;  // of the matrix
  std::byte* to_;
  int64_t panel_;
};

}  // namespace

CodeForm code_form(const GroupAffine& affine) {
  const double scale = affine.scale, offset = affine.offset;
  // Whether a + b is exact, and finite (Knuth's sum of two).
  const auto is_exact = [](double a, double b) {
    const double sum = a + b, rest = (a - (sum - b)) + (b - (sum - (sum - b)));
    return rest == 0.0 && sum - sum == 0.0;
  };
  const double shift = -double{kCodeShift} * scale, shifted = offset + shift;
  if (!is_exact(offset, shift) || double{static_cast<float>(shifted)} != shifted) {
    return CodeForm::whole;
  }
  const auto bf16 = [](float value) { return uint32_t{emulation::bf16_bits(value)}; };
  const auto is_bf16 = [&](float value) { return float_of_bits(bf16(value) << 16) == value; };
  if (!is_bf16(affine.scale) || !is_bf16(affine.offset)) return CodeForm::shifted;
  for (int i = 0; i < 16; ++i) {
    const auto code = static_cast<float>(i);
    const uint32_t once =
        emulation::multiply_add_bf16(bf16(affine.scale), bf16(code), bf16(affine.offset));
    const uint32_t by_rule = bf16(std::fma(affine.scale, code, affine.offset));
    if (!is_exact(scale * i, offset) || once != by_rule) return CodeForm::shifted;
  }
  return CodeForm::paired;
}

Buffer pack_code_panels(const PackedMatrix& matrix, Memory& memory, ThreadPool& threads) {
  const GroupedPanels panels = grouped_panels(matrix);
  Buffer packed(memory, static_cast<size_t>(matrix.num_panels() * panels.panel_bytes),
                Contents::zeroed);
  auto* const first = static_cast<std::byte*>(packed.get());
  threads.parallel_for(matrix.num_panels(), 1, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t panel = begin; panel < end; ++panel) {
      PanelPacker(matrix, panels, panel, first).pack();
    }
  });
  return packed;
}

}  // namespace paceline::cuda
