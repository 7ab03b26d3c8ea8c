// What a device's operations of recurrent layers must give: the values of their plain definitions,
// and the same bits however a sequence is cut into slices, beside whom it runs, resumed from a
// saved state or taken back.
#pragma once

#include <utility>
#include <vector>

#include "kernels/recurrent.h"
#include "tensor/memory.h"

namespace paceline {

// Each function is a test of all operations in `all`, which must have the same bits, on tensors in
// `memory`, which the CPU reaches too. Random cuts are drawn `rounds` times.
class RecurrentChecks {
 public:
  RecurrentChecks(Memory& memory, std::vector<RecurrentOps*> all, int rounds,
                  std::vector<DType> state_dtypes, bool takes_channel_decay = true)
      : memory_(memory),
        all_(std::move(all)),
        rounds_(rounds),
        state_dtypes_(std::move(state_dtypes)),
        takes_channel_decay_(takes_channel_decay) {}

  void delta_rule_is_its_recurrence();
  void delta_rule_has_the_same_bits_however_it_is_cut();
  void positions_are_taken_back();
  void sequences_run_side_by_side();
  void convolutions_have_the_same_bits_however_they_are_cut();
  void inputs_of_convolutions_are_taken_back();
  void selective_scan_is_its_recurrence();
  void selective_scans_have_the_same_bits_however_they_are_cut();
  void scanned_positions_are_taken_back();
  void decay_gates();
  void products();

 private:
  RecurrentOps& ops() { return *all_.front(); }
  std::vector<DeltaShape> delta_shapes() const;

  Memory& memory_;
  std::vector<RecurrentOps*> all_;
  int rounds_;
  std::vector<DType> state_dtypes_;  // those that they take
  bool takes_channel_decay_;         // of delta rules
};

}  // namespace paceline
