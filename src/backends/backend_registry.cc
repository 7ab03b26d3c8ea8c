#include "backends/backend_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backends/child_program.h"
#include "base/error.h"

namespace paceline {
namespace {

constexpr BackendEntry kBackends[] = {
    {.name = kNativeBackend, .package = ""},
    {.name = "transformers", .package = "transformers"},
    {.name = "mlx_lm", .package = "mlx-lm"},
};

}  // namespace

std::span<const BackendEntry> backends() {
  return std::span(kBackends).first(has_child_program() ? std::size(kBackends) : 1);
}

const BackendEntry& find_backend(std::string_view name) {
  const auto of_name = [name](const BackendEntry& entry) { return entry.name == name; };
  const auto built = backends();
  const auto found = std::find_if(built.begin(), built.end(), of_name);
  if (found != built.end()) return *found;
  if (std::any_of(std::begin(kBackends), std::end(kBackends), of_name)) child_program();  // throws
  std::vector<std::string_view> names;
  for (const BackendEntry& entry : built) names.push_back(entry.name);
  throw Error(ErrorCode::invalid,
              fmt::format("--backend: found \"{}\", expected {}", name, fmt::join(names, ", ")));
}

std::string child_backend_hint() {
  if (!has_child_program()) return {};
  return "--backend transformers or --backend mlx_lm runs it in a Python that has the package "
         "(--python)";
}

}  // namespace paceline
