// Tests how OpenVINO's messages are shortened. The strings are messages of OpenVINO 2026.4.1.
#include "runtime/openvino/message.hpp"

#include <gtest/gtest.h>

namespace graft::runtime {
namespace {

TEST(Message, KeepsTheNodeAndTheReason) {
  const std::string text = shorten_openvino_message(
      "Exception from src/frontends/onnx/frontend/src/frontend.cpp:123:\n"
      "Check 'are_all_ok' failed at src/frontends/onnx/frontend/src/core/graph.cpp:334:\n"
      "While validating ONNX node '<Node(Conv): y>':\n"
      "Data batch channel count (3) does not match filter input channel count (4)\n\n");
  EXPECT_EQ(text,
            "While validating ONNX node '<Node(Conv): y>'; Data batch channel count (3) does not match filter input "
            "channel count (4)");
}

TEST(Message, SaysWhereThereIsNoReason) {
  EXPECT_EQ(shorten_openvino_message(""), "OpenVINO reported no reason");
  EXPECT_EQ(shorten_openvino_message("Exception from src/inference/src/cpp/core.cpp:90:\n"),
            "OpenVINO reported no reason");
}

TEST(Message, LeavesOutAdviceToProgrammers) {
  EXPECT_EQ(shorten_openvino_message(
                "FrontEnd API failed with OpConversionFailure:\nModel wasn't fully converted.\nSummary:\n"
                "-- No conversion rule found for operations: strange.Unheard\n"
                "To facilitate the conversion of unsupported operations, refer to ...\n"),
            "No conversion rule found for operations: strange.Unheard");
}

TEST(Message, OfAGuardNamesTheNodeThatIsGuarded) {
  EXPECT_EQ(shorten_openvino_message("Exception from src/inference/src/cpp/infer_request.cpp:223:\n"
                                     "Node Guard_17 of type Reference\n'y' (Gather): an index lies outside\n"),
            "'y' (Gather): an index lies outside");
}

TEST(Message, IsCutOff) {
  const std::string text = shorten_openvino_message(std::string(5000, 'x'));
  EXPECT_LT(text.size(), 620U);
  EXPECT_TRUE(text.ends_with("..."));
}

}  // namespace
}  // namespace graft::runtime
