#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_cursor.h"
#include "base/model_files.h"
#include "base/request_error.h"
#include "chat/builtin_templates.h"
#include "chat/message_json.h"
#include "chat/template_renderer.h"
#include "chat/template_table.h"
#include "paceline/chat_template.h"

namespace paceline {
namespace {

// Ends with a blank, which a trimming template removes.
constexpr std::string_view kMark = "PACELINE-GOES-ON-BEHIND-THIS ";
constexpr std::string_view kTrimmedMark = kMark.substr(0, kMark.size() - 1);
constexpr std::string_view kBlanks = " \t\n\r\f\v";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// The last part with text.
std::optional<size_t> last_text(const Json::Array& parts) {
  for (size_t i = parts.size(); i > 0; --i) {
    if (parts[i - 1].find_text("text") != nullptr) return i - 1;
  }
  return std::nullopt;
}

// The text to be continued.
const std::string& text_of(const Json& message) {
  const Json* content = message.find_value("content");
  if (content != nullptr && content->is_string()) return *content->string();
  if (content != nullptr && content->is_array()) {
    const Json::Array& parts = *content->array();
    if (const auto last = last_text(parts)) return *parts[*last].find_text("text");
  }
  throw invalid_field("continue_final_message", "the last message has no text that could go on");
}

// The message with a mark behind its text: its content, or the content's last text part. Throws
// Error invalid when it has no text.
Json mark_final_message(const Json& message) {
  Json marked(text_of(message) + std::string(kMark));
  const Json& content = *message.find_value("content");
  if (content.is_string()) return with_member(message, "content", std::move(marked));
  Json::Array parts = *content.array();
  Json& part = parts[*last_text(parts)];
  part = with_member(part, "text", std::move(marked));
  return with_member(message, "content", Json(std::move(parts)));
}

// The prompt up to the mark, without blanks before it if the template trimmed the text. Throws
// Error invalid when the template dropped some text of `message`, which has no mark.
std::string cut_at_mark(std::string rendered, const Json& message) {
  const size_t at = rendered.rfind(kTrimmedMark);
  if (at == std::string::npos || rendered.find(trimmed(text_of(message))) == std::string::npos) {
    throw invalid_field("continue_final_message",
                        "the chat template leaves out some of the last message");
  }
  const bool was_trimmed = rendered.compare(at, kMark.size(), kMark) != 0;
  rendered.resize(at);
  if (was_trimmed) rendered.resize(rendered.find_last_not_of(kBlanks) + 1);
  return rendered;
}

constexpr std::string_view kDefault = "default";
constexpr std::string_view kToolUse = "tool_use";

struct NamedTemplate {
  std::string name;
  std::string where;
  std::string source;
  TemplateRenderer renderer;
};

struct TemplateFile {
  std::string name;   // of the template among several: "default", "tool_use"
  std::string where;  // its file, for messages
  std::string source;
};

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
constexpr size_t kMaxTemplateConfigBytes = size_t{64} << 20;

std::vector<TemplateFile> jinja_files(const ModelFiles& files) {
  constexpr const char* kMain = "chat_template.jinja";
  std::vector<TemplateFile> found;
  if (!files.contains(kMain)) return found;
  found.push_back({std::string(kDefault), kMain, files.read(kMain, kMaxTemplateBytes)});
  for (const std::string& name : files.names_in("additional_chat_templates", ".jinja")) {
    const std::filesystem::path path(name);
    found.push_back(
        {path.stem().string(), path.filename().string(), files.read(name, kMaxTemplateBytes)});
  }
  return found;
}

// `chat_template` of a JSON file: a string, or a list of {"name", "template"}.
std::vector<TemplateFile> json_field(const ModelFiles& files, const std::string& where) {
  std::vector<TemplateFile> found;
  if (!files.contains(where)) return found;
  const Json json = parse_json(files.read(where, kMaxTemplateConfigBytes), files.where(where));
  const auto field = JsonCursor(json, where).find("chat_template");
  if (!field) return found;
  if (!field->is_array()) {
    found.push_back({std::string(kDefault), where, field->string()});
    return found;
  }
  for (const JsonCursor& entry : field->items()) {
    found.push_back({entry.at("name").string(), where, entry.at("template").string()});
  }
  return found;
}

// In order of precedence: chat_template.jinja with additional_chat_templates/*.jinja, else
// chat_template.json, else chat_template of tokenizer_config.json. Empty when there is none. Throws
// Error invalid naming the wrong file and field.
std::vector<TemplateFile> find_template_files(const ModelFiles& files) {
  std::vector<TemplateFile> found = jinja_files(files);
  if (found.empty()) found = json_field(files, "chat_template.json");
  if (found.empty()) found = json_field(files, "tokenizer_config.json");
  return found;
}

// An array, or null when there is none.
Json array_json(const std::string& text, std::string_view where) {
  if (text.empty()) return {};
  Json json = parse_json(text, where);
  if (!json.is_null()) JsonCursor(json, std::string(where)).array();
  return json;
}

Json::Array messages_of(const ChatInput& input) {
  Json::Array messages;
  for (size_t i = 0; i < input.messages.size(); ++i)
    messages.push_back(message_json(input.messages[i], i));
  return messages;
}

void check_continuation(const ChatInput& input) {
  if (input.messages.empty()) throw invalid_field("continue_final_message", "there is no message");
  if (input.add_generation_prompt) {
    throw invalid_field("continue_final_message",
                        "not possible with add_generation_prompt, which begins another message");
  }
}

// The object with this member, unless it has one that isn't null.
Json with_default(const Json& object, std::string_view name, Json value) {
  return object.find_value(name) != nullptr ? object : with_member(object, name, std::move(value));
}

// Templates read the properties of a function's parameters, which a function need not have.
Json with_parameters(const Json& function) {
  const Json completed = with_default(function, "parameters", Json(Json::Object{}));
  const Json& schema = *completed.find("parameters");
  if (!schema.is_object()) return completed;
  const bool is_empty = schema.object()->empty();
  return with_member(
      completed, "parameters",
      with_default(is_empty ? with_member(schema, "type", Json(std::string("object"))) : schema,
                   "properties", Json(Json::Object{})));
}

// A tool is a function, or an object that has one.
Json tools_with_parameters(const Json& tools) {
  if (!tools.is_array()) return tools;
  Json::Array written;
  for (const Json& tool : *tools.array()) {
    const Json* const function = tool.find_value("function");
    if (function != nullptr && function->is_object()) {
      written.push_back(with_member(tool, "function", with_parameters(*function)));
    } else {
      written.push_back(tool.find_value("name") != nullptr ? with_parameters(tool) : tool);
    }
  }
  return Json(std::move(written));
}

NamedJson variables_of(const ChatInput& input, Json::Array messages) {
  NamedJson variables;
  const auto set = [&](std::string_view name, Json value) {
    set_member(variables, name, std::move(value));
  };
  for (const auto& [name, text] : input.special_tokens) set(name, Json(text));
  if (!input.kwargs_json.empty()) {
    const Json kwargs = parse_json(input.kwargs_json, "chat_template_kwargs");
    for (const auto& [name, value] : JsonCursor(kwargs, "chat_template_kwargs").object()) {
      set(name, value);
    }
  }
  // Set last, so that no kwarg replaces them.
  set("messages", Json(std::move(messages)));
  set("tools", tools_with_parameters(array_json(input.tools_json, "tools")));
  set("documents", array_json(input.documents_json, "documents"));
  set("add_generation_prompt", Json(input.add_generation_prompt));
  return variables;
}

}  // namespace

struct ChatTemplate::State {
  std::vector<NamedTemplate> templates;  // at least one
  // Several templates: "tool_use" is for inputs with tools.
  bool chooses_by_tools = false;

