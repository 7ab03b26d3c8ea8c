#include "weights/safetensors.h"

#include <cmath>

#include "tests/expect_error.h"
#include "tests/weights/written_files.h"

namespace paceline {
namespace {

const std::string kValidFile = "dir/model.safetensors";

// The error of a file whose header is `header` and whose data are `num_data_bytes` long.
void expect_refused(ErrorCode code, std::string_view header, size_t num_data_bytes,
                    std::vector<std::string> parts) {
  parts.push_back(kValidFile);
  const std::string file = safetensors_file(header, std::string(num_data_bytes, 'x'));
  SCOPED_TRACE(header.substr(0, 200));
  expect_error(code, parts, [&] { parse_safetensors_header(as_bytes_of(file), kValidFile); });
}

void expect_corrupt(std::string_view header, size_t num_data_bytes,
                    const std::vector<std::string>& parts) {
  expect_refused(ErrorCode::corrupt, header, num_data_bytes, parts);
}

std::string one_tensor(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return R"({"a.w":{"dtype":")" + std::string(dtype) + R"(","shape":)" + std::string(shape) +
         R"(,"data_offsets":)" + std::string(offsets) + "}}";
}

TEST(Safetensors, ReadsWhatWasWrittenSortedByName) {
  const std::vector<FileTensor> written = {
      {"z", "F32", {2, 3}, bytes_of<float>({1, 2, 3, 4, 5, 6})},
      {"m", "BF16", {3}, bytes_of<uint16_t>({0x3F80, 0x4000, 0x4040})},
      {"empty", "F32", {0, 7}, ""},
      {"a", "F16", {1, 2, 1}, bytes_of<uint16_t>({0x3C00, 0x4000})},
      {"scalar", "F32", {}, bytes_of<float>({9})},
  };
  const std::string file = safetensors_file(written);
  const auto tensors = parse_safetensors_header(as_bytes_of(file), kValidFile);
  ASSERT_EQ(tensors.size(), 5u);
  const char* const names[] = {"a", "empty", "m", "scalar", "z"};
  const int written_index[] = {3, 2, 1, 4, 0};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(tensors[i].name, names[i]);
    const auto bytes = tensors[i].bytes;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              written[static_cast<size_t>(written_index[i])].bytes);
  }
  EXPECT_EQ(tensors[0].dtype, DType::f16);
  EXPECT_EQ(tensors[0].shape, (Extents{1, 2, 1}));
  EXPECT_EQ(tensors[1].shape, (Extents{0, 7}));
  EXPECT_EQ(tensors[2].dtype, DType::bf16);
  EXPECT_EQ(tensors[3].shape, Extents{});
  EXPECT_EQ(tensors[4].dtype, DType::f32);
}

TEST(Safetensors, MetadataPaddingUnknownFieldsAndEmptyFilesAreFine) {
  auto count = [](std::string_view header, size_t num_data_bytes) {
    const std::string file = safetensors_file(header, std::string(num_data_bytes, 'x'));
    return parse_safetensors_header(as_bytes_of(file), kValidFile).size();
  };
  EXPECT_EQ(count("{}", 0), 0u);
  EXPECT_EQ(count(R"({"__metadata__":{"format":"pt","":""}}   )", 0), 0u);
  EXPECT_EQ(count(R"({"__metadata__":null})", 0), 0u);  // as mlx writes it
  EXPECT_EQ(count(R"({"__metadata__":{}, "a":{"more":[1,{}],"dtype":"F32","shape":[1],)"
                  R"("data_offsets":[0,4]}})",
                  4),
            1u);
}

TEST(Safetensors, NamesAreUnescaped) {
  const std::string file =
      safetensors_file(R"({"a\u0000\"\u00fc":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})");
  const auto tensors = parse_safetensors_header(as_bytes_of(file), kValidFile);
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, std::string("a\0\"\xC3\xBC", 5));
}

