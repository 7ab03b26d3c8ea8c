#include "kernels/reference/reference_recurrent_gradients.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline {
namespace {

using Doubles = std::vector<double>;

float* head_row_of(const Tensor& heads, int64_t row, int64_t head) {
  return heads.row<float>(row) + head * heads.stride(1);
}

// One value head of one sequence. With D = exp(g_t) S_(t-1), S_t = D + k_t u_t^T,
// u_t = beta_t (v_t - D^T k_t), or beta_t v_t, and out_t = S_t^T q_t + skip v_t.
class DeltaHeadGradient {
 public:
  DeltaHeadGradient(const DeltaShape& shape, const DeltaGradientInputs& in,
                    const SequenceRows& sequence, int64_t head, const DeltaGradients& out)
      : shape_(shape),
        in_(in),
        sequence_(sequence),
        head_(head),
        key_head_(head / (shape.value_heads / shape.key_heads)),
        is_first_(head % (shape.value_heads / shape.key_heads) == 0),
        out_(out),
        states_(static_cast<size_t>(sequence.num_rows + 1),
                Doubles(static_cast<size_t>(shape.key_dim * shape.value_dim))),
        errors_(static_cast<size_t>(sequence.num_rows),
                Doubles(static_cast<size_t>(shape.value_dim))) {}

  void run() {
    for (int64_t t = 0; t < sequence_.num_rows; ++t) advance(t);
    Doubles dstate(states_[0].size());
    for (int64_t t = sequence_.num_rows - 1; t >= 0; --t) go_back(t, dstate);
  }

 private:
  int64_t row(int64_t t) const { return sequence_.first_row + t; }
  double decay(int64_t t) const {
    return std::exp(double{in_.forward.log_decay.row<float>(row(t))[head_]});
  }
  double beta(int64_t t) const { return double{in_.forward.beta.row<float>(row(t))[head_]}; }
  double skip() const {
    return in_.forward.skip != nullptr ? double{in_.forward.skip->elements<float>()[head_]} : 0.0;
  }
  const float* key(int64_t t) const { return head_row_of(in_.forward.k, row(t), key_head_); }
  const float* query(int64_t t) const { return head_row_of(in_.forward.q, row(t), key_head_); }
  const float* value(int64_t t) const { return head_row_of(in_.forward.v, row(t), head_); }
  size_t at(int64_t i, int64_t c) const { return static_cast<size_t>(i * shape_.value_dim + c); }

  // states_[t + 1] is the one behind row t; errors_[t] is u_t / beta_t.
  void advance(int64_t t) {
    const Doubles& before = states_[static_cast<size_t>(t)];
    Doubles& after = states_[static_cast<size_t>(t + 1)];
    for (int64_t c = 0; c < shape_.value_dim; ++c) {
      double error = double{value(t)[c]};
      for (int64_t i = 0; shape_.corrects && i < shape_.key_dim; ++i) {
        error -= decay(t) * before[at(i, c)] * double{key(t)[i]};
      }
      errors_[static_cast<size_t>(t)][static_cast<size_t>(c)] = error;
      for (int64_t i = 0; i < shape_.key_dim; ++i) {
        after[at(i, c)] = decay(t) * before[at(i, c)] + double{key(t)[i]} * beta(t) * error;
      }
    }
  }

