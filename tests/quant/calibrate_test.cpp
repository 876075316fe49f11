// Tests images, their recipes, calibration data, and interrupted calibration.
#include "quant/calibrate/calibrate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "data/images.hpp"
#include "graft/error.hpp"
#include "io/npy.hpp"
#include "runtime/default_engine.hpp"
#include "tests/support/text_model.hpp"
#include "verify/compare/figures.hpp"

namespace graft::quant::calibrate_test {
namespace {

using namespace graft::data;  // NOLINT(google-build-using-namespace)

using runtime::default_engine;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Calibrating : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("graft_calibrate_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

Image striped(std::int64_t height, std::int64_t width) {
  Image image{height, width, {}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        image.pixels.push_back(static_cast<std::uint8_t>((37 * y + 11 * x + 5 * c * x * x) % 256));
      }
    }
  }
  return image;
}

void write_png(const std::filesystem::path& path, const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  ASSERT_NE(png_image_write_to_file(&png, path.c_str(), 0, image.pixels.data(), 0, nullptr), 0);
}

void write_jpeg(const std::filesystem::path& path, const Image& image, int sampling = TJSAMP_444, int flags = 0) {
  const tjhandle encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): TurboJPEG's
  ASSERT_EQ(tjCompress2(encoder, image.pixels.data(), static_cast<int>(image.width), 0, static_cast<int>(image.height),
                        TJPF_RGB, &bytes, &size, sampling, 100, flags),
            0);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  tjFree(bytes);
  tjDestroy(encoder);
}

std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<double> prepared(const Image& image, const std::string& recipe) {
  return *prepare_image(image, parse_image_recipe(recipe, "r.yaml"), "an image").numbers();
}

using Images = Calibrating;

TEST_F(Images, AreRead) {
  const Image image = striped(7, 5);
  write_png(folder_ / "a.png", image);
  const Image png = read_image(folder_ / "a.png");
  EXPECT_EQ(png.pixels, image.pixels);
  EXPECT_EQ(png.height, 7);
  EXPECT_EQ(png.width, 5);
  Image smooth{16, 16, {}};
  for (int i = 0; i < 256; ++i) smooth.pixels.insert(smooth.pixels.end(), {200, static_cast<std::uint8_t>(i / 4), 7});
  write_jpeg(folder_ / "a.jpg", smooth);
  const Image jpeg = read_image(folder_ / "a.jpg");
  ASSERT_EQ(jpeg.pixels.size(), smooth.pixels.size());
  for (std::size_t i = 0; i < smooth.pixels.size(); ++i) EXPECT_NEAR(jpeg.pixels[i], smooth.pixels[i], 4);
}

TEST_F(Images, DamagedOnesAreRefused) {
  write_png(folder_ / "a.png", striped(7, 5));
  write_jpeg(folder_ / "a.jpg", striped(16, 16));
  for (const char* name : {"a.png", "a.jpg"}) {
    const std::string whole = bytes_of_file(folder_ / name);
    for (std::size_t size = 0; size + 20 < whole.size(); size += 17) {
      std::ofstream(folder_ / "cut", std::ios::binary) << whole.substr(0, size);
      EXPECT_THROW((void)read_image(folder_ / "cut"), Error) << name << " of " << size << " bytes";
    }
    for (std::size_t i = 0; i < whole.size(); i += 5) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(~damaged[i]);
      std::ofstream(folder_ / "bad", std::ios::binary) << damaged;
      try {
        (void)read_image(folder_ / "bad");
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("bad"));
      }
    }
  }
  std::ofstream(folder_ / "a.gif") << "GIF89a";
  EXPECT_THAT([&] { (void)read_image(folder_ / "a.gif"); },
              ThrowsMessage<Error>(HasSubstr("a.gif: this is neither a JPEG nor a PNG")));
}