TEST(Safetensors, HeaderLengthIsChecked) {
  auto refused = [](const std::string& file, const std::vector<std::string>& parts) {
    expect_error(ErrorCode::corrupt, parts,
                 [&] { parse_safetensors_header(as_bytes_of(file), kValidFile); });
  };
  refused("", {kValidFile, "header length", "ends after 0 of 8 bytes"});
  refused(std::string("\x02\0\0\0\0\0\0", 7),
          {kValidFile, "header length", "ends after 7 of 8 bytes"});
  std::string file = safetensors_file("{}");
  file[0] = 3;
  refused(file, {kValidFile, "header length: 3 bytes, but only 2 follow", "truncated"});
  // One more than the limit, and lengths that wrap when a few bytes are added.
  refused(std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10), {"100000001 bytes, at most 100000000"});
  refused(std::string(8, '\xFF') + "{}", {"18446744073709551615 bytes, at most 100000000"});
  refused("\xF8" + std::string(7, '\xFF') + "{}", {"header length"});
  // The limit itself is only too long for this file.
  refused(std::string("\0\xE1\xF5\x05\0\0\0\0{}", 10), {"100000000 bytes, but only 2 follow"});
  refused("version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
          {kValidFile, "git lfs pull"});
  refused("<!DOCTYPE html><html>", {kValidFile, "header length", "not a safetensors file?"});
}

TEST(Safetensors, HeaderIsOneJsonObject) {
  expect_corrupt("", 0, {"header: doesn't begin with `{`"});
  expect_corrupt(" {}", 0, {"header: doesn't begin with `{`"});
  expect_corrupt("[]", 0, {"header: doesn't begin with `{`"});
  expect_corrupt("\xEF\xBB\xBF{}", 0, {"header: doesn't begin with `{`"});
  expect_corrupt("{", 0, {"header: not valid JSON: "});
  expect_corrupt("{}}", 0, {"header: not valid JSON: "});
  expect_corrupt("{} {}", 0, {"header: not valid JSON: "});
  expect_corrupt(std::string("{}\0", 3), 0, {"header: not valid JSON: "});
  expect_corrupt("{\"\xFF\":1}", 0, {"header: not valid JSON: "});
  expect_corrupt(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},})", 0,
                 {"header: not valid JSON: "});
  std::string deep = "{\"a\":";
  deep.append(100'000, '[');
  expect_corrupt(deep, 0, {"header: not valid JSON: ", "nested deeper than 64"});
}

TEST(Safetensors, KeysStandOnce) {
  const std::string tensor = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  expect_corrupt(R"({"a":)" + tensor + R"(,"b":)" + tensor + R"(,"a":)" + tensor + "}", 0,
                 {"header: the key \"a\" occurs twice"});
  // The same key in another spelling.
  expect_corrupt(R"({"a":)" + tensor + R"(,"\u0061":)" + tensor + "}", 0,
                 {"header: the key \"a\" occurs twice"});
  expect_corrupt(R"({"__metadata__":{},"__metadata__":{}})", 0,
                 {"the key \"__metadata__\" occurs twice"});
  expect_corrupt(R"({"__metadata__":{"k":"1","k":"2"}})", 0,
                 {"__metadata__: the key \"k\" occurs twice"});
  for (const std::string field :
       {R"("dtype":"F32")", R"("shape":[0])", R"("data_offsets":[0,0])"}) {
    const std::string name = field.substr(0, field.find(':'));
    expect_corrupt(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0],)" + field + "}}", 0,
                   {"header: a: the key " + name + " occurs twice"});
  }
  expect_corrupt(
      R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"note":{"x":{"y":1,"y":1}}}})", 0,
      {"header: a.note.x: the key \"y\" occurs twice"});
}

TEST(Safetensors, MetadataHoldsOnlyStrings) {
  expect_corrupt(R"({"__metadata__":[]})", 0,
                 {"header: __metadata__: found an array, expected an object"});
  expect_corrupt(R"({"__metadata__":{"good":"x","step":7}})", 0,
                 {"__metadata__[\"step\"]: found 7, expected a string"});
  expect_corrupt(R"({"__metadata__":{"o":{}}})", 0, {"[\"o\"]", "found an object"});
}

TEST(Safetensors, TensorFieldsAreThere) {
  expect_corrupt(R"({"a.w":7})", 0, {"tensor \"a.w\": found 7, expected an object"});
  expect_corrupt(R"({"a.w":{"shape":[0],"data_offsets":[0,0]}})", 0,
                 {"tensor \"a.w\": dtype: missing"});
  expect_corrupt(R"({"a.w":{"dtype":"F32","data_offsets":[0,0]}})", 0,
                 {"tensor \"a.w\": shape: missing"});
  expect_corrupt(R"({"a.w":{"dtype":"F32","shape":[0]}})", 0,
                 {"tensor \"a.w\": data_offsets: missing"});
}

