// What reads, ends and deletes stored responses: /v1/responses/ID and what stands beneath it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "protocol/responses_writer.h"
#include "server/engine_link.h"
#include "server/model_call.h"
#include "server/routes.h"

namespace paceline {
namespace {

constexpr std::string_view kPrefix = "/v1/responses/";

// The path without what stands around the id.
std::string id_in(const std::string& path, std::string_view suffix = {}) {
  return path.substr(kPrefix.size(), path.size() - kPrefix.size() - suffix.size());
}

struct Found {
  std::string owner;
  std::string id;
  std::shared_ptr<const StoredResponse> stored;
};

// Throws RequestError for an id that isn't there, or another key's.
Found find_stored(const CallPtr& call, std::string_view suffix = {}) {
  const HttpRequest& request = call->exchange().request();
  ServerContext& context = call->context();
  Found found{.owner = context.keys.tenant_of(request), .id = id_in(request.path, suffix)};
  found.stored = context.responses.find(found.owner, found.id);
  if (found.stored != nullptr) return found;
  throw RequestError(
      "response_id", ErrorReason::response_not_found,
      fmt::format("response_id: no stored response has the id {}", shown_text(found.id)));
}

// Null when it isn't running.
std::shared_ptr<PendingResponse> running_in_background(const CallPtr& call, const Found& found) {
  const auto& running = call->context().background;
  const auto one = running.find(found.id);
  return one == running.end() ? nullptr : one->second.lock();
}

// The stored object, or what is known since.
std::string current_json(const CallPtr& call, const Found& found) {
  const auto running = running_in_background(call, found);
  if (running == nullptr || !running->has_started) return *found.stored->json;
  return responses::with_status(*found.stored->json, "in_progress");
}

void check_no_stream(const CallPtr& call) {
  if (query_member(*call, "stream").value_or("false") == "false") return;
  throw RequestError("stream", ErrorReason::unsupported_parameter,
                     "stream: not supported; a stored response is read whole");
}

void end_background(const CallPtr& call, const Found& found) {
  const auto running = running_in_background(call, found);
  if (running != nullptr) running->fail({ErrorReason::cancelled, "the response was cancelled"});
}

struct Page {
  size_t limit = 20;
  bool is_ascending = false;
  std::string after;
};

Page page_of(const ApiCall& call) {
  constexpr size_t kMostItems = 100;
  Page page;
  if (const auto limit = query_member(call, "limit")) {
    const auto [end, problem] =
        std::from_chars(limit->data(), limit->data() + limit->size(), page.limit);
    if (problem != std::errc() || *end != '\0' || page.limit < 1 || page.limit > kMostItems) {
      throw RequestError(
          "limit", ErrorReason::invalid_value,
          fmt::format("limit: found {}, expected 1 to {}", shown_text(*limit), kMostItems));
    }
  }
  const std::string order = query_member(call, "order").value_or("desc");
  if (order != "asc" && order != "desc") {
    throw RequestError("order", ErrorReason::invalid_value,
                       fmt::format("order: found {}, expected asc or desc", shown_text(order)));
  }
  page.is_ascending = order == "asc";
  page.after = query_member(call, "after").value_or("");
  return page;
}

std::string id_of_item(const Json& item) { return *item.find_value("id")->string(); }

std::string page_json(Json::Array items, const Page& page) {
  if (!page.is_ascending) std::reverse(items.begin(), items.end());
  auto first = items.begin();
  if (!page.after.empty()) {
    first = std::find_if(items.begin(), items.end(),
                         [&](const Json& item) { return id_of_item(item) == page.after; });
    if (first != items.end()) ++first;
  }
  const auto last =
      first + std::min(static_cast<ptrdiff_t>(page.limit), std::distance(first, items.end()));
  return object_json([&](JsonWriter& writer) {
    writer.member("object", "list").key("data").begin_array();
    for (auto item = first; item != last; ++item) writer.tree(*item);
    writer.end_array();
    const bool is_empty = first == last;
    writer.member("first_id", is_empty ? std::nullopt : std::optional(id_of_item(*first)));
    writer.member("last_id", is_empty ? std::nullopt : std::optional(id_of_item(*(last - 1))));
    writer.member("has_more", last != items.end());
  });
}

}  // namespace

void show_response(const CallPtr& call) {
  const Found found = find_stored(call);
  check_no_stream(call);
  call->respond_json(current_json(call, found));
}

void list_input_items(const CallPtr& call) {
  const Found found = find_stored(call, "/input_items");
  Json items = parse_json(*found.stored->input, "the stored items");
  call->respond_json(page_json(*items.array(), page_of(*call)));
}

void delete_response(const CallPtr& call) {
  const Found found = find_stored(call);
  call->context().responses.erase(found.owner, found.id);
  end_background(call, found);
  call->respond_json(object_json([&](JsonWriter& writer) {
    writer.member("id", found.id).member("object", "response").member("deleted", true);
  }));
}

void cancel_response(const CallPtr& call) {
  constexpr std::string_view kSuffix = "/cancel";
  const Found found = find_stored(call, kSuffix);
  end_background(call, found);
  call->respond_json(*find_stored(call, kSuffix).stored->json);
}

}  // namespace paceline
