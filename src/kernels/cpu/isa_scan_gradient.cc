// The gradient of Mamba's selective scan. Lanes are channels; a chunk's states are computed again
// from the one at its start, with the forward pass's operations.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// One vector of channels of a sequence.
class ScanLanesBackward {
 public:
  // The channels [first, first + count) of the task; sums over channels begin with the first ones.
  ScanLanesBackward(const ScanGradientTask& task, int64_t first, int64_t count)
      : task_(task), first_(first), count_(count), line_(task.state_size * kLanes) {
    float* next = task.scratch;
    const auto take = [&](int64_t lines) {
      float* const part = next;
      next += lines * line_;
      return part;
    };
    rates_ = take(1);
    dstate_ = take(1);
    dlog_rates_ = take(1);
    decays_ = take(kStateChunk);
    states_ = take(kStateChunk + 1);
    starts_ = take(chunks_of(task.num_rows));
  }

  static int64_t scratch(int64_t state_size, int64_t num_rows) {
    return (4 + 2 * kStateChunk + chunks_of(num_rows)) * state_size * kLanes;
  }

  void run() {
    for (int64_t n = 0; n < task_.state_size; ++n) {
      store(rates_ + n * kLanes, -load_upto(task_.rates + n * task_.rates_stride + first_, count_));
      store(dstate_ + n * kLanes, Vec{});
      store(dlog_rates_ + n * kLanes, Vec{});
      store(starts_ + n * kLanes, Vec{});
    }
    const int64_t num_chunks = chunks_of(task_.num_rows);
    for (int64_t chunk = 0; chunk + 1 < num_chunks; ++chunk) {
      advance(chunk);
      __builtin_memcpy(starts_ + (chunk + 1) * line_, states_ + kStateChunk * line_, line_bytes());
    }
    for (int64_t chunk = num_chunks - 1; chunk >= 0; --chunk) {
      advance(chunk);
      for (int64_t i = rows_of(chunk) - 1; i >= 0; --i) go_back(chunk * kStateChunk + i, i);
    }
    if (task_.dlog_rates == nullptr) return;
    for (int64_t n = 0; n < task_.state_size; ++n) {
      store_upto(task_.dlog_rates + n * task_.count + first_, load(dlog_rates_ + n * kLanes),
                 count_);
    }
  }

 private:
  static constexpr int64_t chunks_of(int64_t rows) {
    return round_up(rows, kStateChunk) / kStateChunk;
  }
  int64_t rows_of(int64_t chunk) const {
    return min_of(kStateChunk, task_.num_rows - chunk * kStateChunk);
  }
  size_t line_bytes() const { return static_cast<size_t>(line_) * sizeof(float); }
  Vec lanes(const float* rows, int64_t stride, int64_t row) const {
    return load_upto(rows + row * stride + first_, count_);
  }

  // The chunk's decays and its states; the first state is the one at its start.
  void advance(int64_t chunk) {
    __builtin_memcpy(states_, starts_ + chunk * line_, line_bytes());
    for (int64_t i = 0; i < rows_of(chunk); ++i) {
      const int64_t row = chunk * kStateChunk + i;
      const Vec step = lanes(task_.steps, task_.steps_stride, row);
      const Vec input = step * lanes(task_.x, task_.x_stride, row);
      const float* const b = task_.b + row * task_.b_stride;
      const float* const before = states_ + i * line_;
      for (int64_t n = 0; n < task_.state_size; ++n) {
        const Vec decay = exp(load(rates_ + n * kLanes) * step);
        store(decays_ + i * line_ + n * kLanes, decay);
        store(states_ + (i + 1) * line_ + n * kLanes,
              fma(decay, load(before + n * kLanes), input * b[n]));
      }
    }
  }

  // Back over a row, the `i`-th of its chunk.
  void go_back(int64_t row, int64_t i) {
    const Vec x = lanes(task_.x, task_.x_stride, row);
    const Vec step = lanes(task_.steps, task_.steps_stride, row);
    const Vec dout = lanes(task_.dout, task_.dout_stride, row);
    const Vec input = step * x;
    const float* const b = task_.b + row * task_.b_stride;
    const float* const c = task_.c + row * task_.c_stride;
    float* const db = task_.db + row * task_.state_size;
    float* const dc = task_.dc + row * task_.state_size;
    Vec dinput = {}, dstep = {};
    for (int64_t n = 0; n < task_.state_size; ++n) {
      const Vec decay = load(decays_ + i * line_ + n * kLanes);
      const Vec before = load(states_ + i * line_ + n * kLanes);
      const Vec after = load(states_ + (i + 1) * line_ + n * kLanes);
      const Vec of_state = fma(dout, splat(c[n]), load(dstate_ + n * kLanes));
      add(reduce_add(of_state * input), db[n]);
      add(reduce_add(dout * after), dc[n]);
      dinput = fma(of_state, splat(b[n]), dinput);
      const Vec decayed = of_state * decay;
      store(dstate_ + n * kLanes, decayed);
      const Vec slope = decayed * before * load(rates_ + n * kLanes);
      dstep = dstep + slope;
      store(dlog_rates_ + n * kLanes, fma(slope, step, load(dlog_rates_ + n * kLanes)));
    }
    const Vec skip = load_upto(task_.skip + first_, count_);
    store_upto(task_.dx + row * task_.dx_stride + first_, fma(skip, dout, step * dinput), count_);
    store_upto(task_.dsteps + row * task_.dsteps_stride + first_, fma(x, dinput, dstep), count_);
  }

  void add(float part, float& sum) const { sum = first_ == 0 ? part : sum + part; }

  const ScanGradientTask& task_;
  int64_t first_, count_;
  int64_t line_;  // [state_size][kLanes], of all that follows
  float* rates_;  // negated
  float* dstate_;
  float* dlog_rates_;
  float* decays_;  // of the chunk's rows
  float* states_;  // before and behind them
  float* starts_;  // of chunks
};

void selective_scan_gradient(const ScanGradientTask& task) {
  if (task.num_rows == 0) return;
  for_each_vector(task.count, [&](int64_t first, int64_t count) {
    ScanLanesBackward(task, first, count).run();
  });
}

}  // namespace

void add_scan_gradient_kernels(KernelTable& table) {
  table.selective_scan_gradient = selective_scan_gradient;
  table.scan_gradient_scratch = ScanLanesBackward::scratch;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