  const NamedTemplate* find(std::string_view name) const { return find_named(templates, name); }
  const NamedTemplate& main() const {
    const NamedTemplate* found = find(kDefault);
    return found != nullptr ? *found : templates.front();
  }
  void add(std::string name, std::string where, std::string source) {
    TemplateRenderer renderer(source, where);
    templates.push_back(
        {std::move(name), std::move(where), std::move(source), std::move(renderer)});
  }
};

ChatTemplate::ChatTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

ChatTemplate ChatTemplate::parse(std::string_view source, std::string_view name) {
  auto state = std::make_unique<State>();
  state->add(std::string(kDefault), std::string(name), std::string(source));
  return ChatTemplate(std::move(state));
}

std::optional<ChatTemplate> ChatTemplate::load(const std::filesystem::path& directory,
                                               std::string_view name) {
  return load(ModelFiles(directory), name);
}

std::optional<ChatTemplate> ChatTemplate::load(const ModelFiles& model_files,
                                               std::string_view name) {
  std::vector<TemplateFile> files = find_template_files(model_files);
  auto state = std::make_unique<State>();
  std::vector<std::string> names;
  for (TemplateFile& file : files) {
    names.push_back(file.name);
    const bool is_wanted = name.empty()
                               ? files.size() == 1 || file.name == kDefault || file.name == kToolUse
                               : file.name == name;
    if (is_wanted) state->add(std::move(file.name), std::move(file.where), std::move(file.source));
  }
  if (!state->templates.empty()) {
    state->chooses_by_tools = name.empty();
    return ChatTemplate(std::move(state));
  }
  if (name.empty() && !files.empty()) {  // without a default, the first
    state->add(files[0].name, files[0].where, files[0].source);
    return ChatTemplate(std::move(state));
  }
  if (files.empty()) return std::nullopt;
  throw error_of(ErrorCode::invalid, "chat template \"{}\": the model has {}", name,
                 fmt::join(names, ", "));
}

ChatTemplate ChatTemplate::builtin(std::string_view name) {
  const BuiltinTemplate* found = find_named(kBuiltinTemplates, name);
  if (found != nullptr) return parse(found->source, found->name);
  throw error_of(ErrorCode::invalid, "chat template \"{}\": expected one of {}", name,
                 builtin_template_names());
}

std::string ChatTemplate::render(const ChatInput& input) const {
  const NamedTemplate* with_tools =
      state_->chooses_by_tools && !input.tools_json.empty() ? state_->find(kToolUse) : nullptr;
  const NamedTemplate& chosen = with_tools != nullptr ? *with_tools : state_->main();
  const CivilTime now = input.now ? parse_iso_time(*input.now) : local_time_now();
  Json::Array messages = messages_of(input);
  if (!input.continue_final_message) {
    return chosen.renderer.render(variables_of(input, std::move(messages)), now);
  }
  check_continuation(input);
  const Json last = messages.back();
  messages.back() = mark_final_message(last);
  return cut_at_mark(chosen.renderer.render(variables_of(input, std::move(messages)), now), last);
}

std::string_view ChatTemplate::name() const { return state_->main().where; }

std::string_view ChatTemplate::source() const { return state_->main().source; }

}  // namespace paceline
