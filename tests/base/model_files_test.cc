#include "base/model_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/expect_error.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

TEST(ModelFiles, ThoseOfADirectory) {
  const fs::path directory =
      fs::temp_directory_path() / ("paceline_model_files_" + std::to_string(::getpid()));
  fs::create_directories(directory / "more");
  std::ofstream(directory / "config.json") << "{}";
  std::ofstream(directory / "more" / "b.jinja") << "b";
  std::ofstream(directory / "more" / "a.jinja") << "a";
  std::ofstream(directory / "more" / "c.txt") << "c";
  const ModelFiles files(directory);
  EXPECT_TRUE(files.contains("config.json"));
  EXPECT_FALSE(files.contains("more"));
  EXPECT_EQ(files.read("config.json", 2), "{}");
  EXPECT_EQ(files.where("config.json"), (directory / "config.json").string());
  EXPECT_EQ(files.names_in("more", ".jinja"),
            (std::vector<std::string>{"more/a.jinja", "more/b.jinja"}));
  EXPECT_TRUE(files.names_in("none", ".jinja").empty());
  expect_error(ErrorCode::invalid, {"config.json", "2 bytes, at most 1"},
               [&] { files.read("config.json", 1); });
  expect_error(ErrorCode::not_found, {"absent.json"}, [&] { files.read("absent.json", 9); });
  fs::remove_all(directory);
}

TEST(ModelFiles, TextsAreMadeWhenTheyAreRead) {
  int made = 0;
  ModelFiles::Makers makers;
  makers["config.json"] = [&made] {
    ++made;
    return std::string("{\"a\": 1}");
  };
  const ModelFiles files("model.gguf", std::move(makers));
  EXPECT_TRUE(files.contains("config.json"));
  EXPECT_FALSE(files.contains("tokenizer.json"));
  EXPECT_EQ(made, 0);
  EXPECT_EQ(files.read("config.json", 100), "{\"a\": 1}");
  EXPECT_EQ(made, 1);
  EXPECT_EQ(files.where("config.json"), "model.gguf: config.json");
  EXPECT_EQ(files.origin(), "model.gguf");
  EXPECT_TRUE(files.names_in("more", ".jinja").empty());
  expect_error(ErrorCode::invalid, {"model.gguf: config.json: 8 bytes, at most 7"},
               [&] { files.read("config.json", 7); });
  expect_error(ErrorCode::not_found, {"model.gguf: tokenizer.json"},
               [&] { files.read("tokenizer.json", 100); });
}

TEST(ModelFiles, ATextIsMadeWhereTheDirectoryLacksTheFile) {
  const fs::path directory = fs::temp_directory_path() / "paceline_made_files_test";
  fs::remove_all(directory);
  fs::create_directories(directory);
  ModelFiles files(directory);
  files.add_made("a.json", "a.bin", [] { return std::string("made"); });
  EXPECT_TRUE(files.contains("a.json"));
  EXPECT_EQ(files.read("a.json", 4), "made");
  EXPECT_EQ(files.where("a.json"), (directory / "a.bin").string());
  expect_error(ErrorCode::invalid, {"a.bin", "4 bytes, at most 3"},
               [&] { files.read("a.json", 3); });
  std::ofstream(directory / "a.json") << "own";
  EXPECT_EQ(files.read("a.json", 3), "own");
  EXPECT_EQ(files.where("a.json"), (directory / "a.json").string());
  fs::remove_all(directory);
}

TEST(ModelFiles, NamedFloatsOfPythonBecomeObjects) {
  const ModelFiles files(
      "made", {{"config.json", [] {
                  return std::string(
                      R"({"limit": [0.0, Infinity, -Infinity, NaN], "a": "\"NaN\\", "b": 1})");
                }}});
  const Json json = files.read_json("config.json");
  const auto& limit = json.find("limit")->as_array("limit");
  EXPECT_EQ(*limit[1].find_text("__float__"), "Infinity");
  EXPECT_EQ(*limit[2].find_text("__float__"), "-Infinity");
  EXPECT_EQ(*limit[3].find_text("__float__"), "NaN");
  EXPECT_EQ(*json.find_text("a"), "\"NaN\\");
}

}  // namespace
}  // namespace paceline
