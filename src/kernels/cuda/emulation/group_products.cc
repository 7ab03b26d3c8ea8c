#include "kernels/cuda/emulation/group_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cuda/emulation/mma_tile.h"
#include "kernels/cuda/emulation/report.h"

namespace paceline::cuda::emulation {
namespace {

constexpr uint32_t kCoreWords = 32;  // of a core matrix

const uint32_t* core_matrix(const CoreMatrices& from, uint32_t k, uint32_t group) {
  return reinterpret_cast<const uint32_t*>(static_cast<const std::byte*>(from.first) +
                                           k * from.k_bytes + group * from.row_bytes);
}

// Eight rows of the two core matrices along K.
void take_rows(const CoreMatrices& from, uint32_t group, uint32_t (&rows)[8][8]) {
  for (uint32_t k = 0; k < 2; ++k) {
    const uint32_t* const words = core_matrix(from, k, group);
    for (uint32_t row = 0; row < 8; ++row) std::memcpy(&rows[row][4 * k], words + 4 * row, 16);
  }
}

// The same where a core matrix has a row for each element along K.
void take_turned_rows(const CoreMatrices& from, uint32_t group, uint32_t (&rows)[8][8]) {
  for (uint32_t k = 0; k < 2; ++k) {
    uint16_t elements[8][8];
    static_assert(sizeof(elements) == kCoreWords * sizeof(uint32_t));
    std::memcpy(elements, core_matrix(from, k, group), sizeof(elements));
    for (uint32_t row = 0; row < 8; ++row) {
      for (uint32_t pair = 0; pair < 4; ++pair) {
        rows[row][4 * k + pair] = elements[2 * pair][row] | uint32_t{elements[2 * pair + 1][row]}
                                                                << 16;
      }
    }
  }
}

uint64_t mixed(uint64_t history, uint64_t value) {
  return (history ^ value) * 0x9E3779B97F4A7C15u + (history >> 29) + 1;
}

}  // namespace

bool GroupProduct::matches(const GroupProduct& other) const {
  return columns == other.columns && adds == other.adds && is_turned == other.is_turned &&
         (a_registers == nullptr) == (other.a_registers == nullptr) && a.first == other.a.first &&
         b.first == other.b.first && site == other.site;
}

std::string GroupProducts::fault_at_issue() const {
  if (is_fenced_) return {};
  return "multiplies without begin_products() since the last wait";
}

std::string GroupProducts::fault_at_end() const {
  if (!issued_.empty()) {
    return fmt::format("ends without waiting for the product at {}",
                       text_of(issued_.front().product.site));
  }
  if (unkept_.empty()) return {};
  return fmt::format("does not keep the operand of the product at {} until its wait",
                     text_of(unkept_.front().product.site));
}

GroupProducts::Sums& GroupProducts::sums_of(const GroupProduct& product) {
  const auto found = std::find_if(sums_.begin(), sums_.end(),
                                  [&](const Sums& sums) { return sums.d == product.d; });
  if (found != sums_.end()) return *found;
  const size_t count = product.columns / 2;
  sums_.push_back({product.d, std::vector<float>(product.d, product.d + count), 0});
  std::fill_n(product.d, count, std::numeric_limits<float>::quiet_NaN());
  return sums_.back();
}

void GroupProducts::issue(const GroupProduct& product) {
  Issued& issued = issued_.emplace_back(Issued{.product = product, .group = num_groups_});
  if (product.a_registers != nullptr) std::copy_n(product.a_registers, 4, issued.a.begin());
  ++sums_of(product).num_issued;
  history_ = mixed(history_, reinterpret_cast<uintptr_t>(product.b.first));
  history_ = mixed(history_, product.columns * 4 + (product.adds ? 2 : 0) + product.is_turned);
}

void GroupProducts::finish_first() {
  const Issued& first = issued_.front();
  --sums_of(first.product).num_issued;
  if (first.product.a_registers != nullptr) unkept_.push_back(first);
  issued_.erase(issued_.begin());
}

std::string GroupProducts::compute(const std::array<GroupProducts*, 32>& lanes,
                                   uint32_t warp_of_group, size_t num_groups) {
  const GroupProducts& own = *lanes[0];
  while (!own.issued_.empty() && own.issued_.front().group < num_groups) {
    const GroupProduct& product = own.issued_.front().product;
    for (const GroupProducts* const lane : lanes) {
      if (lane->issued_.empty() || !product.matches(lane->issued_.front().product)) {
        return fmt::format("lanes of a warp multiply different matrices at {}",
                           text_of(product.site));
      }
      const Issued& issued = lane->issued_.front();
      if (issued.product.a_registers != nullptr &&
          !std::equal(issued.a.begin(), issued.a.end(), issued.product.a_registers)) {
        return fmt::format("an operand in registers changed before its wait, of the product at {}",
                           text_of(product.site));
      }
    }
    MmaOperands operands;
    if (product.a_registers == nullptr) {
      uint32_t halves[2][8][8];
      for (uint32_t half = 0; half < 2; ++half) {
        take_rows(product.a, 2 * warp_of_group + half, halves[half]);
      }
      std::memcpy(operands.row_pairs, halves, sizeof(halves));
    } else {
      for (uint32_t lane = 0; lane < 32; ++lane) {
        for (uint32_t i = 0; i < 4; ++i) {
          operands.row_pairs[lane / 4 + i % 2 * 8][lane % 4 + i / 2 * 4] =
              lanes[lane]->issued_.front().a[i];
        }
      }
    }
    for (uint32_t group = 0; group < product.columns / 8; ++group) {
      if (product.is_turned) {
        take_turned_rows(product.b, group, operands.column_pairs);
      } else {
        take_rows(product.b, group, operands.column_pairs);
      }
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const float* const sums =
            lanes[lane]->sums_of(lanes[lane]->issued_.front().product).values.data() + 4 * group;
        for (uint32_t i = 0; i < 4; ++i) {
          operands.sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = product.adds ? sums[i] : 0.0f;
        }
      }
      multiply_operands(operands);
      for (uint32_t lane = 0; lane < 32; ++lane) {
        float* const sums =
            lanes[lane]->sums_of(lanes[lane]->issued_.front().product).values.data() + 4 * group;
        for (uint32_t i = 0; i < 4; ++i) {
          sums[i] = operands.sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
        }
      }
    }
    for (GroupProducts* const lane : lanes) lane->finish_first();
  }
  return {};
}

void GroupProducts::reveal() {
  for (const Sums& sums : sums_) {
    if (sums.num_issued == 0) std::copy(sums.values.begin(), sums.values.end(), sums.d);
  }
  std::erase_if(sums_, [](const Sums& sums) { return sums.num_issued == 0; });
  is_fenced_ = false;
}

void GroupProducts::keep(const uint32_t* a) {
  std::erase_if(unkept_, [a](const Issued& issued) { return issued.product.a_registers == a; });
}

}  // namespace paceline::cuda::emulation
