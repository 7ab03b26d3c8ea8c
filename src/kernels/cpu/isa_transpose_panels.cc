// Operands of products along another dimension: panels of a packed matrix become panels of its
// transpose, columns of rows become rows or panels, and rows become panels.
#include <type_traits>

#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/transpose.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// A square of the transpose, as rows of lanes: kLanes values of K of kLanes columns, or of kLanes
// pairs of columns. Values of K from `num_k` on are zeros.
template <class Weight>
struct Square {
  using Out = float;
  static constexpr int64_t kColumns = kLanes;

  PL_INLINE void load_rows(const Weight* panel, int64_t column, int64_t num_k,
                           Vec (&rows)[kLanes]) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) {
      rows[i] = i < num_k ? load(panel + i * kPanelWidth + column) : Vec{};
    }
  }
};

// Splits pairs of K and makes pairs of neighbouring columns.
template <>
struct Square<Bf16> {
  using Out = Bf16;
  static constexpr int64_t kColumns = 2 * kLanes;

  PL_INLINE void load_rows(const Bf16* panel, int64_t column, int64_t num_k, Vec (&rows)[kLanes]) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < kLanes; i += 2) {
      if (i >= num_k) {
        rows[i] = rows[i + 1] = Vec{};
        continue;
      }
      const Bf16* const from = panel + i * kPanelWidth + column * 2;
      const Vec low = as_floats(load_bits(from)), high = as_floats(load_bits(from + 2 * kLanes));
      const Uints even = as_bits(even_lanes(low, high)), odd = as_bits(odd_lanes(low, high));
      rows[i] = as_floats((even & 0xFFFFu) | (odd << 16));
      rows[i + 1] = as_floats((even >> 16) | (odd & 0xFFFF0000u));
    }
  }
};

template <class Weight>
void transpose_panels(const TransposeTask& task) {
  using Out = typename Square<Weight>::Out;
  constexpr int64_t kColumns = Square<Weight>::kColumns;
  constexpr int64_t kDepth = kColumns / kLanes;  // columns that lie beside each other
  for (int64_t panel = 0; panel < task.num_panels; ++panel) {
    const auto* const from = static_cast<const Weight*>(task.panels) + panel * task.panel_elements;
    for (int64_t k = 0; k < round_up(task.padded_k, kPanelWidth); k += kLanes) {
      auto* const to = static_cast<Out*>(task.to) + k / kPanelWidth * task.to_panel_elements +
                       panel * kPanelWidth * kPanelWidth + k % kPanelWidth * kDepth;
      for (int64_t column = 0; column < kPanelWidth; column += kColumns) {
        Vec rows[kLanes];
        const int64_t num_k = task.padded_k - k;
        if (num_k >= kLanes) {
          Square<Weight>::load_rows(from + k * kPanelWidth, column, kLanes, rows);
        } else {
          Square<Weight>::load_rows(from + k * kPanelWidth, column, num_k, rows);
        }
        transpose_square(rows);
#pragma GCC unroll 16
        for (int64_t i = 0; i < kLanes; ++i) {
          const int64_t row = (column + i * kDepth) * kPanelWidth;
          __builtin_memcpy(to + row, &rows[i], sizeof(Vec));
        }
      }
    }
  }
}

PL_INLINE Vec load_columns(const ColumnsTask& task, int64_t row, int64_t column) {
  const int64_t count = task.num_columns - column;
  if (row >= task.num_rows || count <= 0) return Vec{};
  return load_upto(task.rows + row * task.row_stride + column, min_of(count, kLanes));
}

// The transpose of a square of the task's rows: square[i] are lanes of rows of column + i.
PL_INLINE void load_square(const ColumnsTask& task, int64_t row, int64_t column,
                           Vec (&square)[kLanes]) {
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) square[i] = load_columns(task, row + i, column);
  transpose_square(square);
}

// How inputs of a product of float32, and of bfloat16, are kept.
struct FloatInputs {
  using Element = float;
  PL_INLINE Vec rounded(Vec value) { return value; }
};
struct RoundedFloatInputs {
  using Element = float;
  PL_INLINE Vec rounded(Vec value) { return as_floats(round_bits_to_bf16(value) << 16); }
};
struct Bf16Inputs {
  using Element = Bf16;
  PL_INLINE Vec rounded(Vec value) { return value; }
};
#if defined(PACELINE_ISA_AMX)
constexpr bool kBf16Inputs = true;
#else
constexpr bool kBf16Inputs = Bf16Product::kFactors == 1;
#endif

// Two rows of bfloat16 side by side, lane by lane.
PL_INLINE Vec rounded_pairs(Vec even, Vec odd) {
  return as_floats(round_bits_to_bf16(even) | (round_bits_to_bf16(odd) << 16));
}

// Writes the transpose of pairs of rows, a square of twice as many rows as columns at a time.
// pairs_at(row, column) returns lanes of columns of a row beside those of the next one.
template <class PairsAt>
PL_INLINE void transpose_pairs(int64_t num_rows, int64_t num_columns, void* to_rows,
                               int64_t to_stride, PairsAt&& pairs_at) {
  constexpr auto kElement = static_cast<int64_t>(sizeof(Bf16));
  for (int64_t row = 0; row < round_up(num_rows, 64 / kElement); row += 2 * kLanes) {
    for (int64_t column = 0; column < num_columns; column += kLanes) {
      Vec square[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) square[i] = pairs_at(row + 2 * i, column);
      transpose_square(square);
      const int64_t count = min_of(kLanes, num_columns - column);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        if (i >= count) break;
        auto* const to = static_cast<char*>(to_rows) + (column + i) * to_stride;
        __builtin_memcpy(to + row * kElement, &square[i], sizeof(Vec));
      }
    }
  }
}