/// A JPEG of several scans needs memory for its coefficients in addition to its pixels.
TEST_F(Images, TellTheirMemoryBeforeTheyAreDecoded) {
  const Image image = striped(32, 16);
  const auto bytes_of_pixel = [&](int sampling, int flags) {
    write_jpeg(folder_ / "a.jpg", image, sampling, flags);
    const ImageHeader header = parse_image_header(bytes_of_file(folder_ / "a.jpg"), "a.jpg");
    EXPECT_EQ(header.height, 32);
    EXPECT_EQ(header.width, 16);
    return header.bytes / (header.height * header.width);
  };
  EXPECT_EQ(bytes_of_pixel(TJSAMP_444, 0), 3);
  EXPECT_EQ(bytes_of_pixel(TJSAMP_GRAY, 0), 3);
  EXPECT_EQ(bytes_of_pixel(TJSAMP_444, TJFLAG_PROGRESSIVE), 9);
  EXPECT_EQ(bytes_of_pixel(TJSAMP_420, TJFLAG_PROGRESSIVE), 6);
  EXPECT_EQ(bytes_of_pixel(TJSAMP_GRAY, TJFLAG_PROGRESSIVE), 5);

  write_jpeg(folder_ / "a.jpg", image, TJSAMP_444, TJFLAG_PROGRESSIVE);
  std::string claims = bytes_of_file(folder_ / "a.jpg");
  const std::size_t frame = claims.find("\xff\xc2");
  ASSERT_NE(frame, std::string::npos);
  claims.replace(frame + 5, 4, "\x1f\x40\x1f\x40");  // 8000 x 8000
  EXPECT_THAT([&] { (void)parse_image(claims, "a.jpg"); },
              ThrowsMessage<Error>(HasSubstr("a.jpg: the image of 8000 x 8000 pixels needs 549 MiB while it is read")));
}

TEST_F(Images, OfAnotherSizeAreRefusedByTheirHeaders) {
  write_png(folder_ / "a.png", striped(7, 5));
  const std::string whole = bytes_of_file(folder_ / "a.png");
  std::ofstream(folder_ / "a.png", std::ios::binary) << whole.substr(0, whole.size() - 30);  // no pixels to decode
  const auto refuse = [](const onnx::TensorData& empty) {
    EXPECT_EQ(empty.dims, (std::vector<std::int64_t>{1, 3, 4, 2}));
    throw Error("another size");
  };
  EXPECT_THAT([&] { (void)load_image(folder_ / "a.png", parse_image_recipe("{crop: [4, 2]}", "r.yaml"), refuse); },
              ThrowsMessage<Error>(HasSubstr("another size")));
}

/// Resizing computes no rows and columns outside of the crop, so that only the crop needs memory.
TEST_F(Images, AreTheSameWhereTheCropIsResizedAlone) {
  const Image image = striped(21, 13);
  const std::vector<double> whole = prepared(image, "{resize: [17, 30], layout: nhwc}");
  const std::vector<double> part = prepared(image, "{resize: [17, 30], crop: [5, 8], layout: nhwc}");
  ASSERT_EQ(part.size(), 5U * 8 * 3);
  for (std::size_t i = 0; i < part.size(); ++i) {
    EXPECT_EQ(part[i], whole[((i / 24 + 6) * 30 + 11) * 3 + i % 24]) << i;
  }
  EXPECT_THAT([&] { (void)prepared(image, "resize: [8192, 8192]"); },
              ThrowsMessage<Error>(HasSubstr("an image: the image of 13 x 21 pixels needs 768 MiB")));
}

// The expected values are those of torch.nn.functional.interpolate(image, size, mode="bilinear", antialias=True) of
// PyTorch 2.8.
TEST_F(Images, AreResizedAsPyTorchDoesIt) {
  const std::vector<double> small = prepared(striped(7, 5), "resize: [3, 4]");
  const std::vector<double> expected{34.4643,  47.2976, 60.1309,  72.9643, 113.75,   126.5833,
                                     139.4167, 152.25,  193.0357, 205.869, 218.7024, 162.9643};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(small[i], expected[i], 1e-3) << i;
  const std::vector<double> blue{36.9643, 69.7976, 129.2976, 174.3214, 116.25, 149.0833};
  for (std::size_t i = 0; i < blue.size(); ++i) EXPECT_NEAR(small[2 * expected.size() + i], blue[i], 1e-3) << i;
  const std::vector<double> large = prepared(striped(7, 5), "resize: [9, 6]");
  const std::vector<double> expected_large{
      0.0,      8.25,     17.4167,  26.5833,  35.75,    44.0,     24.6667,  32.9167,  42.0833,  51.25,    60.4167,
      68.6667,  53.4444,  61.6944,  70.8611,  80.0278,  89.1944,  97.4444,  82.2222,  90.4722,  99.6389,  108.8056,
      117.9722, 126.2222, 111.0,    119.25,   128.4167, 137.5833, 146.75,   155.0,    139.7778, 148.0278, 157.1944,
      166.3611, 175.5278, 183.7778, 168.5556, 176.8056, 185.9722, 195.1389, 204.3056, 212.5556, 197.3333, 205.5833,
      214.75,   223.9167, 211.75,   156.0,    222.0,    230.25,   239.4167, 248.5833, 193.75,   10.0};
  for (std::size_t i = 0; i < expected_large.size(); ++i) EXPECT_NEAR(large[i], expected_large[i], 1e-3) << i;
}

