#include "kernels/cuda/emulation/report.h"

#include <fmt/format.h>

#include <string_view>

namespace paceline::cuda::emulation {
namespace {

struct Group {
  std::string_view what;
  std::string threads;  // "0-31, 40"
  uint32_t first = 0;   // of the last range
  uint32_t last = 0;
};

void close_range(Group& group) {
  if (!group.threads.empty()) group.threads += ", ";
  group.threads += group.first == group.last ? fmt::format("{}", group.first)
                                             : fmt::format("{}-{}", group.first, group.last);
}

}  // namespace

std::string text_of(CallSite site) {
  std::string_view path = site.file;
  for (const std::string_view root : {"/src/", "/tests/"}) {
    const size_t at = path.rfind(root);
    if (at != std::string_view::npos) path = path.substr(root == "/src/" ? at + 5 : at + 1);
  }
  return fmt::format("{}:{}", path, site.line);
}

std::string text_of(const std::vector<ThreadReport>& reports) {
  std::vector<Group> groups;
  for (const ThreadReport& report : reports) {
    Group* group = nullptr;
    for (Group& other : groups) {
      if (other.what == report.what) group = &other;
    }
    if (group == nullptr) {
      groups.push_back({.what = report.what, .first = report.thread, .last = report.thread});
    } else if (group->last + 1 == report.thread) {
      group->last = report.thread;
    } else {
      close_range(*group);
      group->first = group->last = report.thread;
    }
  }
  std::string text;
  for (Group& group : groups) {
    close_range(group);
    text += fmt::format("{}thread{} {} {}", text.empty() ? "" : "; ",
                        group.threads.find_first_of("-,") == std::string::npos ? "" : "s",
                        group.threads, group.what);
  }
  return text;
}

}  // namespace paceline::cuda::emulation
