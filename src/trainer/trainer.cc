#include "trainer/trainer.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "kernels/backend.h"

namespace paceline {
namespace {

double mean(std::span<const float> losses) {
  if (losses.empty()) return 0.0;
  double total = 0.0;
  for (const float loss : losses) total += double{loss};
  return total / static_cast<double>(losses.size());
}

std::unique_ptr<Optimizer> make_optimizer(Backend& backend, const TrainedSet& trained,
                                          const TrainerOptions& options) {
  if (const auto* const muon = std::get_if<MuonOptions>(&options.optimizer)) {
    return std::make_unique<Muon>(backend, trained.parameters(), *muon);
  }
  return std::make_unique<AdamW>(trained.parameters(), std::get<AdamWOptions>(options.optimizer),
                                 backend.host_memory());
}

void expect_trained_by(const Backend& backend, const TrainerOptions& options) {
  if (backend.limits().all_training) return;
  if (!std::holds_alternative<MuonOptions>(options.optimizer)) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("train: {} trains without --optimizer muon: leave it out, or give "
                          "--device cpu",
                          backend.name()));
}

}  // namespace

Trainer::Trainer(Backend& backend, ThreadPool& threads, const Decoder& decoder, TrainedSet& trained,
                 const TrainerOptions& options)
    : backend_(backend),
      threads_(threads),
      trained_(trained),
      options_(options),
      pass_(backend, threads, decoder, trained.training(), options.pass),
      optimizer_(make_optimizer(backend, trained, options)) {
  expect_trained_by(backend, options);
}

StepReport Trainer::step(std::span<const TrainBatch> micro_batches) {
  trained_.clear_gradients();
  std::vector<float> losses;
  StepReport report;
  for (const TrainBatch& batch : micro_batches) {
    const Dropout dropout{.rate = options_.dropout,
                          .seed = options_.seed,
                          .step = num_steps(),
                          .first_row = report.num_rows};
    pass_.run(batch, dropout, losses);
    report.num_rows += batch.num_rows();
  }
  trained_.complete_gradients();
  report.loss = mean(losses);
  report.num_tokens = std::ssize(losses);
  report.gradient_norm = gradient_norm(trained_.parameters(), threads_);
  report.learning_rate = options_.learning_rate.at(num_steps());
  if (!std::isfinite(report.loss) || !std::isfinite(report.gradient_norm)) {
    throw Error(ErrorCode::numerical,
                fmt::format("step {}: the loss is {} and the gradient's length {}: try a lower "
                            "learning rate",
                            num_steps() + 1, report.loss, report.gradient_norm));
  }
  const double most = options_.max_gradient_norm;
  const double factor = most > 0 && report.gradient_norm > most ? most / report.gradient_norm : 1.0;
  optimizer_->step(report.learning_rate, factor, threads_);
  trained_.pack(backend_);
  return report;
}

double Trainer::evaluate(std::span<const TrainBatch> batches) {
  std::vector<float> losses;
  for (const TrainBatch& batch : batches) pass_.evaluate(batch, losses);
  return mean(losses);
}

}  // namespace paceline