TEST_F(Images, AreCroppedAndNormalized) {
  const Image image{
      2, 4, {1, 2, 3, 11, 12, 13, 21, 22, 23, 31, 32, 33, 101, 102, 103, 111, 112, 113, 121, 122, 123, 131, 132, 133}};
  EXPECT_THAT(prepared(image, "crop: [1, 2]"), ElementsAre(11, 21, 12, 22, 13, 23));
  EXPECT_THAT(prepared(image, "{crop: [1, 2], channels: bgr, layout: nhwc}"), ElementsAre(13, 12, 11, 23, 22, 21));
  EXPECT_THAT(prepared(image, "{crop: [1, 1], mean: [1, 2, 3], scale: 0.5}"), ElementsAre(5, 5, 5));
  EXPECT_NEAR(prepared(image, "{crop: 1, channels: gray, mean: 10, scale: 2}").at(0),
              2 * (0.299 * 11 + 0.587 * 12 + 0.114 * 13 - 10), 1e-5);
  EXPECT_EQ(prepared(striped(20, 10), "resize: 5").size(), 3U * 10 * 5);
  EXPECT_THAT([&] { (void)prepared(image, "crop: [3, 3]"); },
              ThrowsMessage<Error>(HasSubstr("an image: the image of 4 x 2 pixels cannot be cropped to 3 x 3")));
}

TEST_F(Images, RecipesAreRefusedByLine) {
  const auto expect_refused = [](const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { (void)parse_image_recipe(text, "r.yaml"); }, ThrowsMessage<Error>(HasSubstr(message))) << text;
  };
  expect_refused("resize: 5\ncolor: rgb\n",
                 "r.yaml:2:1: the key 'color' is unknown; the keys of a recipe are resize, crop");
  expect_refused("resize: big", "r.yaml:1:9: each size of resize must be an integer from 1 to 16384");
  expect_refused("resize: [1, 2, 3]", "resize must be one size or [height, width]");
  expect_refused("crop: 0", "each size of crop must be an integer");
  expect_refused("channels: rgba", "channels is 'rgba'; it must be rgb, bgr or gray");
  expect_refused("mean: [1, 2]", "mean has 2 values; it must have 1, or 3, one for each channel");
  expect_refused("{channels: gray, scale: [1, 2, 3]}", "scale has 3 values; it must have 1");
  expect_refused("scale: .nan", "scale must be a finite number or fraction, such as 1/255, or a list of them");
  for (const char* text : {"scale: 1/0", "scale: 1/", "scale: /255", "scale: 1/2/3", "scale: one/255", "scale: []"}) {
    expect_refused(text, "scale ");
  }
  expect_refused("- 1", "this is not a mapping");
  expect_refused("a: [", "r.yaml:");
  expect_refused("layout: hwc", "layout is 'hwc'; it must be nchw or nhwc");
}

TEST_F(Images, NumbersOfARecipeMayBeFractions) {
  const ImageRecipe recipe = parse_image_recipe("scale: 1/255\nmean: [\"1 / 4\", 0, -3/2]\n", "r.yaml");
  EXPECT_THAT(recipe.scale, testing::ElementsAre(1.0 / 255));
  EXPECT_THAT(recipe.mean, testing::ElementsAre(0.25, 0, -1.5));
  EXPECT_TRUE(recipe.has_scale);
  EXPECT_FALSE(parse_image_recipe("resize: 5\n", "r.yaml").has_scale);
}

