// The product of bits_test on a real model: the default one, 4-bit.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "tests/reproducibility/bits.h"

namespace lanewise {
namespace {

TEST(SmolLm2Bits, SchedulesAndTargets) {
  const char* path = std::getenv("LANEWISE_MODEL");
  ASSERT_NE(path, nullptr);
  auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto context = Context::Create({});
  ASSERT_TRUE(context.ok());
  auto model = Model::Load(**checkpoint, **context, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<int32_t> ids = {504,  3575, 282, 4649, 314,  7042,
                                    28,   284,  357, 6376, 335,  260,
                                    3575, 30,   198, 504,  3575, 282};
  const std::vector<int32_t> decoded = {4649, 314};
  EXPECT_EQ(CompareSchedules(**model, {}, ids, decoded), "");
}

}  // namespace
}  // namespace lanewise