PL_INLINE void prepare_bf16_columns(const ColumnsTask& task) {
  transpose_pairs(
      task.num_rows, task.num_columns, task.to, task.to_stride, [&](int64_t row, int64_t column) {
        return rounded_pairs(load_columns(task, row, column), load_columns(task, row + 1, column));
      });
}

PL_INLINE void transpose_bf16_inputs(const InputColumnsTask& task) {
  const auto bits_at = [&](int64_t row, int64_t column) {
    Bf16s bits = {};
    if (row < task.num_rows) {
      const auto* const from = static_cast<const char*>(task.rows) + row * task.row_stride;
      __builtin_memcpy(&bits, from + column * static_cast<int64_t>(sizeof(Bf16)), sizeof(bits));
    }
    return widen_bits(bits);
  };
  transpose_pairs(task.num_rows, task.num_columns, task.to, task.to_stride,
                  [&](int64_t row, int64_t column) {
                    return as_floats(bits_at(row, column) | (bits_at(row + 1, column) << 16));
                  });
}

template <class Inputs>
void prepare_columns(const ColumnsTask& task) {
  using Element = typename Inputs::Element;
  if constexpr (std::is_same_v<Element, Bf16>) return prepare_bf16_columns(task);
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(Element));
  for (int64_t row = 0; row < round_up(task.num_rows, kLine); row += kLanes) {
    for (int64_t column = 0; column < task.num_columns; column += kLanes) {
      Vec square[kLanes];
      load_square(task, row, column, square);
      const int64_t count = min_of(kLanes, task.num_columns - column);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        if (i >= count) break;
        auto* const to = static_cast<char*>(task.to) + (column + i) * task.to_stride;
        store(reinterpret_cast<Element*>(to) + row, Inputs::rounded(square[i]));
      }
    }
  }
}

void pack_f32_rows(const ColumnsTask& task) {
  auto* const to = static_cast<float*>(task.to);
  for (int64_t column = 0; column < task.num_columns; column += kLanes) {
    const int64_t count = min_of(kLanes, task.num_columns - column);
    for (int64_t row = 0; row < kPanelWidth; row += kLanes) {
      Vec square[kLanes];
      load_square(task, row, column, square);
      for (int64_t i = 0; i < count; ++i) store(to + (column + i) * kPanelWidth + row, square[i]);
    }
  }
}

// A column that has no neighbour is paired with zeros.
void pack_bf16_rows(const ColumnsTask& task) {
  auto* const to = static_cast<uint32_t*>(task.to);
  for (int64_t column = 0; column < task.num_columns; column += kLanes) {
    const int64_t count = min_of(kLanes, task.num_columns - column);
    for (int64_t row = 0; row < kPanelWidth; row += kLanes) {
      Vec square[kLanes];
      load_square(task, row, column, square);
      for (int64_t i = 0; i < count; i += 2) {
        const Vec pairs = rounded_pairs(square[i], square[i + 1]);
        __builtin_memcpy(to + (column + i) / 2 * kPanelWidth + row, &pairs, sizeof(pairs));
      }
    }
  }
}

void pack_f32_columns(const ColumnsTask& task) {
  auto* const to = static_cast<float*>(task.to);
  for (int64_t row = 0; row < task.num_rows; ++row) {
    for (int64_t column = 0; column < kPanelWidth; column += kLanes) {
      store(to + row * kPanelWidth + column, load_columns(task, row, column));
    }
  }
}

// A row that has no neighbour is paired with zeros.
void pack_bf16_columns(const ColumnsTask& task) {
  auto* const to = static_cast<uint32_t*>(task.to);
  for (int64_t row = 0; row < task.num_rows; row += 2) {
    for (int64_t column = 0; column < kPanelWidth; column += kLanes) {
      const Vec pairs =
          rounded_pairs(load_columns(task, row, column), load_columns(task, row + 1, column));
      __builtin_memcpy(to + row / 2 * kPanelWidth + column, &pairs, sizeof(pairs));
    }
  }
}

}  // namespace

void add_transpose_kernels(KernelTable& table) {
  table.transpose_panels[0] = transpose_panels<float>;
  table.transpose_panels[1] = transpose_panels<F16>;
  table.transpose_panels[2] = transpose_panels<Bf16>;
  table.prepare_columns[0] = prepare_columns<FloatInputs>;
  table.prepare_columns[2] =
      prepare_columns<std::conditional_t<kBf16Inputs, Bf16Inputs, RoundedFloatInputs>>;
  if constexpr (kBf16Inputs) {
    table.transpose_inputs = [](const InputColumnsTask& task) { transpose_bf16_inputs(task); };
  }
  table.pack_rows[0] = pack_f32_rows;
  table.pack_rows[2] = pack_bf16_rows;
  table.pack_columns[0] = pack_f32_columns;
  table.pack_columns[2] = pack_bf16_columns;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
