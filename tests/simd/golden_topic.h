// The recorded values of single operations in tests/data/kernels, for a test of
// one operation: //tests/conformance/kernels has checks of whole topics.
#ifndef LANEWISE_TESTS_SIMD_GOLDEN_TOPIC_H_
#define LANEWISE_TESTS_SIMD_GOLDEN_TOPIC_H_

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/conformance/kernels/kernel_case.h"

namespace lanewise {

using GoldenArray = KernelArray;

// Without cases, and with a test failure, when the files cannot be read.
class GoldenTopic : public KernelTopic {
 public:
  explicit GoldenTopic(const std::string& name) {
    auto topic = Open("tests/data/kernels/" + name);
    EXPECT_TRUE(topic.ok()) << topic.status();
    if (topic.ok()) *static_cast<KernelTopic*>(this) = *std::move(topic);
  }
};

}  // namespace lanewise

#endif  // LANEWISE_TESTS_SIMD_GOLDEN_TOPIC_H_
