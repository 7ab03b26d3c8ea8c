#include "paceline/paceline.h"

#include <string>

#include "base/version.h"

const char* paceline_version() {
  static const std::string version(paceline::kVersion);
  return version.c_str();
}
