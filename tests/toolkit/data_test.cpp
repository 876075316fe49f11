// Tests data in any form: files and tensors in memory, in each function that reads data.
#include "graft/toolkit/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "graft/toolkit/import.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/run.hpp"
#include "graft/toolkit/verify.hpp"
#include "tests/toolkit/digits.hpp"

namespace graft::toolkit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Returns the same values in f64.
Tensor in_f64(const Tensor& tensor) {
  const std::vector<float> values = values_of(tensor);
  Tensor wide{.dtype = TensorType::f64, .shape = tensor.shape, .data = {}};
  wide.data.resize(values.size() * sizeof(double));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    std::memcpy(wide.data.data() + i * sizeof(double), &value, sizeof(double));
  }
  return wide;
}

class Data : public ::testing::Test {
 protected:
  Data() : model_(load(digits("digits.onnx"))), images_(images(8).at("image")) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "samples");
    write_npz(folder_ / "x.npz", {{"pictures", images_}});
    for (std::int64_t i = 0; i < 8; ++i) {
      Tensor sample = images_;
      sample.shape = {1, 8, 8};
      const std::size_t size = images_.data.size() / 8;
      const auto begin = images_.data.begin() + i * static_cast<std::int64_t>(size);
      sample.data.assign(begin, begin + static_cast<std::int64_t>(size));
      write_npz(folder_ / "samples" / (std::to_string(i) + ".npz"), {{"image", sample}});
    }
  }
  ~Data() override { std::filesystem::remove_all(folder_); }

  // Tests run at the same time, so each has its own folder.
  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("toolkit_data_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
  Model model_;
  Tensor images_;
};

TEST_F(Data, FilesAndTensorsHaveTheSameOutputs) {
  Session session(model_);
  const Tensors expected = session.run({{"image", images_}});
  const std::string file = (folder_ / "x.npz").string();
  for (const std::string& source : {file, file + ":pictures", "image=" + file, (folder_ / "samples").string()}) {
    const Tensors found = session.run_data(DataFiles{.sources = {source}});
    ASSERT_EQ(found.at("logits").shape, expected.at("logits").shape) << source;
    const std::vector<float> values = values_of(found.at("logits"));
    const std::vector<float> wanted = values_of(expected.at("logits"));
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 1e-4) << source;
  }
  EXPECT_EQ(read_data({.sources = {(folder_ / "samples").string()}}, model_).runs.size(), 8U);
}

TEST_F(Data, TensorsAreConvertedWithANote) {
  Session session(model_);
  const Tensors expected = session.run({{"", images_}});
  EXPECT_THAT(session.data_notes(), IsEmpty());
  EXPECT_EQ(session.run({{"", in_f64(images_)}}).at("logits").data, expected.at("logits").data);
  EXPECT_THAT(session.data_notes(),
              ElementsAre(HasSubstr("the array is f64; it is converted to f32, the type of input 'image'")));
  VerifyOptions verify;
  verify.data = {{"image", in_f64(images_)}};
  EXPECT_THAT(toolkit::verify(model_, model_, verify).data_notes, ElementsAre(HasSubstr("is converted to f32")));
  QuantizeOptions quantize;
  quantize.precision = Precision::int8;
  quantize.data = {{"image", in_f64(images_)}};
  std::vector<std::string> notes;
  quantize.on_note = [&](const std::string& note) { notes.push_back(note); };
  EXPECT_EQ(toolkit::quantize(model_, quantize).data_notes, notes);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("is converted to f32")));
}

TEST_F(Data, WrongSettingsAreNamed) {
  VerifyOptions both;
  both.data = {{"image", images_}};
  both.data_files.sources = {(folder_ / "x.npz").string()};
  EXPECT_THAT(message_of([&] { static_cast<void>(verify(model_, model_, both)); }),
              HasSubstr("VerifyOptions::data: the input data are also set by data_files"));
  EXPECT_THAT(message_of([&] { static_cast<void>(read_data({.sources = {"imag=x.npy"}}, model_)); }),
              AllOf(HasSubstr("no input 'imag' (did you mean 'image'?)"), HasSubstr("its inputs are image")));
}

}  // namespace
}  // namespace graft::toolkit
