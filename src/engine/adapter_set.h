// AdapterSet is the adapters that requests may name.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct LoadedAdapter;

// Any thread may call it. An adapter that is removed or replaced lives on until the last request
// that holds it has ended.
class AdapterSet {
 public:
  using Handle = std::shared_ptr<const LoadedAdapter>;

  // Null when there is none of this name.
  Handle find(std::string_view name) const;
  std::vector<Handle> list() const;  // by name
  std::vector<std::string> names() const;

  // Replaces one of the same name.
  void add(Handle adapter);
  // False when there is none of this name.
  bool remove(std::string_view name);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Handle, std::less<>> adapters_;
};

}  // namespace paceline
