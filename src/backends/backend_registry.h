// The backends that may compute a model, by name: Paceline itself, and Python children.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace paceline {

inline constexpr std::string_view kNativeBackend = "native";

struct BackendEntry {
  std::string_view name;
  std::string_view package;  // of Python; empty: none
};

// Those of this build, native first.
std::span<const BackendEntry> backends();

// Throws Error invalid with the names that there are, or unsupported for one that this build leaves
// out.
const BackendEntry& find_backend(std::string_view name);

// What to do with a model that Paceline can't compute: "--backend transformers or ... runs it in
// Python, ..."; empty where this build can't.
std::string child_backend_hint();

}  // namespace paceline
