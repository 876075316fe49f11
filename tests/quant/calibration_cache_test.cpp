// Tests TensorRT's calibration caches: they are read as TensorRT defines them, written byte for byte, and refused with
// the line.
#include "quant/calibrate/calibration_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "graft/error.hpp"

namespace graft::quant::calibration_cache_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// The table of NVIDIA's sampleINT8, with lines as TensorRT 8 writes them for ONNX models.
const std::string table =
    "TRT-8205-EntropyCalibration2\n"
    "data: 3c008912\n"
    "conv1: 3c88edfc\n"
    "onnx::Conv_329: 3c96d93c\n"
    "(Unnamed Layer* 22) [Constant]_output: 3a4b050c\n"
    "(Unnamed Layer* 64) [Shuffle]_output: 0\n"
    "scope/layer:0: 3c010a14\n"
    "mask: 7f800000\n"
    "tiny: 1\n";

CalibrationCache parse(const std::string& text) { return parse_calibration_cache(text, "a.cache"); }

void expect_refused(const std::string& text, const std::string& message) {
  EXPECT_THAT([&] { (void)parse(text); }, ThrowsMessage<Error>(HasSubstr(message))) << text;
}

TEST(CalibrationCache, ReadsWhatTensorRtWrites) {
  const CalibrationCache cache = parse(table);
  EXPECT_EQ(cache.version, 8205);
  EXPECT_EQ(cache.algorithm, "EntropyCalibration2");
  ASSERT_EQ(cache.entries.size(), 8U);
  EXPECT_EQ(cache.entries[0].tensor, "data");
  EXPECT_EQ(cache.find("onnx::Conv_329")->scale, 0x1.2db278p-6F);
  EXPECT_EQ(cache.find("(Unnamed Layer* 22) [Constant]_output")->scale, 0x1.960a18p-11F);
  EXPECT_EQ(cache.find("(Unnamed Layer* 64) [Shuffle]_output")->scale, 0.F);
  EXPECT_EQ(cache.find("scope/layer:0")->scale, 0x1.021428p-7F) << "1/127";
  EXPECT_EQ(cache.find("mask")->scale, std::numeric_limits<float>::infinity());
  EXPECT_EQ(cache.find("tiny")->scale, std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(cache.find("conv"), nullptr);
}

TEST(CalibrationCache, IsWrittenByteForByte) {
  for (const char* head :
       {"TRT-7000-EntropyCalibration2\n", "TRT-7134-MinMaxCalibration\n", "TRT-8601-EntropyCalibration\n",
        "TRT-9200-LegacyCalibration\n", "TRT-101401-EntropyCalibration2\n"}) {
    const std::string text = head + table.substr(table.find('\n') + 1);
    EXPECT_EQ(format_calibration_cache(parse(text)), text);
  }
  EXPECT_EQ(format_calibration_cache(parse("TRT-8601-MinMaxCalibration")), "TRT-8601-MinMaxCalibration\n");
}

TEST(CalibrationCache, EveryScaleComesBackWithItsBits) {
  CalibrationCache cache{.version = 8601, .algorithm = "MinMaxCalibration", .entries = {}};
  std::mt19937 random(1);
  constexpr std::uint32_t infinity = 0x7f800000;
  std::ostringstream expected;
  expected << "TRT-8601-MinMaxCalibration\n";
  for (int i = 0; i < 5000; ++i) {
    const std::uint32_t bits = random() % (infinity + 1) >> random() % 31;
    cache.entries.push_back({"t" + std::to_string(i), std::bit_cast<float>(bits)});
    expected << "t" << i << ": " << std::hex << bits << std::dec << '\n';
  }
  const std::string text = format_calibration_cache(cache);
  EXPECT_EQ(text, expected.str());
  EXPECT_EQ(parse(text), cache);
}

TEST(CalibrationCache, EditorsAreForgiven) {
  std::string windows;
  for (const char c : table) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(parse(windows), parse(table));
  EXPECT_EQ(parse(table + "\n\n"), parse(table));
  EXPECT_EQ(parse(table.substr(0, table.size() - 1)), parse(table));
  EXPECT_EQ(parse("TRT-8601-MinMaxCalibration\na:3C010A14").entries[0].scale, 0x1.021428p-7F);
}

TEST(CalibrationCache, RefusesByLine) {
  expect_refused("", "a.cache:1: the first line is ''; a calibration cache must begin with TRT-<version>-<algorithm>");
  expect_refused("data: 3c008912\n", "a.cache:1: the first line is 'data: 3c008912'");
  expect_refused("TRT-8601\n", "a.cache:1");
  expect_refused("TRT-6001-EntropyCalibration2\n",
                 "a.cache:1: the version is '6001'; it must be a version of TensorRT 7 to 10");
  expect_refused("TRT-110000-EntropyCalibration2\n", "the version is '110000'");
  expect_refused("TRT-99999999999999999999-EntropyCalibration2\n", "the version is '99999999999999999999'");
  expect_refused("TRT--8601-X\n", "the version is ''");
  expect_refused("TRT-8601-\n", "a.cache:1: the algorithm is ''");
  expect_refused("TRT-8601-Entropy Calibration\n", "the algorithm is 'Entropy Calibration'");
  const std::string head = "TRT-8601-EntropyCalibration2\n";
  expect_refused(head + "data\n", "a.cache:2: the line is 'data'; it must be TENSOR: SCALE");
  expect_refused(head + "a: 1\n: 3c008912\n",
                 "a.cache:3: the line is ': 3c008912'; the name of a tensor must come before the colon");
  expect_refused(head + "data:\n", "a.cache:2: the scale of 'data' is ''; it must be 1 to 8 hexadecimal digits");
  expect_refused(head + "data: 0x3c008912\n", "the scale of 'data' is '0x3c008912'");
  expect_refused(head + "data: 3c0089123\n", "the scale of 'data' is '3c0089123'");
  expect_refused(head + "data: -3c00891\n", "the scale of 'data' is '-3c00891'");
  expect_refused(head + "data: 0.0078\n", "the scale of 'data' is '0.0078'");
  expect_refused(head + "data: 7fc00000\n", "'7fc00000', which is NaN; a scale must be at least 0");
  expect_refused(head + "data: bc008912\n", "'bc008912', which is negative");
  expect_refused(head + "data: 80000000\n", "which is negative");
  expect_refused(head + "a: 1\nb: 1\na: 2\n", "a.cache:4: 'a' already has a scale in line 2");
  expect_refused(head + std::string("da\0ta: 1\n", 9),
                 "a.cache:2: the tensor's name 'da?ta' contains a control character");
  expect_refused(head + std::string(100000, 'x') + "\n", "xxx ...'");
}

TEST(CalibrationCache, RandomDamageIsRefusedOrReadsBack) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text = table;
    for (std::uint32_t n = random() % 4 + 1; n > 0; --n) text[random() % text.size()] = static_cast<char>(random());
    if (random() % 4 == 0) text.resize(random() % text.size());
    try {
      const CalibrationCache cache = parse(text);
      EXPECT_EQ(parse(format_calibration_cache(cache)), cache);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::bad_input);
    }
  }
}

TEST(CalibrationCache, WhatAFileCannotHoldIsNotWritten) {
  const auto format = [](const std::string& tensor, float scale) {
    return format_calibration_cache({.version = 8601, .algorithm = "MinMaxCalibration", .entries = {{tensor, scale}}});
  };
  EXPECT_THROW(static_cast<void>(format("two\nlines", 1)), Error);
  EXPECT_THROW(static_cast<void>(format("", 1)), Error);
  EXPECT_THROW(static_cast<void>(format("a", -1)), Error);
  EXPECT_THROW(static_cast<void>(format("a", std::numeric_limits<float>::quiet_NaN())), Error);
}

TEST(CalibrationCache, FilesAreReadAndWritten) {
  const auto path = std::filesystem::temp_directory_path() / "graft_calibration.cache";
  write_calibration_cache(path, parse(table));
  EXPECT_EQ(read_calibration_cache(path), parse(table));
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), table);
  std::filesystem::remove(path);
  EXPECT_THAT([&] { (void)read_calibration_cache(path); }, ThrowsMessage<Error>(HasSubstr("graft_calibration.cache")));
}

}  // namespace
}  // namespace graft::quant::calibration_cache_test
