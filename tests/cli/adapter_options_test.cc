// Options of LoRA adapters, as texts of the command line.
#include <gtest/gtest.h>

#include "cli/option.h"
#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

Settings with(const std::string& name, CommandId command, const std::vector<std::string>& texts,
              Settings settings = {}) {
  const OptionDef& option = *find_option(name, command);
  apply_option(option, OptionValue(texts), settings);
  return settings;
}

TEST(AdapterOptions, NamedOnesAreAdded) {
  Settings settings = with("lora", CommandId::serve, {"a=/x/y=z", "b=c:d"});
  settings = with("lora-scaled", CommandId::serve, {"c=/x:y:-0.5"}, settings);
  settings = with("lora-modules", CommandId::serve,
                  {"d=/d", R"({"name": "e", "path": "/e", "base_model_name": "m"})"}, settings);
  const auto& loras = settings.load.loras;
  ASSERT_EQ(loras.size(), 5u);
  EXPECT_EQ(loras[0].name, "a");
  EXPECT_EQ(loras[0].path, "/x/y=z");
  EXPECT_EQ(loras[1].path, "c:d");
  EXPECT_EQ(loras[2].path, "/x:y");
  EXPECT_EQ(loras[2].scale, -0.5);
  EXPECT_EQ(loras[3].name, "d");
  EXPECT_EQ(loras[4].name, "e");
  EXPECT_EQ(loras[4].path, "/e");
  EXPECT_EQ(settings.generate.lora, "") << "requests choose";
}

// Every command that has --lora takes DIR and NAME=DIR.
TEST(AdapterOptions, ADirectoryMayHaveAName) {
  for (const CommandId command : {CommandId::generate, CommandId::chat, CommandId::classify,
                                  CommandId::score, CommandId::embed}) {
    for (const char* const text : {"a=/x/y", "/x/y"}) {
      EXPECT_EQ(with("lora", command, {text}).load.loras.at(0).path, "/x/y");
      const LoraSource scaled =
          with("lora-scaled", command, {text + std::string(":0.5")}).load.loras.at(0);
      EXPECT_EQ(scaled.path, "/x/y");
      EXPECT_EQ(scaled.scale, 0.5);
    }
  }
  for (const char* const text : {"a=/x/y", "/x/y"}) {
    EXPECT_EQ(with("lora", CommandId::fuse, {text}).adapter, "/x/y");
  }
  for (const CommandId command : {CommandId::serve, CommandId::batch}) {
    const Settings settings =
        with("lora-scaled", command, {"/x/tone:0.5"},
             with("lora", command, {"/x/sql", "b/", "c/mild.gguf", "/d=e", "f/g=h"}));
    const auto& loras = settings.load.loras;
    ASSERT_EQ(loras.size(), 6u);
    EXPECT_EQ(loras[0].name + " " + loras[0].path, "sql /x/sql");
    EXPECT_EQ(loras[1].name + " " + loras[1].path, "b b/");
    EXPECT_EQ(loras[2].name + " " + loras[2].path, "mild c/mild.gguf");
    EXPECT_EQ(loras[3].name + " " + loras[3].path, "d=e /d=e") << "a name has no slash";
    EXPECT_EQ(loras[4].name + " " + loras[4].path, "g=h f/g=h");
    EXPECT_EQ(loras[5].name + " " + loras[5].path, "tone /x/tone");
    EXPECT_EQ(loras[5].scale, 0.5);
  }
  const TestDirectory there;
  there.write("n=adapter", "");
  const std::string path = there.path() / "n=adapter";
  EXPECT_EQ(with("lora", CommandId::chat, {path}).load.loras.at(0).path, path);
}

TEST(AdapterOptions, ARunHasOne) {
  const Settings settings = with("lora-scaled", CommandId::chat, {"/x:2"});
  ASSERT_EQ(settings.load.loras.size(), 1u);
  EXPECT_EQ(settings.load.loras[0].path, "/x");
  EXPECT_EQ(settings.load.loras[0].scale, 2.0);
  EXPECT_EQ(settings.generate.lora, settings.load.loras[0].name);
  expect_error(ErrorCode::invalid, {"--lora: /x and /y, expected one"},
               [&] { with("lora", CommandId::chat, {"/y"}, settings); });
}

TEST(AdapterOptions, MalformedTextsAreErrorsThatSayWhatIsExpected) {
  const auto refuse = [](const std::string& name, const std::string& text,
                         const std::vector<std::string>& parts) {
    expect_error(ErrorCode::invalid, parts, [&] { with(name, CommandId::serve, {text}); });
  };
  for (const std::string text : {"=x", "x=", ""}) {
    refuse("lora", text, {"--lora: found " + text, "expected NAME=DIR or DIR"});
  }
  refuse("lora-modules", "x", {"--lora-modules: found x, expected NAME=DIR"});
  for (const std::string text : {"a=b", "a=b:", "a=b:x", "a=:1", "a=b:1x", ":1"}) {
    refuse("lora-scaled", text, {"--lora-scaled: found " + text, "NAME=DIR:SCALE"});
  }
  refuse("lora-modules", R"({"name": "e"})", {"--lora-modules", "a member path"});
  refuse("lora-modules", R"({"name": )", {"--lora-modules"});
}

}  // namespace
}  // namespace paceline