TEST(Safetensors, UnsupportedDTypesAreNamed) {
  for (const std::string dtype : {"BOOL", "F4", "F6_E2M3", "I16", "U16", "F8_E4M3FNUZ",
                                  "F8_E5M2FNUZ", "F6_E3M2", "F64", "U64", "C64"}) {
    expect_refused(ErrorCode::unsupported, one_tensor(dtype, "[0]", "[0,0]"), 0,
                   {"tensor \"a.w\": dtype: " + dtype + " can't be read"});
  }
}

TEST(Safetensors, UnknownDTypesAreCorrupt) {
  for (const std::string dtype : {"", "f32", "F33", "BF17", "FLOAT", "F32 "}) {
    expect_corrupt(one_tensor(dtype, "[0]", "[0,0]"), 0,
                   {"tensor \"a.w\": dtype: found \"" + dtype + "\", expected a dtype"});
  }
  expect_corrupt(R"({"a.w":{"dtype":32,"shape":[0],"data_offsets":[0,0]}})", 0,
                 {"tensor \"a.w\": dtype: found 32, expected a string"});
}

TEST(Safetensors, ShapesAreUnsignedIntegersOfAtMostKMaxRank) {
  expect_corrupt(one_tensor("F32", "2", "[0,8]"), 8,
                 {"tensor \"a.w\": shape: found 2, expected an array"});
  expect_corrupt(one_tensor("F32", "[2,-1]", "[0,8]"), 8,
                 {"tensor \"a.w\": shape[1]: found -1, expected an integer from 0 on"});
  expect_corrupt(one_tensor("F32", "[2.0]", "[0,8]"), 8,
                 {"shape[0]: found 2.0, expected an integer"});
  expect_corrupt(one_tensor("F32", "[\"2\"]", "[0,8]"), 8, {"shape[0]: found \"2\""});
  expect_corrupt(one_tensor("F32", "[null]", "[0,8]"), 8, {"shape[0]", "found null"});
  expect_corrupt(one_tensor("F32", "[9223372036854775808]", "[0,8]"), 8,
                 {"shape[0]: found 9223372036854775808, expected an integer below 2^63"});
  expect_corrupt(one_tensor("F32", "[18446744073709551616]", "[0,8]"), 8,
                 {"header: [\"a.w\"].shape[0]: found 18446744073709551616, expected an integer of "
                  "at most 64 bits"});
  const std::string file = safetensors_file(one_tensor("F32", "[1,1,1,1,1,1]", "[0,4]"), "1234");
  EXPECT_EQ(parse_safetensors_header(as_bytes_of(file), kValidFile)[0].shape.rank(), kMaxRank);
  expect_refused(ErrorCode::unsupported, one_tensor("F32", "[1,1,1,1,1,1,1]", "[0,4]"), 4,
                 {"tensor \"a.w\": shape: more than 6 dimensions"});
}

TEST(Safetensors, ShapeTimesDTypeIsCheckedForOverflow) {
  const std::string half = "4294967296";  // 2^32
  // Products that wrap in 64 bits to the eight bytes of data, or to zero.
  expect_corrupt(one_tensor("F32", "[4611686018427387906]", "[0,8]"), 8,
                 {"tensor \"a.w\": shape [4611686018427387906] needs 2^63 bytes or more"});
  expect_corrupt(one_tensor("BF16", "[" + half + "," + half + "]", "[0,0]"), 0,
                 {"needs 2^63 bytes or more"});
  expect_corrupt(one_tensor("F32", "[2147483648,2147483648]", "[0,8]"), 8,
                 {"needs 2^63 bytes or more"});
  // Fits 64 bits, but no signed size.
  expect_corrupt(one_tensor("F32", "[2305843009213693952]", "[0,9223372036854775808]"), 8,
                 {"needs 2^63 bytes or more"});
  // No bytes, but strides that overflow.
  for (const std::string& zeros : {"[0," + half + "," + half + "]", "[" + half + "," + half + ",0]",
                                   "[" + half + ",0," + half + "]"}) {
    expect_corrupt(one_tensor("F16", zeros, "[0,0]"), 0, {"needs 2^63 bytes or more"});
  }
}

TEST(Safetensors, OffsetsAreTwoUnsignedIntegersInOrder) {
  expect_corrupt(one_tensor("F32", "[2]", "8"), 8, {"data_offsets: found 8, expected an array"});
  expect_corrupt(one_tensor("F32", "[2]", "[]"), 8, {"data_offsets: expected two numbers"});
  expect_corrupt(one_tensor("F32", "[2]", "[0]"), 8, {"data_offsets: expected two numbers"});
  expect_corrupt(one_tensor("F32", "[2]", "[0,8,8]"), 8, {"data_offsets: expected two numbers"});
  expect_corrupt(one_tensor("F32", "[2]", "[-1,7]"), 8,
                 {"tensor \"a.w\": data_offsets[0]: found -1, expected an integer from 0 on"});
  expect_corrupt(one_tensor("F32", "[2]", "[0,8.5]"), 8, {"data_offsets[1]"});
  expect_corrupt(one_tensor("F32", "[2]", "[8,0]"), 8,
                 {"tensor \"a.w\": data_offsets: the end 0 is before the begin 8"});
}

