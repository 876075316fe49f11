// Reads an image recipe from YAML. Errors name line and column.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <cmath>
#include <optional>

#include "data/images.hpp"
#include "graft/error.hpp"
#include "onnx/mapped_file.hpp"

namespace graft::data {
namespace {

constexpr std::array<std::string_view, 7> keys{"resize", "crop", "channels", "mean", "scale", "layout", "input"};

class RecipeReader {
 public:
  explicit RecipeReader(const std::string& name) : name_(name) {}

  ImageRecipe read(const std::string& text) {
    constexpr std::size_t most_bytes = 65536;
    if (text.size() > most_bytes) {
      throw Error(fmt::format("{}: the recipe has {} bytes; it may have at most {}", name_, text.size(), most_bytes));
    }
    try {
      return read(YAML::Load(text), text);
    } catch (const YAML::Exception& error) {
      throw Error(
          fmt::format("{}:{}:{}: this is not YAML: {}", name_, error.mark.line + 1, error.mark.column + 1, error.msg));
    }
  }

 private:
  ImageRecipe read(const YAML::Node& document, const std::string& text) const {
    ImageRecipe recipe;
    recipe.text = text;
    if (document.IsNull()) return recipe;
    if (!document.IsMap())
      fail(document, "this is not a mapping; a recipe has lines KEY: VALUE, for example resize: 256");
    for (const auto& entry : document) {
      const std::string key = text_of(entry.first, "a key");
      const YAML::Node& value = entry.second;
      if (key == "resize") {
        read_resize(value, recipe);
      } else if (key == "crop") {
        recipe.crop = size_of(value, "crop");
      } else if (key == "channels") {
        recipe.channels = channels_of(value);
      } else if (key == "mean") {
        recipe.mean = numbers_of(value, "mean");
      } else if (key == "scale") {
        recipe.scale = numbers_of(value, "scale");
        recipe.has_scale = true;
      } else if (key == "layout") {
        recipe.channels_last = is_channels_last(value);
      } else if (key == "input") {
        recipe.input = text_of(value, "the value of input");
      } else {
        fail(entry.first,
             fmt::format("the key '{}' is unknown; the keys of a recipe are {}", key, fmt::join(keys, ", ")));
      }
    }
    check_count(document, "mean", recipe.mean, recipe);
    check_count(document, "scale", recipe.scale, recipe);
    return recipe;
  }

  [[noreturn]] void fail(const YAML::Node& node, const std::string& message) const {
    throw Error(fmt::format("{}:{}:{}: {}", name_, node.Mark().line + 1, node.Mark().column + 1, message));
  }

  [[nodiscard]] std::string text_of(const YAML::Node& node, std::string_view what) const {
    if (!node.IsScalar()) fail(node, fmt::format("{} must be a single word", what));
    return node.Scalar();
  }

  [[nodiscard]] std::int64_t side_of(const YAML::Node& node, std::string_view what) const {
    constexpr std::int64_t longest = 16384;
    std::int64_t side = 0;
    if (!node.IsScalar() || !YAML::convert<std::int64_t>::decode(node, side) || side < 1 || side > longest) {
      fail(node, fmt::format("each size of {} must be an integer from 1 to {}", what, longest));
    }
    return side;
  }

  [[nodiscard]] ImageRecipe::Size size_of(const YAML::Node& node, std::string_view what) const {
    if (node.IsScalar()) return {side_of(node, what), side_of(node, what)};
    if (!node.IsSequence() || node.size() != 2) fail(node, fmt::format("{} must be one size or [height, width]", what));
    return {side_of(node[0], what), side_of(node[1], what)};
  }

  void read_resize(const YAML::Node& node, ImageRecipe& recipe) const {
    if (node.IsScalar()) {
      recipe.shorter_side = side_of(node, "resize");
    } else {
      recipe.resize = size_of(node, "resize");
    }
  }

  [[nodiscard]] ImageRecipe::Channels channels_of(const YAML::Node& node) const {
    const std::string text = text_of(node, "the value of channels");
    if (text == "rgb") return ImageRecipe::Channels::rgb;
    if (text == "bgr") return ImageRecipe::Channels::bgr;
    if (text == "gray") return ImageRecipe::Channels::gray;
    fail(node, fmt::format("channels is '{}'; it must be rgb, bgr or gray", text));
  }

  [[nodiscard]] bool is_channels_last(const YAML::Node& node) const {
    const std::string text = text_of(node, "the value of layout");
    if (text != "nchw" && text != "nhwc") fail(node, fmt::format("layout is '{}'; it must be nchw or nhwc", text));
    return text == "nhwc";
  }

  /// Returns the value of a number, or of a fraction of two numbers such as 1/255; nothing for other text.
  [[nodiscard]] static std::optional<double> parse_number(std::string text) {
    std::erase(text, ' ');
    const auto parse = [](const std::string& part) {
      double number = 0;
      return YAML::convert<double>::decode(YAML::Node(part), number) ? number : std::nan("");
    };
    const std::size_t slash = text.find('/');
    const double number =
        slash == std::string::npos ? parse(text) : parse(text.substr(0, slash)) / parse(text.substr(slash + 1));
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  }

  [[nodiscard]] double number_of(const YAML::Node& node, std::string_view what) const {
    const std::optional<double> number = node.IsScalar() ? parse_number(node.Scalar()) : std::nullopt;
    if (!number)
      fail(node, fmt::format("{} must be a finite number or fraction, such as 1/255, or a list of them", what));
    return *number;
  }

  [[nodiscard]] std::vector<double> numbers_of(const YAML::Node& node, std::string_view what) const {
    if (!node.IsSequence()) return {number_of(node, what)};
    std::vector<double> numbers;
    for (const YAML::Node& item : node) numbers.push_back(number_of(item, what));
    return numbers;
  }

  void check_count(const YAML::Node& document, const char* key, const std::vector<double>& numbers,
                   const ImageRecipe& recipe) const {
    const std::size_t channels = recipe.channels == ImageRecipe::Channels::gray ? 1 : 3;
    if (numbers.size() == 1 || numbers.size() == channels) return;
    fail(document[key], fmt::format("{} has {} values; it must have {}", key, numbers.size(),
                                    channels == 1 ? "1" : fmt::format("1, or {}, one for each channel", channels)));
  }

  const std::string& name_;
};

}  // namespace

ImageRecipe parse_image_recipe(const std::string& text, const std::string& name) {
  return RecipeReader(name).read(text);
}

ImageRecipe read_image_recipe(const std::filesystem::path& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 20U;
  return parse_image_recipe(std::string(onnx::MappedFile::open(path, most_bytes)->view()), path.string());
}

}  // namespace graft::data
