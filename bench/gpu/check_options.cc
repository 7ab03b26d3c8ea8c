#include "bench/gpu/check_options.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/thread_pool.h"

namespace paceline {
namespace {

constexpr std::string_view kUsage =
    "usage: paceline_gpu_check PART... [--device cuda|cuda:N|emulated] [--every N] [--seconds N] "
    "[--small], with the parts device, arithmetic, ops, rows, states, draws, ceilings, kernels, "
    "products, attention and tiles";

[[noreturn]] void refuse(std::string_view what) {
  throw Error(ErrorCode::invalid, fmt::format("{}\n{}", what, kUsage));
}

int read_count(std::string_view option, std::string_view text, int least) {
  int count = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || last != end || count < least) {
    refuse(fmt::format("{}: \"{}\", expected a number of at least {}", option, text, least));
  }
  return count;
}

void read_device(std::string_view text, CheckOptions& options) {
  constexpr std::string_view kNumbered = "cuda:";
  options.emulated = text == "emulated";
  if (options.emulated || text == "cuda") return;
  if (!text.starts_with(kNumbered)) refuse(fmt::format("--device: \"{}\" is no device", text));
  options.device_index = read_count("--device", text.substr(kNumbered.size()), 0);
}

}  // namespace

CheckOptions read_check_options(int argc, char** argv) {
  CheckOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--small") {
      options.is_small = true;
    } else if (!argument.starts_with("--")) {
      options.parts.emplace_back(argument);
    } else if (i + 1 == argc) {
      refuse(fmt::format("{} needs a value, or is unknown", argument));
    } else if (argument == "--device") {
      read_device(argv[++i], options);
    } else if (argument == "--every") {
      options.every = static_cast<size_t>(read_count(argument, argv[++i], 1));
    } else if (argument == "--seconds") {
      options.seconds = read_count(argument, argv[++i], 1);
    } else {
      refuse(fmt::format("{}: unknown option", argument));
    }
  }
  if (options.parts.empty()) refuse("no part was named");
  return options;
}

std::unique_ptr<cuda::CudaDevice> CheckOptions::open() const {
  if (!emulated) return cuda::open_cuda_device(device_index);
  return cuda::make_emulated_device({.num_threads = usable_cores()});
}

}  // namespace paceline
