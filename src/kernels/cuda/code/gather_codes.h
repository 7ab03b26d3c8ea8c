// Copies the chosen columns of a quantised matrix (code_panels.h), two neighbours at a time, as
// words hold codes of both. Pairs of columns of `to` along x of the grid.
#pragma once

#include "kernels/cuda/code/code_panels.h"
#include "kernels/cuda/code/elementwise.h"

namespace paceline::cuda {

struct GatherCodes {
  static constexpr std::string_view kName = "gather_codes";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    GroupedPanels from;
    std::byte* to = nullptr;           // zeros
    const int32_t* columns = nullptr;  // of `from`
    int64_t num_columns = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    GroupedPanels to = p.from;
    to.first = p.to;
    for (uint32_t side = 0; side < 2; ++side) {
      const int64_t column = 2 * int64_t{block_index().x} + side;
      if (column < p.num_columns) copy_numbers(p, tile_column(to, column), p.columns[column]);
    }
    copy_plane(p, to, 0, to.low_width);
    if (to.high_width > 0) {
      copy_plane(p, to, kTileColumns * kUnitInputs / 8 * to.low_width, to.high_width);
    }
  }

 private:
  // The form stays whole: other columns' groups may allow no other.
  PL_DEVICE static void copy_numbers(const Params& p, const TileColumn& to, int64_t column) {
    const TileColumn from = tile_column(p.from, column);
    const uint32_t places = p.from.has_offsets ? 2 : 1;
    // `count` times as many numbers of Unit as a column has.
    const auto copy = [&]<class Unit>(uint32_t first, uint32_t count) {
      for_each_column(int64_t{count}, [&](int64_t i) {
        const int64_t at = first + i * kTileColumns * int64_t{sizeof(Unit)};
        auto* const target = reinterpret_cast<Unit*>(const_cast<std::byte*>(to.tile) + at);
        target[to.index()] = reinterpret_cast<const Unit*>(from.tile + at)[from.index()];
      });
    };
    copy.template operator()<uint32_t>(0, 1);
    copy.template operator()<uint16_t>(kCodeHeadBytes, (p.from.k >> p.from.record_bits) * places);
    if (p.from.multiple_bytes == 0) return;
    copy.template operator()<uint8_t>(p.from.multiples_place,
                                      (p.from.k >> p.from.group_bits) * places);
  }

  // A thread makes words of a lane.
  PL_DEVICE static void copy_plane(const Params& p, const GroupedPanels& to, uint32_t plane,
                                   uint32_t width) {
    const uint32_t units = (to.k + kUnitInputs - 1) / kUnitInputs, fields = 8 / width;
    const int64_t column = 2 * int64_t{block_index().x};
    const TileColumn target = tile_column(to, column);
    for_each_column(int64_t{units} * 4 * width, [&](int64_t i) {
      const auto unit = static_cast<uint32_t>(i) / (4 * width);
      const auto t = static_cast<uint32_t>(i) / width % 4;
      const uint32_t first = static_cast<uint32_t>(i) % width * fields;
      const int64_t place = to.codes_place + int64_t{unit} * to.unit_bytes() + plane;
      uint32_t word = 0;
      for (uint32_t field = first; field < first + fields; ++field) {
        if (column + field % 2 >= p.num_columns) continue;
        const TileColumn from = tile_column(p.from, p.columns[column + field % 2]);
        const uint32_t own = field / 2 * 2 + from.side;
        word |= plane_quad(from.tile + place, width, 4 * from.pair + t, own)
                << (field - first) * width;
      }
      const uint32_t lane = 4 * target.pair + t;
      auto* const out =
          const_cast<std::byte*>(target.tile) + place + plane_place(width, lane, first);
      *reinterpret_cast<uint32_t*>(out) = word;
    });
  }
};

}  // namespace paceline::cuda
