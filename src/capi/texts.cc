// Tokens and chat templates.
#include "capi/call_status.h"
#include "capi/handles.h"
#include "capi/requests.h"

namespace paceline::capi {
namespace {

// With a zero byte after it; paceline_free_text() frees it.
const char* new_text(const std::string& text, size_t* size) {
  auto* bytes = new char[text.size() + 1];
  text.copy(bytes, text.size());
  bytes[text.size()] = '\0';
  if (size != nullptr) *size = text.size();
  return bytes;
}

}  // namespace
}  // namespace paceline::capi

using namespace paceline;
using namespace paceline::capi;

paceline_status paceline_tokenize(paceline_model* model, const char* text, size_t text_size,
                                  int32_t add_special_tokens, const int32_t** ids,
                                  size_t* num_ids) {
  return guarded([&] {
    begin_result(ids, "ids");
    check_given(num_ids, "num_ids");
    check_given(text, "text");
    const auto found = llm_of(model).tokenize({text, text_size}, add_special_tokens != 0);
    auto* copied = new int32_t[found.size()];
    std::copy(found.begin(), found.end(), copied);
    *ids = copied;
    *num_ids = found.size();
  });
}

void paceline_free_ids(const int32_t* ids) { delete[] ids; }

paceline_status paceline_detokenize(paceline_model* model, const int32_t* ids, size_t num_ids,
                                    int32_t skip_special_tokens, const char** text,
                                    size_t* text_size) {
  return guarded([&] {
    begin_result(text, "text");
    if (num_ids > 0) check_given(ids, "ids");
    *text = new_text(llm_of(model).detokenize({ids, num_ids}, skip_special_tokens != 0), text_size);
  });
}

paceline_status paceline_apply_chat_template(paceline_model* model, const char* messages_json,
                                             const char* tools_json, const char** text,
                                             size_t* text_size) {
  return guarded([&] {
    begin_result(text, "text");
    LLM& llm = llm_of(model);
    paceline_chat_options chat;
    paceline_chat_options_init(&chat);
    chat.tools_json = tools_json;
    *text = new_text(llm.render(chat_input(messages_json, chat)), text_size);
  });
}

void paceline_free_text(const char* text) { delete[] text; }