TEST(Safetensors, BytesEqualShapeTimesDType) {
  expect_corrupt(one_tensor("F32", "[2]", "[0,4]"), 4,
                 {"tensor \"a.w\": data_offsets: [0, 4] hold 4 bytes, but float32 of shape [2] "
                  "need 8"});
  expect_corrupt(one_tensor("BF16", "[2]", "[0,8]"), 8, {"hold 8 bytes", "need 4"});
  expect_corrupt(one_tensor("F32", "[]", "[0,8]"), 8, {"hold 8 bytes", "need 4"});
  expect_corrupt(one_tensor("F32", "[3,0]", "[0,4]"), 4, {"hold 4 bytes", "need 0"});
}

TEST(Safetensors, TensorsBeyondTheFileAreRefused) {
  expect_corrupt(
      one_tensor("F32", "[2]", "[0,8]"), 7,
      {"tensor \"a.w\": data_offsets: [0, 8] pass the file's 7 bytes of data", "truncated"});
  expect_corrupt(one_tensor("F32", "[1]", "[18446744073709551608,18446744073709551612]"), 8,
                 {"tensor \"a.w\"", "pass the file's 8 bytes"});
  // An exabyte claimed by a file of a few bytes, as in CVE-2026-33298.
  expect_corrupt(one_tensor("F32", "[288230376151711744]", "[0,1152921504606846976]"), 8,
                 {"tensor \"a.w\"", "pass the file's 8 bytes"});
}

std::string two_tensors(std::string_view first, std::string_view second) {
  return R"({"one":{"dtype":"F32","shape":[2],"data_offsets":)" + std::string(first) +
         R"(},"two":{"dtype":"F32","shape":[1],"data_offsets":)" + std::string(second) + "}}";
}

TEST(Safetensors, TensorsFollowEachOtherWithoutGapOrOverlap) {
  const std::string fine = safetensors_file(two_tensors("[4,12]", "[0,4]"), "123456789012");
  EXPECT_EQ(parse_safetensors_header(as_bytes_of(fine), kValidFile).size(), 2u);
  expect_corrupt(
      two_tensors("[0,8]", "[4,8]"), 8,
      {"tensor \"two\": data_offsets: begin at 4, inside tensor \"one\", which ends at 8"});
  expect_corrupt(two_tensors("[0,8]", "[0,4]"), 8, {"tensor \"one\"", "inside tensor \"two\""});
  expect_corrupt(two_tensors("[0,8]", "[9,13]"), 13,
                 {"tensor \"two\": data_offsets: begin at 9, leaving a gap after tensor \"one\""});
  expect_corrupt(two_tensors("[1,9]", "[9,13]"), 13,
                 {"tensor \"one\"", "leaving a gap after the start of the data, which ends at 0"});
}

TEST(Safetensors, EveryDataByteBelongsToATensor) {
  expect_corrupt(one_tensor("F32", "[2]", "[0,8]"), 9,
                 {"data: 1 bytes after tensor \"a.w\" belong to no tensor"});
  expect_corrupt("{}", 3, {"data: 3 bytes after the start of the data belong to no tensor"});
}

TEST(Safetensors, EmptyTensorsMayShareAnOffset) {
  const std::string header = R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                             R"("c":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]}})";
  const std::string file = safetensors_file(header, "1234");
  EXPECT_EQ(parse_safetensors_header(as_bytes_of(file), kValidFile).size(), 3u);
}

TEST(Safetensors, NamesInMessagesAreEscapedAndShort) {
  const std::string name(5'000, 'n');
  const std::string file = safetensors_file(R"({"\u001b[2J\n)" + name + R"(":1})");
  const std::string message = error_message(
      ErrorCode::corrupt, [&] { parse_safetensors_header(as_bytes_of(file), kValidFile); });
  EXPECT_LT(message.size(), 300u);
  EXPECT_TRUE(std::ranges::none_of(message, [](char c) { return c >= 0 && c < ' '; })) << message;
}

}  // namespace
}  // namespace paceline
