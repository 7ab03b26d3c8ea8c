// AdapterSet is the adapters that requests may name.
#pragma once

#include <cstdint>
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
  // The same, at the request of a client. While there are more than `most` of these, the least
  // recently found one that no request holds is removed.
  void add_at_run_time(Handle adapter, int64_t most);
  // False when there is none of this name.
  bool remove(std::string_view name);

 private:
  struct Entry {
    Handle adapter;
    bool is_lasting = true;  // it isn't removed but by name
    mutable uint64_t last_use = 0;
  };
  // Removes the oldest of those that may go into `removed`; false when there is none.
  bool remove_oldest(std::vector<Handle>& removed);

  mutable std::mutex mutex_;
  mutable uint64_t num_uses_ = 0;
  std::map<std::string, Entry, std::less<>> adapters_;
};

}  // namespace paceline
