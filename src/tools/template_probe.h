// TemplateProbe renders small conversations whose texts are marks that the template doesn't have,
// so that a rendering shows where each of them goes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "paceline/chat_template.h"
#include "tools/turn_format.h"

namespace paceline {

// One call of a conversation.
struct ProbeCall {
  std::string name;
  std::string id;
  Json::Object arguments;
};

// The assistant's turn.
struct ProbeTurn {
  std::optional<Json> content;  // nothing: the message has no such member
  std::vector<ProbeCall> calls;
  bool arguments_are_text = false;
  Json::Object more;  // further members of the message, as reasoning_content
};

// What stands around it.
struct ProbeContext {
  Json::Object kwargs = {};
  bool is_answered = false;  // results of its calls follow
  bool is_followed = false;  // another message of the user and its answer follow
};

// A turn without calls or reasoning, and the generation prompt that begins such a turn; all behind
// the user's message.
struct PlainTurn {
  std::string prompt;
  std::string before;  // the content
  std::string after;
};

// Throws Error unsupported "it can't be found out from the chat template WHAT".
[[noreturn]] void not_derivable(std::string_view what);

class TemplateProbe {
 public:
  using SpecialTokens = std::vector<std::pair<std::string, std::string>>;

  // The template must outlive the probe. `special_tokens` are its variables, as bos_token.
  TemplateProbe(const ChatTemplate& chat_template, SpecialTokens special_tokens);

  // Texts that are in no part of the template; letters, and digits in ids.
  std::string mark(std::string_view name) const { return prefix_ + std::string(name); }
  const std::string& user() const { return user_; }
  const std::string& content() const { return content_; }
  const std::string& result() const { return result_; }

  // A call with strings as arguments, whose keys aren't in alphabetical order.
  ProbeCall call(size_t index) const;

  // What is rendered behind the user's text; nothing when the template raises an error. Throws
  // Error exhausted when it takes too long.
  std::optional<std::string> turn(const ProbeTurn& turn, const ProbeContext& context = {});
  std::optional<std::string> generation_prompt(const Json::Object& kwargs = {});
  // Empty texts where the template raises an error, or writes no content.
  PlainTurn plain_turn(const Json::Object& kwargs = {});
  // All of it, not only what stands behind the user's text.
  std::optional<std::string> whole_prompt(const Json::Object& kwargs);

  // Whether the template writes a system message in front of the user's.
  bool writes_system();

  std::string_view source() const { return template_.source(); }
  // The last error of the template; empty: none.
  const std::string& fault() const { return fault_; }

 private:
  std::optional<std::string> render(Json::Array messages, const Json::Object& kwargs,
                                    bool add_generation_prompt);
  std::string without_prompt(std::string turn, const Json::Object& kwargs);
  std::optional<std::string> behind_user(std::optional<std::string> rendered) const;

  const ChatTemplate& template_;
  SpecialTokens special_tokens_;
  std::string prefix_;
  std::string user_;
  std::string content_;
  std::string result_;
  std::string tools_json_;
  bool always_prompts_ = false;  // whether a generation prompt is asked for or not
  std::string fault_;
  size_t num_renders_ = 0;
};

}  // namespace paceline
