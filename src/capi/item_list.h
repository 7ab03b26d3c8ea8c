// Results of calls on many items, each a value or an error, as lists of the C API.
#pragma once

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "capi/call_status.h"
#include "capi/result_store.h"
#include "paceline/results.h"

namespace paceline::capi {

template <class List, class Item>
const List* new_list(std::vector<Item> items, std::unique_ptr<Owned<List>> list) {
  list->count = items.size();
  list->items = list->store.keep(std::move(items));
  return list.release();
}

// `convert(value, store)` makes an item of a value; one that failed has its status and message, and
// is else empty.
template <class List, class Item, class Value, class Convert>
const List* item_list(const std::vector<ItemResult<Value>>& results, const Convert& convert) {
  auto list = std::make_unique<Owned<List>>();
  std::vector<Item> items;
  items.reserve(results.size());
  for (const ItemResult<Value>& result : results) {
    if (const auto* error = std::get_if<ErrorInfo>(&result)) {
      Item& item = items.emplace_back();
      item.status = status_of(error->code);
      item.error = list->store.keep(error->message);
    } else {
      items.push_back(convert(std::get<Value>(result), list->store));
    }
  }
  return new_list(std::move(items), std::move(list));
}

}  // namespace paceline::capi