onnx::Model small_model() {
  return test::text_model({{"x", onnx::ElementType::f32, {Dim(1), Dim(3), Dim(8), Dim(8)}}},
                          "a = Relu(x)\nb = Mul(a, x)\ny = Neg(b)\n", {"y"});
}

io::NpyArray numbers(std::vector<std::int64_t> shape, float scale) {
  io::NpyArray array{.type = onnx::ElementType::f32, .shape = std::move(shape), .data = {}};
  std::vector<float> values(static_cast<std::size_t>(array.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = scale * static_cast<float>(i) * std::sin(static_cast<float>(i));
  }
  array.data.resize(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

TEST_F(Calibrating, CountsEveryTensorOfEverySample) {
  const onnx::Model model = small_model();
  write_npy(folder_ / "x.npy", numbers({10, 3, 8, 8}, 0.01F));
  const CalibrationData data = open_calibration_data(folder_ / "x.npy", model);
  EXPECT_EQ(data.count, 10);
  EXPECT_THAT(floating_tensors(model), ElementsAre("x", "a", "b", "y"));
  const Calibration found = calibrate(runtime::default_engine(), model, floating_tensors(model), data, {.threads = 1});
  Histogram x;
  Histogram a;
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::vector<double> values = *data.sample(i).at("x").numbers();
    for (const double value : values) {
      const auto number = static_cast<float>(value);
      const float positive = std::max(number, 0.F);
      x.add({&number, 1});
      a.add({&positive, 1});
    }
  }
  EXPECT_EQ(found.tensors.at("x"), x);
  EXPECT_EQ(found.tensors.at("a"), a);
  EXPECT_EQ(found.tensors.at("b").figures().lowest, 0.F);
  EXPECT_EQ(found.tensors.at("y").largest(), found.tensors.at("b").largest());
  EXPECT_EQ(calibrate(runtime::default_engine(), model, floating_tensors(model), data, {.threads = 3}).tensors,
            found.tensors);
}

TEST_F(Calibrating, KilledAndResumedGivesTheSameBits) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const onnx::Model model = small_model();
  std::filesystem::create_directories(folder_ / "data");
  for (int i = 0; i < 23; ++i) {
    write_npy(folder_ / "data" / (std::to_string(100 + i) + ".npy"), numbers({1, 3, 8, 8}, static_cast<float>(i % 7)));
  }
  const std::vector<std::string> tensors = floating_tensors(model);
  const CalibrationData data = open_calibration_data(folder_ / "data", model);
  ASSERT_EQ(data.count, 23);
  CalibrateOptions options{.threads = 1, .state = folder_ / "state.npz", .save_seconds = 0};
  options.progress = [](std::int64_t done, std::int64_t /*total*/) {
    if (done == 13) kill(getpid(), SIGKILL);
  };
  EXPECT_EXIT((void)calibrate(runtime::default_engine(), model, tensors, data, options),
              testing::KilledBySignal(SIGKILL), "");
  ASSERT_TRUE(std::filesystem::exists(options.state));
  std::vector<std::int64_t> seen;
  options.progress = [&](std::int64_t done, std::int64_t /*total*/) { seen.push_back(done); };
  const Calibration resumed = calibrate(runtime::default_engine(), model, tensors, data, options);
  EXPECT_EQ(seen.front(), 13);
  const Calibration whole = calibrate(runtime::default_engine(), model, tensors, data, {.threads = 1});
  EXPECT_EQ(resumed.tensors, whole.tensors);
  EXPECT_EQ(resumed.samples, 23);
  EXPECT_EQ(calibrate(runtime::default_engine(), model, tensors, data, {.threads = 3}).tensors, whole.tensors);

  seen.clear();
  EXPECT_EQ(calibrate(runtime::default_engine(), model, tensors, data, options).tensors, whole.tensors);
  EXPECT_TRUE(seen.empty()) << "nothing is left to run";
  const auto refused = [&](const onnx::Model& other, const std::vector<std::string>& names,
                           const CalibrationData& samples) {
    return [&, names] { (void)calibrate(runtime::default_engine(), other, names, samples, options); };
  };
  EXPECT_THAT(refused(model, {"x"}, data), ThrowsMessage<Error>(HasSubstr("another choice of tensors")));
  const onnx::Model other = test::text_model({{"x", onnx::ElementType::f32, {Dim(1), Dim(3), Dim(8), Dim(8)}}},
                                             "a = Relu(x)\nb = Add(a, x)\ny = Neg(b)\n", {"y"});
  EXPECT_THAT(refused(other, tensors, data), ThrowsMessage<Error>(HasSubstr("another model")));
  write_npy(folder_ / "data" / "999.npy", numbers({1, 3, 8, 8}, 1));
  const CalibrationData more = open_calibration_data(folder_ / "data", model);
  EXPECT_THAT(refused(model, tensors, more), ThrowsMessage<Error>(HasSubstr("another set of data")));
  const std::string bytes = bytes_of_file(options.state);
  std::ofstream(options.state, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_THAT(refused(model, tensors, data), ThrowsMessage<Error>(HasSubstr("state.npz")));
}

/// Returns a function that starts these parts: it returns their bytes in the order of the vector.
StartParts parts_of(std::vector<std::string> parts) {
  return [parts = std::move(parts)](SampleRange /*samples*/) {
    return [parts, next = std::size_t{0}]() mutable {
      return next < parts.size() ? std::optional(parts[next++]) : std::nullopt;
    };
  };
}

TEST_F(Calibrating, PartsInAnyOrderGiveTheSameBits) {
  const onnx::Model model = small_model();
  std::filesystem::create_directories(folder_ / "data");
  for (int i = 0; i < 23; ++i) {
    write_npy(folder_ / "data" / (std::to_string(100 + i) + ".npy"), numbers({1, 3, 8, 8}, static_cast<float>(i % 7)));
  }
  const std::vector<std::string> tensors = floating_tensors(model);
  const CalibrationData data = open_calibration_data(folder_ / "data", model);
  CalibrateOptions options{.threads = 1, .state = folder_ / "whole.npz"};
  const Calibration whole = calibrate(default_engine(), model, tensors, data, options);
  const auto part = [&](std::int64_t begin, std::int64_t end, int threads = 1) {
    return calibrate_part(default_engine(), model, tensors, data, {.begin = begin, .end = end}, {.threads = threads});
  };
  const std::string first = part(0, 9);
  const std::string second = part(9, 10);
  const std::string third = part(10, 23, 3);
  const auto calibrate_with = [&](std::vector<std::string> parts) {
    return calibrate(default_engine(), model, tensors, data,
                     {.state = folder_ / "parts.npz", .parts = parts_of(std::move(parts))});
  };
  EXPECT_THAT([&] { (void)calibrate_with({first, third}); }, ThrowsMessage<Error>(HasSubstr("has sample 9")));
  EXPECT_THAT(
      [&] {
        (void)calibrate_with({third, first, second, first});
      },
      ThrowsMessage<Error>(HasSubstr("the samples 0 to 9: another part has some of them too")));
  EXPECT_THAT(
      [&] {
        (void)calibrate_with({third, part(8, 11)});
      },
      ThrowsMessage<Error>(HasSubstr("the samples 8 to 11: another part has some of them too")));
  ASSERT_FALSE(std::filesystem::exists(folder_ / "parts.npz"));
  const Calibration found = calibrate_with({third, first, second});
  EXPECT_EQ(found.tensors, whole.tensors);
  EXPECT_EQ(found.samples, 23);
  EXPECT_EQ(bytes_of_file(folder_ / "parts.npz"), bytes_of_file(folder_ / "whole.npz"));
}

TEST_F(Calibrating, PartsOfAnotherCalibrationAreRefused) {
  const onnx::Model model = small_model();
  write_npy(folder_ / "x.npy", numbers({4, 3, 8, 8}, 1));
  const CalibrationData data = open_calibration_data(folder_ / "x.npy", model);
  const SampleRange all{.begin = 0, .end = 4};
  const auto calibrate_with = [&](const std::string& part) {
    return [&, part] { (void)calibrate(default_engine(), model, {"a"}, data, {.parts = parts_of({part})}); };
  };
  const auto part = [&](const onnx::Model& other, const std::vector<std::string>& tensors,
                        const CalibrationData& samples) {
    return calibrate_part(default_engine(), other, tensors, samples, all, {.threads = 1});
  };
  EXPECT_THAT(calibrate_with(part(model, {"b"}, data)), ThrowsMessage<Error>(HasSubstr("another choice of tensors")));
  const onnx::Model other = test::text_model({{"x", onnx::ElementType::f32, {Dim(1), Dim(3), Dim(8), Dim(8)}}},
                                             "a = Relu(x)\nb = Add(a, x)\ny = Neg(b)\n", {"y"});
  EXPECT_THAT(calibrate_with(part(other, {"a"}, data)), ThrowsMessage<Error>(HasSubstr("another model")));
  write_npy(folder_ / "other.npy", numbers({4, 3, 8, 8}, 1));
  EXPECT_THAT(calibrate_with(part(model, {"a"}, open_calibration_data(folder_ / "other.npy", model))),
              ThrowsMessage<Error>(HasSubstr("another set of data")));
  EXPECT_THAT([&] { (void)calibrate_part(default_engine(), model, {"a"}, data, {.begin = 3, .end = 5}); },
              ThrowsMessage<Error>(HasSubstr("the samples 3 to 5, and the data have 4 samples here")));
  const std::string whole = part(model, {"a"}, data);
  EXPECT_NO_THROW(calibrate_with(whole)());
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
    EXPECT_THROW(calibrate_with(whole.substr(0, size))(), Error) << size;
  }
  EXPECT_THROW(calibrate_with(whole + "x")(), Error);
}

TEST_F(Calibrating, FoldersOfImagesNeedARecipe) {
  const onnx::Model model = small_model();
  write_png(folder_ / "b.png", striped(9, 12));
  write_jpeg(folder_ / "a.jpg", striped(16, 16));
  EXPECT_THAT([&] { (void)open_calibration_data(folder_, model); },
              ThrowsMessage<Error>(HasSubstr("no recipe describes how the images are prepared")));
  const std::filesystem::path recipe = folder_ / "r.yaml";
  std::ofstream(recipe) << "{resize: 8, crop: 8, scale: 0.00392}";
  const CalibrationData data = open_calibration_data(folder_, model, recipe);
  EXPECT_EQ(data.count, 2);
  EXPECT_THAT(data.sample(0).at("x").dims, ElementsAre(1, 3, 8, 8));
  EXPECT_EQ(calibrate(runtime::default_engine(), model, {"a"}, data, {.threads = 1}).samples, 2);
  write_npy(folder_ / "x.npy", numbers({1, 3, 8, 8}, 1));
  EXPECT_THAT([&] { (void)open_calibration_data(folder_, model, recipe); },
              ThrowsMessage<Error>(HasSubstr("both images and arrays")));
}

TEST_F(Calibrating, DataThatDoNotFitAreRefused) {
  const onnx::Model model = small_model();
  const auto expect_refused = [&](const std::filesystem::path& path, const std::string& message) {
    EXPECT_THAT([&] { (void)open_calibration_data(path, model); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  expect_refused(folder_ / "none", "no such file or folder");
  expect_refused(folder_, "neither images nor arrays");
  io::write_npz(folder_ / "two.npz", {{"p", numbers({4, 3, 8, 8}, 1)}, {"q", numbers({4, 3, 8, 8}, 1)}});
  expect_refused(folder_ / "two.npz",
                 "the file has no array for the input 'x'; it contains p (f32 4x3x8x8), q (f32 4x3x8x8)");
  io::write_npz(folder_ / "label.npz", {{"p", numbers({4, 3, 8, 8}, 1)}, {"label", numbers({4}, 1)}});
  EXPECT_EQ(open_calibration_data(folder_ / "label.npz", model).count, 4);
  EXPECT_EQ(open_calibration_data(folder_ / "label.npz", model, {}, 3).count, 3);
  write_npy(folder_ / "empty.npy", numbers({0, 3, 8, 8}, 1));
  expect_refused(folder_ / "empty.npy", "has 0 samples; one run needs 1");
}

}  // namespace
}  // namespace graft::quant::calibrate_test
