// paceline_gpu_check PART...: checks and measures a GPU, and writes what it finds as JSON lines.
// Exit code 1 when a check failed or something else went wrong, 2 for a wrong command line.
#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "bench/gpu/checks.h"

namespace paceline {
namespace {

void run_part(const std::string& part, cuda::CudaDevice& device, const CheckOptions& options,
              CheckReport& report) {
  if (part == "device") return report_device(device, report);
  if (part == "arithmetic") return check_arithmetic(device, options, report);
  if (part == "ops") return check_ops(device, options, report);
  if (part == "rows") return check_rows(device, options, report);
  if (part == "states") return check_states(device, options, report);
  if (part == "draws") return check_draws(device, options, report);
  if (part == "ceilings") {
    measure_ceilings(device, options, report);
    return;
  }
  const auto measure = part == "kernels"     ? measure_kernels
                       : part == "products"  ? measure_prompt_products
                       : part == "attention" ? measure_prompt_attention
                       : part == "tiles"     ? measure_tiles
                                             : nullptr;
  if (measure != nullptr) {
    return measure(device, measure_ceilings(device, options, report), options, report);
  }
  throw Error(ErrorCode::invalid, fmt::format("there is no part {}", part));
}

int run(const CheckOptions& options) {
  CheckReport report;
  try {
    const auto device = options.open();
    for (const std::string& part : options.parts) run_part(part, *device, options, report);
  } catch (const Error& error) {
    report.check("program", "error", false,
                 [&](JsonWriter& json) { json.member("fault", error.what()); });
  }
  return report.num_failures() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  paceline::CheckOptions options;
  try {
    options = paceline::read_check_options(argc, argv);
  } catch (const paceline::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return paceline::run(options);
}
