// Single operations with values that a reference implementation computed in
// double: TOPIC.json lists the cases, TOPIC.safetensors holds the arrays they
// name.
//
//   bool CheckSoftmax(const KernelCase& c, const Context& context,
//                     CaseReport* report) {
//     const KernelArray& x = c.input("x");
//     …
//     CompareElements({c.name(), "softmax"}, found, c.output("softmax").values,
//                     [&](size_t i) { return 1e-6; }, report);
//     return true;
//   }
#ifndef LANEWISE_TESTS_CONFORMANCE_KERNELS_KERNEL_CASE_H_
#define LANEWISE_TESTS_CONFORMANCE_KERNELS_KERNEL_CASE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/case_report.h"

namespace lanewise {

// Integers (positions, buckets, masks) are given as float too: they are small.
struct KernelArray {
  std::vector<size_t> shape;
  std::vector<float> values;
  size_t width = 0;  // of the last axis

  size_t rows() const { return width == 0 ? 0 : values.size() / width; }
  const float* row(size_t r) const { return values.data() + r * width; }
  bool empty() const { return values.empty(); }
};

class KernelTopic {
 public:
  // `stem`: the two files' path without their extensions.
  static absl::StatusOr<KernelTopic> Open(const std::string& stem);

  const nlohmann::json& cases() const { return json_["cases"]; }

  // The array of a field of "inputs" or "outputs"; null when the case has none.
  const KernelArray* Find(const nlohmann::json& one, const char* side,
                          const char* field) const;

 private:
  nlohmann::json json_;
  std::map<std::string, KernelArray> arrays_;
};

class KernelCase {
 public:
  KernelCase(const KernelTopic& topic, const nlohmann::json& one);

  const std::string& name() const { return name_; }
  bool Is(absl::string_view prefix) const;  // whether the name begins so

  // Without elements when the case has no such field.
  const KernelArray& input(const char* field) const;
  const KernelArray& output(const char* field) const;
  bool has(const char* input_field) const {
    return !input(input_field).empty();
  }

  const nlohmann::json& params() const { return params_; }
  double number(const char* param, double absent = 0) const;
  size_t count(const char* param, size_t absent = 0) const {
    return static_cast<size_t>(number(param, static_cast<double>(absent)));
  }
  bool flag(const char* param, bool absent = false) const;
  std::string text(const char* param) const;

 private:
  const KernelArray& Array(const char* side, const char* field) const;

  const KernelTopic& topic_;
  const nlohmann::json& one_;
  std::string name_;
  nlohmann::json params_;
};

// Of each element the difference may be allowed(i); where that is infinite the
// element is not compared. The recorded error is the largest part of what is
// allowed. No expected elements at all are a failure.
void CompareElements(const OutputName& output, absl::Span<const double> found,
                     absl::Span<const float> expected,
                     const std::function<double(size_t)>& allowed,
                     CaseReport* report);
void CompareElements(const OutputName& output, absl::Span<const float> found,
                     absl::Span<const float> expected,
                     const std::function<double(size_t)>& allowed,
                     CaseReport* report);

// At most `part` of the largest expected magnitude.
void CompareToLargest(const OutputName& output, absl::Span<const float> found,
                      absl::Span<const float> expected, double part,
                      CaseReport* report);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_KERNELS_KERNEL_CASE_H_
