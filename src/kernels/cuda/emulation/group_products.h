// GroupProducts are a thread's part of its warpgroup's products that have not been waited for
// (wgmma of the PTX ISA).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/code/core_matrices.h"
#include "kernels/cuda/emulation/call_site.h"

namespace paceline::cuda::emulation {

struct GroupProduct {
  float* d = nullptr;  // [columns / 2]
  uint32_t columns = 0;
  bool adds = false;
  const uint32_t* a_registers = nullptr;  // [4]; nullptr: a is in shared memory
  CoreMatrices a;
  CoreMatrices b;
  bool is_turned = false;  // b: core matrices of 8 elements along K by 8 columns
  CallSite site;

  // Whether another lane's is the same product.
  bool matches(const GroupProduct& other) const;
};

// The registers of d and a belong to a product from its issue to its wait: d holds NaN until then,
// and a must not change.
class GroupProducts {
 public:
  void begin() { is_fenced_ = true; }
  void issue(const GroupProduct& product);
  void commit() { ++num_groups_; }
  // The groups that a wait for all but the last `pending` waits for; all that was issued.
  size_t groups_before(size_t pending) const {
    return num_groups_ < pending ? 0 : num_groups_ - pending;
  }
  size_t all_groups() const { return num_groups_ + 1; }
  // Computes what the warp's 32 lanes have issued in the first groups. Returns what is wrong;
  // empty: nothing.
  static std::string compute(const std::array<GroupProducts*, 32>& lanes, uint32_t warp_of_group,
                             size_t num_groups);
  // Gives d its values where no product of it is under way; the next product needs begin().
  void reveal();
  // The operand `a` was read until here.
  void keep(const uint32_t* a);

  // What a kernel did wrong, with the line; empty: nothing. At a product's issue, and at the end.
  std::string fault_at_issue() const;
  std::string fault_at_end() const;
  // Of all that was issued: equal in all threads of a group.
  uint64_t history() const { return history_; }
  bool has_any() const { return history_ != 0; }
  void clear() { *this = GroupProducts(); }

 private:
  struct Issued {
    GroupProduct product;
    std::array<uint32_t, 4> a{};  // the registers at its issue
    size_t group = 0;
  };
  // The elements of d, which is NaN meanwhile.
  struct Sums {
    float* d;
    std::vector<float> values;
    size_t num_issued;
  };

  Sums& sums_of(const GroupProduct& product);
  void finish_first();

  std::vector<Issued> issued_;
  std::vector<Sums> sums_;
  std::vector<Issued> unkept_;  // computed, with operands in registers
  size_t num_groups_ = 0;       // committed
  bool is_fenced_ = false;
  uint64_t history_ = 0;
};

}  // namespace paceline::cuda::emulation