  // dstate is the gradient of the state behind row t, then of the one before it.
  void go_back(int64_t t, Doubles& dstate) {
    const Doubles& before = states_[static_cast<size_t>(t)];
    const Doubles& after = states_[static_cast<size_t>(t + 1)];
    const Doubles& errors = errors_[static_cast<size_t>(t)];
    const float* const dout = head_row_of(in_.dout, row(t), head_);
    Doubles dq(static_cast<size_t>(shape_.key_dim)), dk(dq.size());
    double dbeta = 0.0, dlog_decay = 0.0;
    for (int64_t c = 0; c < shape_.value_dim; ++c) {
      double dupdate = 0.0;
      const double error = errors[static_cast<size_t>(c)];
      for (int64_t i = 0; i < shape_.key_dim; ++i) {
        double& of_state = dstate[at(i, c)];
        of_state += double{query(t)[i]} * double{dout[c]};
        dq[static_cast<size_t>(i)] += after[at(i, c)] * double{dout[c]};
        dk[static_cast<size_t>(i)] += of_state * beta(t) * error;
        dupdate += of_state * double{key(t)[i]};
      }
      dbeta += dupdate * error;
      const double derror = beta(t) * dupdate;
      head_row_of(out_.dv, row(t), head_)[c] =
          static_cast<float>(derror + skip() * double{dout[c]});
      for (int64_t i = 0; i < shape_.key_dim; ++i) {
        const double decayed = decay(t) * before[at(i, c)];
        double& of_state = dstate[at(i, c)];
        if (shape_.corrects) {
          of_state -= double{key(t)[i]} * derror;
          dk[static_cast<size_t>(i)] -= decayed * derror;
        }
        dlog_decay += of_state * decayed;
        of_state *= decay(t);
      }
    }
    out_.dbeta.row<float>(row(t))[head_] = static_cast<float>(dbeta);
    out_.dlog_decay.row<float>(row(t))[head_] = static_cast<float>(dlog_decay);
    add(dq, head_row_of(out_.dq, row(t), key_head_));
    add(dk, head_row_of(out_.dk, row(t), key_head_));
  }

  void add(const Doubles& gradient, float* to) const {
    for (size_t i = 0; i < gradient.size(); ++i) {
      to[i] = static_cast<float>((is_first_ ? 0.0 : double{to[i]}) + gradient[i]);
    }
  }

  const DeltaShape& shape_;
  const DeltaGradientInputs& in_;
  const SequenceRows& sequence_;
  int64_t head_;
  int64_t key_head_;
  bool is_first_;  // of those that share the key head
  const DeltaGradients& out_;
  std::vector<Doubles> states_, errors_;
};

// One channel of one sequence.
class ScanChannelGradient {
 public:
  ScanChannelGradient(const ScanShape& shape, const ScanGradientInputs& in,
                      const SequenceRows& sequence, int64_t channel, const ScanGradients& out)
      : shape_(shape),
        in_(in),
        sequence_(sequence),
        channel_(channel),
        out_(out),
        states_(static_cast<size_t>(sequence.num_rows + 1),
                Doubles(static_cast<size_t>(shape.state_size))) {}

  void run() {
    for (int64_t t = 0; t < sequence_.num_rows; ++t) advance(t);
    Doubles dstate(states_[0].size()), drates(states_[0].size());
    for (int64_t t = sequence_.num_rows - 1; t >= 0; --t) go_back(t, dstate, drates);
    for (int64_t n = 0; out_.dlog_rates != nullptr && n < shape_.state_size; ++n) {
      out_.dlog_rates->row<float>(n)[channel_] +=
          static_cast<float>(drates[static_cast<size_t>(n)]);
    }
  }

 private:
  int64_t row(int64_t t) const { return sequence_.first_row + t; }
  double at(const Tensor& tensor, int64_t t) const {
    return double{tensor.row<float>(row(t))[channel_]};
  }
  double step(int64_t t) const { return at(in_.forward.steps, t); }
  double x(int64_t t) const { return at(in_.forward.x, t); }
  double rate(int64_t n) const { return double{in_.forward.rates.row<float>(n)[channel_]}; }

  // states_[t + 1] is the one behind row t.
  void advance(int64_t t) {
    for (int64_t n = 0; n < shape_.state_size; ++n) {
      const auto i = static_cast<size_t>(n);
      states_[static_cast<size_t>(t + 1)][i] =
          std::exp(-rate(n) * step(t)) * states_[static_cast<size_t>(t)][i] +
          step(t) * x(t) * double{in_.forward.b.row<float>(row(t))[n]};
    }
  }

