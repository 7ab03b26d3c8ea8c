// Tape records what one vjp's function computes, and is freed as it is walked backwards.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "autodiff/array.h"
#include "autodiff/operation.h"

namespace paceline::autodiff {

// A step of the recorded function, with what its backward rule reads.
class TapeStep {
 public:
  virtual ~TapeStep() = default;
  // The gradients of the inputs (undefined: zero), given those of the outputs (likewise, at least
  // one is defined).
  virtual Arrays pull_back(const Arrays& cotangents) const = 0;
};

// Every array that the vjp follows has a slot. Steps hold arrays of the transformations outside,
// never traced ones of this tape.
class Tape : public std::enable_shared_from_this<Tape> {
 public:
  explicit Tape(uint64_t level) : level_(level) {}

  uint64_t level() const { return level_; }

  // The array, followed from here on.
  Array follow(const Array& value);
  // Records a step and returns its outputs, followed. `inputs` as the function had them.
  Arrays record(std::unique_ptr<const TapeStep> step, const Arrays& inputs, const Arrays& outputs);

  // Walks backwards from the given outputs of the function and returns the gradients of the first
  // num_primals slots (undefined: zero). Each step is freed as soon as it is done.
  Arrays pull_back(const Arrays& outputs, const Arrays& cotangents, size_t num_primals);

  // Throws Error invalid where an array of this tape is used by another thread, after its vjp has
  // ended, or inside of a checkpointed function that it wasn't given to.
  void check_usable() const;
  void close();

  // While it lives, arrays of the tape can't be used: a checkpointed function runs without them.
  class Pause {
   public:
    explicit Pause(Tape& tape) : tape_(tape) { ++tape_.num_pauses_; }
    ~Pause() { --tape_.num_pauses_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Tape& tape_;
  };

 private:
  struct Record {
    std::unique_ptr<const TapeStep> step;
    std::vector<int64_t> input_slots;  // -1: an input that isn't followed
    Arrays inputs;                     // without elements
    int64_t first_output = 0;
    size_t num_outputs = 0;
  };

  void add_gradient(int64_t slot, const Array& input, const Array& gradient);
  void pull_back_step(const Record& record);

  uint64_t level_;
  std::thread::id thread_ = std::this_thread::get_id();  // the one that called vjp
  int num_pauses_ = 0;
  bool is_closed_ = false;
  int64_t num_slots_ = 0;
  std::vector<Record> records_;
  Arrays cotangents_;  // by slot, while walking backwards
};

// A level above all that exist.
uint64_t next_level();

// The highest transformation that follows one of the arrays, or none.
const Traced* innermost(const Arrays& arrays);

// The arrays as transformations outside of `level` have them.
Array strip(const Array& array, uint64_t level);
Arrays strip(const Arrays& arrays, uint64_t level);

}  // namespace paceline::autodiff