  void go_back(int64_t t, Doubles& dstate, Doubles& drates) {
    const double dout = at(in_.dout, t);
    double dinput = 0.0, dstep = 0.0;
    for (int64_t n = 0; n < shape_.state_size; ++n) {
      const auto i = static_cast<size_t>(n);
      double& of_state = dstate[i];
      of_state += dout * double{in_.forward.c.row<float>(row(t))[n]};
      add(dout * states_[static_cast<size_t>(t + 1)][i], out_.dc.row<float>(row(t))[n]);
      add(of_state * step(t) * x(t), out_.db.row<float>(row(t))[n]);
      dinput += of_state * double{in_.forward.b.row<float>(row(t))[n]};
      const double decay = std::exp(-rate(n) * step(t));
      const double slope = -rate(n) * decay * states_[static_cast<size_t>(t)][i] * of_state;
      dstep += slope;
      drates[i] += slope * step(t);
      of_state *= decay;
    }
    out_.dx.row<float>(row(t))[channel_] = static_cast<float>(
        step(t) * dinput + double{in_.forward.skip.elements<float>()[channel_]} * dout);
    out_.dsteps.row<float>(row(t))[channel_] = static_cast<float>(x(t) * dinput + dstep);
  }

  // Channels are added up, the first one to nothing.
  void add(double gradient, float& sum) const {
    sum = static_cast<float>((channel_ == 0 ? 0.0 : double{sum}) + gradient);
  }

  const ScanShape& shape_;
  const ScanGradientInputs& in_;
  const SequenceRows& sequence_;
  int64_t channel_;
  const ScanGradients& out_;
  std::vector<Doubles> states_;
};

}  // namespace

void ReferenceRecurrentGradients::do_short_convolution_gradient(
    const ConvolutionShape& shape, const Tensor& taps, const Tensor& dout,
    std::span<const SequenceRows> sequences, const Tensor& dx) {
  for (const SequenceRows& sequence : sequences) {
    for (int64_t p = 0; p < sequence.num_rows; ++p) {
      const int64_t count = std::min(shape.taps, sequence.num_rows - p);
      for (int64_t c = 0; c < shape.channels; ++c) {
        double sum = 0.0;
        for (int64_t j = 0; j < count; ++j) {
          sum += double{taps.row<float>(shape.taps - 1 - j)[c]} *
                 double{dout.row<float>(sequence.first_row + p + j)[c]};
        }
        dx.row<float>(sequence.first_row + p)[c] = static_cast<float>(sum);
      }
    }
  }
}

void ReferenceRecurrentGradients::do_decay_gates_gradient(const DecayGatesInputs& in,
                                                          const Tensor& dx) {
  for (int64_t r = 0; r < dx.size(0); ++r) {
    for (int64_t h = 0; h < dx.size(1); ++h) {
      const double sum = double{in.x.row<float>(r)[h] + in.bias.elements<float>()[h]};
      const double gate = std::max(sum, 0.0) + std::log1p(std::exp(-std::abs(sum)));
      const bool is_bounded = gate < double{in.range.low} || gate > double{in.range.high};
      const double slope = is_bounded ? 0.0 : 1.0 / (1.0 + std::exp(-sum));
      dx.row<float>(r)[h] = static_cast<float>(-double{in.rates.elements<float>()[h]} * slope *
                                               double{in.dout.row<float>(r)[h]});
    }
  }
}

void ReferenceRecurrentGradients::do_delta_rule_gradient(const DeltaShape& shape,
                                                         const DeltaGradientInputs& in,
                                                         std::span<const SequenceRows> sequences,
                                                         const DeltaGradients& out) {
  for (const SequenceRows& sequence : sequences) {
    for (int64_t head = 0; head < shape.value_heads; ++head) {
      DeltaHeadGradient(shape, in, sequence, head, out).run();
    }
  }
}

void ReferenceRecurrentGradients::do_selective_scan_gradient(
    const ScanShape& shape, const ScanGradientInputs& in, std::span<const SequenceRows> sequences,
    const ScanGradients& out) {
  for (const SequenceRows& sequence : sequences) {
    for (int64_t channel = 0; channel < shape.channels; ++channel) {
      ScanChannelGradient(shape, in, sequence, channel, out).run();
    }
  }
}

}  // namespace paceline
